//! Real-kernel laboratory: emulated disks, workloads in real cgroups, and the scenes of the demonstration.
//!
//! Everything here touches the real kernel and cleans up after itself: each thing has a guard, and what a killed guard
//! leaves behind is removed by [`sweep::sweep`]. Needs root.

pub mod clock;
pub mod contest;
pub mod daemon;
pub mod disk;
pub mod error;
pub mod figure;
pub mod guest;
mod lifetime;
mod mounts;
mod priority;
pub mod scene;
pub mod sweep;
pub mod workload;
