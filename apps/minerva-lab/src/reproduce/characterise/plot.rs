//! A page with a plot for each program: what it read and wrote over time, and below what it did and what the profile says.

use super::{number, phases, sentence};
use minerva_lab::figure::{BatchProgram, Characterised};
use serde_json::Value;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 140.0;
const STRIP: f64 = 16.0;

pub(super) fn page(all: &[(BatchProgram, Characterised)], conditions: &str) -> String {
    let programs: String = all.iter().map(|(program, result)| section(program, result)).collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>What batch programs do</title>\n\
         <style>body{{font:15px sans-serif;margin:2em;max-width:60em}}svg{{background:#fafafa;border:1px solid \
         #ddd}}</style>\n<h1>What batch programs do</h1>\n<p>{conditions}. The curves show bytes read (blue) and written \
         (orange) per second. Below them, the upper strip shows what the program did and the lower one what its profile says: \
         reading (blue), writing (orange), both (green), computing (grey).</p>\n{programs}</html>\n"
    )
}

fn section(program: &BatchProgram, result: &Characterised) -> String {
    let steps: Vec<(f64, f64, f64)> = steps(&result.profile);
    let seconds: f64 = steps.iter().map(|(seconds, ..)| seconds).sum::<f64>().max(f64::MIN_POSITIVE);
    let top = steps.iter().map(|(_, read, written)| read + written).fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {0}\" width=\"{WIDTH}\" height=\"{0}\">", HEIGHT + 2.0 * STRIP);
    let mut x = 0.0;
    for (step, read, written) in steps {
        let width = step / seconds * WIDTH;
        let (low, high) = (read / top * HEIGHT, written / top * HEIGHT);
        svg.push_str(&rectangle((x, HEIGHT - low), (width, low), "#47c"));
        svg.push_str(&rectangle((x, HEIGHT - low - high), (width, high), "#e90"));
        x += width;
    }
    let did = result.did.iter().map(|phase| (phase.kind.to_owned(), phase.seconds)).collect();
    for (row, strip) in [(0.0, did), (1.0, phases(&result.profile))] {
        let mut x = 0.0;
        for (kind, length) in strip {
            let width = (length / seconds * WIDTH).min(WIDTH - x);
            svg.push_str(&rectangle((x, HEIGHT + row * STRIP), (width, STRIP - 2.0), colour(&kind)));
            x += width;
        }
    }
    let top = top / 1e6;
    format!(
        "<h2>{}</h2>\n<p>{}; {seconds:.0} s, up to {top:.0} MB/s</p>\n{svg}</svg>\n",
        program.name,
        sentence(result)
    )
}

/// Length in seconds of each step, and bytes read and written a second.
fn steps(profile: &Value) -> Vec<(f64, f64, f64)> {
    let step = |step: &Value| {
        let seconds = number(step, "seconds").max(1e-3);
        (seconds, number(step, "read_bytes") / seconds, number(step, "write_bytes") / seconds)
    };
    profile.get("steps").and_then(Value::as_array).into_iter().flatten().map(step).collect()
}

fn rectangle((x, y): (f64, f64), (width, height): (f64, f64), colour: &str) -> String {
    format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" fill=\"{colour}\"/>")
}

fn colour(kind: &str) -> &'static str {
    match kind {
        "read" => "#47c",
        "write" => "#e90",
        "shuffle" => "#4a6",
        _ => "#bbb",
    }
}

#[cfg(test)]
mod tests {
    use super::page;
    use minerva_lab::figure::{Characterised, TruePhase, batch_programs};

    #[test]
    fn a_plot_has_a_bar_for_each_step_and_two_strips() {
        let step = serde_json::json!({ "seconds": 1.0, "read_bytes": 5_000_000, "write_bytes": 0 });
        let profile = serde_json::json!({ "steps": [step, step], "phases": [{ "kind": "read", "seconds": 2.0 }] });
        let did = vec![
            TruePhase { kind: "read", seconds: 1.0, bytes: 1 },
            TruePhase { kind: "write", seconds: 1.0, bytes: 1 },
        ];
        let page = page(&[(batch_programs()[0].clone(), Characterised { name: "sort", did, profile })], "a disk");
        assert_eq!(page.matches("<rect").count(), 2 * 2 + 2 + 1, "{page}");
        assert!(page.contains("up to 5 MB/s") && page.contains("50 % of the time"), "{page}");
    }
}
