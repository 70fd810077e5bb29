//! `kill -9` between any two steps: the child counts its steps and dies at the n-th; the parent restores and compares.

use super::testbed::{Cgroup, Disk, Runtime, child, knob_write, ready, weight};
use crate::failpoint::DIE_AT_STEP;
use crate::{RestoreWhen, WriterSettings, restore};
use minerva_model::{DeviceId, KnobFile, KnobTarget, KnobWrite, Outcome};
use std::os::unix::process::ExitStatusExt;

const PLAN: &str = "MINERVA_TEST_KILL_PLAN";

/// Everything that the child writes, in this order: the elevator, its tunable, weights twice, one on another disk, a
/// group's weight, a cap.
fn plan(disk: &Disk, other: &Disk, groups: &[Cgroup; 2]) -> Vec<KnobWrite> {
    let [first, second] = [groups[0].target(), groups[1].target()];
    let id: DeviceId = disk.id;
    let of_disk = |file, text, undo| knob_write(&disk.target(), file, id, text, undo);
    let of_group = |target: &KnobTarget, file, text: &str, undo: &str| knob_write(target, file, id, text, undo);
    vec![
        of_disk(KnobFile::Elevator, "bfq", "mq-deadline"),
        of_disk(KnobFile::BfqLowLatency, "0", "1"),
        weight(&first, id, 300),
        weight(&first, id, 500),
        weight(&second, id, 20),
        weight(&second, other.id, 40),
        of_group(&second, KnobFile::BfqV1Weight, "250", "100"),
        of_group(&second, KnobFile::ThrottleReadBps, &format!("{id} 1000000000"), &format!("{id} 0")),
    ]
}

#[test]
fn a_kill_between_any_two_steps_leaves_nothing_behind() {
    if !ready() {
        return;
    }
    let (runtime, disk, other) = (Runtime::new(), Disk::new(), Disk::new());
    let groups = [Cgroup::new(), Cgroup::new()];
    disk.set(KnobFile::Elevator, "mq-deadline");
    // The operator's own, on a disk that is not steered: an undo clears it for a moment.
    let theirs = groups[0].dir().join(KnobFile::BfqV1WeightDevice.file_name());
    std::fs::write(theirs, format!("{} 333", other.id)).unwrap();
    let state = || {
        let files = [KnobFile::BfqV1WeightDevice, KnobFile::BfqV1Weight, KnobFile::ThrottleReadBps];
        let mut texts = vec![disk.text(KnobFile::Elevator)];
        texts.extend(groups.iter().flat_map(|group| files.map(|file| group.text(file))));
        texts
    };
    let before = state();
    let plan = serde_json::to_string(&plan(&disk, &other, &groups)).unwrap();
    let dir = runtime.settings.runtime_dir.to_str().unwrap();
    let (mut steps, mut found) = (0, 0);
    loop {
        steps += 1;
        let die_at = steps.to_string();
        let environment = [(PLAN, &*plan), ("MINERVA_TEST_RUNTIME", dir), (DIE_AT_STEP, &*die_at)];
        let output = child("kill::child_writes_all_and_ends_cleanly", &environment).output().unwrap();
        let report = restore(&runtime.settings, RestoreWhen::IfDaemonGone).unwrap();
        assert!(report.is_complete(), "step {steps}: {report}");
        found += usize::from(!report.is_empty());
        assert_eq!(state(), before, "killed at step {steps}: {report}");
        assert!(!runtime.journal_path().exists());
        if output.status.success() {
            break;
        }
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.signal(), Some(9), "step {steps}: {told}");
    }
    println!("killed at {} steps, {found} of them with something to restore", steps - 1);
    assert!(steps > 60 && found > 50, "{steps} steps, {found} restores");
}

#[test]
fn child_writes_all_and_ends_cleanly() {
    let (Ok(plan), Ok(dir)) = (std::env::var(PLAN), std::env::var("MINERVA_TEST_RUNTIME")) else { return };
    let plan: Vec<KnobWrite> = serde_json::from_str(&plan).unwrap();
    let mut runtime = Runtime::new();
    runtime.settings = WriterSettings::new(dir, super::testbed::BLKIO);
    let (_lock, mut writer, _) = runtime.start();
    for request in &plan {
        let outcome = writer.write(request);
        assert!(matches!(outcome, Outcome::Text(_)), "{request:?}: {outcome:?}");
    }
    // The engine puts back all but the first, and the clean end finds that.
    for request in plan.iter().skip(1).rev() {
        let outcome = writer.write(&KnobWrite { text: request.undo.clone(), ..request.clone() });
        assert!(matches!(outcome, Outcome::Text(_)), "{request:?}: {outcome:?}");
    }
    assert_eq!(writer.held(), 1);
    assert!(writer.close_clean().unwrap().is_complete());
}
