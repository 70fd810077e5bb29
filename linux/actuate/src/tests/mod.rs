//! Tests on the running kernel: cgroups, loop devices under BFQ, killed processes. What a machine lacks is said and the
//! test returns.

mod guard;
mod journal;
mod kill;
mod overwriters;
mod probes;
mod restore;
mod served;
mod testbed;
mod writer;
