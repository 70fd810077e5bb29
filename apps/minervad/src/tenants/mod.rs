//! What tenants that take part ask for, carried out by the slice loop. Who asks was found out by `minerva-tenant-server`.

mod adjust;
pub(crate) mod claims;
mod debts;
mod describe;
mod disks;
mod held_debts;
mod levels;
mod migration;
pub(crate) mod pending;
mod reports;
mod requests;
mod schedule;
pub(crate) mod together;
mod waiting;
