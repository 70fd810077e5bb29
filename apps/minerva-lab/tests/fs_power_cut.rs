//! What the cache's `stable` says is durable is there after a power cut: in a guest whose disk forgets what was not flushed, a program
//! writes files through `minerva-fs` and closes, syncs or renames them until the power goes at a random moment. At the next boot every file
//! that was acknowledged is there, whole. What was written and neither synced nor closed is lost, or the disk would prove nothing.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod guest_program;

use minerva_lab::guest::{Guest, GuestError, GuestOutput, LossyDisk};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// Tells this program that it is in the guest: the tenant's tree.
const WRITER: &str = "MINERVA_TEST_FS_POWER_CUT";
/// How often the power is cut, where it is to be more often than usual.
const CUTS: &str = "MINERVA_CUTS";
const CUTS_DEFAULT: u64 = 2;
/// So often it is cut once more where chance had it that nothing was lost that was not synced.
const CUTS_MORE: u64 = 3;
/// A boot takes some ten seconds; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(240);
/// The power goes after so many acknowledgements.
const ACKNOWLEDGED_MIN: u64 = 10;
const ACKNOWLEDGED_MAX: u64 = 60;
const PAGE: usize = 4096;
/// Beside the pool, on the same disk.
const NOISE: &str = "/disk/noise";

/// What goes to the disk past the page cache, so that it has something to forget at each moment: all else that is written is flushed at once.
#[repr(align(4096))]
struct Noise([u8; 16 * PAGE]);
const SERVICE: &str = "minerva-fs";
const CONFIG: &str = "[pools.stable]\npath = \"/disk/pool\"\nreserve = \"1MiB\"\n[tenants.web]\nstable = \"32MiB\"\n";

/// What file `number` holds: some pages, each of which names it.
fn contents(number: u64) -> Vec<u8> {
    let line = format!("{number:015}\n");
    line.as_bytes().repeat(PAGE / line.len() * (1 + number as usize % 5))
}

fn tell(word: &str, numbers: &[u64]) {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let mut out = std::io::stdout();
    // One line in one write: the host must not see half of a number.
    out.write_all(format!("\n{word} {}\n", numbers.join(" ")).as_bytes())
        .and_then(|()| out.flush())
        .expect("the host reads");
}

/// Files that are whole, from 0 on without a gap, and bytes that nobody synced.
fn look(tree: &Path) -> [u64; 2] {
    let mut whole = 0;
    while fs::read(tree.join(whole.to_string())).is_ok_and(|found| found == contents(whole)) {
        whole += 1;
    }
    let unsynced = fs::read(tree.join("unsynced")).unwrap_or_default();
    [whole, unsynced.iter().filter(|byte| **byte == b'x').count() as u64]
}

/// Writes one file in one of the ways in which it is durable on return.
fn write(tree: &Path, number: u64) {
    let path = tree.join(number.to_string());
    match number % 3 {
        // By its close.
        0 => fs::write(&path, contents(number)).expect("written"),
        1 => {
            let file = File::create(&path).expect("a file");
            file.write_all_at(&contents(number), 0).and_then(|()| file.sync_all()).expect("synced");
            // Before its close.
            tell("acknowledged", &[number + 1]);
        }
        // As editors do.
        _ => {
            let new = tree.join("new");
            fs::write(&new, contents(number)).expect("written");
            fs::rename(&new, &path).expect("renamed");
            File::open(tree).and_then(|folder| folder.sync_all()).expect("synced");
        }
    }
}

/// Not a test by itself: in the guest it looks at what is there, and goes on until the power goes.
#[test]
fn writer() {
    let Some(tree) = std::env::var_os(WRITER) else { return };
    let tree = Path::new(&tree);
    let [whole, unsynced] = look(tree);
    tell("found", &[whole, unsynced]);
    let unsynced = File::create(tree.join("unsynced")).expect("a file");
    let flags = OFlags::DIRECT.bits().cast_signed();
    let noise = OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(NOISE);
    let noise = noise.expect("a file past the page cache");
    tell("began", &[0]);
    for number in whole.. {
        write(tree, number);
        noise.write_all_at(&Noise([number as u8; 16 * PAGE]).0, 0).expect("written");
        tell("acknowledged", &[number + 1]);
        let at = number - whole;
        unsynced.write_all_at(&[b'x'; PAGE], at * PAGE as u64).expect("written");
        tell("unsynced", &[(at + 1) * PAGE as u64]);
    }
}

/// The last line with this word.
fn last(text: &str, word: &str) -> Option<Vec<u64>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.filter_map(|numbers| numbers.split(' ').map(|number| number.parse().ok()).collect()).next_back()
}

/// Boots with the disk, and cuts the power after so many acknowledgements.
fn boot(disk: &LossyDisk, service: &Path, wanted: u64) -> Result<GuestOutput, GuestError> {
    let program = std::env::current_exe().expect("this program");
    let name = program.file_name().expect("a name").to_string_lossy();
    let script = format!(
        "mkdir -p /disk && echo 10 > /proc/sys/vm/dirty_writeback_centisecs && echo 20 > /proc/sys/vm/dirty_expire_centisecs && \
         mount -t ext4 /dev/vda /disk && {{ {SERVICE} & }} && \
         n=0; until [ -S /run/minerva-fs/control.sock ] || [ $n -ge 600 ]; do sleep 0.1; n=$((n + 1)); done; \
         {WRITER}=/minerva/web/stable {name} --exact writer --nocapture --test-threads 1"
    );
    let guest = Guest::builder().memory_mib(768).cpus(2).with_binary(&program).with_binary(service);
    let guest = guest.with_file("/etc/minerva/fs.toml", CONFIG).lossy_disk(disk);
    let guest = guest.with_module("crc32c_generic", "").with_module("ext4", "").with_module("fuse", "");
    let is_time = |printed: &str| {
        let count = printed.lines().filter(|line| line.starts_with("acknowledged ")).count() as u64;
        printed.contains("\nbegan ") && count >= wanted
    };
    guest.run_until_cut(&script, TIMEOUT, is_time)
}

#[test]
fn nothing_that_was_acknowledged_in_the_cache_is_lost_when_the_power_goes() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(service) = guest_program::program(SERVICE, folder.path()) else {
        return println!("skipped: needs minerva-fs beside minerva-lab: `cargo build --workspace --bins`");
    };
    let cuts = std::env::var(CUTS).ok().and_then(|text| text.parse().ok()).unwrap_or(CUTS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let disk = match LossyDisk::with_ext4(64) {
        Ok(disk) => disk,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    let (mut acknowledged, mut unsynced, mut forgotten, mut lost) = (0, 0, 0, 0);
    for number in 0..=cuts + CUTS_MORE {
        // The last boot looks only, unless the disk has still to show that it forgets.
        let is_last = number >= cuts && lost > 0 && forgotten > 0;
        let wanted = if is_last { 0 } else { random.u64(ACKNOWLEDGED_MIN..=ACKNOWLEDGED_MAX) };
        let output = match boot(&disk, &service, wanted) {
            Ok(output) => output,
            Err(error) if error.is_missing() => return println!("skipped: {error}"),
            Err(error) => panic!("after {number} cuts, seed {seed}: {error}"),
        };
        let cut = disk.cut_power(random.u64(..));
        lost += cut.lost;
        let found = last(&output.stdout, "found").expect("it said what it found");
        println!("cut {number}: {cut:?}; {acknowledged} acknowledged, found {found:?}");
        // One more may have been under way.
        assert!((acknowledged..=acknowledged + 1).contains(&found[0]), "{acknowledged}, then {found:?}, seed {seed}");
        forgotten += u64::saturating_sub(unsynced, found[1]);
        acknowledged = last(&output.stdout, "acknowledged").map_or(found[0], |numbers| numbers[0]);
        unsynced = last(&output.stdout, "unsynced").map_or(0, |numbers| numbers[0]);
        if number >= cuts && lost > 0 && forgotten > 0 {
            break;
        }
    }
    assert!(lost > 0 && forgotten > 0, "a disk that forgets nothing proves nothing: {lost} sectors, {forgotten} bytes");
    println!("seed {seed}: {lost} sectors lost, and {forgotten} of the bytes that were not synced");
}
