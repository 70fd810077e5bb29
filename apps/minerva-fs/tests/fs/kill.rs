//! `kill -9`: what was acknowledged is there, and the mounts come back at their places.

use crate::deferred;
use crate::pool_folder::{PoolFolder, is_mounted};
use minerva_api::cache::{Answer, Request, ask};
use rustix::process::{Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the service is killed; `cargo xtask figures cache-kill` asks for more.
const KILLS: &str = "MINERVA_KILLS";
const KILLS_DEFAULT: u32 = 12;
const NAMES: u32 = 24;

fn content(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (number.wrapping_mul(2_654_435_761).wrapping_add(at * 31) >> 3) as u8).collect()
}

/// What a program knows of one tree: what it was told is done, and what it had begun when the service went.
#[derive(Default)]
struct Known {
    /// Number and length of what each name has.
    files: BTreeMap<u32, (u64, usize)>,
}

/// What was begun and not acknowledged.
#[derive(Debug)]
enum Begun {
    Write { name: u32, number: u64, bytes: usize },
    Remove { name: u32 },
    Rename { from: u32, to: u32 },
}

impl Known {
    /// One drawn operation; what it was, if it failed.
    fn step(&mut self, tree: &Path, random: &mut fastrand::Rng, number: u64) -> Option<Begun> {
        let (name, other) = (random.u32(..NAMES), random.u32(..NAMES));
        let path = |name: u32| tree.join(name.to_string());
        let begun = match random.u8(..8) {
            0 => Begun::Remove { name },
            1 | 2 => Begun::Rename { from: name, to: other },
            _ => Begun::Write { name, number, bytes: random.usize(..400_000) },
        };
        let done = match begun {
            Begun::Remove { name } if self.files.contains_key(&name) => fs::remove_file(path(name)),
            Begun::Rename { from, to } if self.files.contains_key(&from) && from != to => {
                fs::rename(path(from), path(to))
            }
            Begun::Write { name, number, bytes } => whole(tree, &path(name), &content(number, bytes)),
            _ => return None,
        };
        if done.is_err() {
            return Some(begun);
        }
        self.apply(&begun);
        None
    }

    fn apply(&mut self, begun: &Begun) {
        match *begun {
            Begun::Remove { name } => drop(self.files.remove(&name)),
            Begun::Rename { from, to } => {
                if let Some(file) = self.files.remove(&from) {
                    self.files.insert(to, file);
                }
            }
            Begun::Write { name, number, bytes } => drop(self.files.insert(name, (number, bytes))),
        }
    }

    /// Compares with what is there; what was begun is there or not, and nothing between.
    fn check(&mut self, tree: &Path, begun: Option<Begun>) {
        let found = present(tree);
        if let Some(begun) = begun
            && self.difference(&found).is_some()
        {
            self.apply(&begun);
        }
        let difference = self.difference(&found);
        assert_eq!(difference, None, "in {}", tree.display());
    }

    /// The first name that has not what was written last.
    fn difference(&self, found: &BTreeMap<u32, Vec<u8>>) -> Option<u32> {
        let names = self.files.keys().chain(found.keys());
        let is_same = |name: &u32| match (self.files.get(name), found.get(name)) {
            (Some((number, bytes)), Some(data)) => *data == content(*number, *bytes),
            _ => false,
        };
        names.copied().find(|name| !is_same(name))
    }
}

/// Writes a file as careful programs do: whole or not at all.
fn whole(tree: &Path, path: &Path, data: &[u8]) -> std::io::Result<()> {
    let new = tree.join("new");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&new)?;
    file.write_all_at(data, 0)?;
    drop(file);
    fs::rename(new, path)
}

/// The files that are there, with what they hold.
fn present(tree: &Path) -> BTreeMap<u32, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(tree).unwrap() {
        let entry = entry.unwrap();
        // What was under way may be there in part, under the name that says so.
        if let Some(name) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    found
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_service_is_killed() {
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let random = &mut fastrand::Rng::with_seed(seed);
    // So little memory that it spills all the time.
    let place = PoolFolder::with(
        "temporary = \"4MiB\"\nwhen_full = \"spill\"",
        "[pools.temporary]\nwatermark = 50\nspill_to = 10",
    );
    let mut trees = [(place.temporary(), Known::default()), (place.stable(), Known::default())];
    let (mut number, mut operations, mut longest) = (0, 0_u64, Duration::ZERO);
    let mut service = place.serve();
    for _ in 0..kills {
        let kill_after = Duration::from_micros(random.u64(500..400_000));
        let mut begun: [Option<Begun>; 2] = [None, None];
        std::thread::scope(|scope| {
            let service = &mut service;
            scope.spawn(move || {
                std::thread::sleep(kill_after);
                service.kill();
            });
            while begun.iter().all(Option::is_none) {
                for ((tree, known), begun) in trees.iter_mut().zip(&mut begun) {
                    number += 1;
                    *begun = known.step(tree, random, number);
                    operations += u64::from(begun.is_none());
                }
            }
        });
        let started = Instant::now();
        service = place.serve();
        longest = longest.max(started.elapsed());
        for ((tree, known), begun) in trees.iter_mut().zip(begun) {
            known.check(tree, begun);
        }
        assert!(place.status().temporary.files <= u64::from(NAMES) + 1, "files were counted twice");
    }
    println!("{kills} kills, seed {seed}: {operations} operations acknowledged, longest pause {longest:?}");
    assert!(operations > u64::from(kills), "a kill in a pause proves nothing");
    assert!(service.terminate());
    assert!(!is_mounted(&trees[0].0));
}

#[test]
fn a_stale_mount_is_found_and_mounted_anew_at_its_place() {
    let place = PoolFolder::new("");
    let mut service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        fs::write(tree.join("file"), "text").unwrap();
        // The kernel remembers what it was told of the root, for a second.
        fs::metadata(&tree).unwrap();
    }
    service.kill();
    for tree in [place.temporary(), place.stable()] {
        assert_eq!(fs::metadata(tree.join("file")).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    }
    let service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        assert_eq!(fs::read(tree.join("file")).unwrap(), b"text");
    }
    assert!(service.terminate());
}

#[test]
fn a_mapping_that_outlived_a_daemon_keeps_its_file_in_memory() {
    let place = PoolFolder::with("temporary = \"8MiB\"", "[pools.temporary]\nwatermark = 50\nspill_to = 0");
    let mut service = place.serve();
    if !place.status().temporary.has_passthrough {
        println!("skipped: this kernel has no FUSE passthrough");
        return;
    }
    let path = place.temporary().join("mapped");
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let both = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
    // SAFETY: a new mapping of a file of that length; used below, and unmapped once.
    let memory =
        unsafe { rustix::mm::mmap(std::ptr::null_mut(), 1 << 20, both, rustix::mm::MapFlags::SHARED, &file, 0) };
    let memory = memory.unwrap().cast::<u8>();
    service.kill();
    let _service = place.serve();
    fs::write(place.temporary().join("other"), vec![1; 6 << 20]).unwrap();
    place.until("the other file spills", |status| status.temporary.spilled_files > 0);
    std::thread::sleep(Duration::from_millis(1200));
    // SAFETY: within the mapping.
    unsafe { memory.add(1000).write_volatile(b'm') };
    let data = fs::read(&path).unwrap();
    assert_eq!((data.len(), data[1000], data[0]), (1 << 20, b'm', b'x'), "the mapping is still the file");
    // SAFETY: the mapping, and nobody uses it after this.
    unsafe { rustix::mm::munmap(memory.cast(), 1 << 20) }.unwrap();
}

#[test]
fn nothing_that_was_deferred_is_lost_when_the_service_is_killed_while_it_moves() {
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let random = &mut fastrand::Rng::with_seed(seed);
    let place = PoolFolder::new("");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    let mut known: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
    let (mut number, mut written, mut moved) = (0, 0_u64, 0_u64);
    let mut service = place.serve();
    for _ in 0..kills {
        let kill_after = Duration::from_micros(random.u64(500..600_000));
        let mut begun = None;
        std::thread::scope(|scope| {
            let service = &mut service;
            scope.spawn(move || {
                std::thread::sleep(kill_after);
                service.kill();
            });
            while begun.is_none() {
                number += 1;
                let (name, bytes) = (random.u32(..NAMES), random.usize(..2_000_000));
                begun = Some(name);
                if let Ok(Answer::Deferring { data, .. }) = deferred::try_defer(&place, &target.join(name.to_string()))
                    && fs::write(data, content(number, bytes)).is_ok()
                {
                    known.insert(name, (number, bytes));
                    (written, begun) = (written + 1, None);
                }
                let _ = ask(&place.socket(), &Request::Flush { directory: None });
            }
        });
        service = place.serve();
        // What was under way may be there in part, or as it was before; a link to nothing is there never.
        known.retain(|name, _| begun != Some(*name));
        for name in 0..NAMES {
            let path = target.join(name.to_string());
            let Ok(shown) = path.symlink_metadata() else {
                assert!(!known.contains_key(&name), "{name} is gone, seed {seed}");
                continue;
            };
            let data = fs::read(&path).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            moved += u64::from(shown.is_file());
            if let Some((number, bytes)) = known.get(&name) {
                assert!(data == content(*number, *bytes), "{name} is another than was written, seed {seed}");
            }
        }
    }
    println!("{kills} kills, seed {seed}: {written} files deferred; at their place after kills, in all, {moved}");
    deferred::until_moved(&place);
    for (name, (number, bytes)) in &known {
        let path = target.join(name.to_string());
        assert!(path.symlink_metadata().unwrap().is_file() && fs::read(path).unwrap() == content(*number, *bytes));
    }
    deferred::assert_tidy(&place, &target);
    assert!(written > u64::from(kills), "a kill in a pause proves nothing");
}

#[test]
fn nothing_is_lost_when_the_service_is_killed_while_it_unmounts() {
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let random = &mut fastrand::Rng::with_seed(seed);
    let place = PoolFolder::new("");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    let mut trees = [(place.temporary(), Known::default()), (place.stable(), Known::default())];
    let (mut number, mut ended) = (0, 0_u32);
    let mut service = place.serve();
    for kill in 0..kills {
        for (tree, known) in &mut trees {
            for _ in 0..10 {
                number += 1;
                assert!(known.step(tree, random, number).is_none(), "it is served");
            }
        }
        let deferred = target.join(kill.to_string());
        deferred::write(&place, &deferred, &content(u64::from(kill), 100_000));
        // While somebody has a file open it waits before it unmounts, and a second signal ends that.
        let open = random.bool().then(|| File::create(trees[1].0.join("open")).unwrap());
        let signals = 1 + u32::from(open.is_some() && random.bool());
        for _ in 0..signals {
            kill_process(service.pid(), Signal::TERM).unwrap();
            std::thread::sleep(Duration::from_micros(random.u64(..20_000)));
        }
        ended += u32::from(service.0.try_wait().unwrap().is_some());
        service.kill();
        drop(open);
        service = place.serve();
        for (tree, known) in &mut trees {
            known.check(tree, None);
        }
        for kill in 0..=kill {
            let data =
                fs::read(target.join(kill.to_string())).unwrap_or_else(|error| panic!("{kill}, {seed}: {error}"));
            assert!(data == content(u64::from(kill), 100_000), "{kill}, seed {seed}");
        }
    }
    println!("{kills} kills, seed {seed}: {ended} came after the end");
    assert!(ended < kills, "a kill after the end proves nothing");
    deferred::until_moved(&place);
    deferred::assert_tidy(&place, &target);
    assert!(service.terminate());
}
