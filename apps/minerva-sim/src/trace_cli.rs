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
    /// Stop when a request is earlier than the one before, instead of moving it.
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
            out_of_order: if self.in_order { OutOfOrder::Refuse } else { OutOfOrder::Clamp },
            object_bytes: self.object_bytes,
            ..ReadOptions::default()
        })
    }
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
