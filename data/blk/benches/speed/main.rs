//! `blk-speed`: this server beside QEMU's, `qemu-storage-daemon`, with the same client, in the same run and in an order that is drawn anew
//! for each pair; each server and the client have a processor of their own. With `MINERVA_FIGURE` set it prints one JSON line a
//! condition; without, nothing is measured. `MINERVA_SPEED_PAIRS` and `MINERVA_SPEED_MS` make it shorter, `MINERVA_SPEED_ONLY`
//! (`pairs-null`, `pairs-file`, `added`, `schedulers`, `computing`, `memory`) takes a part of it. With `MINERVA_SPEED_USUAL_SLICE` set the
//! server's threads do not ask for a short time slice, as `minerva-blk` does.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot go on says why by panicking")]

mod client;
mod computing;
mod server;
mod statistics;
mod waking;

use client::{Condition, Run};
use computing::Computing;
use hdrhistogram::Histogram;
use server::{Arm, BackEnd, Running};
use statistics::pooled_ratio;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const IMAGE_BYTES: u64 = 256 << 20;
const PAIRS: usize = 10;
const TIME_MS: u64 = 1000;
/// Disks beside which a scheduler is measured.
const DISKS: usize = 64;

/// Where `pread` alone begins; which blocks it reads changes nothing.
const DIRECT_SEED: u64 = 12;

const CONDITIONS: [Condition; 4] = [
    Condition { block: 4096, depth: 1, is_sequential: false },
    Condition { block: 4096, depth: 32, is_sequential: false },
    Condition { block: 4096, depth: 128, is_sequential: false },
    Condition { block: 131_072, depth: 8, is_sequential: true },
];

/// Where it all lies, and how much is measured.
struct Bench {
    folder: tempfile::TempDir,
    pairs: usize,
    time: Duration,
    seed: u64,
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == server::SERVE) {
        return server::serve(&arguments[2..]);
    }
    if std::env::var_os("MINERVA_FIGURE").is_none() {
        return;
    }
    // In memory, so that the server is what is measured.
    let folder = tempfile::Builder::new().prefix("minerva-test-speed-").tempdir_in("/dev/shm").unwrap();
    let file = File::create(folder.path().join("image")).unwrap();
    (0..IMAGE_BYTES >> 20).for_each(|mib| file.write_all_at(&vec![0xA5; 1 << 20], mib << 20).unwrap());
    // Drawn, unless it is given.
    let drawn = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let seed = number("MINERVA_SPEED_SEED", drawn);
    eprintln!("order with seed {seed}");
    let bench = Bench {
        folder,
        pairs: number("MINERVA_SPEED_PAIRS", PAIRS as u64) as usize,
        time: Duration::from_millis(number("MINERVA_SPEED_MS", TIME_MS)),
        seed,
    };
    server::pin(server::CLIENT_PROCESSOR);
    let only = std::env::var("MINERVA_SPEED_ONLY").unwrap_or_default();
    let is_wanted = |part: &str| only.is_empty() || only.split(',').any(|word| word == part);
    for back_end in [BackEnd::Null, BackEnd::File] {
        if is_wanted(&format!("pairs-{back_end}")) {
            CONDITIONS.iter().for_each(|condition| bench.beside_qemu(back_end, *condition));
        }
    }
    if is_wanted("added") {
        bench.added();
    }
    if is_wanted("schedulers") {
        bench.schedulers(BackEnd::Null);
        bench.schedulers(BackEnd::File);
    }
    if is_wanted("computing") {
        CONDITIONS[..2].iter().for_each(|condition| bench.beside_computing(*condition));
    }
    if is_wanted("memory") {
        bench.memory();
    }
}

impl Bench {
    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn run(&self, arm: Arm, condition: Condition, seed: u64) -> Run {
        let running = Running::start(arm, self.folder.path(), &self.image());
        client::run(&running, condition, self.time, seed)
    }

    /// Runs of two, in an order that is drawn for each pair.
    fn pairs(&self, arms: [Arm; 2], condition: Condition) -> [Vec<Run>; 2] {
        let mut found = [Vec::new(), Vec::new()];
        for pair in 0..self.pairs {
            let first = statistics::drawn(self.seed, pair as u64) as usize % 2;
            for which in [first, 1 - first] {
                found[which].push(self.run(arms[which], condition, self.seed + pair as u64));
            }
        }
        found
    }

    fn beside_qemu(&self, back_end: BackEnd, condition: Condition) {
        if !server::has_qemu() {
            return println!("{}", without_qemu());
        }
        let ours = Arm { scheduler: Some("noop"), back_end, disks: 1 };
        let [ours, qemu] = self.pairs([ours, Arm { scheduler: None, ..ours }], condition);
        let rates = pooled_ratio(&ours, &qemu, Run::per_second, self.seed);
        let late = pooled_ratio(&ours, &qemu, |run| run.micros(0.99), self.seed);
        let both = [&ours, &qemu].map(|runs| Run::pooled(runs));
        let p99 = both[0].micros(0.99) / both[1].micros(0.99);
        let detail = format!(
            "{condition}, {back_end}: ours {:.0}, qemu {:.0} a second in {} pairs, seed {}, 95 % interval {rates}; p99 pooled {:.1} and {:.1} us, \
             {p99:.2} of qemu's, interval {late}; processor time a request {:.2} and {:.2} us",
            both[0].per_second(),
            both[1].per_second(),
            self.pairs,
            self.seed,
            both[0].micros(0.99),
            both[1].micros(0.99),
            both[0].processor_micros(),
            both[1].processor_micros(),
        );
        let is_met = rates.low >= 1.0 && p99 <= 1.0;
        println!(
            r#"{{"id":"blk-speed","value":{:.3},"unit":"of qemu-storage-daemon's requests a second","goal":1.0,"met":{is_met},"detail":"{detail}"}}"#,
            rates.middle
        );
    }

    /// What a request takes more with this server than with the system call alone.
    fn added(&self) {
        let condition = CONDITIONS[0];
        let mut waking = Histogram::new_with_bounds(100, 100_000_000_000, 3).expect("bounds in order");
        let null = self.runs_beside_waking(BackEnd::Null, condition, &mut waking);
        let file = self.runs_beside_waking(BackEnd::File, condition, &mut waking);
        let direct = read_directly(&self.image(), self.time);
        let (null, file) = (Run::pooled(&null), Run::pooled(&file));
        let detail = format!(
            "median at 4 KiB and depth 1 with nothing behind: from the ring to the guest's signal; through a file in tmpfs {:.1} us, \
             where pread alone takes {direct:.1}; p99 {:.1} and {:.1} us; to be woken by a thread that does nothing but look and tell: \
             median {:.1}, p99 {:.1} us, between these runs",
            file.micros(0.5),
            null.micros(0.99),
            file.micros(0.99),
            waking.value_at_quantile(0.5) as f64 / 1e3,
            waking.value_at_quantile(0.99) as f64 / 1e3
        );
        let value = null.micros(0.5).max(file.micros(0.5) - direct);
        println!(
            r#"{{"id":"blk-speed","value":{value:.2},"unit":"us added","goal":15.0,"met":{},"detail":"{detail}"}}"#,
            value < 15.0
        );
    }

    /// Between the runs it is noted what it takes to wake a thread.
    fn runs_beside_waking(&self, back_end: BackEnd, condition: Condition, waking: &mut Histogram<u64>) -> Vec<Run> {
        let arm = Arm { scheduler: Some("noop"), back_end, disks: 1 };
        let run = |pair| {
            waking::note(waking, self.time);
            self.run(arm, condition, self.seed + pair)
        };
        (0..self.pairs as u64).map(run).collect()
    }

    /// HTBS beside none, with many disks.
    fn schedulers(&self, back_end: BackEnd) {
        let condition = Condition { depth: 2, ..CONDITIONS[0] };
        let none = Arm { scheduler: Some("noop"), back_end, disks: DISKS };
        let [htbs, none] = self.pairs([Arm { scheduler: Some("htbs"), ..none }, none], condition);
        let ratio = pooled_ratio(&htbs, &none, Run::per_second, self.seed);
        let both = [&htbs, &none].map(|runs| Run::pooled(runs));
        let cost = 1.0 - ratio.middle;
        let detail = format!(
            "htbs with {DISKS} disks that have contracts beside noop, {back_end}, 4 KiB at random, depth 2 each: {:.0} and {:.0} a second \
             in {} pairs, ratio {ratio}; processor time a request {:.2} and {:.2} us",
            both[0].per_second(),
            both[1].per_second(),
            self.pairs,
            both[0].processor_micros(),
            both[1].processor_micros(),
        );
        println!(
            r#"{{"id":"blk-speed","value":{cost:.3},"unit":"of none's requests a second","goal":0.05,"met":{},"detail":"{detail}"}}"#,
            cost < 0.05
        );
    }

    /// This server and QEMU's, each beside programs that compute on its processor.
    fn beside_computing(&self, condition: Condition) {
        if !server::has_qemu() {
            return println!("{}", without_qemu());
        }
        let ours = Arm { scheduler: Some("noop"), back_end: BackEnd::File, disks: 1 };
        let _computing = Computing::start();
        let [ours, qemu] = self.pairs([ours, Arm { scheduler: None, ..ours }], condition);
        let rates = pooled_ratio(&ours, &qemu, Run::per_second, self.seed);
        let both = [&ours, &qemu].map(|runs| Run::pooled(runs));
        let p99 = both[0].micros(0.99) / both[1].micros(0.99);
        let detail = format!(
            "{condition}, {}, beside {} programs that compute on the server's processor: median {:.1} and {:.1} us, p99 {:.1} and {:.1}, \
             ours {:.0}, qemu {:.0} a second in {} pairs, seed {}, ratio {rates}",
            BackEnd::File,
            computing::PROGRAMS,
            both[0].micros(0.5),
            both[1].micros(0.5),
            both[0].micros(0.99),
            both[1].micros(0.99),
            both[0].per_second(),
            both[1].per_second(),
            self.pairs,
            self.seed,
        );
        println!(
            r#"{{"id":"blk-speed","value":{p99:.3},"unit":"of qemu-storage-daemon's p99","goal":1.0,"met":{},"detail":"{detail}"}}"#,
            p99 <= 1.0 && rates.low >= 1.0
        );
    }

    /// What a disk more takes in memory, connected and after some requests.
    fn memory(&self) {
        let bytes = |disks| {
            let arm = Arm { scheduler: Some("htbs"), back_end: BackEnd::Null, disks };
            let running = Running::start(arm, self.folder.path(), &self.image());
            client::run_connected(&running, Condition { depth: 2, ..CONDITIONS[0] }, self.time, self.seed, || {
                running.anonymous_bytes()
            })
        };
        let (one, many) = (bytes(1), bytes(1 + DISKS));
        let each = (many - one) / DISKS as f64 / 1024.0;
        println!(
            r#"{{"id":"blk-speed","value":{each:.0},"unit":"KiB a disk","goal":null,"met":true,"detail":"anonymous memory with {} disks less that with one ({:.0} KiB), divided; connected, one ring of 128, after some requests"}}"#,
            1 + DISKS,
            one / 1024.0
        );
    }
}

/// The line where there is nothing to compare with.
fn without_qemu() -> String {
    let detail = "not measured: there is no qemu-storage-daemon (package qemu-system-common)";
    format!(r#"{{"id":"blk-speed","value":null,"unit":"","goal":1.0,"met":false,"detail":"{detail}"}}"#)
}

/// The median of `pread` in microseconds.
fn read_directly(image: &Path, time: Duration) -> f64 {
    let file = File::open(image).unwrap();
    let (mut block, mut took, begun) = ([0; 4096], Vec::new(), Instant::now());
    let mut next = DIRECT_SEED;
    while begun.elapsed() < time {
        next = statistics::drawn(next, 1);
        let before = Instant::now();
        file.read_exact_at(&mut block, next % (IMAGE_BYTES / 4096) * 4096).unwrap();
        took.push(before.elapsed().as_secs_f64() * 1e6);
    }
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}
