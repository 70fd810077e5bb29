//! Background work on the real kernel.
//!
//! | file | what |
//! |---|---|
//! | `spec`, `availability` | kinds of work, and whether they can be done here |
//! | `automount` | paths that nobody may open without waiting for a disk |
//! | `identity`, `facts` | what was at a path when it was asked for, known again after a reboot |
//! | `executor` | all queues of a host: runs one of each disk while others pause, and stops it when they come back |
//! | `settings` | where the daemon's directories and the groups are |
//! | `run` | one queue's worker, as its daemon sees it |
//! | `activity`, `processes` | whether the processes of a command do anything |
//! | `told` | work that a tenant's program does when it is told that it may |
//! | `duty` | when work may run, by its pace and by whether others pause |
//! | `work`, `worker` | the worker's own process |
//! | `directories` | its directories: what it is told, and what it says |
//! | `groups`, `freezer` | the groups that it is in, and stopping what is in them |
//! | `processors`, `processor_use` | confining work to some processors, and how much of them others use |
//! | `counters`, `disk_gaps` | requests that others make of a disk and of those below it, and the gaps between them |
//! | `disks_below`, `turns` | the disks that a disk lies on, and whose turn it is of those that share one |
//! | `delete`, `delete_all`, `target`, `commits` | a file or a directory with all in it, entry by entry, never through a link or into a mount |
//! | `scrub`, `balance`, `defragment`, `snapshot` | btrfs: reading all, moving chunks together, writing files anew, deleting a snapshot |
//! | `scrub_speed` | how fast the kernel scrubs at most |
//! | `btrfs`, `files`, `extents` | what they ask of it: trees and subvolumes, the files of a tree, where bytes lie |
//! | `trim`, `md` | discards, md arrays |
//! | `stop_all` | stopping all work at the end of a daemon |
//! | `left_behind`, `end_all` | arrays that a killed daemon left slowed; work of one that goes for ever |
//! | `pace` | work for a part of the time only |

mod activity;
mod automount;
mod availability;
mod balance;
mod btrfs;
mod commits;
mod counters;
mod defragment;
mod delete;
mod delete_all;
mod directories;
mod disk_gaps;
mod disks_below;
mod duty;
mod end_all;
mod error;
mod executor;
mod extents;
mod facts;
mod files;
mod freezer;
mod groups;
mod identity;
mod left_behind;
#[cfg(test)]
mod loop_disk;
mod md;
mod output;
mod pace;
mod processes;
mod processor_use;
mod processors;
mod run;
mod sample;
mod scrub;
mod scrub_speed;
mod settings;
mod snapshot;
mod spec;
mod stop_all;
mod target;
mod told;
mod trim;
mod turns;
mod work;
mod worker;

pub use automount::Automounts;
pub use delete::{Deletion, Left, Removed};
pub use end_all::end_all;
pub use error::WorkError;
pub use executor::{Executor, QueueStatus};
pub use facts::Seen;
pub use identity::{FileIdentity, LastingIdentity};
pub use left_behind::{ArrayLeft, put_arrays_back};
pub use pace::Pace;
pub use processors::{ProcessorsLeft, put_processors_back};
pub use run::{Before, WorkerProgram};
pub use settings::Settings;
pub use spec::{Found, Kind, Spec, USED_PERCENT_MAX_DEFAULT};
pub use stop_all::{Stopping, put_arrays_back_and_stop_all, stop_all};
pub use target::DeleteError;
pub use told::{Say, Told};
pub use work::work;
