//! The arguments of `minerva-sim trace`.

use minerva_model::Nanos;
use minerva_sim_workload::trace::{Format, OutOfOrder, ReadOptions, Slice};
use std::path::PathBuf;

/// Reads and converts block traces.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TraceCommand {
    /// Says what a trace holds.
    Info {
        /// The trace, or `-` for standard input; gzip, zstd and xz are unpacked.
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Converts a trace to the native form, Parquet.
    Convert {
        /// The trace, or `-` for standard input; gzip, zstd and xz are unpacked.
        input: PathBuf,
        /// The file to write. It is replaced when all of it is written.
        output: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Writes a part of a trace in the native form. Its times count from the part's start.
    Slice {
        /// The trace, or `-` for standard input; gzip, zstd and xz are unpacked.
        input: PathBuf,
        /// The file to write. It is replaced when all of it is written.
        output: PathBuf,
        #[command(flatten)]
        part: Part,
        #[command(flatten)]
        reading: Reading,
    },
}

/// How to read a trace.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Reading {
    /// The trace's format instead of the one that is found by its content: systor, msr, alibaba, tencent, spc, blktrace,
    /// fio-iolog, vscsi, cloudphysics, oracle-general or native.
    #[arg(long)]
    format: Option<Format>,
    /// Stop when more than this part of the entries is malformed, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    malformed_max: f64,
    /// Put requests that stand behind later ones back where they belong, up to this much earlier; rows by completion are some
    /// milliseconds out of order. What is earlier still is moved to the time of the latest before it, and stops the run when it is
    /// more than --malformed-max of all. 0 sorts nothing.
    #[arg(long, value_name = "TIME", value_parser = crate::every::parse, default_value = "1s", conflicts_with = "in_order")]
    sort_window: Nanos,
    /// Stop when a request is earlier than the one before, instead of sorting.
    #[arg(long)]
    in_order: bool,
    /// Bytes from one object number to the next (oracle-general).
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    object_bytes: u64,
}

impl Reading {
    /// As the reader takes it.
    pub(crate) fn options(&self) -> anyhow::Result<ReadOptions> {
        anyhow::ensure!(
            (0.0..=100.0).contains(&self.malformed_max),
            "--malformed-max is {}, and must be from 0 to 100",
            self.malformed_max
        );
        Ok(ReadOptions {
            format: self.format,
            malformed_permille_max: (self.malformed_max * 10.0).round() as u32,
            out_of_order: if self.in_order { OutOfOrder::Refuse } else { OutOfOrder::Sort(self.sort_window) },
            object_bytes: self.object_bytes,
            ..ReadOptions::default()
        })
    }
}

/// Who the tenants of a trace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TraceTenants {
    /// Each volume is a tenant with a part of the disk of its own.
    Volume,
    /// All of it is one process; volumes lie upon each other.
    One,
}

/// Who makes a trace's requests, and when.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Replaying {
    /// Who the tenants of a trace are. Without it each volume, or `one` where the trace comes through a pipe or has more than
    /// 64 volumes.
    #[arg(long, value_enum)]
    pub(crate) trace_tenants: Option<TraceTenants>,
    /// Weight of a volume's tenant, by the volume's name or number, 1 to 10000; may be given several times.
    #[arg(long, value_name = "VOLUME=WEIGHT", value_parser = named_number)]
    pub(crate) trace_weight: Vec<(String, u32)>,
    /// Priority of a volume's requests under tag, 1 to 254; may be given several times.
    #[arg(long, value_name = "VOLUME=TAG", value_parser = named_number)]
    pub(crate) trace_tag: Vec<(String, u32)>,
    /// Replay as fast as the disk allows, with so many requests of each tenant under way, instead of at the trace's instants.
    #[arg(long, value_name = "REQUESTS", conflicts_with = "speed", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) trace_depth: Option<u32>,
}

/// `VOLUME=NUMBER`, for the command line.
fn named_number(text: &str) -> Result<(String, u32), String> {
    let (name, number) =
        text.rsplit_once('=').ok_or_else(|| format!("`{text}` is not VOLUME=NUMBER, such as 3=400"))?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a whole number"))?;
    Ok((name.to_owned(), number))
}

/// Which part of a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct Part {
    /// From this time of the trace on, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    from: f64,
    /// Before this time of the trace, in seconds.
    #[arg(long, value_name = "SECONDS")]
    until: Option<f64>,
    /// Only this volume, by its number; may be given several times.
    #[arg(long, value_name = "NUMBER")]
    volume: Vec<u32>,
    /// Leave out so many requests of what the other choices let through.
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    skip: u64,
    /// At most so many requests.
    #[arg(long, value_name = "REQUESTS")]
    count: Option<u64>,
}

impl Part {
    /// As the library takes it.
    pub(crate) fn slice(&self) -> anyhow::Result<Slice> {
        let instant = |seconds: f64, name: &str| {
            anyhow::ensure!((0.0..1e9).contains(&seconds), "{name} is {seconds}, and must be from 0 to 10^9 seconds");
            Ok(Nanos((seconds * 1e9) as u64))
        };
        Ok(Slice {
            from: instant(self.from, "--from")?,
            until: self.until.map(|until| instant(until, "--until")).transpose()?,
            volumes: self.volume.iter().copied().collect(),
            skip: self.skip,
            count: self.count,
        })
    }
}
