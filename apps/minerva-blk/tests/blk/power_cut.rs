//! What a guest flushed is there after a power cut: the server runs in a guest of its own, on a disk that forgets what was not flushed,
//! and a front end beside it writes records through it until the power goes at a random moment. At the next boot every record that was
//! flushed is there, whole; so is every one that was only answered where the front end knows no flush. What was written after the last flush
//! is lost, or the disk would prove nothing.

use crate::load::content;
use crate::server_folder::program;
use minerva_lab::guest::{Guest, GuestError, GuestOutput, LossyDisk};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vm_memory::Bytes;

/// Tells this program that it is in the guest, and how its front end has the disk's cache.
const CACHE: &str = "MINERVA_TEST_BLK_POWER_CUT";
/// The front end flushes; else each write is durable when it is answered.
const BACK: &str = "back";
const THROUGH: &str = "through";
/// How often the power is cut, where it is to be more often than usual.
const CUTS: &str = "MINERVA_CUTS";
const CUTS_DEFAULT: u64 = 2;
/// So often it is cut once more where chance had it that nothing was lost.
const CUTS_MORE: u64 = 4;
/// A boot takes some ten seconds; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(240);
const PATIENCE: Duration = Duration::from_secs(60);
/// The power goes after so many acknowledgements.
const ACKNOWLEDGED_MIN: u64 = 10;
const ACKNOWLEDGED_MAX: u64 = 60;

const DISK_MIB: usize = 16;
const BLOCK: u32 = 4096;
/// Blocks of a record, which are written at once.
const BLOCKS: u64 = 4;
const RECORDS: u64 = 768;
/// What is written after each flush lies behind the records.
const UNFLUSHED_START: u64 = RECORDS * BLOCKS;
const UNFLUSHED_BLOCKS: u64 = 32;
const FEATURE_FLUSH: u64 = 1 << 9;

const SOCKET: &str = "/run/vm1.sock";
const CONFIG: &str = "[disks.vm1]\nimage = \"/dev/vda\"\nsocket = \"/run/vm1.sock\"\n";

fn tell(word: &str, number: u64) {
    let mut out = std::io::stdout();
    // One line in one write: the host must not see half of a number.
    out.write_all(format!("\n{word} {number}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

/// What block `block` of the disk holds once its record is written.
fn written(block: u64) -> Vec<u8> {
    content(block, 1 + block / BLOCKS)
}

fn is_there(client: &mut Client, block: u64) -> bool {
    let slot = client.rings[0].next_slot().unwrap();
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, block * 8, BLOCK)).status, 0);
    let mut found = vec![0; BLOCK as usize];
    client.memory().read_slice(&mut found, client.rings[0].data(slot)).unwrap();
    found == written(block)
}

/// Asks for a write of each block.
fn submit(client: &mut Client, blocks: impl Iterator<Item = u64>) {
    for block in blocks {
        let slot = client.rings[0].next_slot().unwrap();
        client.memory().write_slice(&written(block), client.rings[0].data(slot)).unwrap();
        client.rings[0].submit(&Request::new(kind::OUT, block * 8, BLOCK));
    }
}

/// Until all that was asked for is answered.
fn settle(client: &mut Client) {
    client.rings[0].kick();
    while client.rings[0].under_way() > 0 {
        assert_eq!(client.rings[0].wait(PATIENCE).expect("an answer").status, 0);
    }
}

/// Not a test by itself: in the guest it looks at what is there, and goes on until the power goes.
#[test]
fn writes_records() {
    let Some(cache) = std::env::var_os(CACHE) else { return };
    let flushes = cache == BACK;
    let without = if flushes { 0 } else { FEATURE_FLUSH };
    let options = ClientOptions { data_bytes: BLOCK, without, ..ClientOptions::default() };
    let mut client = Client::connect(Path::new(SOCKET), options);
    let is_whole = |record: &u64| (0..BLOCKS).all(|place| is_there(&mut client, record * BLOCKS + place));
    let found = (0..RECORDS).take_while(is_whole).count() as u64;
    tell("found", found);
    tell("began", 0);
    for record in found..RECORDS {
        submit(&mut client, record * BLOCKS..(record + 1) * BLOCKS);
        settle(&mut client);
        if flushes {
            // Beside writes of which it says nothing.
            client.rings[0].submit(&Request::new(kind::FLUSH, 0, 0));
            submit(&mut client, UNFLUSHED_START..UNFLUSHED_START + UNFLUSHED_BLOCKS / 2);
            settle(&mut client);
        }
        if flushes {
            // Before the word, by which the power goes.
            submit(&mut client, UNFLUSHED_START..UNFLUSHED_START + UNFLUSHED_BLOCKS);
            settle(&mut client);
        }
        tell("acknowledged", record + 1);
    }
    std::thread::sleep(TIMEOUT);
}

/// The last number with this word.
fn last(text: &str, word: &str) -> Option<u64> {
    text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.parse().ok()).next_back()
}

/// The server, stripped so that it fits a guest's memory.
fn server(folder: &Path) -> PathBuf {
    let copy = folder.join("minerva-blk");
    assert!(Command::new("strip").arg("-o").arg(&copy).arg(program()).status().unwrap().success());
    copy
}

/// Boots with the disk, and cuts the power after so many acknowledgements.
fn boot(disk: &LossyDisk, server: &Path, cache: &str, wanted: u64) -> Result<GuestOutput, GuestError> {
    let own = std::env::current_exe().unwrap();
    let name = own.file_name().unwrap().to_string_lossy().into_owned();
    let script = format!(
        "{{ minerva-blk --config /etc/minerva/blk.toml & }} && \
         n=0; until [ -S {SOCKET} ] || [ $n -ge 600 ]; do sleep 0.1; n=$((n + 1)); done; \
         {CACHE}={cache} {name} --exact power_cut::writes_records --nocapture --test-threads 1"
    );
    let guest = Guest::builder().memory_mib(768).cpus(2).with_binary(&own).with_binary(server);
    let guest = guest.with_file("/etc/minerva/blk.toml", CONFIG).lossy_disk(disk);
    let is_time = |printed: &str| {
        let count = printed.lines().filter(|line| line.starts_with("acknowledged ")).count() as u64;
        printed.contains("\nbegan ") && count >= wanted
    };
    guest.run_until_cut(&script, TIMEOUT, is_time)
}

#[test]
fn nothing_that_a_guest_flushed_is_lost_when_the_power_goes() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let cuts = std::env::var(CUTS).ok().and_then(|text| text.parse().ok()).unwrap_or(CUTS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let disk = match LossyDisk::with_ext4(DISK_MIB) {
        Ok(disk) => disk,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    let (mut acknowledged, mut lost) = (0, 0);
    for number in 0..=cuts + CUTS_MORE {
        // The last boot looks only, unless the disk has still to show that it forgets.
        let is_last = number >= cuts && lost > 0;
        let wanted = if is_last { 0 } else { random.u64(ACKNOWLEDGED_MIN..=ACKNOWLEDGED_MAX) };
        let cache = if number % 2 == 0 { BACK } else { THROUGH };
        let output = match boot(&disk, &server, cache, wanted) {
            Ok(output) => output,
            Err(error) if error.is_missing() => return println!("skipped: {error}"),
            Err(error) => panic!("after {number} cuts, seed {seed}: {error}"),
        };
        let cut = disk.cut_power(random.u64(..));
        lost += cut.lost;
        let found = last(&output.stdout, "found").unwrap_or_else(|| panic!("it did not look: {output:?}"));
        println!("cut {number}, write-{cache}: {cut:?}; {acknowledged} acknowledged, found {found}");
        // One more may have been under way.
        assert!((acknowledged..=acknowledged + 1).contains(&found), "{acknowledged}, then {found}, seed {seed}");
        acknowledged = last(&output.stdout, "acknowledged").unwrap_or(found);
        if is_last {
            break;
        }
    }
    assert!(lost > 0, "a disk that forgets nothing proves nothing");
    println!("seed {seed}: {acknowledged} records kept, and {lost} sectors of what was not flushed lost");
}
