//! Workloads for the simulator. There is no page cache in front of them: what a workload asks for reaches the disk, as with
//! `O_DIRECT`. A trace taken below a page cache is replayed as it was taken.
//!
//! | file | what |
//! |---|---|
//! | `source` | the trait: what a process does next |
//! | `generator` | endless or bounded streams of requests: sequential, random, Zipf; open and closed loop; think time |
//! | `sessions` | pieces of I/O one after the other, with what an observer sees of the process |
//! | `job` | fio-style job files |
//! | `jobs` | the four jobs of the Minerva paper |
//! | `trace` | block traces: reading, converting, replaying |

mod generator;
pub mod job;
mod jobs;
mod sessions;
mod source;
pub mod trace;

pub use generator::{Generator, Loop, Pattern, Pause, Plan};
pub use jobs::{PAPER_JOBS, PaperJob, SIZE_PARTS};
pub use sessions::{Session, Sessions, Start};
pub use source::{IoRequest, ProcessUsage, Source, Step, UnderWay};
