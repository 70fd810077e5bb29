//! File systems whose knobs are plain files, and a real one.

use super::{Limit, Rate};
use crate::automount::Automounts;
use crate::btrfs::used_on_disks;
use crate::directories::{Progress, replace};
use crate::duty::Chance;
use crate::loop_disk::{self, LoopDisk};
use crate::run::tests::{Sleeper, run};
use crate::run::{Before, Run, WorkerProgram};
use crate::scrub_speed::{devices, kept, knobs};
use crate::spec::Kind;
use crate::stop_all::stop_all;
use crate::worker::Assignment;
use minerva_model::{BackgroundBeside, BackgroundPace, BackgroundState, DeviceId, Nanos};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Of the rate that is assumed.
const HALF: u64 = 32 << 20;

/// A scrub that is to have half of the time, of a btrfs whose devices have these limits of their own below `root/sys`; and the knobs.
fn limitable(root: &Path, own: &[u64]) -> (Sleeper, Vec<PathBuf>) {
    let run = run(root, Kind::BtrfsScrub, root);
    let devices = devices(run.spec.identity.lasting.unwrap().file_system, &root.join("sys"));
    let knob = |(at, own): (usize, &u64)| {
        let knob = devices.join((at + 1).to_string()).join("scrub_speed_max");
        fs::create_dir_all(knob.parent().unwrap()).unwrap();
        fs::write(&knob, format!("{own}\n")).unwrap();
        knob
    };
    let knobs = own.iter().enumerate().map(knob).collect();
    fs::create_dir_all(&run.place.groups.freezer).unwrap();
    let mut sleeper = Sleeper::new(run);
    sleeper.0.duty.pace = BackgroundPace::Share(500);
    (sleeper, knobs)
}

fn held(knobs: &[PathBuf]) -> Vec<u64> {
    knobs.iter().map(|knob| fs::read_to_string(knob).unwrap().trim().parse().unwrap()).collect()
}

#[test]
fn beside_others_a_scrub_has_its_share_of_what_it_reads_in_gaps() {
    let root = tempfile::tempdir().unwrap();
    let sys = root.path().join("sys");
    let (mut sleeper, knobs) = limitable(root.path(), &[0, 0]);
    sleeper.turn(false, &sys);
    assert_eq!((held(&knobs), sleeper.0.is_running), (vec![HALF; 2], true));
    sleeper.turn_at(Nanos::from_secs(1), false, &sys);
    let report = sleeper.0.report(&Automounts::default(), &sys);
    let half = Nanos::from_millis(500);
    assert_eq!((report.ran, report.ran_beside), (half, half), "it has the disk for half of the time");
    let progress = sleeper.0.place.runtime.join("progress");
    for second in 2..=100 {
        let done = second as f64 * 200e6;
        replace(&progress, &Progress { done, ..Progress::default() }, false).unwrap();
        sleeper.turn_at(Nanos::from_secs(second), true, &sys);
        assert_eq!(held(&knobs), [0; 2], "others pause");
    }
    let report = sleeper.0.report(&Automounts::default(), &sys);
    assert_eq!((report.ran, report.is_beside_others), (Nanos::from_millis(98_500), true), "in the first second");
    assert_eq!((report.ran_beside, report.beside), (Nanos::ZERO, Some(BackgroundBeside::Limit)));
    assert!(!sleeper.0.report(&Automounts::default(), Path::new("/sys")).is_beside_others);
    // What changes little is not written anew.
    for (share, limit) in [(500, 100e6), (540, 100e6), (600, 120e6), (1, f64::from(1 << 20))] {
        sleeper.0.duty.pace = BackgroundPace::Share(share);
        sleeper.turn_at(Nanos::from_secs(100), false, &sys);
        let is_near = |held: &u64| (*held as f64 / limit - 1.0).abs() < 0.01;
        assert!(held(&knobs).iter().all(is_near), "{share}: {:?}", held(&knobs));
    }
    assert!(!sleeper.0.place.runtime.join("stopped").exists());
}

/// Of a slow disk the least that it may read is more than its share.
#[test]
fn of_a_slow_disk_what_a_scrub_may_read_at_least_counts_and_is_no_more_than_half() {
    const MIB: f64 = (1 << 20) as f64;
    let cases = [(5.0, 50, MIB, 200), (20.0, 50, MIB, 50), (40.0, 50, 2.0 * MIB, 50), (1.0, 50, MIB / 2.0, 500)];
    for (rate, share, bytes, counted) in cases {
        let limit = Limit::of(share, &Rate { bytes_a_second: rate * MIB, ..Rate::default() });
        assert_eq!((limit.bytes, limit.share), (bytes as u64, counted), "{rate}");
    }
    for rate in [0.0, 1e3, 400e3] {
        let stalled = Rate { bytes_a_second: rate, ..Rate::default() };
        let limit = Limit::of(50, &stalled);
        assert_eq!((limit.bytes, limit.share <= 1000), (256 << 10, true), "it still comes out of its chunk");
    }
    let root = tempfile::tempdir().unwrap();
    let sys = root.path().join("sys");
    let (mut sleeper, knobs) = limitable(root.path(), &[0]);
    sleeper.0.limiting.rate.bytes_a_second = 5.0 * MIB;
    sleeper.0.duty.pace = BackgroundPace::Share(50);
    sleeper.turn(false, &sys);
    sleeper.turn_at(Nanos::from_secs(1), false, &sys);
    assert_eq!(held(&knobs), [1 << 20]);
    assert_eq!(sleeper.0.report(&Automounts::default(), Path::new("/sys")).ran, Nanos::from_millis(200));
}

/// What was read of a chunk beside others and in the gap that put it ahead of its plan would be lost.
#[test]
fn a_chunk_that_was_begun_beside_others_is_ended_beside_them() {
    let [share, gaps] = [BackgroundPace::Share(500), BackgroundPace::Gaps];
    // Pace, whether others pause, chunk, and whether it runs limited; nothing: it is stopped.
    let first = [(share, false, 1, Some(HALF)), (gaps, true, 1, Some(0)), (gaps, false, 1, Some(HALF))];
    let later = [(share, false, 1, Some(HALF)), (share, false, 2, Some(HALF)), (gaps, false, 2, Some(HALF))];
    let begun_in_gap = [(share, false, 1, Some(HALF)), (gaps, true, 1, Some(0)), (gaps, true, 2, Some(0))];
    for (looks, last) in [(first, 2), (later, 3), (begun_in_gap, 2)] {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        let (mut sleeper, knobs) = limitable(root.path(), &[0]);
        let progress = sleeper.0.place.runtime.join("progress");
        for (pace, is_gap, position, limit) in looks.into_iter().chain([(gaps, false, last, None); 2]) {
            replace(&progress, &Progress { position, ..Progress::default() }, false).unwrap();
            sleeper.0.duty.pace = pace;
            sleeper.turn(is_gap, &sys);
            let is = (held(&knobs), sleeper.0.is_running);
            assert_eq!(is, (vec![limit.unwrap_or(0)], limit.is_some()), "{looks:?} {position}");
            let is_limited = limit.is_some_and(|limit| limit > 0);
            let report = sleeper.0.report(&Automounts::default(), Path::new("/sys"));
            assert_eq!(report.is_beside_others, is_limited, "{looks:?} {position}");
        }
    }
}

/// The worker ends without a word.
fn end_worker(sleeper: &mut Sleeper) {
    let child = sleeper.0.child.as_mut().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Of a daemon that is gone, with the lock of the worker if that lives.
fn left(sleeper: &Sleeper, is_alive: bool) -> Option<File> {
    let Run { spec, place, .. } = &sleeper.0;
    let assignment = Assignment { spec: spec.clone(), place: place.clone() };
    replace(&place.runtime.join("spec"), &assignment, false).unwrap();
    is_alive.then(|| place.lock().unwrap().unwrap())
}

fn next_daemon(sleeper: &Sleeper, is_alive: bool) {
    let _lives = left(sleeper, is_alive);
    let Run { spec, place, .. } = &sleeper.0;
    Run::new(spec.clone(), DeviceId { major: 8, minor: 0 }, place.clone(), Nanos::ZERO, Before::default());
}

fn guard(sleeper: &Sleeper, root: &Path, is_alive: bool) {
    let _lives = left(sleeper, is_alive);
    let failed = stop_all(&root.join("run"), &root.join("sys")).wait();
    assert!(failed.is_empty(), "{failed:?}");
}

/// What ends a scrub below a root.
type End<'a> = &'a dyn Fn(&mut Sleeper, &Path);

#[test]
fn what_the_knobs_held_is_put_back_and_what_an_operator_set_is_kept() {
    let paced = |sleeper: &mut Sleeper, root: &Path, pace| {
        sleeper.0.duty.pace = pace;
        sleeper.turn(false, &root.join("sys"));
    };
    let ends: [(&str, End<'_>); 10] = [
        ("in a gap", &|sleeper, root| sleeper.turn(true, &root.join("sys"))),
        ("held", &|sleeper, root| paced(sleeper, root, BackgroundPace::Hold)),
        ("gaps only, in another chunk", &|sleeper, root| {
            for position in [0, 1 << 30] {
                let progress = Progress { position, ..Progress::default() };
                replace(&sleeper.0.place.runtime.join("progress"), &progress, false).unwrap();
                paced(sleeper, root, BackgroundPace::Gaps);
            }
        }),
        ("ended", &|sleeper, _| {
            end_worker(sleeper);
            sleeper.0.look();
        }),
        ("removed", &|sleeper, root| {
            end_worker(sleeper);
            sleeper.0.remove(&root.join("sys"));
        }),
        ("daemon ends", &|sleeper, root| assert!(sleeper.0.leave(&root.join("sys")).is_empty())),
        ("next daemon", &|sleeper, _| next_daemon(sleeper, true)),
        ("next daemon, no worker", &|sleeper, _| next_daemon(sleeper, false)),
        ("guard", &|sleeper, root| guard(sleeper, root, true)),
        ("guard, no worker", &|sleeper, root| guard(sleeper, root, false)),
    ];
    for (name, end) in ends {
        for operators in [None, Some(7_000_000)] {
            let root = tempfile::tempdir().unwrap();
            let (mut sleeper, knobs) = limitable(root.path(), &[0, 5 << 20]);
            sleeper.turn(false, &root.path().join("sys"));
            assert_eq!(held(&knobs), [HALF, 5 << 20], "an operator's own limit is not exceeded");
            if let Some(limit) = operators {
                fs::write(&knobs[0], format!("{limit}\n")).unwrap();
            }
            end(&mut sleeper, root.path());
            assert_eq!(held(&knobs), [operators.unwrap_or(0), 5 << 20], "{name}");
            assert!(!kept(&sleeper.0.place.runtime).exists(), "{name}");
        }
    }
}

#[test]
fn a_limit_that_is_changed_meanwhile_is_taken_for_an_operators_and_one_that_is_gone_is_set_again() {
    let root = tempfile::tempdir().unwrap();
    let sys = root.path().join("sys");
    let (mut sleeper, knobs) = limitable(root.path(), &[0]);
    let mut after = |limit: Option<u64>, is_gap| {
        if let Some(limit) = limit {
            fs::write(&knobs[0], format!("{limit}\n")).unwrap();
        }
        sleeper.turn(is_gap, &sys);
        held(&knobs)[0]
    };
    assert_eq!(after(None, false), HALF);
    let lower = 2 << 20;
    assert_eq!(after(Some(lower), false), lower);
    assert_eq!([true, false].map(|is_gap| after(None, is_gap)), [lower; 2]);
    assert_eq!(after(Some(0), false), HALF);
    assert_eq!([true, false].map(|is_gap| after(None, is_gap)), [0, HALF]);
    // Its daemon stalled.
    guard(&sleeper, root.path(), true);
    let state = sleeper.0.place.groups.freezer.join("freezer.state");
    assert_eq!((held(&knobs), fs::read_to_string(&state).unwrap().as_str()), (vec![0], "FROZEN"));
    sleeper.turn(false, &sys);
    assert_eq!((held(&knobs), fs::read_to_string(&state).unwrap().as_str()), (vec![HALF], "THAWED"));
    // With its file system there is nothing to put back.
    fs::remove_dir_all(sys.join("fs")).unwrap();
    assert!(sleeper.0.leave(&sys).is_empty() && !kept(&sleeper.0.place.runtime).exists());
}

/// In each stretch it would begin its chunk anew.
#[test]
fn a_balance_takes_nothing_from_others_and_has_gaps_in_full() {
    let root = tempfile::tempdir().unwrap();
    let sys = root.path().join("sys");
    let run = run(root.path(), Kind::BtrfsBalance, root.path());
    fs::create_dir_all(&run.place.groups.freezer).unwrap();
    let mut sleeper = Sleeper::new(run);
    sleeper.0.duty.pace = BackgroundPace::Share(500);
    let mut ran = [0; 2];
    for look in 0..400 {
        let is_gap = look / 200 == 1;
        // It was stopped at first, which a thread of its own waits for.
        while sleeper.0.is_cancelling() {
            std::thread::sleep(Duration::from_millis(1));
        }
        sleeper.turn_at(Nanos::from_millis(50 * look), is_gap, &sys);
        ran[usize::from(is_gap)] += u32::from(sleeper.0.is_running);
    }
    let report = sleeper.0.report(&Automounts::default(), &sys);
    assert_eq!((ran, report.beside), ([0, 200], Some(BackgroundBeside::Nothing)));
    assert_eq!((report.ran_beside, report.ran > Nanos::from_secs(9)), (Nanos::ZERO, true));
}

/// Bytes a second that are learnt of what is done at the end of each of these seconds.
fn learnt(done: impl IntoIterator<Item = f64>) -> f64 {
    let mut rate = Rate::default();
    for done in done {
        (0..100).for_each(|_| rate.passed(Nanos::from_millis(10), true, || done));
    }
    rate.bytes_a_second
}

#[test]
fn a_rate_is_learnt_of_what_was_read_and_not_of_seconds_in_which_nothing_was() {
    let near = |rate: f64, expected: f64| assert!((rate / expected - 1.0).abs() < 0.05, "{rate} {expected}");
    near(learnt((0..100).map(|second| f64::from(second) * 200e6)), 200e6);
    // It waits for a disk that sleeps.
    assert_eq!(learnt((0..600).map(|_| 7e9)), learnt([]));
    near(learnt((0..160).map(|second| f64::from(second.min(100)) * 200e6)), 200e6);
    // What it read is told once in ten seconds: that is not the rate of the second in which it is.
    near(learnt((0..1000).map(|second| f64::from(second / 10) * 2e9)), 200e6);
    // It is begun again and again.
    near(learnt((0..1000).map(|second| f64::from(second % 10) * 200e6)), 200e6);
}

#[test]
fn a_scrub_that_cannot_be_limited_takes_nothing_from_others() {
    for is_there in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        let (mut sleeper, knobs) = limitable(root.path(), &[0, 0]);
        sleeper.0.duty.pace = BackgroundPace::Share(250);
        fs::remove_file(&knobs[1]).unwrap();
        if is_there {
            symlink("/proc/sys/kernel/ostype", &knobs[1]).unwrap();
        }
        // Each second time a second of a gap, of which it has all.
        let mut ran = [0; 2];
        for look in 0..400 {
            let is_gap = look / 100 % 2 == 1;
            sleeper.turn_at(Nanos::from_millis(10 * look), is_gap, &sys);
            ran[usize::from(is_gap)] += u32::from(sleeper.0.is_running);
            assert_eq!(held(&knobs[..1]), [0]);
            while sleeper.0.is_cancelling() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let beside = sleeper.0.report(&Automounts::default(), &sys).beside;
            // Where one is there, that it holds no number is seen when it is to be limited.
            let can_be = is_there && is_gap;
            let expected = if can_be { BackgroundBeside::Limit } else { BackgroundBeside::Nothing };
            assert_eq!(beside, Some(expected), "{look}");
        }
        // Until it was tried, and it is stopped.
        assert!(ran[0] <= 1 && ran[1] > 190, "{ran:?}");
    }
}

#[test]
fn that_a_scrub_could_not_be_limited_is_said_until_it_was_or_is_not_to_be_and_nothing_else_is_cleared() {
    let [share, gaps] = [BackgroundPace::Share(500), BackgroundPace::Gaps];
    let root = tempfile::tempdir().unwrap();
    let sys = root.path().join("sys");
    let (mut sleeper, knobs) = limitable(root.path(), &[0]);
    let mut says_so_after = |pace, is_gap, text: &str| {
        fs::write(&knobs[0], text).unwrap();
        sleeper.0.duty.pace = pace;
        sleeper.turn(is_gap, &sys);
        while sleeper.0.is_cancelling() {
            std::thread::sleep(Duration::from_millis(1));
        }
        sleeper.0.message.ends_with("holds no number")
    };
    let looks = [(share, false, "x"), (share, true, "x"), (share, false, "0"), (share, false, "x"), (gaps, true, "0")];
    let said = looks.map(|(pace, is_gap, text)| says_so_after(pace, is_gap, text));
    assert_eq!(said, [true, true, false, true, false]);
    assert!(says_so_after(share, false, "x"));
    sleeper.0.message = "the kernel said something else".to_owned();
    sleeper.turn(true, &sys);
    fs::write(&knobs[0], "0").unwrap();
    sleeper.turn(false, &sys);
    assert_eq!((held(&knobs), sleeper.0.message.as_str()), (vec![HALF], "the kernel said something else"));
}

/// A process of its own: the worker of the test below, for which its last argument is the directory.
#[test]
fn child_that_works() {
    let runtime = std::env::args_os().next_back().map(PathBuf::from).filter(|path| path.join("spec").is_file());
    let Some(runtime) = runtime.filter(|path| path.is_absolute()) else { return };
    crate::work::work(&runtime, Path::new("/sys")).unwrap();
}

#[test]
fn a_scrub_beside_others_who_never_pause_comes_to_its_end_without_being_cancelled() {
    let Some(disk) = LoopDisk::mirrored() else { return };
    fs::write(disk.mounted.join("file"), vec![1; 64 << 20]).unwrap();
    loop_disk::run("sync", &["-f"], &disk.mounted);
    let total = used_on_disks(&File::open(&disk.mounted).unwrap().into()).unwrap() as f64;
    let mut run = run(disk.root(), Kind::BtrfsScrub, &disk.mounted);
    let sys = Path::new("/sys");
    let Some(knobs) = knobs(run.spec.identity.lasting.unwrap().file_system, sys) else {
        return println!("skipped: needs Linux 5.14");
    };
    let worker = WorkerProgram {
        program: std::env::current_exe().unwrap().into(),
        name: "worker".into(),
        arguments: ["--exact", "run::limited::tests::child_that_works"].map(Into::into).to_vec(),
        service_starter: None,
    };
    run.duty.pace = BackgroundPace::Share(500);
    let (begun, mut seen) = (Instant::now(), BTreeSet::new());
    while !run.state.is_over() && begun.elapsed() < Duration::from_secs(60) {
        let now = Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap());
        run.turn(now, Chance::Beside, (&worker, None), sys);
        seen.insert(held(&knobs));
        std::thread::sleep(Duration::from_millis(4));
        run.look();
    }
    let (took, progress) = (begun.elapsed().as_secs_f64(), run.place.progress().unwrap());
    assert_eq!(run.state, BackgroundState::Done, "{}", run.message);
    assert!(!run.place.runtime.join("stopped").exists(), "it was never cancelled");
    assert!((progress.done / total - 1.0).abs() < 0.02, "{} of {total}", progress.done);
    // Each disk is read at half of the rate that is assumed.
    assert!(seen.contains(&vec![HALF; 2]) && took > 2.0, "{seen:?} {took}");
    assert_eq!(held(&knobs), [0; 2]);
    let ran = run.report(&Automounts::default(), Path::new("/sys")).ran.as_secs_f64();
    assert!((0.3..0.6).contains(&(ran / took)), "{ran} of {took}");
}
