use super::Outcome;
use super::arms::{Arm, BfqSettings, Treatment, arms};
use super::page::shown;
use super::page::{best, how_to_have_it, without_iocost};
use super::{
    READING_MAX, READING_MIN, READING_OVERHEAD, ROUNDS, Request, TIME_MAX, reading_time, readings, rounds,
    rounds_needed,
};
use crate::place::OperatorFile;
use crate::probe_reader::Reading;
use minerva_model::{BackEnd, CgroupVersion, Device, DeviceFacts, DeviceId, DeviceSettings, KnobFile};

pub(super) fn device(cgroup: CgroupVersion, elevator: &str) -> Device {
    let facts = DeviceFacts {
        cgroup,
        controller_enabled: true,
        writeback_attributed: false,
        elevator: Some(elevator.to_owned()),
        elevators_available: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
        bfq_low_latency: (elevator == "bfq").then_some(true),
        bfq_strict_guarantees: (elevator == "bfq").then_some(false),
        iocost_available: false,
        iocost_enabled: false,
        iocost_model_guessed: false,
        throttle_available: true,
        multi_queue: true,
        stacked_on: Vec::new(),
        rotational: true,
        size_bytes: 80 << 30,
        back_end_forced: None,
    };
    Device { id: DeviceId { major: 8, minor: 0 }, name: "sda".to_owned(), facts }
}

fn names(device: &Device, change_elevator: bool) -> Vec<String> {
    let in_force = device.facts.elevator.clone().unwrap();
    let arms = arms(device, &in_force, change_elevator);
    arms.iter().map(|arm| arm.name(BfqSettings::found(device))).collect()
}

#[test]
fn a_disk_without_bfq_is_compared_with_caps_and_with_iocost_where_it_is_enabled() {
    let v1 = device(CgroupVersion::V1, "mq-deadline");
    assert_eq!(names(&v1, false), ["mq-deadline", "mq-deadline, heavy capped to half"]);
    let mut nvme = device(CgroupVersion::V2, "none");
    nvme.facts.iocost_enabled = true;
    assert_eq!(names(&nvme, false), ["none", "none, weighted as Minerva does", "none, heavy capped to half"]);
    let knobs: Vec<Treatment> = arms(&nvme, "none", false).iter().map(|arm| arm.treatment).collect();
    assert_eq!(knobs[1..], [Treatment::Weights(KnobFile::IoWeight), Treatment::Caps(KnobFile::IoMax)]);
}

#[test]
fn a_comparison_of_all_that_a_disk_has_takes_a_minute_at_most() {
    // All that Linux has, and all ways to steer by them.
    let mut disk = device(CgroupVersion::V2, "none");
    disk.facts.elevators_available = ["none", "mq-deadline", "kyber", "bfq"].map(str::to_owned).to_vec();
    disk.facts.iocost_enabled = true;
    let all = arms(&disk, "none", true);
    assert_eq!(all.len(), 3 * 3 + 5);
    let count = readings(&all, ROUNDS);
    assert_eq!(count, 14 * ROUNDS + 2);
    let time = reading_time(count);
    assert!(time >= READING_MIN && (time + READING_OVERHEAD) * count <= TIME_MAX, "{time:?}");
    // Where there is little to compare, each reading is longer, and never so short that it shows nothing.
    assert_eq!(reading_time(readings(&arms(&disk, "none", false), 1)), READING_MAX);
    assert_eq!(reading_time(10_000), READING_MIN);
}

#[test]
fn bfq_is_tried_with_each_of_its_settings_only_where_everybody_may_notice() {
    let disk = device(CgroupVersion::V1, "bfq");
    assert_eq!(names(&disk, false), ["bfq", "bfq, weighted as Minerva does"]);
    let all = names(&disk, true);
    for settings in ["", ", low_latency 0", ", strict_guarantees 1", ", low_latency 0, strict_guarantees 1"] {
        let name = format!("bfq, weighted as Minerva does{settings}");
        assert!(all.contains(&name), "{name} is not among {all:?}");
    }
}

#[test]
fn what_is_better_in_every_round_is_told_with_the_lines_for_the_file() {
    let disk = device(CgroupVersion::V1, "mq-deadline");
    let mut arms = arms(&disk, "mq-deadline", true);
    let outcome = |reads| {
        let light = Reading { bytes: 0, reads, p50_ns: 1, p99_ns: 1 };
        Outcome { heavy_bytes_per_second: 1e6, light }
    };
    let is_strict =
        |arm: &Arm| arm.settings.is_some_and(|settings| settings.strict_guarantees && !settings.low_latency);
    for arm in &mut arms {
        // BFQ with weights is better by chance at most.
        let reads = if is_strict(arm) { [50, 60] } else { [10, 40] };
        arm.readings = reads.map(outcome).into();
    }
    let now = arms.iter().find(|arm| arm.is_in_force(&disk)).unwrap();
    let lines = best(&arms, now).file_lines(&disk, &DeviceSettings::default());
    assert_eq!(shown(&lines), ["elevator = \"bfq\"", "strict_guarantees = true", "low_latency_by_use = true"]);
    arms.retain(|arm| !is_strict(arm));
    let now = arms.iter().find(|arm| arm.is_in_force(&disk)).unwrap();
    assert!(std::ptr::eq(best(&arms, now), now));
}

#[test]
fn where_iocost_is_not_enabled_it_is_told_how_to_enable_it() {
    let mut disk = device(CgroupVersion::V2, "none");
    assert_eq!(without_iocost(&disk), "");
    disk.facts.iocost_available = true;
    let told = without_iocost(&disk);
    assert!(told.contains("echo \"$(cat /sys/block/sda/dev) enable=1\" > /sys/fs/cgroup/io.cost.qos;"), "{told}");
    // A text that is not on this host is no help.
    assert!(told.contains("minerva-ctl doctor --device sda") && !told.contains("docs/"), "{told}");
    disk.facts.iocost_enabled = true;
    assert_eq!(without_iocost(&disk), "");
}

#[test]
fn settings_that_only_the_operator_can_give_are_told_apart_from_lines_of_the_file() {
    let mut disk = device(CgroupVersion::V1, "bfq");
    (disk.facts.bfq_low_latency, disk.facts.bfq_strict_guarantees) = (Some(false), Some(true));
    let of = |arm: &Arm| (arm.settings.unwrap(), arm.by_hand(&disk));
    for (settings, by_hand) in arms(&disk, "bfq", false).iter().map(of) {
        assert!(settings == BfqSettings::found(&disk) && by_hand.is_empty());
    }
    let all = arms(&disk, "bfq", true);
    let shipped = all.iter().find(|arm| arm.settings == Some(BfqSettings::SHIPPED)).unwrap();
    assert_eq!(shipped.by_hand(&disk), ["low_latency 1", "strict_guarantees 0"]);
    // Both are told where both are needed.
    let told = how_to_have_it("sda", &["low_latency 1"], &["strict_guarantees = true".to_owned()]);
    assert!(
        told.contains("set low_latency 1 in /sys/block/sda/queue/iosched") && told.contains("strict_guarantees = true"),
        "{told}"
    );
    assert_eq!(how_to_have_it("sda", &[], &[]), "Minerva does that by itself in mode enforce");
}

/// The lines of the first arm with this elevator and treatment, where the file says this of the disk.
fn lines(disk: &Device, elevator: &str, treatment: Treatment, said: &DeviceSettings) -> Vec<String> {
    let arms = arms(disk, disk.facts.elevator.as_deref().unwrap(), true);
    let arm = arms.iter().find(|arm| arm.elevator == elevator && arm.treatment == treatment).unwrap();
    shown(&arm.file_lines(disk, said))
}

#[test]
fn the_lines_make_minerva_do_what_was_compared_whatever_the_file_says_already() {
    let disk = device(CgroupVersion::V2, "mq-deadline");
    let nothing = DeviceSettings::default();
    let weighted = Treatment::Weights(KnobFile::BfqWeight);
    assert_eq!(lines(&disk, "bfq", weighted, &nothing), ["elevator = \"bfq\""]);
    // Minerva would give weights there, and those were worse than none.
    assert_eq!(lines(&disk, "bfq", Treatment::Equal, &nothing), ["elevator = \"bfq\"", "back_end = \"observe\""]);
    assert_eq!(lines(&disk, "none", Treatment::Equal, &nothing), ["elevator = \"none\""]);
    let iocost = DeviceSettings { enable_iocost: true, ..nothing.clone() };
    assert_eq!(lines(&disk, "none", Treatment::Equal, &iocost)[1..], ["back_end = \"observe\""]);
    // What the file says already is not said again, and what is against it is.
    let says = DeviceSettings {
        elevator: Some("bfq".to_owned()),
        back_end: Some(BackEnd::Max),
        strict_guarantees: true,
        low_latency_by_use: true,
        ..nothing.clone()
    };
    let all = ["strict_guarantees = false", "low_latency_by_use = false", "back_end = \"bfq\""];
    assert_eq!(lines(&disk, "bfq", weighted, &says), all);
    assert_eq!(lines(&disk, "mq-deadline", Treatment::Caps(KnobFile::IoMax), &says), ["elevator = \"mq-deadline\""]);
    let does = DeviceSettings { elevator: Some("bfq".to_owned()), ..nothing };
    assert_eq!(lines(&disk, "bfq", weighted, &does), [""; 0]);
}

#[test]
fn what_is_written_takes_so_many_rounds_that_it_is_hardly_by_chance() {
    let (disk, file) = (device(CgroupVersion::V2, "none"), OperatorFile::new(None));
    let asked = |writes: bool, asked| {
        let writes_beside = writes.then_some(&file);
        let request =
            Request { device: &disk, change_elevator: true, duration: None, rounds: asked, writes_beside, json: false };
        rounds(&request, 13).map_err(|error| error.to_string())
    };
    let needed = rounds_needed(13);
    assert!(needed > ROUNDS);
    assert_eq!([asked(false, None), asked(false, Some(1))], [Ok(ROUNDS), Ok(1)]);
    assert_eq!([asked(true, None), asked(true, Some(needed))], [Ok(needed), Ok(needed)]);
    let refused = asked(true, Some(needed - 1)).unwrap_err();
    assert!(refused.contains(&format!("--write needs --rounds {needed} here")), "{refused}");
}
