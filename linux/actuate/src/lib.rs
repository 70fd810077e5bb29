//! The privileged writer: the only part of Minerva that writes to the kernel, and tells servers of ours what they are to do.
//!
//! What it does with a [`minerva_model::KnobWrite`], always in this order:
//!
//! 1. find the cgroup or disk and make sure that it is still the one that was meant (`open_beneath`);
//! 2. journal, synced, what will undo the write, unless this knob is journalled already (`journal`);
//! 3. write, with one `write(2)`;
//! 4. read the file back and answer with what it holds now; if that is how Minerva found it, the journal lets go of it.
//!
//! So at every instant the journal knows all that differs from how Minerva found the machine, and [`restore`] can put it
//! back without a daemon. Three things call it: the next start of the daemon, the guard process that outlives a killed
//! daemon ([`run_guard`]), and the operator or the unit's `ExecStopPost=` (`minerva-ctl restore`).
//!
//! Nothing here knows the formats of knobs beyond recognising a line; texts and their undo come from `core/actuate`.
//! Libraries do not log: outcomes and reports are data.
//!
//! | file | holds |
//! |---|---|
//! | `writer` | [`Writer`]: the four steps |
//! | `journal_lines` | the undo journal's lines: format and parser |
//! | `journal` | the undo journal: synced append, writing anew |
//! | `records` | journal and lease of a running writer, in step |
//! | `restore` | [`restore`]; `report` what it tells |
//! | `removal` | what it takes that a removed BFQ weight of one disk loses its effect too |
//! | `elevator` | what a change of a disk's elevator loses besides it |
//! | `open_beneath` | from a target to a directory that cannot be another one; reading and writing a knob; `opening` how |
//! | `served` | a knob of a server of ours: a message in place of a file; `conversation` how such a message goes |
//! | `lease` | until when limits are valid without being renewed |
//! | `guard` | the process that restores when the daemon is killed or stuck |
//! | `lock` | [`InstanceLock`], and the undo lock, which keeps a restore and a write apart |
//! | `named` | [`NamedGroups`]: groups that the operator names |
//! | `probes` | where `minerva-ctl doctor --probe` and `--compare` work, and what a killed one left |
//! | `overwriters` | who else writes a knob |
//! | `runtime_dir` | the directory that all this lives in |

mod conversation;
mod elevator;
mod error;
#[cfg(test)]
mod failpoint;
mod guard;
mod journal;
mod journal_lines;
mod lease;
mod lock;
mod named;
mod open_beneath;
mod opening;
mod overwriters;
mod probes;
mod records;
mod removal;
mod report;
mod restore;
mod runtime_dir;
mod served;
mod settings;
#[cfg(test)]
mod tests;
mod writer;

pub use conversation::{ask_server, server_names, server_socket};
pub use error::ActuateError;
pub use guard::{Guard, run_guard};
pub use journal_lines::{JournalContent, JournalEntry, JournalProblem, parse_journal};
pub use lease::{boottime_now, parse_lease};
pub use lock::InstanceLock;
pub use named::{NamedError, NamedGroups};
pub use overwriters::{Culprit, Overwriters};
pub use probes::{ProbeLeft, Swept, probe_settings, sweep_probes};
pub use report::{KnobRestore, RestoreReport, RestoreResult};
pub use restore::{RestoreWhen, has_journal, restore};
pub use settings::WriterSettings;
pub use writer::Writer;
