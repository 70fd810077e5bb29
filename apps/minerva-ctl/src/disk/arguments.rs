//! What can be done with the disks that `minerva-blk` serves.

use crate::quantity::{duration, rate, size};
use anyhow::bail;
use clap::ValueEnum;
use minerva_model::{DiskChange, Nanos};
use std::path::PathBuf;
use std::time::Duration;

/// What to do with them.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum DiskCommand {
    /// Show every disk: what it is promised, who uses it, and what it was asked for
    List,
    /// Watch every disk and every priority on it: rates, queue, times, who has the host's disk, and whether contracts are kept; q quits
    ///
    /// With --once the exit status is 1 where a contract was missed since it stands. With --json a report a second, as `list --json` prints
    /// one.
    Top {
        /// Print one page and end
        #[arg(long)]
        once: bool,
    },
    /// Serve another disk of a guest, while others run
    ///
    /// As root: the server has given up root and gets the image and the socket open. Its contract is judged against the disk of the
    /// host beside those that are there, and refused with the reason.
    Add {
        /// Its name, which the guest sees as serial number
        name: String,
        /// A raw image or a block device
        #[arg(long, value_name = "PATH")]
        image: PathBuf,
        /// Where QEMU connects [default: NAME.sock in /run/minerva-blk]
        // `--socket` is the daemon's.
        #[arg(id = "disk_socket", long = "disk-socket", value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Nothing is written, and several may read it
        #[arg(long)]
        read_only: bool,
        /// Through the host's page cache
        #[arg(long)]
        no_direct: bool,
        /// Rings that the guest may have
        #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
        queues: u16,
        /// What it is promised
        #[command(flatten)]
        promise: Promise,
        /// Only until the server ends; nothing is written beside its file
        #[arg(long)]
        runtime: bool,
    },
    /// Promise a disk something else, while its guest runs: it holds from the next request on
    Set {
        /// Its name
        name: String,
        /// What is to be otherwise
        #[command(flatten)]
        promise: Promise,
        /// No contract any more
        #[arg(long, conflicts_with = "rate")]
        no_contract: bool,
        /// No limit any more
        #[arg(long, conflicts_with = "limit")]
        no_limit: bool,
        /// Only until the server ends
        #[arg(long)]
        runtime: bool,
    },
    /// Serve a disk no more; refused while a guest uses it
    Remove {
        /// Its name
        name: String,
        /// Also under a guest, for which the disk stops answering
        #[arg(long)]
        force: bool,
        /// Only until the server ends
        #[arg(long)]
        runtime: bool,
    },
    /// Make a disk longer, and tell its guest, which sees the new length at once
    Resize {
        /// Its name
        name: String,
        /// How long: 20G (powers of 1000), 20GiB (of 1024) [default: as long as its image or block device has become]
        #[arg(value_parser = size)]
        size: Option<u64>,
    },
    /// Print QEMU's arguments and libvirt's XML for a disk
    AttachLine {
        /// Its name
        name: String,
    },
}

/// How a guest uses a disk.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AccessPattern {
    /// In rows.
    Sequential,
    /// Here and there.
    Random,
}

/// What a disk is promised.
#[derive(Debug, clap::Args)]
pub(crate) struct Promise {
    /// Its part beside others, where the scheduler shares by weight; 100 is neutral
    #[arg(long, value_name = "WEIGHT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    weight: Option<u32>,
    /// Its contract: so many bytes a second
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<u64>,
    /// Its contract: and so many at once
    #[arg(long, value_name = "BYTES", value_parser = size)]
    burst: Option<u64>,
    /// Its contract: each within this time
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    delay: Option<Duration>,
    /// Never more bytes a second than this
    #[arg(long, value_name = "RATE", value_parser = rate)]
    limit: Option<u64>,
    /// The priority of requests to which the guest's application gave none
    #[arg(long, value_name = "TAG", value_parser = clap::value_parser!(u8).range(1..=254))]
    tag_default: Option<u8>,
    /// The greatest priority that an application of the guest can give a request
    #[arg(long, value_name = "TAG", value_parser = clap::value_parser!(u8).range(1..=254))]
    tag_max: Option<u8>,
    /// What its contract is judged for
    #[arg(long, value_name = "PATTERN")]
    access: Option<AccessPattern>,
    /// What its contract is judged for: requests of this length
    #[arg(long, value_name = "BYTES", value_parser = size)]
    request: Option<u64>,
    /// Take its contract also where the disk cannot keep all contracts on it
    #[arg(long)]
    force: bool,
}

impl Promise {
    /// Whether it says something of a disk of which nothing was said before.
    pub(crate) fn check_alone(&self) -> anyhow::Result<()> {
        let parts = [("--burst", self.burst.is_some()), ("--delay", self.delay.is_some())];
        match parts.into_iter().find(|(_, is_set)| *is_set && self.rate.is_none()) {
            Some((word, _)) => bail!("{word} without --rate promises nothing; add --rate, the bytes a second"),
            None => Ok(()),
        }
    }

    /// Whether it says something of what is judged.
    const fn names_contract(&self) -> bool {
        self.rate.is_some()
            || self.burst.is_some()
            || self.delay.is_some()
            || self.access.is_some()
            || self.request.is_some()
    }

    /// As a change of what is promised now.
    pub(crate) fn change(&self) -> DiskChange {
        DiskChange {
            weight: self.weight,
            rate_bytes_per_second: self.rate,
            burst_bytes: self.burst,
            delay: self.delay.map(|delay| Nanos(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX))),
            limit_bytes_per_second: self.limit,
            tag_default: self.tag_default,
            tag_max: self.tag_max,
            is_random: self.access.map(|access| matches!(access, AccessPattern::Random)),
            request_bytes: self.request,
            // Another contract is judged anew, whether or not the one before was taken by force.
            force: if self.names_contract() { Some(self.force) } else { self.force.then_some(true) },
        }
    }
}
