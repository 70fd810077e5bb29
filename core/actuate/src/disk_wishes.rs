//! What the operator's file lets Minerva change about a disk itself: its elevator, BFQ's switches, iocost.

use crate::setting::Setting;
use minerva_model::{CgroupVersion, DeviceFacts, DeviceSettings, KnobFile};

/// One of a disk's own settings, and what the operator's file says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskWish {
    pub(crate) file: KnobFile,
    /// What the file asks for; `None`: nothing, so the disk keeps or gets back what it had.
    pub(crate) asked: Option<Setting>,
    /// It is asked for, it is not so, and it can be: time to write.
    pub(crate) due: bool,
}

/// Which of BFQ's switches what the tenants do speaks for changing, where the file lets them follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByUse {
    /// `strict_guarantees` is to be set.
    pub(crate) strict: bool,
    /// `low_latency` is to be taken away.
    pub(crate) no_low_latency: bool,
}

/// What the operator's file lets Minerva change about the disk itself, in the order in which to write it: BFQ's switches
/// exist only while it is in force.
///
/// Without `strict_guarantees` BFQ keeps several requests of a scanner inside the disk, and whoever waits for a flush, as a file
/// system's journal does with each fsync, waits for all of them: weights cannot help, because the journal's thread is nobody's
/// tenant. With it random readers of great depth lose (both measured in docs/adr/0007), so it follows what the tenants do
/// (`strict_by_use`), unless the operator decides. `low_latency` stays as it is found, unless it is to follow them: `low_latency_by_use`.
pub(crate) fn disk_wishes(facts: &DeviceFacts, settings: Option<&DeviceSettings>, by_use: ByUse) -> [DiskWish; 4] {
    let in_force = facts.elevator.as_deref();
    let elevator = settings.and_then(|settings| settings.elevator.as_deref());
    let iocost = settings.is_some_and(|settings| settings.enable_iocost);
    let follows = settings.is_none_or(|settings| settings.strict_guarantees_by_use != Some(false));
    let strict = settings.is_some_and(|settings| settings.strict_guarantees) || (follows && by_use.strict);
    let no_low_latency = settings.is_some_and(|settings| settings.low_latency_by_use) && by_use.no_low_latency;
    [
        DiskWish {
            file: KnobFile::Elevator,
            asked: elevator.map(|name| Setting::Elevator(name.to_owned())),
            due: elevator.is_some_and(|name| can_have(facts, name)) && in_force.is_some() && in_force != elevator,
        },
        DiskWish {
            file: KnobFile::BfqStrictGuarantees,
            asked: strict.then_some(Setting::StrictGuarantees(true)),
            due: strict && in_force == Some("bfq") && facts.bfq_strict_guarantees == Some(false),
        },
        DiskWish {
            file: KnobFile::BfqLowLatency,
            asked: no_low_latency.then_some(Setting::LowLatency(false)),
            due: no_low_latency && in_force == Some("bfq") && facts.bfq_low_latency == Some(true),
        },
        DiskWish {
            file: KnobFile::IoCostQos,
            asked: iocost.then_some(Setting::IoCost(true)),
            due: iocost
                && facts.iocost_available
                && facts.multi_queue
                && !facts.iocost_enabled
                && facts.cgroup == CgroupVersion::V2,
        },
    ]
}

/// Whether a disk may have an elevator. One that is not listed may be loaded, but none acts on a disk without blk-mq. Kernels before 5.0 list
/// others there.
pub(crate) fn can_have(facts: &DeviceFacts, elevator: &str) -> bool {
    facts.multi_queue || facts.elevators_available.iter().any(|name| name == elevator)
}

#[cfg(test)]
mod tests {
    use super::{ByUse, disk_wishes};
    use crate::suitability::tests::facts;
    use minerva_model::{DeviceFacts, DeviceSettings, KnobFile};

    #[test]
    fn strict_guarantees_are_set_where_the_file_asks_for_them_under_bfq_and_nowhere_else() {
        let asks = DeviceSettings { strict_guarantees: true, ..Default::default() };
        let bfq = DeviceFacts { bfq_strict_guarantees: Some(false), ..facts(Some("bfq")) };
        let due = |facts: &DeviceFacts, settings: &DeviceSettings| {
            let wishes = disk_wishes(facts, Some(settings), ByUse { no_low_latency: true, strict: false });
            wishes.into_iter().filter(|wish| wish.due).map(|wish| wish.file).collect::<Vec<_>>()
        };
        assert_eq!(due(&bfq, &asks), [KnobFile::BfqStrictGuarantees]);
        assert_eq!(due(&bfq, &DeviceSettings { elevator: Some("bfq".to_owned()), ..Default::default() }), []);
        assert_eq!(due(&DeviceFacts { bfq_strict_guarantees: Some(true), ..bfq }, &asks), []);
        assert_eq!(due(&facts(Some("none")), &asks), []);
        let follows = DeviceSettings { low_latency_by_use: true, ..Default::default() };
        let raising = DeviceFacts { bfq_low_latency: Some(true), ..facts(Some("bfq")) };
        assert_eq!(due(&raising, &follows), [KnobFile::BfqLowLatency]);
        assert_eq!((due(&raising, &DeviceSettings::default()), due(&facts(Some("bfq")), &follows)), (vec![], vec![]));
        let both = DeviceSettings { elevator: Some("bfq".to_owned()), ..asks };
        assert_eq!(due(&facts(Some("none")), &both), [KnobFile::Elevator], "bfq must be there first");
    }
    #[test]
    fn nothing_is_asked_of_a_disk_without_blk_mq_that_it_cannot_do() {
        let asks = DeviceSettings { elevator: Some("bfq".to_owned()), enable_iocost: true, ..Default::default() };
        let due = |facts: &DeviceFacts| {
            let wishes = disk_wishes(facts, Some(&asks), ByUse::default());
            wishes.into_iter().filter(|wish| wish.due).map(|wish| wish.file).collect::<Vec<_>>()
        };
        assert_eq!(due(&facts(Some("none"))), [KnobFile::Elevator, KnobFile::IoCostQos]);
        let head = DeviceFacts {
            multi_queue: false,
            elevators_available: vec!["none".to_owned()],
            rotational: false,
            ..facts(Some("none"))
        };
        assert_eq!(due(&head), []);
        assert_eq!(due(&DeviceFacts { elevator: None, elevators_available: Vec::new(), ..head }), []);
    }
}
