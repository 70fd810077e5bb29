//! The arguments of `minerva-sim trace`.

use minerva_model::Nanos;
use minerva_sim_workload::trace::{Format, OutOfOrder, ReadOptions, Slice};
use std::path::PathBuf;

/// Read and convert block traces.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TraceCommand {
    /// Describe a trace.
    Info {
        /// The trace, or `-` for standard input; may be compressed with gzip, zstd or xz.
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Convert a trace to the native format, Parquet.
    Convert {
        /// The trace, or `-` for standard input; may be compressed with gzip, zstd or xz.
        input: PathBuf,
        /// File to write. An existing one is replaced when the new one is complete.
        output: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Write a part of a trace in the native format, with times relative to the start of the part.
    Slice {
        /// The trace, or `-` for standard input; may be compressed with gzip, zstd or xz.
        input: PathBuf,
        /// File to write. An existing one is replaced when the new one is complete.
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
    /// Format of the trace: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native.
    /// By default it is recognised by the content.
    #[arg(long)]
    format: Option<Format>,
    /// Stop if more than this percentage of the entries is malformed.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    malformed_max: f64,
    /// Sort requests that are at most this much out of order; a trace that was written at completion is out of order by some
    /// milliseconds. A request that is later than that gets the time of the request before it, and the run stops if there are more of
    /// them than --malformed-max allows. 0 sorts nothing.
    #[arg(long, value_name = "TIME", value_parser = crate::every::parse, default_value = "1s", conflicts_with = "in_order")]
    sort_window: Nanos,
    /// Stop at a request that is earlier than the one before, instead of sorting.
    #[arg(long)]
    in_order: bool,
    /// oracle-general: bytes from one object number to the next.
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    object_bytes: u64,
}

impl Reading {
    /// As the reader takes it.
    pub(crate) fn options(&self) -> anyhow::Result<ReadOptions> {
        anyhow::ensure!(
            (0.0..=100.0).contains(&self.malformed_max),
            "--malformed-max is {}, but must be from 0 to 100",
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
    /// Each volume is a tenant and has its own part of the disk.
    Volume,
    /// The whole trace is one process; volumes overlap on the disk.
    One,
}

/// Who makes a trace's requests, and when.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Replaying {
    /// Tenants of the trace. By default each volume is one; the whole trace is one if it comes through a pipe or has more than 64
    /// volumes.
    #[arg(long, value_enum)]
    pub(crate) trace_tenants: Option<TraceTenants>,
    /// Weight of a volume's tenant, 1 to 10000. VOLUME is a name or a number. May be given several times.
    #[arg(long, value_name = "VOLUME=WEIGHT", value_parser = named_number)]
    pub(crate) trace_weight: Vec<(String, u32)>,
    /// Priority of a volume's requests under tag, 1 to 254. May be given several times.
    #[arg(long, value_name = "VOLUME=TAG", value_parser = named_number)]
    pub(crate) trace_tag: Vec<(String, u32)>,
    /// Replay as fast as the disk allows, with this many requests of each tenant in flight, instead of at the times of the trace.
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
    /// Start at this time of the trace, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    from: f64,
    /// End before this time of the trace, in seconds.
    #[arg(long, value_name = "SECONDS")]
    until: Option<f64>,
    /// Only the volume with this number. May be given several times.
    #[arg(long, value_name = "NUMBER")]
    volume: Vec<u32>,
    /// Skip this many of the requests that the other options select.
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    skip: u64,
    /// Write at most this many requests.
    #[arg(long, value_name = "REQUESTS")]
    count: Option<u64>,
}

impl Part {
    /// As the library takes it.
    pub(crate) fn slice(&self) -> anyhow::Result<Slice> {
        let instant = |seconds: f64, name: &str| {
            anyhow::ensure!((0.0..1e9).contains(&seconds), "{name} is {seconds}, but must be from 0 to 10^9 seconds");
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
