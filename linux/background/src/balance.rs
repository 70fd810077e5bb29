//! Balancing a btrfs (`BTRFS_IOC_BALANCE_V2` of linux/btrfs.h): what is in chunks that are little used is moved together, so that the
//! space around it can be used for anything again.
//!
//! It is done chunk by chunk, the highest address first, as what is moved goes to higher ones. A chunk is moved inside one call; who stops
//! that freezes the worker and cancels the call, and the chunk is begun again: the kernel writes what it copies of data into a file of its
//! own, which it deletes then. So work that shares a disk leaves it its turn for longer (`crate::turns`), and it takes no time from others, in
//! whose stretches no chunk would ever be done.
//!
//! It ties no space: what chunks have unused counts as free.

use crate::btrfs::{self, open_btrfs};
use crate::error::WorkError;
use crate::spec::Spec;
use crate::worker::Worker;
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Updater, ioctl, opcode};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;

/// `struct btrfs_ioctl_balance_args` in words: flags, state, three of `struct btrfs_balance_args`, and what came of it.
type BalanceArgs = [u64; 128];
const BALANCE: Opcode = opcode::read_write::<BalanceArgs>(0x94, 32);
const BALANCE_CONTROL: Opcode = opcode::write::<i32>(0x94, 33);
const CANCEL: usize = 2;
/// Data, system and metadata.
const ALL_KINDS: u64 = 7;
/// Where those of each begin, and in them.
const OF_KINDS: [usize; 3] = [2, 19, 36];
const RANGE_START: usize = 5;
const RANGE_END: usize = 6;
const FILTERS: usize = 8;
const FILTER_RANGE: u64 = 1 << 4;
/// Chunks that were moved.
const COMPLETED: usize = 55;

/// A piece of the space that a btrfs has divided its disks into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    address: u64,
    length: u64,
    used: u64,
}

impl Chunk {
    /// At most so much of it is used.
    const fn is_used_up_to(&self, percent: u8) -> bool {
        self.used as u128 * 100 <= self.length as u128 * percent as u128
    }
}

/// Whether there is a btrfs at a path.
pub(crate) fn check(path: &Path) -> Result<(), WorkError> {
    open_btrfs(path, "balance").map(drop)
}

/// Ends the call in which a chunk is moved, if there is one; waits until it has ended.
pub(crate) fn cancel(spec: &Spec) -> Result<(), WorkError> {
    let directory = spec.open()?;
    // SAFETY: `BTRFS_IOC_BALANCE_CTL` takes a number, no pointer.
    match unsafe { ioctl(&directory, IntegerSetter::<BALANCE_CONTROL>::new_usize(CANCEL)) } {
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(errno) => Err(WorkError::io("stop the balance of", &spec.path)(errno)),
    }
}

/// Moves what is in chunks that are used up to the percentage that was asked for. The position is the address below which is still to be
/// done; 0: everywhere.
pub(crate) fn run(worker: &mut Worker) -> Result<(), WorkError> {
    let path = worker.spec().path.clone();
    let directory = worker.spec().open()?;
    let percent = worker.spec().used_percent_max;
    let below = Some(worker.spec().position).filter(|position| *position > 0).unwrap_or(u64::MAX);
    let mut chunks = chunks(&directory).map_err(WorkError::io("read the chunks of", &path))?;
    chunks.retain(|chunk| chunk.address < below && chunk.is_used_up_to(percent));
    chunks.sort_unstable_by_key(|chunk| std::cmp::Reverse(chunk.address));
    // One without anything in it still costs a transaction.
    let cost = |chunk: &Chunk| chunk.used.max(1);
    let total: u64 = chunks.iter().map(cost).sum();
    let (mut done, mut moved, mut left) = (0, 0_u64, 0_u64);
    for chunk in &chunks {
        worker.progress(done as f64, Some(total as f64), chunk.address.saturating_add(1));
        if move_chunk(worker, &directory, chunk)? {
            moved += 1
        } else {
            left += 1
        }
        done += cost(chunk);
    }
    worker.progress(done as f64, Some(total as f64), 1);
    let why = if left > 0 { format!("; {left} had no room elsewhere, or were gone") } else { String::new() };
    worker.say(&format!("{moved} of {} chunks moved together{why}", chunks.len()));
    Ok(())
}

/// Whether what is in a chunk was moved.
fn move_chunk(worker: &Worker, directory: &OwnedFd, chunk: &Chunk) -> Result<bool, WorkError> {
    let path = &worker.spec().path;
    loop {
        let mut args: BalanceArgs = [0; 128];
        args[0] = ALL_KINDS;
        for kind in OF_KINDS {
            args[kind + RANGE_START] = chunk.address;
            args[kind + RANGE_END] = chunk.address.saturating_add(1);
            args[kind + FILTERS] = FILTER_RANGE;
        }
        worker.begins_call();
        // SAFETY: `BTRFS_IOC_BALANCE_V2` reads and writes one `struct btrfs_ioctl_balance_args`, which is 1,024 bytes.
        match unsafe { ioctl(directory, Updater::<BALANCE, BalanceArgs>::new(&mut args)) } {
            Ok(()) => return Ok(args[COMPLETED] > 0),
            // Stopped: this goes on when the worker does.
            Err(Errno::CANCELED | Errno::INTR | Errno::AGAIN) if worker.was_stopped() => {}
            Err(Errno::CANCELED) => {
                return Err(WorkError::Refused("the balance was cancelled by somebody else".to_owned()));
            }
            Err(Errno::NOSPC) => return Ok(false),
            Err(Errno::INPROGRESS) => {
                let why = format!("a balance of {} runs already, begun by somebody else", path.display());
                return Err(WorkError::Refused(why));
            }
            Err(errno) => return Err(WorkError::io("balance", path)(errno)),
        }
    }
}

fn chunks(directory: &OwnedFd) -> Result<Vec<Chunk>, Errno> {
    let chunk = |Range { start, end }| {
        Ok(Chunk { address: start, length: end - start, used: btrfs::used_of_chunk(directory, start)? })
    };
    btrfs::chunks(directory)?.into_iter().map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::Chunk;

    #[test]
    fn chunks_are_chosen_by_how_much_of_them_is_used() {
        let chunk = |used| Chunk { address: 0, length: 1 << 30, used };
        assert!(chunk(1 << 29).is_used_up_to(50) && !chunk((1 << 29) + (1 << 24)).is_used_up_to(50));
        assert!(chunk(0).is_used_up_to(0) && !chunk(u64::MAX).is_used_up_to(100));
    }
}
