//! Days of a storage server, second by second: a foreground load, the debt that it leaves, and a policy that decides when it is paid
//! (Kachmar and Kaeli 2020). What the paper leaves open is fixed in docs/adr/0017.
//!
//! | file | what |
//! |---|---|
//! | `server` | the machine, the pool and the kinds of debt |
//! | `load` | requests of each second and bin, with the weeks before |
//! | `week` | a synthetic week of desktops |
//! | `trace` | a load from block traces |
//! | `random` | the only source of chance |
//! | `outlook` | forecasters, one as good as another to the policies |
//! | `policy` | no background work, fixed bucket, the published dynamic bucket, ours |
//! | `run` | the loop, and what came of it |

mod load;
mod outlook;
mod policy;
mod random;
mod run;
mod server;
mod trace;
mod week;

pub use load::{Load, Second};
pub use outlook::{Forecaster, Outlook, score};
pub use policy::Policy;
pub use run::{Hour, Outcome, run};
pub use server::Server;
pub use trace::from_traces;
pub use week::{DAYS, HISTORY_WEEKS, Pattern, synthetic};
