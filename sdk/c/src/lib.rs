//! The tenant's side of Minerva for C programs, and for any language that calls C: `include/minerva.h`, which is made from
//! these sources and read by people. Thin: what it does is [`minerva_client::blocking`]'s.
//!
//! Units stand in the names. A function that can fail returns a [`outcome::MinervaStatus`]; none unwinds, aborts or prints, but
//! for the one warning that there is no server.

mod argument;
mod cache;
mod client;
mod credits;
mod debt;
mod job;
mod level;
mod operation;
mod outcome;
mod tagged;

pub use cache::{MinervaPool, minerva_create_deferred, minerva_open_cached};
pub use client::{MinervaClient, minerva_absence, minerva_connect, minerva_disconnect};
pub use credits::{MinervaAccount, MinervaPurchase, minerva_boost, minerva_boost_as, minerva_credits};
pub use debt::{
    MinervaDebt, MinervaOwing, minerva_debt_begin, minerva_debt_end, minerva_debt_may_work, minerva_debt_report,
    minerva_debt_status,
};
pub use job::{MinervaJob, minerva_job_begin, minerva_job_end, minerva_job_place};
pub use level::{MinervaHeld, MinervaLevel, minerva_deprioritize, minerva_release, minerva_set_level};
pub use operation::{
    MinervaAccess, MinervaBegun, MinervaOperation, MinervaRequest, minerva_begun, minerva_cancel, minerva_coordinate,
    minerva_coordinate_or_pool, minerva_create_coordinated, minerva_finish,
};
pub use outcome::{MinervaStatus, minerva_last_error, minerva_last_refusal};
pub use tagged::{minerva_tag, minerva_tag_ioprio, minerva_tag_levels, minerva_untag};
