//! Recordings of the laboratory's scenes, made by the daemon on an emulated disk: `tests/recordings`. The only real data in which the
//! processes of tenants were looked at: their processors, memory, open files, connections.

use super::data::unpacked;
use super::series::Series;
use minerva_forecast::tenant::{Reading, Usage};
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/laboratory.csv.gz");
/// Cells of a line before those of what processes use.
const CELLS: usize = 6;

/// Each tenant of each recording, as if all were made on one host at once. One in three only tests.
pub(super) fn series() -> Vec<Series> {
    let text = unpacked(Path::new(FILE));
    let mut tenants: BTreeMap<(&str, u32), BTreeMap<usize, Reading>> = BTreeMap::new();
    let mut lengths: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [recording, tenant, step, ..] = cells[..] else { panic!("{line}") };
        let step: usize = step.parse().unwrap();
        let length = lengths.entry(recording).or_default();
        *length = (*length).max(step + 1);
        tenants.entry((recording, tenant.parse().unwrap())).or_default().insert(step, reading(&cells));
    }
    let all = tenants.iter().enumerate();
    all.map(|(number, ((recording, _), by_step))| of_tenant(by_step, number % 3 == 2, lengths[recording])).collect()
}

/// A step without a line is one in which it did nothing.
fn of_tenant(by_step: &BTreeMap<usize, Reading>, only_tests: bool, length: usize) -> Series {
    let (begins, last) = (*by_step.keys().next().unwrap(), *by_step.keys().next_back().unwrap());
    let silent = Reading { elapsed_seconds: 1.0, ..Reading::default() };
    let readings = (begins..=last).map(|step| by_step.get(&step).copied().unwrap_or(silent)).collect();
    Series { readings, only_tests, begins, length }
}

fn reading(cells: &[&str]) -> Reading {
    let number = |at: usize| -> f64 { cells[at].parse().unwrap() };
    let usage = || Usage {
        cpus: number(CELLS),
        memory_bytes: number(CELLS + 1),
        network_bytes_per_second: number(CELLS + 2),
        open_files: number(CELLS + 3),
        open_sockets: number(CELLS + 4),
        open_file_bytes: number(CELLS + 5),
    };
    Reading {
        elapsed_seconds: number(3),
        read_bytes: number(4),
        write_bytes: number(5),
        usage: (!cells[CELLS].is_empty()).then(usage),
        ..Reading::default()
    }
}
