//! A load in a guest that knows what each block must hold: it writes, reads back and flushes, past the guest's page cache, and says
//! on its standard output how far it is. What the host's end reads of that is here too.

use crate::load::content;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
/// Requests under way at once, each of a thread with blocks of its own.
const THREADS: u64 = 8;
/// Between two reads of all its blocks a thread does so many requests at random.
const REQUESTS: u32 = 100;
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// How far a verifier is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Writes that were acknowledged.
    pub(crate) writes: u64,
    /// How often every thread has read all its blocks.
    pub(crate) sweeps: u64,
    /// The longest that a request took since it was told before, in milliseconds of the guest.
    pub(crate) longest_ms: u64,
    /// Blocks that held something else, and requests that failed.
    pub(crate) wrong: u64,
}

impl Told {
    /// The last whole line of it in what a guest printed.
    pub(crate) fn last(stdout: &str) -> Option<Self> {
        let whole = &stdout[..=stdout.rfind('\n')?];
        let line = whole.lines().rev().find_map(|line| line.strip_prefix("verifier "))?;
        let mut numbers = line.split(' ').filter_map(|number| number.parse().ok());
        let mut next = || numbers.next();
        Some(Self { writes: next()?, sweeps: next()?, longest_ms: next()?, wrong: next()? })
    }
}

/// Room of one block, aligned as direct I/O asks.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

struct Thread<'a> {
    file: &'a File,
    /// First block, and what is written last to each from there on.
    first: u64,
    versions: Vec<u64>,
    random: fastrand::Rng,
    block: Box<Block>,
    shared: &'a Shared,
}

#[derive(Default)]
struct Shared {
    writes: AtomicU64,
    longest_ms: AtomicU64,
    wrong: AtomicU64,
}

impl Thread<'_> {
    fn timed(&mut self, request: impl FnOnce(&mut Self) -> std::io::Result<()>) -> bool {
        let begun = Instant::now();
        let result = request(self);
        self.shared.longest_ms.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
        if let Err(error) = &result {
            self.shared.wrong.fetch_add(1, Ordering::Relaxed);
            println!("failed: {error}");
        }
        result.is_ok()
    }

    fn write(&mut self, place: usize) {
        let (number, version) = (self.first + place as u64, self.versions[place] + 1);
        self.block.0.copy_from_slice(&content(number, version));
        if self.timed(|own| own.file.write_all_at(&own.block.0, number * BLOCK as u64)) {
            self.versions[place] = version;
            self.shared.writes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read(&mut self, place: usize) {
        let number = self.first + place as u64;
        let is_read = self.timed(|own| own.file.read_exact_at(&mut own.block.0, number * BLOCK as u64));
        if is_read && self.block.0[..] != content(number, self.versions[place])[..] {
            self.shared.wrong.fetch_add(1, Ordering::Relaxed);
            println!("block {number} does not hold version {}", self.versions[place]);
        }
    }

    /// Some requests at random, and then all blocks.
    fn sweep(&mut self) {
        for _ in 0..REQUESTS {
            let place = self.random.usize(..self.versions.len());
            match self.random.u8(..) {
                0..8 => _ = self.timed(|own| own.file.sync_data()),
                8..160 => self.write(place),
                _ => self.read(place),
            }
        }
        (0..self.versions.len()).for_each(|place| self.read(place));
    }
}

/// Writes and verifies `disk`, which holds zeroes, until somebody ends the guest.
pub(crate) fn run(disk: &Path, blocks: u64) {
    let file = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(disk).unwrap();
    let (shared, own) = (Shared::default(), blocks / THREADS);
    let sweeps: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for (number, sweeps) in (0..THREADS).zip(&sweeps) {
            let mut thread = Thread {
                file: &file,
                first: number * own,
                versions: vec![0; own as usize],
                random: fastrand::Rng::with_seed(number + 1),
                block: Box::new(Block([0; BLOCK])),
                shared: &shared,
            };
            scope.spawn(move || {
                loop {
                    thread.sweep();
                    sweeps.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        loop {
            std::thread::sleep(TOLD_EVERY);
            let sweeps = sweeps.iter().map(|sweeps| sweeps.load(Ordering::Relaxed)).min().unwrap_or_default();
            let (writes, wrong) = (shared.writes.load(Ordering::Relaxed), shared.wrong.load(Ordering::Relaxed));
            println!("verifier {writes} {sweeps} {} {wrong}", shared.longest_ms.swap(0, Ordering::Relaxed));
        }
    });
}

#[test]
fn what_a_verifier_says_is_read_to_the_last_whole_line() {
    let stdout = "verifier 1 0 5 0\nfailed: no\nverifier 20 3 400 1\nverifier 30 9";
    assert_eq!(Told::last(stdout), Some(Told { writes: 20, sweeps: 3, longest_ms: 400, wrong: 1 }));
    assert_eq!(Told::last("verifier 1 0"), None);
}
