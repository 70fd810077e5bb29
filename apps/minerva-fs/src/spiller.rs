//! What is looked after once a second. When memory is short, files that nobody has open go to the disk: above a tenant's watermark its own,
//! under pressure of the whole machine a part of everybody's.

use crate::descriptors::Watch;
use crate::looker::Looker;
use crate::settings::Settings;
use crate::tenant::{Tenant, Tenants};
use minerva_cachefs::Tree;
use minerva_config::{FsConfig, TemporaryPoolSettings};
use std::fs;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

const LOOK: Duration = Duration::from_secs(1);
/// Where the kernel says how long tasks waited for memory.
const PRESSURE: &str = "/proc/pressure/memory";
/// Percent of the last ten seconds in which some task waited for memory: from here on everybody gives.
const PRESSURE_PERCENT: f64 = 10.0;
/// The part of what is used that each gives then, a second.
const GIVEN_PART: u64 = 8;

/// Looks once a second.
pub(crate) fn start(tenants: Tenants, settings: Arc<Settings>) -> anyhow::Result<Looker> {
    Looker::start("spiller", move |stop| {
        let mut watch = Watch::default();
        while !stop.comes_within(LOOK) {
            spill(targets(&tenants, &settings.now()), &|| stop.comes_within(Duration::ZERO));
            watch.look(&tenants);
        }
    })
}

/// A tenant that uses more memory than it may keep.
struct Target {
    name: String,
    tree: Arc<Tree>,
    bytes: u64,
}

/// Who has to give, and how much. Who changes which tenants there are does not wait until they have.
fn targets(tenants: &Tenants, config: &FsConfig) -> Vec<Target> {
    let is_short = fs::read_to_string(PRESSURE).is_ok_and(|text| pressure(&text) >= PRESSURE_PERCENT);
    let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
    let of = |tenant: &Tenant| {
        let usage = tenant.temporary.tree.usage();
        let bytes = target(usage.bytes, usage.bytes_max, &config.watermarks_of(&tenant.name), is_short);
        let (name, tree) = (tenant.name.clone(), Arc::clone(&tenant.temporary.tree));
        (usage.bytes > bytes).then_some(Target { name, tree, bytes })
    };
    tenants.iter().filter_map(of).collect()
}

/// A part of each in turn, so that a tenant with much to move does not keep the others waiting, until all are where they are to be.
fn spill(mut targets: Vec<Target>, stop: &dyn Fn() -> bool) {
    while !targets.is_empty() && !stop() {
        targets.retain(|target| {
            let pass = target.tree.spill_some(target.bytes, stop);
            if let Some(error) = pass.error {
                eprintln!(
                    "minerva-fs: {}: {error} while moving files from memory to disk; they stay in memory. Is the stable \
                     pool full or read-only?",
                    target.name
                );
            }
            // What is left is open, or cannot be moved: the next look tries again.
            pass.files > 0 && pass.error.is_none()
        });
    }
}

/// How many bytes may stay in memory.
fn target(used: u64, quota: u64, settings: &TemporaryPoolSettings, is_short: bool) -> u64 {
    let part = |percent: u32| (u128::from(quota) * u128::from(percent) / 100) as u64;
    if used > part(settings.watermark_percent) {
        part(settings.spill_to_percent)
    } else if is_short {
        used - used / GIVEN_PART
    } else {
        used
    }
}

/// The percentage of the last ten seconds; 0 of a line that does not say it.
fn pressure(text: &str) -> f64 {
    let some = text.lines().find_map(|line| line.strip_prefix("some "));
    let average = some.and_then(|some| some.split_whitespace().find_map(|word| word.strip_prefix("avg10=")));
    average.and_then(|average| average.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{pressure, target};
    use minerva_config::TemporaryPoolSettings;

    #[test]
    fn above_the_watermark_a_tenant_gives_its_own_and_under_pressure_everybody() {
        let settings = TemporaryPoolSettings { watermark_percent: 80, spill_to_percent: 60 };
        for (used, is_short, left) in
            [(800, false, 800), (801, false, 600), (801, true, 600), (800, true, 700), (0, true, 0), (1200, false, 600)]
        {
            assert_eq!(target(used, 1000, &settings, is_short), left, "{used} {is_short}");
        }
    }

    #[test]
    fn the_kernels_line_is_read_and_a_torn_one_is_no_pressure() {
        assert_eq!(pressure("some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=99.0"), 12.5);
        for torn in ["", "some", "some avg10=", "full avg10=50.0"] {
            assert_eq!(pressure(torn), 0.0, "{torn}");
        }
    }
}
