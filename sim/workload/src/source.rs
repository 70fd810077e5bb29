//! What a process does next.

use minerva_blocksched::Kind;
use minerva_model::Nanos;

/// One request as a process makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// What is to be done.
    pub kind: Kind,
    /// The process waits for it.
    pub sync: bool,
    /// The priority that the application gave it, 1 to 254.
    pub tag: Option<u8>,
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub length_bytes: u32,
}

/// A process's next move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes this request now.
    Issue(IoRequest),
    /// Does something else until this instant, then is asked again.
    At(Nanos),
    /// Waits for one of its requests.
    Blocked,
    /// Has ended.
    Finished,
}

/// What a process uses besides the disk, as `/proc` would show it; and what only it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time, cumulative.
    pub cpu_ns: u64,
    /// Resident memory now.
    pub memory_bytes: u64,
    /// Open file descriptors now.
    pub open_files: u64,
    /// Of those, sockets.
    pub open_sockets: u64,
    /// Sum of the sizes of the regular files now open.
    pub open_file_bytes: u64,
    /// Its I/O session, which no observer sees: for arms of experiments that know the truth.
    pub under_way: Option<UnderWay>,
}

/// An I/O session under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// Which of the process's sessions.
    pub number: u64,
    /// What it transfers in all.
    pub total_bytes: u64,
    /// What is left of that.
    pub left_bytes: u64,
}

/// A process, seen from the disk. Asked for its next move at its start, after each request it made, at the instants it
/// named and after each completion.
pub trait Source: Send {
    /// What it does at `now`.
    fn next(&mut self, now: Nanos) -> Step;

    /// One of its requests has completed.
    fn completed(&mut self, now: Nanos, request: &IoRequest);

    /// What it uses besides the disk, where that is modelled.
    fn usage(&self, now: Nanos) -> Option<ProcessUsage> {
        let _ = now;
        None
    }
}
