use super::testbed::{Cgroup, Disk, Runtime, inspection, knob_write, ready, weight};
use crate::{ActuateError, InstanceLock, RestoreWhen, Writer, boottime_now, parse_journal, restore};
use minerva_model::{CgroupRef, DeviceId, KnobFile, KnobTarget, KnobWrite, Outcome};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const WEIGHTS: KnobFile = KnobFile::BfqV1WeightDevice;

#[test]
fn a_weight_is_journalled_once_written_and_read_back() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (_lock, mut writer, report) = runtime.start();
    assert!(report.is_empty());
    assert_eq!(runtime.journal_lines(), 0);
    let before = group.text(WEIGHTS);
    assert_eq!(writer.inspect(&inspection(&group.target(), WEIGHTS, disk.id)), Outcome::Text(before.clone()));
    for value in [300, 700] {
        let text = format!("{before}{} {value}\n", disk.id);
        assert_eq!(writer.write(&weight(&group.target(), disk.id, value)), Outcome::Text(text));
        assert_eq!(runtime.journal_lines(), 2);
    }
    let content = parse_journal(&fs::read(runtime.journal_path()).unwrap());
    assert_eq!((content.problem_count, content.entries.len(), writer.held()), (0, 1, 1));
    assert_eq!(content.entries[0].before, before);
    let mode = fs::metadata(runtime.journal_path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // What was put back is released, and the journal ends with the last knob.
    let undo = format!("{} default", disk.id);
    let back = knob_write(&group.target(), WEIGHTS, disk.id, &undo, &undo);
    assert_eq!(writer.write(&back), Outcome::Text(before));
    assert_eq!((writer.held(), runtime.journal_path().exists()), (0, false));
    assert!(!runtime.settings.runtime_dir.join("lease").exists());
    assert!(writer.close_clean().unwrap().is_empty());
}

#[test]
fn what_others_write_after_a_release_is_theirs() {
    if !ready() {
        return;
    }
    let (runtime, group, other, disk) = (Runtime::new(), Cgroup::new(), Cgroup::new(), Disk::new());
    let (lock, mut writer, _) = runtime.start();
    let undo = format!("{} default", disk.id);
    writer.write(&weight(&other.target(), disk.id, 300));
    writer.write(&weight(&group.target(), disk.id, 300));
    writer.write(&knob_write(&group.target(), WEIGHTS, disk.id, &undo, &undo));
    assert_eq!((writer.held(), runtime.journal_lines()), (1, 4));
    // A first write that is refused holds nothing either.
    writer.write(&weight(&group.target(), disk.id, 5000));
    assert_eq!(writer.held(), 1);
    let theirs = format!("{} 555", disk.id);
    fs::write(group.dir().join(WEIGHTS.file_name()), &theirs).unwrap();
    drop((lock, writer));
    let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert_eq!((report.knobs.len(), report.is_complete()), (1, true));
    assert!(group.text(WEIGHTS).contains(&theirs));

    // Held again, with another undo.
    let (lock, mut writer, _) = runtime.start();
    writer.write(&knob_write(&group.target(), WEIGHTS, disk.id, &format!("{} 20", disk.id), &theirs));
    drop((lock, writer));
    restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert!(group.text(WEIGHTS).contains(&theirs));
}

#[test]
fn the_journal_does_not_grow_with_time() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (lock, mut writer, _) = runtime.start();
    let before = group.text(WEIGHTS);
    writer.write(&weight(&group.target(), disk.id, 300));
    let gone = Cgroup::new();
    writer.write(&weight(&gone.target(), disk.id, 300));
    drop(gone);
    let busy = Cgroup::new();
    let undo = format!("{} default", disk.id);
    let mut lines_max = 0;
    for _ in 0..1000 {
        writer.write(&weight(&busy.target(), disk.id, 300));
        writer.write(&knob_write(&busy.target(), WEIGHTS, disk.id, &undo, &undo));
        lines_max = lines_max.max(runtime.journal_lines());
    }
    assert!((1000..1100).contains(&lines_max), "{lines_max}");
    assert_eq!(writer.held(), 1);
    drop((lock, writer));
    assert_eq!(restore(&runtime.settings, RestoreWhen::Always).unwrap().knobs.len(), 1);
    assert_eq!(group.text(WEIGHTS), before);
}

#[test]
fn a_first_slice_is_journalled_at_once() {
    if !ready() {
        return;
    }
    let (runtime, disk) = (Runtime::new(), Disk::new());
    let groups: Vec<Cgroup> = (0..20).map(|_| Cgroup::new()).collect();
    let before = groups[0].text(WEIGHTS);
    let (lock, mut writer, _) = runtime.start();
    let mut requests: Vec<KnobWrite> = groups.iter().map(|group| weight(&group.target(), disk.id, 300)).collect();
    // Twice the same knob, one that is gone, and one that the guard refuses.
    requests.push(weight(&groups[0].target(), disk.id, 400));
    requests.push(weight(&groups[0].target(), disk.id, 400));
    let gone = KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: "minerva-test-gone".into(), inode: 1 } };
    requests.push(weight(&gone, disk.id, 300));
    requests.push(knob_write(&groups[0].target(), KnobFile::BfqV1Weight, disk.id, "300", ""));
    writer.prepare(&requests);
    assert_eq!((writer.held(), runtime.journal_lines(), groups[0].text(WEIGHTS)), (20, 21, before.clone()));
    assert_eq!(writer.syncs(), 1, "for all that wait");
    let outcomes: Vec<Outcome> = requests.iter().map(|request| writer.write(request)).collect();
    assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Text(_))).count(), 22);
    assert_eq!((writer.held(), runtime.journal_lines(), writer.syncs()), (20, 21, 1));
    drop((lock, writer));
    assert!(restore(&runtime.settings, RestoreWhen::Always).unwrap().is_complete());
    assert!(groups.iter().all(|group| group.text(WEIGHTS) == before));
}

#[test]
fn what_the_kernel_refuses_is_told_with_a_remedy() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (_lock, mut writer, _) = runtime.start();
    let told = |outcome: Outcome| match outcome {
        Outcome::Refused { errno, detail } => (errno, detail),
        other => panic!("{other:?}"),
    };
    let file = group.dir().join(WEIGHTS.file_name()).display().to_string();
    let (errno, detail) = told(writer.write(&weight(&group.target(), disk.id, 2000)));
    assert_eq!(errno, Some(34));
    assert!(detail.starts_with(&format!("writing `{} 2000` to {file}: ERANGE", disk.id)), "{detail}");
    assert!(detail.contains("1 to 1000"), "{detail}");

    disk.set(KnobFile::Elevator, "none");
    let (errno, detail) = told(writer.write(&weight(&group.target(), disk.id, 200)));
    assert_eq!(errno, Some(95));
    assert!(detail.contains("EOPNOTSUPP") && detail.contains("doctor"), "{detail}");
    let (errno, detail) = told(writer.inspect(&inspection(&disk.target(), KnobFile::BfqLowLatency, disk.id)));
    assert_eq!(errno, Some(2));
    assert!(detail.contains("not in force"), "{detail}");
    let unknown = knob_write(&disk.target(), KnobFile::Elevator, disk.id, "elegant", "none");
    let (errno, detail) = told(writer.write(&unknown));
    assert_eq!(errno, Some(22));
    assert!(detail.contains("does not offer this elevator"), "{detail}");

    let no_disk = DeviceId { major: 259, minor: 1_000_000 };
    assert_eq!(writer.write(&weight(&group.target(), no_disk, 200)), Outcome::Vanished);
    for (text, undo) in [("", "x"), ("x", " "), ("7:0 1\n7:0 2", "x"), ("x", "a\0b")] {
        let (errno, detail) = told(writer.write(&knob_write(&group.target(), WEIGHTS, disk.id, text, undo)));
        assert!(errno.is_none() && detail.contains("nothing was written"), "{detail}");
    }
}

#[test]
fn only_the_cgroup_that_was_meant_is_written() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (_lock, mut writer, _) = runtime.start();
    let target = group.target();
    let before = group.text(WEIGHTS);

    // Removed, and made again under the same name: another tenant.
    fs::remove_dir(group.dir()).unwrap();
    assert_eq!(writer.write(&weight(&target, disk.id, 300)), Outcome::Vanished);
    fs::create_dir(group.dir()).unwrap();
    assert_eq!(writer.write(&weight(&target, disk.id, 300)), Outcome::Vanished);
    assert_eq!(writer.inspect(&inspection(&target, WEIGHTS, disk.id)), Outcome::Vanished);
    assert_eq!((group.text(WEIGHTS), writer.held()), (before, 0));

    // A group above tenants is named by its path alone.
    let any = KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: group.name.clone(), inode: 0 } };
    assert!(matches!(writer.write(&weight(&any, disk.id, 300)), Outcome::Text(_)));

    for path in ["../blkio", "/sys/fs/cgroup/blkio", "a/../../blkio"] {
        let outside = KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: path.into(), inode: 0 } };
        let outcome = writer.write(&weight(&outside, disk.id, 300));
        assert!(matches!(&outcome, Outcome::Refused { detail, .. } if detail.contains("lead out")), "{outcome:?}");
    }
    for name in ["", "..", "../devices", "a/b"] {
        let outside = KnobTarget::Disk { name: name.into() };
        let outcome = writer.write(&knob_write(&outside, KnobFile::Elevator, disk.id, "bfq", "none"));
        assert!(matches!(outcome, Outcome::Refused { errno: None, .. }), "{outcome:?}");
    }
    let other = DeviceId { major: 1, minor: 1 };
    assert_eq!(writer.inspect(&inspection(&disk.target(), KnobFile::Elevator, other)), Outcome::Vanished);
    let mixed = inspection(&disk.target(), WEIGHTS, disk.id);
    assert!(matches!(writer.inspect(&mixed), Outcome::Refused { errno: None, .. }));
    writer.close_clean().unwrap();
}

#[test]
fn a_tenant_directory_replaced_by_a_symlink_is_not_followed() {
    if !ready() {
        return;
    }
    let (mut runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let root = runtime.root().join("root");
    fs::create_dir(&root).unwrap();
    symlink(group.dir(), root.join("tenant")).unwrap();
    symlink(".", root.join("here")).unwrap();
    runtime.settings.cgroup_root = root;
    let (_lock, mut writer, _) = runtime.start();
    let before = group.text(WEIGHTS);
    for path in ["tenant", "here/tenant"] {
        let target = KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: path.into(), inode: 0 } };
        let outcome = writer.write(&weight(&target, disk.id, 300));
        assert!(matches!(&outcome, Outcome::Refused { detail, .. } if detail.contains("symbolic link")), "{outcome:?}");
    }
    assert_eq!((group.text(WEIGHTS), writer.held(), runtime.journal_path().exists()), (before, 0, false));
}

#[test]
fn a_disk_that_is_removed_while_it_is_written_vanishes() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (_lock, mut writer, _) = runtime.start();
    let target = group.target();
    let elevator = knob_write(&disk.target(), KnobFile::Elevator, disk.id, "mq-deadline", "bfq");
    assert!(matches!(writer.write(&weight(&target, disk.id, 300)), Outcome::Text(_)));
    std::thread::scope(|scope| {
        scope.spawn(|| disk.remove());
        let mut value = 100;
        loop {
            value = 100 + (value + 1) % 100;
            match writer.write(&weight(&target, disk.id, value)) {
                Outcome::Vanished => break,
                Outcome::Text(_) | Outcome::Busy => {}
                // Between the removal of its queue and that of its number the disk has no elevator.
                Outcome::Refused { errno, detail } => assert_eq!(errno, Some(95), "{detail}"),
            }
        }
    });
    assert_eq!(writer.write(&elevator), Outcome::Vanished);
    let report = writer.close_clean().unwrap();
    assert!(report.is_complete(), "{report}");
    assert!(!runtime.journal_path().exists());
}

/// A small file system of its own.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(below: &Path) -> Option<Self> {
        let path = below.join(format!("minerva-test-lact-{}-full", std::process::id()));
        fs::create_dir(&path).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=64k,mode=0700", "minerva-test-lact"];
        let mounted = Command::new("mount").args(options).arg(&path).status().unwrap().success();
        mounted.then_some(Self(path))
    }

    fn fill(&self) {
        let mut size = 0;
        while fs::write(self.0.join("ballast"), vec![1; size + 1024]).is_ok() {
            size += 1024;
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).status());
    }
}

#[test]
fn nothing_is_written_when_the_journal_finds_its_disk_full() {
    if !ready() {
        return;
    }
    let (mut runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let Some(small) = SmallDisk::mount(runtime.root()) else {
        println!("skipped: needs to mount a tmpfs");
        return;
    };
    runtime.settings.runtime_dir = small.0.clone();
    let (lock, mut writer, _) = runtime.start();
    let before = group.text(WEIGHTS);
    let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused { errno: None, detail } if detail.contains("could not be journalled") && detail.contains("No space left"));

    small.fill();
    let outcome = writer.write(&weight(&group.target(), disk.id, 300));
    assert!(refused(&outcome), "{outcome:?}");
    assert_eq!((group.text(WEIGHTS), writer.held(), runtime.journal_path().exists()), (before.clone(), 0, false));

    // The same with a journal that is there and cannot grow: what it holds stays whole.
    fs::remove_file(small.0.join("ballast")).unwrap();
    assert!(matches!(writer.write(&weight(&group.target(), disk.id, 300)), Outcome::Text(_)));
    small.fill();
    let nobody = |minor: u32| weight(&group.target(), DeviceId { major: 259, minor: 1_000_000 + minor }, 300);
    let full_at = (0..1000).find(|minor| {
        let held = writer.held();
        writer.prepare(&[nobody(*minor)]);
        writer.held() == held
    });
    let full_at = full_at.unwrap();
    let outcome = writer.write(&nobody(full_at));
    assert!(refused(&outcome), "{outcome:?}");
    let content = parse_journal(&fs::read(runtime.journal_path()).unwrap());
    assert_eq!((content.problem_count, content.torn, content.entries.len()), (0, false, writer.held()));
    assert!(full_at > 1 && writer.held() == full_at as usize + 1);
    assert!(matches!(writer.write(&weight(&group.target(), disk.id, 500)), Outcome::Text(_)));

    // A restore works all the same, also where it should keep what it does not understand and cannot.
    drop((writer, lock));
    let whole = fs::read_to_string(runtime.journal_path()).unwrap();
    let text = whole.replacen("\"sequence\":2", "\"sequence\":x", 1);
    fs::OpenOptions::new().write(true).open(runtime.journal_path()).unwrap().write_all_at(text.as_bytes(), 0).unwrap();
    for expected in ["1 restored", "0 restored"] {
        let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
        let told = report.to_string();
        assert!(told.contains(expected) && told.contains("the journal stays as it is"), "{told}");
        assert_eq!((group.text(WEIGHTS), runtime.journal_path().exists()), (before.clone(), true));
    }
    fs::remove_file(small.0.join("ballast")).unwrap();
    restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert!(!runtime.journal_path().exists());
}

#[test]
fn a_second_instance_is_refused_by_name() {
    let runtime = Runtime::new();
    let dir = &runtime.settings.runtime_dir;
    assert_eq!(InstanceLock::holder(dir).unwrap(), None);
    let lock = InstanceLock::acquire(dir).unwrap();
    assert_eq!(InstanceLock::holder(dir).unwrap(), Some(std::process::id()));
    let error = InstanceLock::acquire(dir).unwrap_err();
    assert!(matches!(error, ActuateError::AlreadyRunning { .. }));
    assert!(error.to_string().contains(&format!("already runs as process {} ", std::process::id())), "{error}");
    drop(lock);
    // A process that another test starts has the lock's descriptor too, until it executes its program.
    let is_free = || InstanceLock::acquire(dir).is_ok();
    let mut looks = (0..10_000).map(|_| std::thread::sleep(std::time::Duration::from_millis(5)));
    assert!(looks.any(|()| is_free()), "the lock is still held");
}

#[test]
fn a_runtime_directory_that_others_could_write_is_refused() {
    let runtime = Runtime::new();
    let dir = &runtime.settings.runtime_dir;
    let real = runtime.root().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, dir).unwrap();
    let error = InstanceLock::acquire(dir).unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert!(restore(&runtime.settings, RestoreWhen::Always).is_err());
    fs::remove_file(dir).unwrap();
    fs::create_dir(dir).unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o1777)).unwrap();
    let error = InstanceLock::acquire(dir).unwrap_err().to_string();
    assert!(error.contains("chmod it to 0700"), "{error}");
}

#[test]
fn a_daemon_that_was_restored_behind_its_back_journals_anew() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (_lock, mut writer, _) = runtime.start();
    let (target, before) = (group.target(), group.text(WEIGHTS));
    writer.write(&weight(&target, disk.id, 300));
    let not_due = restore(&runtime.settings, RestoreWhen::IfDaemonGone).unwrap().not_due.unwrap();
    assert!(not_due.contains(&std::process::id().to_string()), "{not_due}");
    let not_due = restore(&runtime.settings, RestoreWhen::IfLeaseExpired(boottime_now())).unwrap().not_due.unwrap();
    assert!(not_due.starts_with("the lease holds"), "{not_due}");

    assert!(restore(&runtime.settings, RestoreWhen::Always).unwrap().is_complete());
    assert_eq!((group.text(WEIGHTS), runtime.journal_path().exists()), (before.clone(), false));
    writer.write(&weight(&target, disk.id, 400));
    assert_eq!(runtime.journal_lines(), 2);
    let not_due = restore(&runtime.settings, RestoreWhen::IfLeaseExpired(boottime_now())).unwrap().not_due.unwrap();
    assert!(not_due.starts_with("the lease holds"), "{not_due}");
    writer.close_clean().unwrap();
    assert_eq!(group.text(WEIGHTS), before);
}

#[test]
fn a_missing_hierarchy_is_told_as_such() {
    let mut runtime = Runtime::new();
    runtime.settings.cgroup_root = runtime.root().join("nowhere");
    let lock = InstanceLock::acquire(&runtime.settings.runtime_dir).unwrap();
    let (mut writer, _) = Writer::open(&runtime.settings, &lock).unwrap();
    let target = KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: "a".into(), inode: 0 } };
    let request: KnobWrite = weight(&target, DeviceId { major: 7, minor: 0 }, 3);
    let outcome = writer.write(&request);
    assert!(matches!(&outcome, Outcome::Refused { detail, .. } if detail.contains("is it mounted")), "{outcome:?}");
}
