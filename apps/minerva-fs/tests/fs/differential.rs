//! Drawn operations on a tree and on a plain directory beside it: answer by answer and byte by byte the same.

use crate::pool_folder::PoolFolder;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom, fallocate, ftruncate, linkat, mkdirat, openat,
    renameat_with, seek, statat, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Operations of fsx on each tree, for which `cargo xtask figures cache-posix` asks; of these, which look at all names, a tenth.
const OPERATIONS: &str = "MINERVA_OPERATIONS";
const OF_FSX: u64 = 10;
const OPERATIONS_DEFAULT: u64 = 4000;
const LENGTH: u64 = 600_000;

/// One drawn operation. Names are numbers: `3` is a file at the top, `13` one in a directory.
#[derive(Clone, Debug)]
enum Step {
    Open { slot: usize, name: u8, flags: OFlags },
    Close { slot: usize },
    Write { slot: usize, at: u64, data: Vec<u8> },
    Read { slot: usize, at: u64, length: usize },
    Truncate { slot: usize, length: u64 },
    Allocate { slot: usize, at: u64, length: u64, mode: FallocateFlags },
    Seek { slot: usize, to: SeekFrom },
    Rename { from: u8, to: u8, flags: RenameFlags },
    Remove { name: u8, is_directory: bool },
    Directory { name: u8 },
    Link { from: u8, to: u8 },
    Stat { name: u8 },
    Whole { name: u8 },
}

fn draw(random: &mut fastrand::Rng) -> Step {
    let (slot, name, other) = (random.usize(..4), random.u8(..20), random.u8(..20));
    let (at, length) = (random.u64(..LENGTH), random.u64(1..LENGTH / 4));
    match random.u8(..22) {
        0..=2 => {
            let ways = [OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR, OFlags::RDWR | OFlags::APPEND];
            let more = [
                OFlags::empty(),
                OFlags::CREATE,
                OFlags::CREATE,
                OFlags::CREATE | OFlags::EXCL,
                OFlags::TRUNC,
                OFlags::CREATE | OFlags::TRUNC,
            ];
            Step::Open { slot, name, flags: ways[random.usize(..ways.len())] | more[random.usize(..more.len())] }
        }
        3 => Step::Close { slot },
        4..=7 => {
            let byte = random.u8(..);
            let data = (0..length).map(|number| (number as u8).wrapping_mul(7) ^ byte).collect();
            Step::Write { slot, at, data }
        }
        8..=10 => Step::Read { slot, at, length: length as usize },
        11 => Step::Truncate { slot, length: at },
        12 => {
            let modes = [
                FallocateFlags::empty(),
                FallocateFlags::KEEP_SIZE,
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            ];
            // Whole pages, as where holes begin otherwise is the file system's own.
            let (at, length) = (at / 4096 * 4096, length.div_ceil(4096) * 4096);
            Step::Allocate { slot, at, length, mode: modes[random.usize(..modes.len())] }
        }
        13 => Step::Seek { slot, to: if random.bool() { SeekFrom::Data(at) } else { SeekFrom::Hole(at) } },
        14 | 15 => {
            let flags = [RenameFlags::empty(), RenameFlags::NOREPLACE, RenameFlags::EXCHANGE];
            Step::Rename { from: name, to: other, flags: flags[random.usize(..flags.len())] }
        }
        16 => Step::Remove { name, is_directory: random.u8(..4) == 0 },
        17 => Step::Directory { name },
        18 => Step::Link { from: name, to: other },
        19 => Step::Stat { name },
        _ => Step::Whole { name },
    }
}

/// A tree with its open files.
struct Side {
    root: std::path::PathBuf,
    slots: [Option<OwnedFd>; 4],
}

/// What a program sees of an operation.
type Seen = Result<Vec<u8>, Errno>;

impl Side {
    fn new(root: &Path) -> Self {
        fs::create_dir(root.join("d")).unwrap();
        Self { root: root.to_owned(), slots: [None, None, None, None] }
    }

    fn path(&self, name: u8) -> std::path::PathBuf {
        if name < 10 { self.root.join(name.to_string()) } else { self.root.join("d").join(name.to_string()) }
    }

    fn file(&self, slot: usize) -> Result<&OwnedFd, Errno> {
        self.slots[slot].as_ref().ok_or(Errno::BADF)
    }

    fn take(&mut self, step: &Step) -> Seen {
        let nothing = |()| Vec::new();
        match step {
            Step::Open { slot, name, flags } => {
                self.slots[*slot] = None;
                self.slots[*slot] = Some(openat(CWD, self.path(*name), *flags, Mode::RUSR | Mode::WUSR)?);
                Ok(Vec::new())
            }
            Step::Close { slot } => {
                self.slots[*slot] = None;
                Ok(Vec::new())
            }
            Step::Write { slot, at, data } => Ok(pwrite(self.file(*slot)?, data, *at)?.to_le_bytes().to_vec()),
            Step::Read { slot, at, length } => {
                let mut data = vec![0; *length];
                let read = pread(self.file(*slot)?, &mut data, *at)?;
                data.truncate(read);
                Ok(data)
            }
            Step::Truncate { slot, length } => ftruncate(self.file(*slot)?, *length).map(nothing),
            Step::Allocate { slot, at, length, mode } => fallocate(self.file(*slot)?, *mode, *at, *length).map(nothing),
            // Where data lie is the file system's own, but not where none can.
            Step::Seek { slot, to } => match seek(self.file(*slot)?, *to) {
                Err(Errno::NXIO) | Ok(_) => Ok(Vec::new()),
                Err(error) => Err(error),
            },
            Step::Rename { from, to, flags } => {
                renameat_with(CWD, self.path(*from), CWD, self.path(*to), *flags).map(nothing)
            }
            Step::Remove { name, is_directory } => {
                let flags = if *is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                unlinkat(CWD, self.path(*name), flags).map(nothing)
            }
            Step::Directory { name } => mkdirat(CWD, self.path(*name), Mode::RWXU).map(nothing),
            Step::Link { from, to } => {
                linkat(CWD, self.path(*from), CWD, self.path(*to), AtFlags::empty()).map(nothing)
            }
            Step::Stat { name } => {
                let shown = statat(CWD, self.path(*name), AtFlags::SYMLINK_NOFOLLOW)?;
                // What a directory's length and links are is the file system's own.
                let is_file = shown.st_mode & libc::S_IFMT == libc::S_IFREG;
                let of_file = if is_file { (shown.st_size, shown.st_nlink) } else { (0, 0) };
                Ok(format!("{:o} {of_file:?}", shown.st_mode).into_bytes())
            }
            Step::Whole { name } => fs::read(self.path(*name)).map_err(|error| Errno::from_io_error(&error).unwrap()),
        }
    }

    fn names(&self) -> BTreeMap<String, Option<u64>> {
        let mut found = BTreeMap::new();
        for folder in [self.root.clone(), self.root.join("d")] {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let shown = entry.metadata().unwrap();
                let name = entry.path().strip_prefix(&self.root).unwrap().to_string_lossy().into_owned();
                found.insert(name, shown.is_file().then_some(shown.len()));
            }
        }
        found
    }
}

fn differ(tree: &Path, plain: &Path, seed: u64, operations: u64) {
    let random = &mut fastrand::Rng::with_seed(seed);
    let (mut ours, mut theirs) = (Side::new(tree), Side::new(plain));
    for number in 0..operations {
        let step = draw(random);
        let (seen, expected) = (ours.take(&step), theirs.take(&step));
        let is_same = seen == expected;
        let lengths = |seen: &Seen| seen.as_ref().map(Vec::len).map_err(|error| *error);
        assert!(
            is_same,
            "seed {seed}, operation {number} on {}: {} gave {:?}, a plain directory {:?}",
            tree.display(),
            match &step {
                Step::Write { slot, at, data } => format!("Write {slot} {at} {}", data.len()),
                step => format!("{step:?}"),
            },
            lengths(&seen),
            lengths(&expected)
        );
        if number % 100 == 99 {
            assert_eq!(ours.names(), theirs.names(), "seed {seed}, after operation {number}");
        }
    }
}

#[test]
fn a_tree_does_what_a_plain_directory_does() {
    let asked_for = std::env::var(OPERATIONS).ok().and_then(|text| text.parse::<u64>().ok());
    let operations = asked_for.map_or(OPERATIONS_DEFAULT, |operations| operations.div_ceil(OF_FSX));
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    // Memory as large as it needs, and so little that files spill as soon as they are closed; those that are open fit.
    let settings = [
        ("", ""),
        ("writes = \"kernel\"", ""),
        ("temporary = \"6MiB\"\nwhen_full = \"spill\"", "[pools.temporary]\nwatermark = 50\nspill_to = 0"),
    ];
    for (tenant, tables) in settings {
        let place = PoolFolder::with(tenant, tables);
        let service = place.serve();
        for tree in [place.temporary(), place.stable()] {
            let plain = tempfile::Builder::new().prefix("minerva-test-plain-").tempdir().unwrap();
            differ(&tree, plain.path(), seed, operations);
        }
        println!("{operations} operations each, seed {seed}; {} files spilled", place.status().temporary.spilled_files);
        assert!(service.terminate());
    }
}
