use super::testbed::{Cgroup, Disk, Runtime, ready, weight};
use crate::{InstanceLock, Writer, WriterSettings, sweep_probes};
use minerva_model::{KnobFile, Outcome};
use std::fs;
use std::os::unix::fs::symlink;

const WEIGHTS: KnobFile = KnobFile::BfqV1WeightDevice;

#[test]
fn what_a_killed_probe_left_is_put_back_or_told_and_kept_for_the_next_try() {
    if !ready() {
        return;
    }
    let (runtime, disk) = (Runtime::new(), Disk::new());
    fs::create_dir_all(&runtime.settings.runtime_dir).unwrap();
    let (good, bad) = (Cgroup::new(), Cgroup::new());
    let before = good.text(WEIGHTS);
    // No process has a number above the kernel's greatest.
    let probe = |pid: u32, group: &Cgroup, undo: &str| {
        let runtime_dir = runtime.settings.runtime_dir.join(format!("minerva-probe-{pid}"));
        let settings = WriterSettings { runtime_dir: runtime_dir.clone(), ..runtime.settings.clone() };
        let lock = InstanceLock::acquire(&runtime_dir).unwrap();
        let (mut writer, _) = Writer::open(&settings, &lock).unwrap();
        let write = weight(&group.target(), disk.id, 300);
        let undo = if undo.is_empty() { write.undo.clone() } else { format!("{} {undo}", disk.id) };
        assert!(matches!(writer.write(&minerva_model::KnobWrite { undo, ..write }), Outcome::Text(_)));
        runtime_dir
    };
    let (well, ill) = (probe(4_194_310, &good, ""), probe(4_194_311, &bad, "5000"));
    let swept = sweep_probes(&runtime.settings);
    assert!(swept.removed.contains(&well) && !well.exists());
    assert_eq!(good.text(WEIGHTS), before);
    assert_eq!(swept.left.len(), 1, "{swept:?}");
    assert!(swept.left[0].path == ill && swept.left[0].error.contains("ERANGE"), "{swept:?}");
    assert!(ill.join("undo.journal").exists());
    // Nothing is to be put back in a group that is gone.
    fs::remove_dir(bad.dir()).unwrap();
    let swept = sweep_probes(&runtime.settings);
    assert!(swept.removed.contains(&ill) && swept.left.is_empty() && !ill.exists(), "{swept:?}");
}

/// Those of earlier versions stood beside the daemon's directory.
#[test]
fn what_a_killed_probe_of_an_earlier_version_left_is_put_back_too() {
    if !ready() {
        return;
    }
    let (runtime, disk, group) = (Runtime::new(), Disk::new(), Cgroup::new());
    let above = tempfile::tempdir().unwrap();
    let settings = WriterSettings { runtime_dir: above.path().join("minerva"), ..runtime.settings.clone() };
    let before = group.text(WEIGHTS);
    // No process has a number above the kernel's greatest.
    let [left, link] = [4_194_312, 4_194_313].map(|pid| above.path().join(format!("minerva-probe-{pid}")));
    {
        let own = WriterSettings { runtime_dir: left.clone(), ..settings.clone() };
        let lock = InstanceLock::acquire(&left).unwrap();
        let (mut writer, _) = Writer::open(&own, &lock).unwrap();
        assert!(matches!(writer.write(&weight(&group.target(), disk.id, 300)), Outcome::Text(_)));
    }
    // No probe ever made one.
    symlink(above.path(), &link).unwrap();
    let swept = sweep_probes(&settings);
    assert!(swept.removed.contains(&left) && !left.exists() && swept.left.is_empty(), "{swept:?}");
    assert_eq!(group.text(WEIGHTS), before);
    assert!(link.is_symlink() && above.path().exists());
    assert!(sweep_probes(&settings).left.is_empty(), "nothing is there any more");
}
