//! What the command line may say of background work. Every text here is also the manual page.

use crate::quantity::duration;
use crate::words::words;
use minerva_linux_background::Kind;
use std::path::PathBuf;
use std::time::Duration;

/// What is done with background work.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BackgroundCommand {
    /// Register work: it runs while nobody else uses the disk, and is done by its deadline
    ///
    /// Kinds: delete (the tree at PATH with all that is in it, never through a link or into a mount), command (what stands after --,
    /// in the directory PATH), btrfs-scrub (the file system at PATH), btrfs-balance (moves together what is in its chunks that are
    /// used up to --used-percent-max), btrfs-defragment (the files below PATH, but not what snapshots have too),
    /// btrfs-snapshot-delete (the snapshot at PATH, which is emptied first), md-check (the array at PATH, such as /dev/md0),
    /// md-resync (paces the resync or recovery that the kernel has begun there), fstrim (the file system at PATH). Where it cannot
    /// be done, it is refused with the reason and nothing is kept. It goes on after a restart of the daemon and after a reboot; a
    /// command that was lost by a reboot is begun again only by `background resume`.
    Add(Added),
    /// Show all background work: how far it is, by when it is due, and when it may run
    List,
    /// Show the plan: what is expected of each disk, when work runs and is done, the space that it ties, and what would not hold
    Plan(Planned),
    /// Say of one all that is known: what it costs, when it may run and why, and when it will be done
    Explain {
        /// Its name
        name: String,
    },
    /// Let it rest until it is resumed
    Pause {
        /// Its name
        name: String,
    },
    /// Let it go on; begins anew what failed
    Resume {
        /// Its name
        name: String,
    },
    /// Measure what a disk serves to others: lets its background work rest for a while, and shows before and after
    ///
    /// Plans go by it from then on, also after a restart: by how much of the disk's time others will take for what they are expected to
    /// transfer. Until a disk is calibrated they go by what was seen, also beside work. Others should be as busy as usual meanwhile.
    Calibrate {
        /// The disk, such as sda; work must wait on it
        disk: String,
        /// For how long its work rests
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
        duration: Duration,
    },
    /// End it and forget it; what it did stays done
    Remove {
        /// Its name
        name: String,
    },
}

/// What is registered.
#[derive(Debug, clap::Args)]
pub(crate) struct Added {
    /// What it is called
    #[arg(long)]
    pub(crate) name: String,
    /// delete, command, btrfs-scrub, btrfs-balance, btrfs-defragment, btrfs-snapshot-delete, md-check, md-resync or fstrim
    /// [default: command]
    #[arg(long, value_parser = words::<String>(Kind::ALL.map(Kind::as_str)), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Where
    #[arg(long)]
    pub(crate) path: PathBuf,
    /// It is to be done within this time, such as 7d [default: 30 days]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) sla: Option<Duration>,
    /// The greater goes first on its disk, unless a deadline is near
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) priority: u8,
    /// Others may wait for what the command holds: slow it by weight and a cap while they use the disk, and never stop it
    #[arg(long)]
    pub(crate) never_stop: bool,
    /// Of btrfs-balance: leave chunks alone that are used more than this [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) used_percent_max: Option<u8>,
    /// The command and its arguments
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

/// Which plan, and how it is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Planned {
    /// How far to look: hour, day, week or month
    #[arg(long, value_name = "SPAN", default_value = "day", value_parser = ["hour", "day", "week", "month"])]
    pub(crate) span: String,
    /// Write it with plots as a page to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
