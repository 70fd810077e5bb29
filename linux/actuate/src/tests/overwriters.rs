use super::testbed::{Cgroup, Disk, Runtime, ready, wait_until, weight};
use crate::Overwriters;
use minerva_model::{DeviceId, KnobFile, KnobRelease, Outcome};
use std::process::{Child, Command, Stdio};

/// A shell that writes a file and then waits for the end of its input.
fn writer_of(path: &std::path::Path, text: &str) -> Child {
    let script = format!("echo '{text}' > {}; echo done; read end", path.display());
    let mut child =
        Command::new("sh").arg("-c").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(line, "done\n");
    child
}

#[test]
fn whoever_overwrites_a_watched_knob_is_named() {
    if !ready() {
        return;
    }
    let (runtime, group, disk) = (Runtime::new(), Cgroup::new(), Disk::new());
    let (_lock, mut writer, _) = runtime.start();
    let mut overwriters = match Overwriters::open(&runtime.settings) {
        Ok(overwriters) => overwriters,
        Err(error) => {
            println!("skipped: needs fanotify: {}", error.in_full());
            return;
        }
    };
    let (target, file) = (group.target(), KnobFile::BfqV1WeightDevice);
    for _ in 0..2 {
        assert_eq!(overwriters.watch(&target, file, disk.id), None);
    }
    assert_eq!(overwriters.watch(&disk.target(), KnobFile::Elevator, disk.id), None);

    // One's own writes are not told.
    assert!(matches!(writer.write(&weight(&target, disk.id, 300)), Outcome::Text(_)));
    assert_eq!(overwriters.culprits(), []);

    let path = group.dir().join(file.file_name());
    let mut other = writer_of(&path, &format!("{} 77", disk.id));
    let mut culprits = Vec::new();
    wait_until("the kernel's report", || {
        culprits.extend(overwriters.culprits());
        !culprits.is_empty()
    });
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(culprits.len(), 1);
    assert_eq!((&culprits[0].path, culprits[0].pid), (&path, other.id()));
    assert_eq!(culprits[0].name.as_deref(), Some("sh"));
    assert!(culprits[0].command_line.as_ref().is_some_and(|line| line.starts_with("sh -c echo")), "{culprits:?}");

    // One that has ended leaves its number.
    let status = Command::new("sh").arg("-c").arg(format!("echo '{} 78' > {}", disk.id, path.display())).status();
    assert!(status.unwrap().success());
    let culprits = overwriters.culprits();
    assert!(matches!(&culprits[..], [culprit] if culprit.pid > 0 && culprit.name.is_none()), "{culprits:?}");
    writer.close_clean().unwrap();
}

#[test]
fn marks_are_bounded_and_survive_what_they_mark() {
    if !ready() {
        return;
    }
    let runtime = Runtime::new();
    let Ok(mut overwriters) = Overwriters::open(&runtime.settings) else {
        println!("skipped: needs fanotify");
        return;
    };
    let device = DeviceId { major: 7, minor: 0 };
    let groups: Vec<Cgroup> = (0..70).map(|_| Cgroup::new()).collect();
    for group in &groups {
        assert_eq!(overwriters.watch(&group.target(), KnobFile::BfqV1Weight, device), None);
    }
    let write = |group: &Cgroup| writer_of(&group.dir().join("blkio.bfq.weight"), "200").kill().unwrap();
    write(&groups[0]);
    write(&groups[69]);
    let mut culprits = overwriters.culprits();
    culprits.retain(|culprit| culprit.path.starts_with(groups[0].dir()) || culprit.path.starts_with(groups[69].dir()));
    assert_eq!(culprits.len(), 1, "{culprits:?}");
    assert!(culprits[0].path.starts_with(groups[69].dir()));
    let target = groups[69].target();
    drop(groups);
    assert_eq!(overwriters.culprits(), []);
    assert_eq!(overwriters.watch(&target, KnobFile::BfqV1Weight, device), Some(Outcome::Vanished));
}

#[test]
fn a_knob_that_was_let_go_is_not_put_back_over_its_winner() {
    if !ready() {
        return;
    }
    let (runtime, group, disk, other) = (Runtime::new(), Cgroup::new(), Disk::new(), Disk::new());
    let (_lock, mut writer, _) = runtime.start();
    let (target, file) = (group.target(), KnobFile::BfqV1WeightDevice);
    for id in [disk.id, other.id] {
        assert!(matches!(writer.write(&weight(&target, id, 300)), Outcome::Text(_)));
    }
    std::fs::write(group.dir().join(file.file_name()), format!("{} 77", disk.id)).unwrap();
    let release = KnobRelease { target: target.clone(), file, device: disk.id };
    writer.let_go(&release).unwrap();
    assert_eq!(writer.held(), 1);
    // Once more is no error.
    writer.let_go(&release).unwrap();
    assert!(writer.close_clean().unwrap().is_complete());
    let text = std::fs::read_to_string(group.dir().join(file.file_name())).unwrap();
    assert!(text.contains(&format!("{} 77", disk.id)), "{text}");
    assert!(!text.contains(&format!("{} ", other.id)), "{text}");
}
