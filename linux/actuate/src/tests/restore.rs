use super::testbed::{Cgroup, Disk, Runtime, knob_write, ready, wait_until, weight};
use crate::journal_lines::JournalEntry;
use crate::restore::holds_undone_state;
use crate::{RestoreResult, RestoreWhen, boottime_now, parse_journal, restore};
use minerva_model::{DeviceId, KnobFile, KnobTarget, Nanos, Outcome};
use std::fs;

const WEIGHTS: KnobFile = KnobFile::BfqV1WeightDevice;

#[test]
fn the_next_start_puts_back_what_a_dead_daemon_left() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let before = group.text(WEIGHTS);
    let (lock, mut writer, _) = runtime.start();
    writer.write(&weight(&group.target(), disk.id, 300));
    drop((lock, writer));
    assert_ne!(group.text(WEIGHTS), before);
    let (_lock, writer, report) = runtime.start();
    assert_eq!(report.knobs.len(), 1);
    assert_eq!(report.knobs[0].result, RestoreResult::Restored);
    assert_eq!((group.text(WEIGHTS), writer.held()), (before, 0));
    assert!(restore(&runtime.settings, RestoreWhen::Always).unwrap().is_empty());
}

#[test]
fn what_is_gone_is_told_and_what_stands_in_its_place_is_left_alone() {
    if !ready() {
        return;
    }
    let (runtime, disk) = (Runtime::new(), Disk::new());
    let (gone, recycled, stays) = (Cgroup::new(), Cgroup::new(), Cgroup::new());
    let before = stays.text(WEIGHTS);
    let (lock, mut writer, _) = runtime.start();
    for group in [&gone, &recycled, &stays] {
        assert!(matches!(writer.write(&weight(&group.target(), disk.id, 300)), Outcome::Text(_)));
    }
    drop((lock, writer));
    fs::remove_dir(gone.dir()).unwrap();
    fs::remove_dir(recycled.dir()).unwrap();
    fs::create_dir(recycled.dir()).unwrap();
    let theirs = format!("{} 555", disk.id);
    fs::write(recycled.dir().join(WEIGHTS.file_name()), &theirs).unwrap();

    let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert!(report.is_complete(), "{report}");
    let results: Vec<&RestoreResult> = report.knobs.iter().map(|knob| &knob.result).collect();
    assert!(
        matches!(results[..], [RestoreResult::Restored, RestoreResult::Gone(_), RestoreResult::Gone(_)]),
        "{report}"
    );
    assert!(recycled.text(WEIGHTS).contains(&theirs));
    assert_eq!(stays.text(WEIGHTS), before);
}

#[test]
fn what_fails_stays_in_the_journal_alone() {
    if !ready() {
        return;
    }
    let (runtime, disk) = (Runtime::new(), Disk::new());
    let (good, bad) = (Cgroup::new(), Cgroup::new());
    let (lock, mut writer, _) = runtime.start();
    let mut unworkable = weight(&bad.target(), disk.id, 300);
    unworkable.undo = format!("{} 5000", disk.id);
    writer.write(&unworkable);
    writer.write(&weight(&good.target(), disk.id, 300));
    drop((lock, writer));
    for _ in 0..2 {
        let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
        assert!(!report.is_complete());
        let failed: Vec<String> = report.failed().map(ToString::to_string).collect();
        assert!(failed.len() == 1 && failed[0].contains("ERANGE"), "{report}");
        assert_eq!(runtime.journal_lines(), 2);
    }
    // A start goes on with it, and knows it as held.
    let (_lock, mut writer, report) = runtime.start();
    assert_eq!((report.failed().count(), writer.held()), (1, 1));
    writer.write(&weight(&bad.target(), disk.id, 200));
    assert_eq!(runtime.journal_lines(), 2);
    writer.write(&weight(&good.target(), disk.id, 200));
    assert_eq!((runtime.journal_lines(), writer.held()), (3, 2));
}

#[test]
fn what_a_restore_beside_its_daemon_could_not_put_back_stays_under_a_lease() {
    if !ready() {
        return;
    }
    let (runtime, disk, bad) = (Runtime::new(), Disk::new(), Cgroup::new());
    let (_lock, mut writer, _) = runtime.start();
    let mut unworkable = weight(&bad.target(), disk.id, 300);
    unworkable.undo = format!("{} 5000", disk.id);
    writer.write(&unworkable);
    assert!(!restore(&runtime.settings, RestoreWhen::Always).unwrap().is_complete());
    writer.renew_lease(boottime_now()).unwrap();
    assert_eq!((writer.take_restored(), writer.held()), (true, 1));
    writer.renew_lease(boottime_now() + Nanos::from_secs(7200)).unwrap();
    let late = RestoreWhen::IfLeaseExpired(boottime_now() + Nanos::from_secs(7000));
    assert!(restore(&runtime.settings, late).unwrap().not_due.is_some());
}

#[test]
fn a_corrupt_line_costs_itself_only() {
    if !ready() {
        return;
    }
    let (runtime, disk) = (Runtime::new(), Disk::new());
    let groups = [Cgroup::new(), Cgroup::new(), Cgroup::new()];
    let before = groups[0].text(WEIGHTS);
    let (lock, mut writer, _) = runtime.start();
    for group in &groups {
        writer.write(&weight(&group.target(), disk.id, 300));
    }
    drop((lock, writer));
    let text = fs::read_to_string(runtime.journal_path()).unwrap();
    let corrupt = text.replacen("\"sequence\":2", "\"sequence\":x", 1);
    assert_ne!(text, corrupt);
    fs::write(runtime.journal_path(), &corrupt).unwrap();
    let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert!(!report.is_complete());
    assert_eq!((report.knobs.len(), report.problems.len(), report.problems[0].line), (2, 1, 3));
    assert_eq!((groups[0].text(WEIGHTS), groups[2].text(WEIGHTS)), (before.clone(), before));
    let aside = fs::read_to_string(runtime.settings.runtime_dir.join("undo.journal.corrupt")).unwrap();
    assert_eq!((aside, runtime.journal_path().exists()), (corrupt, false));
}

#[test]
fn a_journal_of_an_earlier_boot_is_discarded_and_told() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (lock, mut writer, _) = runtime.start();
    writer.write(&weight(&group.target(), disk.id, 300));
    drop((lock, writer));
    let written = group.text(WEIGHTS);
    let text = fs::read_to_string(runtime.journal_path()).unwrap();
    let boot = parse_journal(text.as_bytes()).boot.unwrap();
    fs::write(runtime.journal_path(), text.replace(&boot, "an-earlier-one")).unwrap();
    let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert_eq!(report.earlier_boot.as_deref(), Some("an-earlier-one"));
    assert_eq!((group.text(WEIGHTS), runtime.journal_path().exists()), (written, false));
}

#[test]
fn a_journal_cut_at_any_byte_loses_no_whole_entry() {
    if !ready() {
        return;
    }
    let (runtime, disk) = (Runtime::new(), Disk::new());
    let groups = [Cgroup::new(), Cgroup::new()];
    let before = groups[0].text(WEIGHTS);
    let (lock, mut writer, _) = runtime.start();
    for group in &groups {
        writer.write(&weight(&group.target(), disk.id, 300));
    }
    drop((lock, writer));
    let bytes = fs::read(runtime.journal_path()).unwrap();
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    for length in 0..=bytes.len() {
        fs::write(runtime.journal_path(), &bytes[..length]).unwrap();
        // A write happened only where its entry is whole.
        let whole: Vec<bool> = ends[1..].iter().map(|end| *end <= length).collect();
        for (group, whole) in groups.iter().zip(&whole) {
            let text = if *whole { format!("{} 300", disk.id) } else { format!("{} default", disk.id) };
            fs::write(group.dir().join(WEIGHTS.file_name()), text).unwrap();
        }
        let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
        assert!(report.is_complete(), "cut at {length}: {report}");
        assert_eq!(report.knobs.len(), whole.iter().filter(|whole| **whole).count(), "cut at {length}");
        for group in &groups {
            assert_eq!(group.text(WEIGHTS), before, "cut at {length}");
        }
    }
}

#[test]
fn other_disks_keep_their_weights_and_what_an_interrupted_undo_cleared_comes_back() {
    if !ready() {
        return;
    }
    let (runtime, group) = (Runtime::new(), Cgroup::new());
    let [held, free, also_held] = [Disk::new(), Disk::new(), Disk::new()];
    let path = group.dir().join(WEIGHTS.file_name());
    fs::write(&path, "default 70").unwrap();
    fs::write(&path, format!("{} 333", free.id)).unwrap();
    let before = group.text(WEIGHTS);
    let (lock, mut writer, _) = runtime.start();
    writer.write(&weight(&group.target(), held.id, 800));
    writer.write(&weight(&group.target(), also_held.id, 400));
    // An undo within a run: what is held on the third disk stays, and what is the operator's on the second.
    let undo = format!("{} default", held.id);
    writer.write(&knob_write(&group.target(), WEIGHTS, held.id, &undo, &undo));
    let text = group.text(WEIGHTS);
    assert!(text.starts_with("default 70\n") && !text.contains(&format!("{} ", held.id)), "{text}");
    assert!(
        text.contains(&format!("{} 333\n", free.id)) && text.contains(&format!("{} 400\n", also_held.id)),
        "{text}"
    );
    // As a kill leaves it between the group's weight and the second disk's.
    writer.write(&weight(&group.target(), held.id, 800));
    drop((lock, writer));
    let journal = fs::read_to_string(runtime.journal_path()).unwrap();
    let mut entries = parse_journal(journal.as_bytes()).entries;
    let mut entry = entries.pop().unwrap();
    assert_eq!((entry.device, &entry.cleared), (held.id, &Vec::new()));
    entry.cleared = vec![format!("{} 333", free.id)];
    let addition = serde_json::json!({ "held": entry }).to_string();
    fs::write(runtime.journal_path(), format!("{journal}{addition}\n")).unwrap();
    fs::write(&path, "default 70").unwrap();
    assert_ne!(group.text(WEIGHTS), before);
    let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert!(report.is_complete() && report.knobs.len() == 2, "{report}");
    assert_eq!(group.text(WEIGHTS), before);
}

#[test]
fn the_undone_state_is_recognised() {
    let entry = |file, undo: &str, before: &str| JournalEntry {
        sequence: 1,
        target: KnobTarget::Disk { name: "sda".into() },
        inode: 1,
        file,
        device: DeviceId { major: 8, minor: 0 },
        undo: undo.into(),
        before: before.into(),
        cleared: Vec::new(),
        queue: Vec::new(),
    };
    let table = [
        // Lines of other disks do not count.
        (KnobFile::BfqWeight, "8:0 default", "default 100\n", "default 100\n8:16 50\n", true),
        (KnobFile::BfqWeight, "8:0 default", "default 100\n", "default 100\n8:0 50\n", false),
        (KnobFile::BfqWeight, "8:0 200", "default 100\n8:0 200\n", "default 30\n8:0 200\n", true),
        (KnobFile::BfqWeight, "default 100", "default 100\n", "default 500\n8:0 100\n", false),
        (KnobFile::BfqWeight, "100", "default 100\n", "default 500\n8:0 100\n", false),
        (KnobFile::BfqWeight, "100", "default 100\n", "default 100\n8:0 7\n", true),
        (KnobFile::IoMax, "8:0 rbps=max wbps=max", "", "8:0 rbps=1 wbps=max riops=max wiops=max\n", false),
        (KnobFile::IoMax, "8:0 rbps=max wbps=max", "", "", true),
        // The kernel keeps a line for a disk that had none.
        (KnobFile::IoCostQos, "8:0 enable=0", "", "8:0 enable=0 ctrl=auto rpct=0.00\n", true),
        (KnobFile::IoCostQos, "8:0 enable=0", "", "8:0 enable=1 ctrl=auto rpct=0.00\n", false),
        (KnobFile::Elevator, "none", "[none] bfq\n", "none [bfq]\n", false),
        // An elevator was loaded meanwhile.
        (KnobFile::Elevator, "none", "[none] bfq\n", "[none] kyber bfq\n", true),
        (KnobFile::BfqLowLatency, "1", "1\n", "0\n", false),
    ];
    for (file, undo, before, now, expected) in table {
        assert_eq!(holds_undone_state(now, &entry(file, undo, before)), expected, "{undo} {before:?} {now:?}");
    }
}

#[test]
fn an_idle_time_below_the_one_that_strict_guarantees_brings_comes_back_after_it() {
    if !ready() {
        return;
    }
    let (runtime, disk) = (Runtime::new(), Disk::new());
    disk.set_queue("iosched/strict_guarantees", "1");
    disk.set_queue("iosched/slice_idle", "0");
    let elevator = |text| knob_write(&disk.target(), KnobFile::Elevator, disk.id, text, "bfq");
    let (_lock, mut writer, _) = runtime.start();
    assert!(matches!(writer.write(&elevator("none")), Outcome::Text(_)));
    assert!(writer.close_clean().unwrap().is_complete());
    let queue = ["iosched/strict_guarantees", "iosched/slice_idle"].map(|name| disk.queue(name));
    assert_eq!(queue.each_ref().map(|text| text.trim()), ["1", "0"]);
}

#[test]
fn what_a_change_of_elevator_loses_comes_back_with_it() {
    if !ready() {
        return;
    }
    let (runtime, group, nested, disk) = (Runtime::new(), Cgroup::new(), Cgroup::new(), Disk::new());
    let inner = nested.dir().join("inner");
    fs::create_dir(&inner).unwrap();
    for (dir, weight) in [(group.dir(), 700), (inner.clone(), 300)] {
        fs::write(dir.join(WEIGHTS.file_name()), format!("{} {weight}", disk.id)).unwrap();
    }
    disk.set_queue("nr_requests", "77");
    disk.set_queue("iosched/slice_idle", "3");
    disk.set_queue("iosched/low_latency", "0");
    let state = || {
        let weights =
            [group.dir(), inner.clone()].map(|dir| fs::read_to_string(dir.join(WEIGHTS.file_name())).unwrap());
        let queue = ["nr_requests", "iosched/slice_idle", "iosched/low_latency"].map(|name| disk.queue(name));
        (disk.text(KnobFile::Elevator), weights, queue)
    };
    let before = state();
    let elevator = |text| knob_write(&disk.target(), KnobFile::Elevator, disk.id, text, "bfq");
    let (lock, mut writer, _) = runtime.start();
    // A crash after a change, a clean end after one, and a change taken back by hand.
    assert!(matches!(writer.write(&elevator("none")), Outcome::Text(_)));
    assert!(!group.text(WEIGHTS).contains("700"));
    drop((lock, writer));
    let (_lock, mut writer, report) = runtime.start();
    assert!(report.is_complete(), "{report}");
    assert_eq!(state(), before);
    for last in ["mq-deadline", "bfq"] {
        assert!(matches!(writer.write(&elevator("none")), Outcome::Text(_)));
        assert!(matches!(writer.write(&elevator(last)), Outcome::Text(_)));
    }
    assert!(writer.close_clean().unwrap().is_complete());
    assert_eq!(state(), before);
    fs::remove_dir(inner).unwrap();
}

#[test]
fn weights_come_back_with_an_elevator_that_a_reload_takes_back_and_are_others_from_then_on() {
    if !ready() {
        return;
    }
    let (runtime, group, steered, disk) = (Runtime::new(), Cgroup::new(), Cgroup::new(), Disk::new());
    let theirs = |weight: u32| fs::write(group.dir().join(WEIGHTS.file_name()), format!("{} {weight}", disk.id));
    theirs(700).unwrap();
    let before = (group.text(WEIGHTS), steered.text(WEIGHTS));
    let (_lock, mut writer, _) = runtime.start();
    assert!(matches!(writer.write(&weight(&steered.target(), disk.id, 300)), Outcome::Text(_)));
    let elevator = |text| knob_write(&disk.target(), KnobFile::Elevator, disk.id, text, "bfq");
    // Journalled together with another knob, as when several change in one slice.
    let low_latency = knob_write(&disk.target(), KnobFile::BfqLowLatency, disk.id, "0", "1");
    let requests = [low_latency, elevator("none")];
    writer.prepare(&requests);
    for request in &requests {
        assert!(matches!(writer.write(request), Outcome::Text(_)));
    }
    assert_ne!(group.text(WEIGHTS), before.0, "lost with the elevator");
    assert!(matches!(writer.write(&elevator("bfq")), Outcome::Text(_)));
    assert_eq!((group.text(WEIGHTS), steered.text(WEIGHTS)), before);
    assert_eq!(writer.held(), 1, "the switch of BFQ");
    theirs(800).unwrap();
    assert!(writer.close_clean().unwrap().is_complete());
    assert_eq!(group.text(WEIGHTS), before.0.replace("700", "800"));
}

#[test]
fn of_a_disk_that_is_gone_nothing_is_held_once_it_was_to_be_put_back() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let theirs = format!("{} 333", disk.id);
    fs::write(group.dir().join(WEIGHTS.file_name()), &theirs).unwrap();
    let (_lock, mut writer, _) = runtime.start();
    let own = knob_write(&group.target(), WEIGHTS, disk.id, &format!("{} 20", disk.id), &theirs);
    assert!(matches!(writer.write(&own), Outcome::Text(_)));
    disk.remove();
    let undo = knob_write(&group.target(), WEIGHTS, disk.id, &theirs, &theirs);
    wait_until("the disk is gone", || writer.write(&undo) == Outcome::Vanished);
    assert_eq!((writer.held(), runtime.journal_path().exists()), (0, false));
}
