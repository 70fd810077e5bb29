//! Why a factor has its value, as data and as a sentence.

use crate::{Horizon, Level, RequestId, Share};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a factor has its value, with the numbers it was computed from. Formatted only when someone looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Nothing is known of the tenant's use of this disk yet.
    NoHistory,
    /// The tenant's place among the priority groups, 0 the most sparing.
    Group {
        /// The group, 0 to `groups - 1`.
        group: u8,
        /// How many groups there are.
        groups: u8,
        /// Its own moving average, in bytes a second.
        usage_bytes_per_second: f64,
        /// What it is measured against: the heaviest tenant's on this disk, in bytes a second.
        heaviest_bytes_per_second: f64,
        /// Even the heaviest uses the disk so little that the least rate which counts as heavy stands in its place.
        quiet: bool,
        /// It is the long horizon that put it there, not the recent one.
        long_term: bool,
    },
    /// The tenant's place among the priority groups, which it has for holding the disk longer than its part.
    Held {
        /// The group, 0 to `groups - 1`.
        group: u8,
        /// How many groups there are.
        groups: u8,
        /// Its moving average of the disk's time per operator's weight, 1 is all of it.
        disk_part: f64,
        /// What everyone who uses the disk would have per operator's weight.
        equal_part: f64,
    },
    /// The measured use asks for another group, but not yet for long enough.
    Holding {
        /// The group it stays in.
        group: u8,
        /// The group that the use asks for.
        wanted: u8,
        /// Slices in a row that asked for it.
        #[serde(rename = "verdicts")]
        slices: u8,
        /// How many it takes.
        needed: u8,
    },
    /// The operator's rule multiplies the share.
    OperatorWeight {
        /// The factor, in percent.
        percent: u32,
    },
    /// Slices of high priority were bought; the past does not count while they last.
    Boosted {
        /// The share that was bought, in percent of the neutral one.
        percent: u32,
        /// Slices that are left, this one too.
        slices_left: u32,
        /// The purchase, where it is known.
        #[serde(default)]
        request: Option<RequestId>,
    },
    /// A coordinated operation is under way. Its place among the groups is that of the instant it was released, so that it
    /// runs evenly.
    Coordinated {
        /// How much it was to move.
        bytes: u64,
        /// Others use the disk at the same time, for which the share is raised by this, in percent; 100 when nobody does.
        percent: u32,
        /// The request for it, where it is known.
        #[serde(default)]
        request: Option<RequestId>,
    },
    /// The tenant steps back.
    SteppedBack {
        /// How far.
        level: Level,
        /// The factor of the level, in percent.
        percent: u32,
        /// The request that set it, where it is known.
        #[serde(default)]
        request: Option<RequestId>,
    },
    /// Everyone on the disk is raised alike, because there is little room below heavy tenants for one that steps back.
    Room {
        /// How many times.
        times: u32,
    },
    /// The share was raised so that the tenant keeps at least this part of the disk.
    Floor {
        /// Guaranteed part, in thousandths of the disk.
        permille: u32,
        /// What the policies alone would have given.
        without: Share,
    },
    /// A part of the share is dealt anew by what the tenant is expected to transfer.
    Foreseen {
        /// What is left of its I/O session, or what comes in the next slice.
        horizon: Horizon,
        /// How much, in bytes.
        expected_bytes: f64,
        /// It has transferred more since it last paused than was foreseen; what is expected is measured by that.
        outgrown: bool,
        /// The part that the forecast's skill has earned, in thousandths.
        part_permille: u32,
    },
    /// A part of the share goes to whose burst of I/O goes first.
    Interleaved {
        /// It is this tenant's.
        leads: bool,
        /// The part that the forecast's skill has earned, in thousandths.
        part_permille: u32,
        /// Its bursts are told by earlier runs of the same batch job.
        #[serde(default)]
        by_runs: bool,
    },
    /// In the policy's own words, which is enough where no program reads the numbers.
    Stated {
        /// The words.
        text: String,
    },
    /// A batch job waits for others, and only jobs use the disk.
    JobWaits {
        /// In the policy's own words.
        text: String,
        /// What it keeps of the disk's time, 0 to 1.
        disk_part: f64,
        /// It is known by bytes when its turn comes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        turn_is_known: bool,
    },
}

impl Reason {
    /// The sentence of a group by past use; nothing for other reasons.
    fn fmt_group(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group { group, groups, usage_bytes_per_second, heaviest_bytes_per_second, quiet, long_term } => {
                write!(
                    f,
                    "group {group} of 0..{}: {} average {} per weight against {} {}",
                    groups.saturating_sub(1),
                    if *long_term { "long-term" } else { "recent" },
                    Rate(*usage_bytes_per_second),
                    Rate(*heaviest_bytes_per_second),
                    if *quiet { "that count as heavy" } else { "of the heaviest" },
                )
            }
            Self::Held { group, groups, disk_part, equal_part } => write!(
                f,
                "group {group} of 0..{}: recent average {:.1} % of the disk's time per weight against an equal part of {:.1} %",
                groups.saturating_sub(1),
                100.0 * disk_part,
                100.0 * equal_part,
            ),
            Self::Holding { group, wanted, slices, needed } => {
                write!(f, "stays in group {group}: {slices} of {needed} slices ask for group {wanted}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHistory => write!(f, "no history on this disk"),
            Self::Group { .. } | Self::Held { .. } | Self::Holding { .. } => self.fmt_group(f),
            Self::OperatorWeight { percent } => write!(f, "operator's weight {percent} %"),
            Self::Boosted { percent, slices_left, request } => {
                write!(f, "{percent} % bought with credits, {slices_left} slices left{}", By(request))
            }
            Self::Coordinated { bytes, percent, request } => {
                write!(f, "coordinated operation of {:.1} MB", *bytes as f64 / 1e6)?;
                if *percent != 100 {
                    write!(f, ", raised to {percent} % beside others")?;
                }
                write!(f, "{}", By(request))
            }
            Self::SteppedBack { level: Level::Idle, request, .. } => {
                write!(f, "level idle: only when nobody else uses the disk{}", By(request))
            }
            Self::SteppedBack { level, percent, request } => write!(f, "level {level}: {percent} %{}", By(request)),
            Self::Room { times } => {
                write!(f, "all raised {times} times, so that there is room below")
            }
            Self::Floor { permille, without } => {
                write!(f, "floor of {}.{} % of the disk, without it {without}", permille / 10, permille % 10)
            }
            Self::Foreseen { horizon, expected_bytes, outgrown, part_permille } => {
                fmt_foreseen(f, (*horizon, *expected_bytes), *outgrown, *part_permille)
            }
            Self::Interleaved { leads, part_permille, by_runs } => {
                let part = part_permille / 10;
                let of_runs = if *by_runs { ", by earlier runs of this job" } else { "" };
                match leads {
                    true => write!(f, "its burst goes first, with {part} % of the shares of those that wait{of_runs}"),
                    false => write!(f, "another's burst goes first, with {part} % of this share{of_runs}"),
                }
            }
            Self::Stated { text } | Self::JobWaits { text, .. } => f.write_str(text),
        }
    }
}

fn fmt_foreseen(
    f: &mut fmt::Formatter<'_>,
    (horizon, bytes): (Horizon, f64),
    outgrown: bool,
    part_permille: u32,
) -> fmt::Result {
    match (horizon, outgrown) {
        (Horizon::Session, false) => write!(f, "{} session, {} left", class(bytes), Amount(bytes))?,
        (Horizon::Session, true) => write!(f, "session larger than foreseen, by its service {} left", Amount(bytes))?,
        (_, _) => write!(f, "{} expected in the next slice", Amount(bytes))?,
    }
    write!(f, ": {} % of its share is dealt anew, most to who has least left", part_permille / 10)
}

/// The request behind something.
struct By<'a>(&'a Option<RequestId>);

impl fmt::Display for By<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|request| write!(f, ", request {request}"))
    }
}

/// How much an I/O session transfers, in a word: idle up to 1 MiB, light up to 64 MiB, moderate up to 1 GiB, heavy beyond.
fn class(bytes: f64) -> &'static str {
    const MIB: f64 = 1024.0 * 1024.0;
    match bytes / MIB {
        part if part > 1024.0 => "heavy",
        part if part > 64.0 => "moderate",
        part if part > 1.0 => "light",
        _ => "idle",
    }
}

/// Bytes as people read them.
struct Amount(f64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes < 1e6 => write!(f, "{:.1} kB", bytes / 1e3),
            bytes if bytes < 1e9 => write!(f, "{:.1} MB", bytes / 1e6),
            bytes => write!(f, "{:.1} GB", bytes / 1e9),
        }
    }
}

/// Bytes a second as people read them.
struct Rate(f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            r if r < 1e3 => write!(f, "{r:.0} B/s"),
            r if r < 1e6 => write!(f, "{:.1} kB/s", r / 1e3),
            r => write!(f, "{:.1} MB/s", r / 1e6),
        }
    }
}
