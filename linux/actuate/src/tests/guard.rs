use super::testbed::{BLKIO, Cgroup, Disk, Runtime, child, inspection, ready, wait_until, weight};
use crate::lock::FileLock;
use crate::runtime_dir::RuntimeDir;
use crate::{Guard, RestoreWhen, WriterSettings, boottime_now, restore, run_guard};
use minerva_model::{CgroupRef, KnobFile, KnobTarget, KnobWrite, Nanos, Outcome};
use rustix::process::{Signal, getpid, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const WEIGHTS: KnobFile = KnobFile::BfqV1WeightDevice;
const REQUEST: &str = "MINERVA_TEST_GUARDED_WRITE";
const RUNTIME: &str = "MINERVA_TEST_GUARD_RUNTIME";
/// Whether the journal was there when the guard found the daemon gone.
const CALLED: &str = "called";

#[test]
fn a_killed_daemon_is_cleaned_up_by_its_guard() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let before = group.text(WEIGHTS);
    let request = serde_json::to_string(&weight(&group.target(), disk.id, 300)).unwrap();
    let dir = runtime.settings.runtime_dir.to_str().unwrap();
    let daemon = child("guard::child_daemon", &[(REQUEST, &request), (RUNTIME, dir)]).output().unwrap();
    assert_eq!(daemon.status.signal(), Some(9), "{}", String::from_utf8_lossy(&daemon.stdout));
    wait_until("the guard's restore", || !runtime.journal_path().exists());
    assert_eq!(group.text(WEIGHTS), before);
    let called = std::fs::read_to_string(runtime.settings.runtime_dir.join(CALLED)).unwrap();
    assert_eq!(called, "true", "who was let run is stopped before anything is put back");
    assert!(restore(&runtime.settings, RestoreWhen::Always).unwrap().is_empty());
}

/// Writes under a guard and kills itself.
#[test]
fn child_daemon() {
    let (Ok(request), Ok(dir)) = (std::env::var(REQUEST), std::env::var(RUNTIME)) else { return };
    let request: KnobWrite = serde_json::from_str(&request).unwrap();
    let mut runtime = Runtime::new();
    runtime.settings = WriterSettings::new(&dir, BLKIO);
    let (_lock, mut writer, _) = runtime.start();
    let mut guard = Guard::spawn({
        let mut command = child("guard::child_guard", &[]);
        // Else the parent, which reads to the end of this process's output, would wait for the guard too.
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    })
    .unwrap();
    assert!(matches!(writer.write(&request), Outcome::Text(_)));
    assert!(guard.is_alive().unwrap());
    kill_process(getpid(), Signal::KILL).unwrap();
}

#[test]
fn child_guard() {
    let Ok(dir) = std::env::var(RUNTIME) else { return };
    let settings = WriterSettings::new(dir, BLKIO);
    let gone = || {
        let has_journal = settings.runtime_dir.join("undo.journal").exists();
        std::fs::write(settings.runtime_dir.join(CALLED), has_journal.to_string()).unwrap();
    };
    run_guard(&settings, std::io::stdin(), gone, |_| {}).unwrap();
}

#[test]
fn a_daemon_that_does_not_renew_is_undone_and_may_go_on() {
    if !ready() {
        return;
    }
    let (mut runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    runtime.settings.lease_grace = Nanos::from_millis(50);
    let (_lock, mut writer, _) = runtime.start();
    let (target, before) = (group.target(), group.text(WEIGHTS));
    let (reader, closes) = std::io::pipe().unwrap();
    let (told, heard) = mpsc::channel();
    let settings = runtime.settings.clone();
    let guard =
        thread::spawn(move || run_guard(&settings, reader, || {}, |report| told.send(report.to_string()).unwrap()));

    writer.renew_lease(boottime_now()).unwrap();
    assert!(matches!(writer.write(&weight(&target, disk.id, 300)), Outcome::Text(_)));
    let report = heard.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(report.contains("1 restored"), "{report}");
    assert_eq!((group.text(WEIGHTS), runtime.journal_path().exists()), (before.clone(), false));
    assert!(!writer.take_restored(), "it did not look yet");

    writer.renew_lease(boottime_now() + Nanos::from_secs(3600)).unwrap();
    assert_eq!((writer.take_restored(), writer.take_restored(), writer.held()), (true, false, 0), "told once");
    assert!(matches!(writer.write(&weight(&target, disk.id, 400)), Outcome::Text(_)));
    assert_eq!(runtime.journal_lines(), 2);
    writer.close_clean().unwrap();
    drop(closes);
    guard.join().unwrap().unwrap();
    assert_eq!(group.text(WEIGHTS), before);
    // Told all the same, as somebody may run whom the daemon let.
    let at_the_end = heard.try_recv().unwrap();
    assert!(at_the_end.starts_with("0 restored"), "{at_the_end}");
}

#[test]
fn who_reads_a_knob_finds_out_that_it_was_put_back_and_reads_none_meanwhile() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (_lock, mut writer, _) = runtime.start();
    let look = inspection(&group.target(), WEIGHTS, disk.id);
    let before = writer.inspect(&look);
    assert!(matches!(writer.write(&weight(&group.target(), disk.id, 300)), Outcome::Text(_)));
    assert_ne!(writer.inspect(&look), before);
    assert!(!writer.take_restored());
    assert!(restore(&runtime.settings, RestoreWhen::Always).unwrap().is_complete());
    assert_eq!((writer.inspect(&look), writer.take_restored(), writer.take_restored()), (before, true, false));
    let dir = RuntimeDir::open(&runtime.settings.runtime_dir).unwrap().unwrap();
    let restores = FileLock::open(&dir).unwrap();
    let held = restores.hold().unwrap();
    assert_eq!(writer.inspect(&look), Outcome::Busy, "what stands there now says nothing");
    drop(held);
    assert!(matches!(writer.inspect(&look), Outcome::Text(_)));
}

#[test]
fn a_guard_that_is_dismissed_ends() {
    if !ready() {
        return;
    }
    let runtime = Runtime::new();
    let dir = runtime.settings.runtime_dir.to_str().unwrap().to_owned();
    let (_lock, mut writer, _) = runtime.start();
    let guard = Guard::spawn(child("guard::child_guard", &[(RUNTIME, &dir)])).unwrap();
    let nobody =
        KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: "minerva-test-nobody".into(), inode: 1 } };
    let device = minerva_model::DeviceId { major: 7, minor: 0 };
    assert_eq!(writer.write(&weight(&nobody, device, 3)), Outcome::Vanished);
    writer.close_clean().unwrap();
    assert!(guard.finish().unwrap().success());
}
