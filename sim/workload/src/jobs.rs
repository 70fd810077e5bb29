//! The jobs of Malensek et al. 2016, section 3.3, as an observer sees them. The simulator and the laboratory draw their sessions from
//! them.

/// Sizes of sessions are drawn between these parts of the paper's.
pub const SIZE_PARTS: (f64, f64) = (0.7, 1.4);

/// A job: what it is called, what it reads, in files of which size, how long it computes after each block, processors, memory,
/// connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperJob {
    /// One word for it, as its service or container would be called.
    pub word: &'static str,
    /// For people.
    pub name: &'static str,
    /// What it reads.
    pub bytes: f64,
    /// It works through files of this size, one open at a time; one file holds it all where this is the greatest number.
    pub file_bytes: u64,
    /// After each block it computes for so many microseconds.
    pub think_us: u64,
    /// Processors in use.
    pub cpus: f64,
    /// Resident memory.
    pub memory_bytes: f64,
    /// Open connections.
    pub sockets: u64,
}

/// The jobs, the shortest first. Of the two that read most, the files that they have open say nothing of it: logs, and the blocks of a
/// distributed file system.
pub const PAPER_JOBS: [PaperJob; 4] = [
    PaperJob {
        word: "checksum",
        name: "checksum, 200 MB",
        bytes: 200e6,
        file_bytes: u64::MAX,
        think_us: 50,
        cpus: 0.3,
        memory_bytes: 20e6,
        sockets: 0,
    },
    PaperJob {
        word: "data-set",
        name: "data set, 500 MB",
        bytes: 500e6,
        file_bytes: u64::MAX,
        think_us: 50,
        cpus: 0.5,
        memory_bytes: 600e6,
        sockets: 0,
    },
    PaperJob {
        word: "grep",
        name: "grep, 3 GB",
        bytes: 3e9,
        file_bytes: 256_000_000,
        think_us: 250,
        cpus: 0.7,
        memory_bytes: 300e6,
        sockets: 2,
    },
    PaperJob {
        word: "word-count",
        name: "word count, 12 GB",
        bytes: 12e9,
        file_bytes: 128_000_000,
        think_us: 350,
        cpus: 0.9,
        memory_bytes: 700e6,
        sockets: 3,
    },
];
