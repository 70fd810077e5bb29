//! Volumes that lie on one disk.

use super::tests::executor;
use crate::disks_below::tests::{add_disk, disk, lies_on};
use crate::run::Before;
use crate::spec::{Kind, Spec};
use crate::told::Told;
use crate::worker::Worker;
use minerva_background::HUNG;
use minerva_model::{BackgroundId, BackgroundOrder, BackgroundPace, DeviceId, Nanos};
use std::fs;

#[test]
fn there_is_no_gap_on_a_volume_while_others_use_another_one_on_its_disk() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let sys = root.join("sys");
    let [below, ours, another] = [disk(8, 0), disk(253, 0), disk(253, 1)];
    for (name, number) in [("sda", below), ("dm-0", ours), ("dm-1", another)] {
        add_disk(&sys, name, number, None);
    }
    [ours, another].into_iter().for_each(|volume| lies_on(&sys, volume, below));
    let mut executor = executor(root, "minerva");
    let spec = Worker::of(root, Kind::Delete, root).spec().clone();
    let id = spec.id;
    executor.add(Nanos::ZERO, spec, ours, Before::default());
    let stat = root.join("cgroup/machine/io.stat");
    fs::create_dir_all(stat.parent().unwrap()).unwrap();
    let mut made = 0;
    let mut has_gap = |from: u64, are_busy: bool| {
        (from..from + 300).any(|look| {
            made += u64::from(are_busy);
            let line = |number: DeviceId| format!("{number} rbytes=0 wbytes=0 rios={made} wios=0 dbytes=0 dios=0\n");
            fs::write(&stat, line(another) + &line(below)).unwrap();
            executor.is_gap(Nanos::from_millis(10 * look), ours, id)
        })
    };
    assert!(!has_gap(0, true), "a machine reads the other volume all the time");
    assert!(has_gap(300, false));
}

#[test]
fn of_two_volumes_on_one_disk_the_work_of_one_runs_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let sys = root.join("sys");
    let (below, volumes) = (disk(8, 0), [disk(253, 0), disk(253, 1)]);
    add_disk(&sys, "sda", below, None);
    let mut executor = executor(root, "minerva");
    for (index, volume) in volumes.into_iter().enumerate() {
        add_disk(&sys, &format!("dm-{index}"), volume, None);
        lies_on(&sys, volume, below);
        let id = BackgroundId(index as u32);
        let group = root.join(format!("cgroup/{id}"));
        executor.tell(Nanos::ZERO, Told { id, device: volume, group, say: Box::new(|_| true) });
        let (pace, reason) = (BackgroundPace::Gaps, String::new());
        executor.order(&BackgroundOrder { id, pace, reason, processors: 0 });
    }
    let (mut together, mut had) = (0, [false; 2]);
    for look in 0..1_500 {
        executor.step(Nanos::from_millis(20 * look));
        let runs = [0, 1].map(|id| executor.told[&BackgroundId(id)].is_working());
        together += u32::from(runs == [true; 2]);
        had = [0, 1].map(|index| had[index] || runs[index]);
    }
    assert_eq!((together, had), (0, [true; 2]), "in thirty seconds in which nobody else uses the disk");
}

#[test]
fn what_a_tenant_owes_on_a_volume_has_its_turn_where_the_operators_work_on_another_of_the_disk_hangs() {
    for hangs in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let sys = root.join("sys");
        let (below, [ours, theirs]) = (disk(8, 0), [disk(253, 0), disk(253, 1)]);
        for (name, number) in [("sda", below), ("dm-0", ours), ("dm-1", theirs)] {
            add_disk(&sys, name, number, None);
        }
        [ours, theirs].into_iter().for_each(|volume| lies_on(&sys, volume, below));
        let mut executor = executor(root, "minerva");
        let spec = Worker::of(root, Kind::Delete, root).spec().clone();
        let (id, owed) = (spec.id, BackgroundId(2));
        executor.add(Nanos::ZERO, spec, ours, Before::default());
        let group = root.join("cgroup/tenant");
        executor.tell(Nanos::ZERO, Told { id: owed, device: theirs, group, say: Box::new(|_| true) });
        for id in [id, owed] {
            let (pace, reason) = (BackgroundPace::Gaps, String::new());
            executor.order(&BackgroundOrder { id, pace, reason, processors: 0 });
        }
        executor.runs.get_mut(&id).unwrap().in_vain = if hangs { HUNG } else { Nanos::ZERO };
        let worked = (0..1_000).any(|look| {
            executor.step(Nanos::from_millis(20 * look));
            executor.told[&owed].is_working()
        });
        assert_eq!(worked, hangs);
    }
}

#[test]
fn of_two_volumes_on_one_disk_work_that_takes_time_from_others_has_no_more_than_half_of_it_together() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let sys = root.join("sys");
    let (below, volumes) = (disk(8, 0), [disk(253, 0), disk(253, 1)]);
    add_disk(&sys, "sda", below, None);
    let mut executor = executor(root, "minerva");
    let lives = [0, 1].map(|index| {
        add_disk(&sys, &format!("dm-{index}"), volumes[index], None);
        lies_on(&sys, volumes[index], below);
        let id = BackgroundId(index as u32);
        let spec = Spec { id, ..Worker::of(root, Kind::Delete, root).spec().clone() };
        let place = executor.settings.place(id, &executor.hierarchy);
        place.make().unwrap();
        fs::create_dir_all(&place.groups.freezer).unwrap();
        let lives = place.lock().unwrap().unwrap();
        executor.add(Nanos::ZERO, spec, volumes[index], Before::default());
        let (pace, reason) = (BackgroundPace::Share(500), String::new());
        executor.order(&BackgroundOrder { id, pace, reason, processors: 0 });
        lives
    });
    let stat = root.join("cgroup/machine/io.stat");
    fs::create_dir_all(stat.parent().unwrap()).unwrap();
    let (mut together, mut ran) = (0, [0; 2]);
    for look in 1..=3_000 {
        fs::write(&stat, format!("{below} rbytes=0 wbytes=0 rios={look} wios=0 dbytes=0 dios=0\n")).unwrap();
        executor.step(Nanos::from_millis(20 * look));
        let runs = [0, 1].map(|id| executor.runs[&BackgroundId(id)].is_running());
        together += u32::from(runs == [true; 2]);
        ran = [0, 1].map(|index| ran[index] + u32::from(runs[index]));
    }
    drop(lives);
    let sum: u32 = ran.iter().sum();
    assert_eq!(together, 0, "{ran:?}");
    assert!((1_350..=1_500).contains(&sum) && ran.iter().all(|ran| *ran > 600), "{ran:?} of 3,000 looks");
}
