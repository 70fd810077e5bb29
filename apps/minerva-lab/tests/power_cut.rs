//! What is said to be durable is there after a power cut: in a guest whose disk forgets what was not flushed, sector by sector as
//! chance will have it, credits are bought and knobs journalled until the power goes at a random moment. At the next boot every
//! purchase and every knob that was acknowledged is there, and nothing is half there. What was written and not synced is lost, or
//! the disk would prove nothing.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use minerva_lab::guest::{Guest, LossyDisk};
use minerva_linux_actuate::{InstanceLock, Writer, WriterSettings, parse_journal};
use minerva_model::{
    CgroupRef, EntryKind, EntryNumber, KnobFile, KnobTarget, KnobWrite, LedgerEntry, MicroCredits, Nanos, Outcome,
    RequestId, WriteId,
};
use minerva_store::{Posting, Store};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Tells this program that it is in the guest: where the disk is mounted.
const WRITER: &str = "MINERVA_TEST_POWER_CUT";
/// How often the power is cut; the figure `power-cut` sets more.
const CUTS: &str = "MINERVA_CUTS";
const CUTS_DEFAULT: u64 = 3;
/// A boot takes some ten seconds; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(240);
/// The power goes after at most so many acknowledgements.
const ACKNOWLEDGED_MAX: u64 = 60;
const ACCOUNT: &str = "group:g";
/// What is written, and not synced, for each acknowledgement.
const PAGE: usize = 4096;
/// The disk in the guest, which virtio numbers so.
const DEVICE: &str = "254:0";

/// What a boot finds, and what was acknowledged after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    purchases: u64,
    knobs: u64,
    unsynced: u64,
}

impl Count {
    /// From a line `word PURCHASES KNOBS UNSYNCED`.
    fn read(line: &str, word: &str) -> Option<Self> {
        let mut numbers = line.strip_prefix(word)?.split_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { purchases: next()?, knobs: next()?, unsynced: next()? })
    }

    fn tell(self, word: &str) {
        let Self { purchases, knobs, unsynced } = self;
        let mut out = std::io::stdout();
        // One line in one write: the host must not see half of a number.
        let line = format!("\n{word} {purchases} {knobs} {unsynced}\n");
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("the host reads");
    }
}

/// What the engine does in a slice with a purchase: 30 credits entered, 25 spent.
fn purchase(number: u64) -> [Posting; 2] {
    let entry = |kind: EntryKind, credits, key: String| {
        Posting::from(LedgerEntry {
            number: EntryNumber(number),
            account: ACCOUNT.to_owned(),
            kind,
            amount: MicroCredits::credits(credits),
            expires_in: kind.adds().then_some(Nanos::from_secs(86_400)),
            request: Some(RequestId(key)),
        })
    };
    [entry(EntryKind::Earned, 30, format!("earned-{number}")), entry(EntryKind::Spent, 25, format!("bought-{number}"))]
}

/// A cap on a group of its own, made now.
fn knob(number: u64) -> KnobWrite {
    let path = format!("t/{number}");
    let directory = Path::new("/sys/fs/cgroup").join(&path);
    fs::create_dir_all(&directory).expect("a cgroup");
    let inode = fs::metadata(&directory).expect("it is there").ino();
    KnobWrite {
        id: WriteId(number),
        target: KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path, inode } },
        file: KnobFile::IoMax,
        device: DEVICE.parse().expect("a disk's number"),
        text: format!("{DEVICE} rbps=1048576"),
        undo: format!("{DEVICE} rbps=max"),
    }
}

/// Not a test by itself: in the guest it looks at what is there, and goes on until the power goes.
#[test]
fn writer() {
    let Some(disk) = std::env::var_os(WRITER) else { return };
    let disk = Path::new(&disk);
    let (mut store, notes) = Store::open(&disk.join("minerva.db"), "boot-a", Box::new(|| 0)).expect("opens");
    assert_eq!(notes, [], "a power cut must not damage the file");
    let balance = u64::try_from(store.balance_micro_credits(ACCOUNT).expect("read")).expect("never below zero");
    assert_eq!(balance % 5_000_000, 0, "a purchase is entered whole or not at all");
    let lots: u64 = store.lots(ACCOUNT).expect("read").iter().map(|lot| lot.amount.0).sum();
    assert_eq!(lots, balance);

    let settings = WriterSettings::new(disk.join("run"), "/sys/fs/cgroup");
    let journal = parse_journal(&fs::read(disk.join("run/undo.journal")).unwrap_or_default());
    assert_eq!(journal.problem_count, 0, "{:?}", journal.problems);
    let unsynced = fs::read(disk.join("unsynced")).unwrap_or_default();
    let unsynced = unsynced.iter().filter(|byte| **byte == b'x').count() / PAGE;
    let mut count =
        Count { purchases: balance / 5_000_000, knobs: journal.entries.len() as u64, unsynced: unsynced as u64 };
    count.tell("found");

    let lock = InstanceLock::acquire(&settings.runtime_dir).expect("alone");
    let (mut writer, left) = Writer::open(&settings, &lock).expect("opens");
    // Knobs ended with the boot that the journal is of.
    assert_eq!((left.earlier_boot.is_some(), left.knobs.len()), (journal.boot.is_some(), 0), "{left}");
    count = Count { knobs: 0, unsynced: 0, ..count };
    let mut unsynced = File::create(disk.join("unsynced")).expect("a file");
    count.tell("began");
    loop {
        store.post(&purchase(count.purchases)).expect("written");
        count.purchases += 1;
        count.tell("acknowledged");
        let outcome = writer.write(&knob(count.knobs));
        assert!(matches!(&outcome, Outcome::Text(text) if text.contains("rbps=1048576")), "{outcome:?}");
        count.knobs += 1;
        // The kernel writes it to the disk within a moment, and flushes it there much later.
        unsynced.write_all(&[b'x'; PAGE]).expect("written");
        count.unsynced += 1;
        count.tell("acknowledged");
        if count.purchases.is_multiple_of(50) {
            store.checkpoint().expect("moved");
        }
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_power_goes() {
    let program = std::env::current_exe().expect("this program");
    let name = program.file_name().expect("a name").to_string_lossy();
    let script = format!(
        "mkdir -p /disk /sys/fs/cgroup/t && echo +io > /sys/fs/cgroup/t/cgroup.subtree_control && \
         echo 10 > /proc/sys/vm/dirty_writeback_centisecs && echo 20 > /proc/sys/vm/dirty_expire_centisecs && \
         mount -t ext4 /dev/vda /disk && {WRITER}=/disk {name} --exact writer --nocapture --test-threads 1"
    );
    let cuts = std::env::var(CUTS).ok().and_then(|text| text.parse().ok()).unwrap_or(CUTS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let disk = match LossyDisk::with_ext4(64) {
        Ok(disk) => disk,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    let (mut acknowledged, mut forgotten, mut lost) = (Count::default(), 0, 0);
    // The last boot looks only.
    for number in 0..=cuts {
        let wanted = if number < cuts { random.u64(1..=ACKNOWLEDGED_MAX) } else { 0 };
        let guest = Guest::builder().memory_mib(768).cpus(2).with_binary(&program).lossy_disk(&disk);
        let guest = guest.with_module("crc32c_generic", "").with_module("ext4", "");
        let is_time = |printed: &str| {
            let count = printed.lines().filter(|line| line.starts_with("acknowledged ")).count() as u64;
            printed.contains("\nfound ") && count >= wanted
        };
        let output = match guest.run_until_cut(&script, TIMEOUT, is_time) {
            Ok(output) => output,
            Err(error) if error.is_missing() => return println!("skipped: {error}"),
            Err(error) => panic!("after {number} cuts, seed {seed}: {error}"),
        };
        let cut = disk.cut_power(random.u64(..));
        lost += cut.lost;
        let line = |word: &str| output.stdout.lines().filter_map(|line| Count::read(line, word)).next_back();
        let found = line("found").expect("it said what it found");
        let Count { purchases, knobs, unsynced } = acknowledged;
        println!("cut {number}: {cut:?}; acknowledged {acknowledged:?}, found {found:?}");
        assert!(
            (purchases..=purchases + 1).contains(&found.purchases),
            "{acknowledged:?}, then {found:?}, seed {seed}"
        );
        assert!((knobs..=knobs + 1).contains(&found.knobs), "{acknowledged:?}, then {found:?}, seed {seed}");
        forgotten += unsynced.saturating_sub(found.unsynced);
        // What began anew has no line of its own until something was acknowledged.
        acknowledged = line("acknowledged").or_else(|| line("began")).unwrap_or(found);
    }
    assert!(lost > 0 && forgotten > 0, "a disk that forgets nothing proves nothing: {lost} sectors, {forgotten} pages");
    println!("{cuts} power cuts, seed {seed}: {lost} sectors lost, and {forgotten} of the pages that were not synced");
}
