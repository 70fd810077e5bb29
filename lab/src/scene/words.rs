//! What the runs showed, in plain words.

use super::{Comparison, RunResult, Scene, TenantChange, signed_percent};
use minerva_model::Nanos;

/// A change below this is none, in percent: runs differ by as much.
const NOISE_PERCENT: f64 = 3.0;

/// One paragraph for all scenes: who gained, what it cost, and what the whole disk did.
pub fn in_plain_words(scenes: &[Scene], runs: &[RunResult]) -> String {
    let sentences = Comparison::all(runs).into_iter().filter_map(|comparison| {
        let scene = scenes.iter().find(|scene| scene.name == comparison.scene)?;
        Some(sentence(scene, &comparison))
    });
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        return "Only equal weights were played: there is nothing to compare.".to_owned();
    }
    sentences.join(" ")
}

/// What one scene showed.
pub(super) fn sentence(scene: &Scene, comparison: &Comparison) -> String {
    let tenants: Vec<String> = comparison.tenants.iter().map(change).collect();
    let disk = comparison.disk_percent;
    let whole = if (disk - 100.0).abs() <= NOISE_PERCENT {
        format!("the whole disk delivered as much as before ({disk:.0} %)")
    } else {
        format!("the whole disk delivered {disk:.0} % of what it did before")
    };
    let mut text =
        format!("{}. Under {} instead of equal weights {}; {whole}.", scene.title, comparison.steering, join(&tenants));
    let is_silent = scene.tenants.iter().all(|tenant| tenant.part.is_none());
    if is_silent && scene.last_arrival() == Nanos::ZERO {
        text.push_str(why(comparison.steering.as_str(), short_gained(scene, comparison)));
    }
    text
}

/// What explains the result where all start at once, when nobody has a history. Nothing where the result is not the expected one.
fn why(steering: &str, short_gained: bool) -> &'static str {
    match (steering, short_gained) {
        ("fennel", false) => {
            " Nobody has a history when all start at once: a scheduler that only reacts learns who is heavy when the short ones are \
             nearly done."
        }
        ("minerva", true) => {
            " Nobody has a history when all start at once: Minerva foresaw from earlier sessions like these which ones would be \
             done soon."
        }
        ("minerva", false) => " Forecasts did not help the short ones in this run.",
        _ => "",
    }
}

/// Whether the shorter half of the tenants took less time in the mean, by more than runs differ.
fn short_gained(scene: &Scene, comparison: &Comparison) -> bool {
    let mut tenants: Vec<(u64, f64)> = (scene.tenants.iter().map(|plan| plan.bytes))
        .zip(comparison.tenants.iter().map(|tenant| tenant.completion_change_percent))
        .collect();
    tenants.sort_by_key(|(bytes, _)| *bytes);
    tenants.truncate((tenants.len() / 2).max(1));
    let mean = tenants.iter().map(|(_, change)| change).sum::<f64>() / tenants.len() as f64;
    mean < -NOISE_PERCENT
}

fn change(tenant: &TenantChange) -> String {
    let percent = tenant.completion_change_percent;
    if percent.abs() <= NOISE_PERCENT {
        format!("{} took as long as before ({})", tenant.name, signed_percent(percent))
    } else if percent < 0.0 {
        format!("{} was done in {:.0} % less time", tenant.name, -percent)
    } else {
        format!("{} took {percent:.0} % longer", tenant.name)
    }
}

fn join(parts: &[String]) -> String {
    match parts {
        [] => "nothing was measured".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use crate::scene::{Comparison, Scene, TenantChange};

    #[test]
    fn gains_costs_and_noise_are_told_apart() {
        let tenants = [("a", -52.0), ("b", 1.0), ("c", 7.0)];
        let tenants =
            tenants.map(|(name, percent)| TenantChange { name: name.to_owned(), completion_change_percent: percent });
        let comparison = Comparison {
            scene: "noisy-neighbour".to_owned(),
            steering: "minerva".to_owned(),
            tenants: tenants.to_vec(),
            disk_percent: 100.4,
            contended_percent: 120.0,
        };
        let text = sentence(&Scene::noisy_neighbour(0.1), &comparison);
        let meant = "a was done in 52 % less time, b took as long as before (+1 %) and c took 7 % longer; the whole disk \
                     delivered as much as before (100 %).";
        assert!(text.ends_with(meant), "{text}");
    }

    #[test]
    fn what_explains_a_scene_goes_by_its_result() {
        let of = |steering: &str, changes: [f64; 4]| {
            let tenants = changes
                .map(|completion_change_percent| TenantChange { name: "tenant".to_owned(), completion_change_percent });
            let comparison = Comparison {
                scene: "together".to_owned(),
                steering: steering.to_owned(),
                tenants: tenants.to_vec(),
                disk_percent: 100.0,
                contended_percent: 100.0,
            };
            sentence(&Scene::together(0.1), &comparison)
        };
        assert!(of("minerva", [-50.0, -30.0, 2.0, 0.0]).contains("Minerva foresaw"));
        let lost = of("minerva", [4.0, -2.0, -40.0, 0.0]);
        assert!(lost.ends_with("Forecasts did not help the short ones in this run.") && !lost.contains("foresaw"));
        assert!(of("fennel", [0.0, 0.0, 1.0, 0.0]).contains("only reacts"));
        assert!(!of("fennel", [-40.0, -30.0, 1.0, 0.0]).contains("only reacts"), "it did gain");
    }
}
