//! How fast files of the pools are read and written, beside what lies below them and other FUSE file systems, in one run.

use super::trees::{Bed, FileTree, ThroughputPlan};
use crate::error::{At, LabError, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const LARGE: usize = 1 << 20;
const SMALL: usize = 4 << 10;
/// So often within random requests the clock is looked at.
const REQUESTS_A_LOOK: u32 = 64;

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transfer {
    /// A new file, 1 MiB a request, and synced.
    Write,
    /// 1 MiB a request from its start on; from a disk, not from memory.
    Read,
    /// 4 KiB at random trees; the same.
    RandomRead,
    /// 4 KiB at random trees of a file that is there, and synced at the end.
    RandomWrite,
}

impl Transfer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Write, Self::Read, Self::RandomRead, Self::RandomWrite];
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThroughputResult {
    /// FileTree, what was done, and megabytes a second, a number a round.
    pub rates: Vec<(String, Transfer, Vec<f64>)>,
    /// What was not measured, and why.
    pub missing: Vec<String>,
}

impl ThroughputResult {
    /// Megabytes a second in a tree, a number a round; nothing where it was not measured.
    pub fn of(&self, tree: &str, transfer: Transfer) -> &[f64] {
        let found = self.rates.iter().find(|(name, what, _)| name == tree && *what == transfer);
        found.map_or(&[], |(_, _, rates)| rates)
    }

    fn add(&mut self, tree: &str, transfer: Transfer, rate: f64) {
        match self.rates.iter_mut().find(|(name, what, _)| name == tree && *what == transfer) {
            Some((_, _, rates)) => rates.push(rate),
            None => self.rates.push((tree.to_owned(), transfer, vec![rate])),
        }
    }
}

/// Measures all trees in a drawn order, so many times. `told` hears which round is next.
pub fn cache_throughput(
    plan: &ThroughputPlan,
    interrupted: &AtomicBool,
    told: &mut dyn FnMut(u32),
) -> Result<ThroughputResult> {
    let mut bed = Bed::prepare(plan, interrupted)?;
    let mut result = ThroughputResult { missing: bed.missing.clone(), ..ThroughputResult::default() };
    for tree in &bed.trees {
        write_file(&tree.directory.join("read"), plan.bytes)?;
    }
    let mut random = fastrand::Rng::with_seed(plan.seed);
    for round in 0..plan.rounds {
        told(round);
        for transfer in Transfer::ALL {
            let mut trees: Vec<&FileTree> = bed.trees.iter().collect();
            random.shuffle(&mut trees);
            for tree in trees {
                if interrupted.load(Ordering::Relaxed) {
                    return Err(LabError::Interrupted);
                }
                let rate = transfer_at(tree, transfer, plan, &mut random)?;
                result.add(tree.name, transfer, rate / 1e6);
            }
        }
        bed.service.check()?;
    }
    for tree in &bed.trees {
        // A tree with files in it would stay in memory after the service's end.
        let file = tree.directory.join("read");
        fs::remove_file(&file).at("remove", &file)?;
    }
    let Bed { service, .. } = bed;
    service.end()?;
    Ok(result)
}

/// Bytes a second.
fn transfer_at(tree: &FileTree, transfer: Transfer, plan: &ThroughputPlan, random: &mut fastrand::Rng) -> Result<f64> {
    let file = tree.directory.join("read");
    match transfer {
        Transfer::Write => {
            let file = tree.directory.join("written");
            let begun = Instant::now();
            write_file(&file, plan.bytes)?;
            let rate = plan.bytes as f64 / begun.elapsed().as_secs_f64();
            fs::remove_file(&file).at("remove", &file)?;
            Ok(rate)
        }
        Transfer::Read => {
            forget(tree)?;
            let opened = open(&file, OFlags::RDONLY)?;
            let mut buffer = vec![0; LARGE];
            let (begun, mut at) = (Instant::now(), 0);
            loop {
                match rustix::io::pread(&opened, &mut buffer, at).at("read", &file)? {
                    0 => return Ok(at as f64 / begun.elapsed().as_secs_f64()),
                    more => at += more as u64,
                }
            }
        }
        Transfer::RandomRead => {
            forget(tree)?;
            let opened = open(&file, OFlags::RDONLY)?;
            let mut buffer = [0; SMALL];
            at_random(plan, random, |at| rustix::io::pread(&opened, &mut buffer, at).at("read", &file).map(drop))
        }
        Transfer::RandomWrite => {
            let opened = open(&file, OFlags::WRONLY)?;
            let (buffer, begun) = ([0x5a; SMALL], Instant::now());
            let write = |at| rustix::io::pwrite(&opened, &buffer, at).at("write to", &file).map(drop);
            let rate = at_random(plan, random, write)?;
            let bytes = rate * begun.elapsed().as_secs_f64();
            fsync(&opened).at("sync", &file)?;
            Ok(bytes / begun.elapsed().as_secs_f64())
        }
    }
}

/// Requests of 4 KiB at random trees for a while; bytes a second.
fn at_random(plan: &ThroughputPlan, random: &mut fastrand::Rng, mut one: impl FnMut(u64) -> Result<()>) -> Result<f64> {
    let (begun, mut requests) = (Instant::now(), 0_u64);
    while begun.elapsed() < plan.span {
        for _ in 0..REQUESTS_A_LOOK {
            one(random.u64(..plan.bytes / SMALL as u64) * SMALL as u64)?;
        }
        requests += u64::from(REQUESTS_A_LOOK);
    }
    Ok(requests as f64 * SMALL as f64 / begun.elapsed().as_secs_f64())
}

/// Writes a new file and has it on its disk.
fn write_file(path: &Path, bytes: u64) -> Result<()> {
    let opened = open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
    let block = vec![0x5a; LARGE];
    let mut at = 0;
    while at < bytes {
        let length = (bytes - at).min(LARGE as u64) as usize;
        at += rustix::io::pwrite(&opened, &block[..length], at).at("write to", path)? as u64;
    }
    fsync(&opened).at("sync", path)
}

/// What lies on a disk is not to be read from memory.
fn forget(tree: &FileTree) -> Result<()> {
    let Some(below) = &tree.below else { return Ok(()) };
    let file = below.join("read");
    let opened = open(&file, OFlags::RDONLY)?;
    fsync(&opened).at("sync", &file)?;
    fadvise(&opened, 0, None, Advice::DontNeed).at("forget", &file)
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR).at("open", path)
}

#[cfg(test)]
mod tests {
    use super::{ThroughputResult, Transfer};

    #[test]
    fn rates_are_kept_by_tree_and_transfer() {
        let mut result = ThroughputResult::default();
        for (tree, transfer, rate) in [
            ("a", Transfer::Read, 1.0),
            ("b", Transfer::Read, 2.0),
            ("a", Transfer::Write, 3.0),
            ("a", Transfer::Read, 4.0),
        ] {
            result.add(tree, transfer, rate);
        }
        assert_eq!(result.of("a", Transfer::Read), [1.0, 4.0]);
        assert_eq!(result.of("b", Transfer::Write), [] as [f64; 0]);
    }
}
