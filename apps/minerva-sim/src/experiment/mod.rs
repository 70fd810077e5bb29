//! The experiments of the papers, as setups of worlds.

pub(crate) mod ablation;
pub(crate) mod arm;
pub(crate) mod background;
pub(crate) mod client;
pub(crate) mod disk_time;
pub(crate) mod elsewhere;
pub(crate) mod fennel;
pub(crate) mod htbs;
pub(crate) mod interleave;
pub(crate) mod makespan;
pub(crate) mod mapreduce;
pub(crate) mod memory;
pub(crate) mod proactive;
pub(crate) mod queueing;
pub(crate) mod speed;
pub(crate) mod tag;
#[cfg(test)]
mod tests;
