//! Reads the golden files and the shared data.

use std::io::Read;
use std::path::PathBuf;

/// A measured value and the bar it has to reach.
pub(crate) struct Measure {
    /// What was measured, in words.
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// In words: at most or at least, and why.
    pub(crate) goal: &'static str,
    pub(crate) met: bool,
}

impl Measure {
    pub(crate) fn at_most(what: &str, value: f64, unit: &'static str, bar: f64, goal: &'static str) -> Self {
        Self { what: what.to_owned(), value, unit, goal, met: value <= bar }
    }

    pub(crate) fn at_least(what: &str, value: f64, unit: &'static str, bar: f64, goal: &'static str) -> Self {
        Self { what: what.to_owned(), value, unit, goal, met: value >= bar }
    }
}

/// A file of the shared data, which lies beside the repository (or where `MINERVA_SHARED_DATA` says) and is not part of it.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = std::env::var_os("MINERVA_SHARED_DATA").map_or(beside, PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: needs shared/data/{name}");
    None
}

/// A file beside the tests.
pub(crate) fn golden(name: &str) -> String {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn json(path: &std::path::Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The text of a gzipped file.
pub(crate) fn unpacked(path: &std::path::Path) -> String {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Reads and writes of a real VM over two hours, KB in each second.
pub(crate) fn cloudphysics() -> Option<[Vec<f64>; 2]> {
    let text = unpacked(&shared("traces/cloudphysics_vm_block_2h.csv.gz")?);
    let mut rates = [vec![0.0; 7200], vec![0.0; 7200]];
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let second = cells[0].parse::<usize>().unwrap() / 1_000_000;
        if second < 7200 {
            rates[usize::from(cells[1] == "W")][second] += cells[2].parse::<f64>().unwrap() / 1000.0;
        }
    }
    Some(rates)
}

/// Prints a figure as `cargo xtask figures` reads it.
pub(crate) fn print(id: &str, measures: impl Iterator<Item = Measure>) {
    for Measure { what, value, unit, goal, met } in measures {
        let value = if value.is_finite() { serde_json::json!(value) } else { serde_json::Value::Null };
        let line =
            serde_json::json!({ "id": id, "value": value, "unit": unit, "goal": goal, "met": met, "detail": what });
        println!("{line}");
    }
}
