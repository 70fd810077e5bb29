//! `minerva-lab figure …`: each prints one line a condition, with `--json` in the form of docs/figures.md.

mod against_kernel;
mod cache_loss;
pub(crate) mod cache_migration;
pub(crate) mod cache_report;
mod cache_tenants;
mod cache_throughput;
mod characterise;
mod clients;
mod crowd;
mod endogenic;
mod gaps;
mod idle;
pub(crate) mod in_guest;
mod kill_restore;
pub(crate) mod makespan;
mod noisy_neighbour;
mod rise;
mod undo_bites;
mod vm_aggregate;
mod vm_contracts;
mod vm_endogenic;
mod vm_mix;
mod vm_tags;
mod vm_urgent;
mod weights_bite;
pub(crate) mod worth;

use crate::cli::{FigureCommand, Output};
use crate::{binaries, output};

use minerva_lab::scene::{FixedWeights, Minervad, Steering};

/// The daemon's own default.
pub(crate) const SLICE_MS: u64 = 1000;

pub(crate) fn run(command: FigureCommand) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    match command {
        FigureCommand::Endogenic(arguments) => endogenic::run(&arguments),
        FigureCommand::WeightsBite(arguments) => weights_bite::run(&arguments),
        FigureCommand::AgainstKernel(arguments) => against_kernel::run(&arguments),
        FigureCommand::NoisyNeighbour(arguments) => noisy_neighbour::run(&arguments),
        FigureCommand::Rise(arguments) => rise::run(&arguments),
        FigureCommand::SliceCost(arguments) => crowd::slice_cost(&arguments),
        FigureCommand::Memory(arguments) => crowd::memory(&arguments),
        FigureCommand::IdleWrites(arguments) => crowd::idle_writes(&arguments),
        FigureCommand::Clients(arguments) => clients::run(&arguments),
        FigureCommand::Idle(arguments) => idle::run(&arguments),
        FigureCommand::Gaps(arguments) => gaps::run(&arguments),
        FigureCommand::Makespan(arguments) => makespan::run(&arguments),
        FigureCommand::Characterise(arguments) => characterise::run(&arguments),
        FigureCommand::CacheMigration(arguments) => cache_migration::run(&arguments),
        FigureCommand::CacheTenants(arguments) => cache_tenants::run(&arguments),
        FigureCommand::CacheThroughput(arguments) => cache_throughput::run(&arguments),
        FigureCommand::KillRestore(arguments) => kill_restore::run(&arguments),
        FigureCommand::UndoBites(arguments) => undo_bites::run(&arguments),
        FigureCommand::VmContracts(arguments) => vm_contracts::run(&arguments),
        FigureCommand::VmEndogenic(arguments) => vm_endogenic::run(&arguments),
        FigureCommand::VmMix(arguments) => vm_mix::run(&arguments),
        FigureCommand::VmTags(arguments) => vm_tags::run(&arguments),
        FigureCommand::VmUrgent(arguments) => vm_urgent::run(&arguments),
        FigureCommand::Worth(arguments) => worth::figure(&arguments),
    }
}

/// One measured condition.
struct Line {
    id: &'static str,
    /// Not a number where it could not be measured, which is `null` in JSON.
    value: f64,
    unit: &'static str,
    goal: String,
    met: bool,
    detail: String,
}

impl Line {
    fn print(&self, json: bool) -> anyhow::Result<()> {
        let Self { id, value, unit, goal, met, detail } = self;
        let value = (value * 1000.0).round() / 1000.0;
        if json {
            let line = serde_json::json!({
                "id": id, "value": value, "unit": unit, "goal": goal, "met": met, "detail": detail,
            });
            return output::line(line);
        }
        if value.is_nan() {
            return output::line(format_args!("{id}: goal {goal}, not met: {detail}"));
        }
        let met = if *met { "met" } else { "not met" };
        output::line(format_args!("{id}: {value} {unit}, goal {goal}, {met}: {detail}"))
    }
}

/// The daemon, or fixed weights in its place.
fn steering(weights: Option<Vec<u32>>, output: &Output) -> anyhow::Result<Box<dyn Steering>> {
    Ok(match weights {
        Some(weights) => Box::new(FixedWeights(weights)),
        None => Box::new(Minervad::new(binaries::minervad(output)?, SLICE_MS)),
    })
}

/// The seed of an order: the one that was given, or one that is drawn. It is printed.
pub(crate) fn drawn_seed(given: Option<u64>) -> u64 {
    let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()));
    eprintln!("random order with seed {seed}");
    seed
}

/// The middle one; of an even number, the mean of the two in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The least and the most.
fn range(values: &[f64]) -> String {
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)));
    format!("{least:.1} to {most:.1}")
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!([median([]), median([3.0, 1.0, 9.0]), median([4.0, 1.0])], [0.0, 3.0, 2.5]);
    }
}
