use super::{not_calibrated, suitability};
use minerva_model::{BackEnd, CgroupVersion, Device, DeviceFacts, DeviceId, DeviceSettings, FindingKind};

/// A rotating disk on cgroup v2 that has bfq and iocost to choose from.
pub(crate) fn facts(elevator: Option<&str>) -> DeviceFacts {
    DeviceFacts {
        cgroup: CgroupVersion::V2,
        controller_enabled: true,
        writeback_attributed: true,
        elevator: elevator.map(str::to_owned),
        elevators_available: vec!["none".to_owned(), "bfq".to_owned()],
        bfq_low_latency: (elevator == Some("bfq")).then_some(false),
        bfq_strict_guarantees: None,
        iocost_available: true,
        iocost_enabled: false,
        iocost_model_guessed: false,
        throttle_available: true,
        multi_queue: true,
        rotational: true,
        stacked_on: Vec::new(),
        size_bytes: 1 << 40,
        back_end_forced: None,
    }
}

fn forces(back_end: BackEnd) -> DeviceSettings {
    DeviceSettings { back_end: Some(back_end), ..Default::default() }
}

#[test]
fn the_back_end_that_bites_is_chosen() {
    let bfq = facts(Some("bfq"));
    let none = facts(Some("none"));
    let fast = DeviceFacts { rotational: false, ..none.clone() };
    let v1 = |facts: &DeviceFacts| DeviceFacts { cgroup: CgroupVersion::V1, iocost_available: false, ..facts.clone() };
    let raising = DeviceFacts { bfq_low_latency: Some(true), ..bfq.clone() };
    let iocost = DeviceFacts { iocost_enabled: true, ..none.clone() };
    let guessed = DeviceFacts { iocost_model_guessed: true, ..iocost.clone() };
    let leaf = DeviceId { major: 8, minor: 0 };
    let asks = DeviceSettings { elevator: Some("bfq".to_owned()), ..Default::default() };
    let wants_iocost = DeviceSettings { enable_iocost: true, ..Default::default() };
    // As a kernel shows an NVMe multipath head, and persistent memory.
    let head = DeviceFacts { multi_queue: false, elevators_available: vec!["none".to_owned()], ..fast.clone() };
    let pmem = DeviceFacts { elevator: None, elevators_available: Vec::new(), ..head.clone() };
    let dm = DeviceFacts { stacked_on: vec![leaf], ..head.clone() };
    let only_caps = "reads weights | set back_end = \"max\" for sda in minerva.toml to cap tenants";
    // Facts, settings, back end, and a word that the reason or the remedy must hold.
    let table = [
        (bfq.clone(), None, BackEnd::Bfq, "obeys weights"),
        (v1(&bfq), None, BackEnd::BfqV1, "buffered writes"),
        (DeviceFacts { bfq_low_latency: None, ..bfq.clone() }, None, BackEnd::Observe, "could not be read"),
        (raising.clone(), None, BackEnd::Bfq, "weights hold between groups"),
        (v1(&raising), Some(asks.clone()), BackEnd::BfqV1, "--device sda --probe"),
        (iocost.clone(), None, BackEnd::IoCost, "iocost is enabled"),
        (guessed.clone(), None, BackEnd::IoCost, "not calibrated"),
        (guessed.clone(), None, BackEnd::IoCost, "$(cat /sys/block/sda/dev) ctrl=user model=linear rbps="),
        (DeviceFacts { writeback_attributed: false, ..guessed }, None, BackEnd::IoCost, "; buffered writes"),
        (none.clone(), None, BackEnd::Observe, "echo bfq > /sys/block/sda/queue/scheduler"),
        (none.clone(), Some(asks.clone()), BackEnd::Observe, "puts it in force itself"),
        (fast.clone(), None, BackEnd::Observe, "set enable_iocost = true for sda in minerva.toml and Minerva enables"),
        (
            fast.clone(),
            None,
            BackEnd::Observe,
            "or set back_end = \"max\" for sda in minerva.toml to cap tenants; weights",
        ),
        (fast.clone(), None, BackEnd::Observe, "throughput: echo bfq > /sys/block/sda/queue/scheduler"),
        (v1(&fast), None, BackEnd::Observe, "| set back_end = \"throttle-v1\" for sda"),
        (DeviceFacts { elevator: Some("mq-deadline".to_owned()), ..fast }, None, BackEnd::Observe, "| echo bfq >"),
        (v1(&facts(None)), None, BackEnd::Observe, "| set back_end = \"throttle-v1\" for sda"),
        (DeviceFacts { elevators_available: vec![], ..none.clone() }, None, BackEnd::Observe, "modprobe bfq"),
        (DeviceFacts { stacked_on: vec![leaf], ..facts(None) }, None, BackEnd::Observe, "8:0"),
        (DeviceFacts { stacked_on: vec![leaf], ..bfq.clone() }, None, BackEnd::Bfq, "obeys weights"),
        (facts(None), None, BackEnd::Observe, "no elevator"),
        (head.clone(), None, BackEnd::Observe, only_caps),
        (head.clone(), Some(wants_iocost), BackEnd::Observe, only_caps),
        (head.clone(), Some(asks.clone()), BackEnd::Observe, only_caps),
        (head.clone(), Some(forces(BackEnd::IoCost)), BackEnd::Observe, only_caps),
        (head.clone(), Some(forces(BackEnd::Max)), BackEnd::Max, "io.max"),
        (pmem.clone(), None, BackEnd::Observe, only_caps),
        (v1(&pmem), None, BackEnd::Observe, "| set back_end = \"throttle-v1\" for sda"),
        (DeviceFacts { throttle_available: false, ..pmem }, None, BackEnd::Observe, "CONFIG_BLK_DEV_THROTTLING"),
        (dm, Some(asks.clone()), BackEnd::Observe, "8:0"),
        (
            DeviceFacts { controller_enabled: false, ..bfq.clone() },
            None,
            BackEnd::Observe,
            "DefaultIOAccounting=yes in /etc/systemd/system.conf.d/minerva.conf",
        ),
        (DeviceFacts { cgroup: CgroupVersion::Absent, ..bfq.clone() }, None, BackEnd::Observe, "mount"),
        (DeviceFacts { writeback_attributed: false, ..bfq.clone() }, None, BackEnd::Bfq, "+memory"),
        (bfq.clone(), Some(forces(BackEnd::Max)), BackEnd::Max, "io.max"),
        (DeviceFacts { back_end_forced: Some(BackEnd::Max), ..bfq.clone() }, None, BackEnd::Max, "io.max"),
        (bfq.clone(), Some(forces(BackEnd::Observe)), BackEnd::Observe, "watch sda only"),
        (v1(&none), Some(forces(BackEnd::ThrottleV1)), BackEnd::ThrottleV1, "/sys/block/sda/dev"),
        (v1(&bfq), Some(forces(BackEnd::ThrottleV1)), BackEnd::ThrottleV1, "escape"),
        (v1(&none), Some(forces(BackEnd::Max)), BackEnd::Observe, "throttle-v1"),
        (bfq.clone(), Some(forces(BackEnd::BfqV1)), BackEnd::Observe, "cgroup v2"),
        (bfq.clone(), Some(forces(BackEnd::IoCost)), BackEnd::Observe, "enable_iocost"),
        (
            DeviceFacts { throttle_available: false, ..bfq },
            Some(forces(BackEnd::Max)),
            BackEnd::Observe,
            "CONFIG_BLK_DEV_T",
        ),
    ];
    for (facts, settings, back_end, word) in table {
        let suitability = suitability(&facts, settings.as_ref()).named("sda");
        assert_eq!(suitability.back_end, back_end, "{suitability:?}");
        assert_eq!(suitability.bites, back_end != BackEnd::Observe);
        let text = format!("{} | {}", suitability.reason, suitability.remedy.as_deref().unwrap_or_default());
        assert!(text.contains(word), "{word:?} is not in {text:?}");
        assert!(!text.contains("<disk>"));
    }
}

#[test]
fn a_model_that_nobody_measured_is_found_with_what_to_do() {
    let facts = |enabled, guessed| DeviceFacts {
        cgroup: CgroupVersion::V2,
        controller_enabled: true,
        writeback_attributed: true,
        elevator: Some("none".to_owned()),
        elevators_available: vec!["none".to_owned()],
        bfq_low_latency: None,
        bfq_strict_guarantees: None,
        iocost_available: true,
        iocost_enabled: enabled,
        iocost_model_guessed: guessed,
        throttle_available: true,
        multi_queue: true,
        rotational: false,
        stacked_on: Vec::new(),
        size_bytes: 1 << 40,
        back_end_forced: None,
    };
    let finding = |enabled, guessed| {
        let (id, name) = (DeviceId { major: 259, minor: 0 }, "nvme0n1".to_owned());
        let device = Device { id, name, facts: facts(enabled, guessed) };
        not_calibrated(&device, &suitability(&device.facts, None).named(&device.name))
    };
    let found = finding(true, true).expect("iocost shares out by a guess");
    assert_eq!((found.kind, found.kind.is_warning()), (FindingKind::NotCalibrated, true));
    for words in ["not calibrated for nvme0n1", "iocost_coef_gen.py", "/sys/block/nvme0n1/dev", "io.cost.model"] {
        assert!(found.message.contains(words), "{}", found.message);
    }
    assert_eq!((finding(true, false), finding(false, true)), (None, None));
}
