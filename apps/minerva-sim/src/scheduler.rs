//! Schedulers on the command line and in job files.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use minerva_blocksched::{BuildOptions, Promise};
use minerva_model::Nanos;

pub(crate) use minerva_blocksched::{SchedulerName as Name, UNIT_BYTES};

/// Reads a scheduler's name; the help lists all that there are.
pub(crate) fn parser() -> impl TypedValueParser<Value = Name> {
    let value = |name: &Name| PossibleValue::new(name.as_str()).help(name.entry().summary.trim_end_matches('.'));
    PossibleValuesParser::new(Name::ALL.iter().map(value)).try_map(|text| text.parse::<Name>())
}

/// What can be set of HTBS; the paper's names are B_max and T_wait.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct HtbsArguments {
    /// HTBS: serve one flow at most this many cost units in a row (B_max in the paper). A unit is 4 KiB, for htbs-original a request.
    /// The default is 512, for htbs-original 20.
    #[arg(long = "htbs-turn", value_name = "UNITS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) turn_units_max: Option<u64>,
    /// HTBS: keep the disk idle this long for the flow in service (T_wait in the paper). The default is 10ms; 0 for never.
    #[arg(long = "htbs-wait", value_name = "TIME", value_parser = crate::every::parse)]
    pub(crate) wait_max: Option<Nanos>,
}

impl HtbsArguments {
    /// What the host's scheduler is built for.
    pub(crate) fn build_options(self, rotational: bool, depth: u32) -> BuildOptions {
        let Self { turn_units_max, wait_max } = self;
        BuildOptions { turn_units_max, wait_max, ..BuildOptions::for_disk(rotational, depth) }
    }
}

/// Whether a guest's scheduler keeps what a key of a job file asks of it. Under noop the order is left to the host, which
/// sees each process.
pub(crate) fn keeps(name: Name, key: &str) -> bool {
    let asked = match key {
        "minerva_contract" => Some(Promise::Contract),
        "minerva_reservation" => Some(Promise::Reservation),
        "minerva_limit" => Some(Promise::Limit),
        key if key.starts_with("minerva_tag") => Some(Promise::Tags),
        _ => None,
    };
    name == Name::Noop || asked.is_some_and(|asked| name.keeps(asked))
}

/// Whether Minerva's engine steers it: it knows BFQ's weights.
pub(crate) fn is_steered(name: Name) -> bool {
    name == Name::Bfq
}
