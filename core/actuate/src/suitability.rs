//! Will a weight bite on this disk? The answer, its reason and its remedy, from the facts alone.
//!
//! `back_end` is [`BackEnd::Observe`] exactly when nothing bites now. A disk that the operator's file tells Minerva to change
//! (`elevator`, `enable_iocost`) is judged as it stands: the suitability changes when the change is in force.
//!
//! Caps are never chosen by themselves, because a cap is not work-conserving: only the operator's `back_end` sets them.
//! The sentences hold `<disk>` where the kernel's name of the disk belongs; [`Suitability::named`] puts it in.

mod remedies;

use crate::disk_wishes::can_have;
use minerva_model::{BackEnd, CgroupVersion, Device, DeviceFacts, DeviceSettings, Finding, FindingKind};
use remedies::{calibrate, caps, use_bfq, without_elevator};
use serde::{Deserialize, Serialize};

/// What stands in the sentences for the disk's kernel name, which the facts do not hold.
const DISK: &str = "<disk>";

/// What to do where nothing counts who uses a disk: without BFQ only the throttle does, from its first rule on (tried on Linux
/// 6.18). A rule that limits nobody, taken back at once, will do.
const ARM: &str = "once a boot, because without bfq the kernel counts what tenants use of <disk> only after its first throttle \
     rule: for limit in 1000000000000 0; do echo \"$(cat /sys/block/<disk>/dev) $limit\" > \
     /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device; done";

const ASKS_FOR_IOCOST: &str =
    "minerva.toml asks for iocost on <disk>, so Minerva enables it itself once its mode is enforce";

/// Whether and how shares bite on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suitability {
    /// The way shares are made to bite; [`BackEnd::Observe`] if there is none.
    pub back_end: BackEnd,
    /// A share that Minerva sets has an effect now.
    pub bites: bool,
    /// Why, as a sentence for people.
    pub reason: String,
    /// What to do so that it bites, or bites better, as a sentence for people.
    pub remedy: Option<String>,
}

impl Suitability {
    /// The same with the disk's kernel name, such as `sda`, in the sentences.
    pub fn named(mut self, disk: &str) -> Self {
        self.reason = with_name(&self.reason, disk);
        self.remedy = self.remedy.map(|text| with_name(&text, disk));
        self
    }

    fn bites(back_end: BackEnd, reason: impl Into<String>, remedy: Option<&str>) -> Self {
        Self { back_end, bites: true, reason: reason.into(), remedy: remedy.map(str::to_owned) }
    }

    fn watches(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { back_end: BackEnd::Observe, bites: false, reason: reason.into(), remedy: Some(remedy.into()) }
    }
}

/// A sentence with the disk's kernel name in it.
fn with_name(sentence: &str, disk: &str) -> String {
    sentence.replace(DISK, disk)
}

/// Will a weight bite on a disk with these `facts`, under the operator's `settings` for it?
///
/// `settings.back_end` wins over `facts.back_end_forced`; both are the operator's word.
pub fn suitability(facts: &DeviceFacts, settings: Option<&DeviceSettings>) -> Suitability {
    if facts.cgroup == CgroupVersion::Absent {
        return Suitability::watches(
            "neither the io controller of cgroup v2 nor blkio of cgroup v1 is mounted, so the kernel cannot tell tenants \
             of <disk> apart",
            "boot with systemd.unified_cgroup_hierarchy=1, or mount the controller: \
             mount -t cgroup2 none /sys/fs/cgroup",
        );
    }
    if !facts.controller_enabled {
        return Suitability::watches(
            "the io controller is not enabled for groups below the root, so they have no knobs",
            "enable it for every service: set DefaultIOAccounting=yes in /etc/systemd/system.conf.d/minerva.conf, below [Manager], \
             then: systemctl daemon-reexec; without systemd, in the root and in each group that holds tenants (memory, so that writeback is \
             charged to whoever caused it): echo '+io +memory' > /sys/fs/cgroup/cgroup.subtree_control",
        );
    }
    match settings.and_then(|settings| settings.back_end).or(facts.back_end_forced) {
        Some(back_end) => forced(facts, settings, back_end),
        None => best(facts, settings),
    }
}

/// The best that bites without anybody asking for it.
fn best(facts: &DeviceFacts, settings: Option<&DeviceSettings>) -> Suitability {
    let bfq = match facts.cgroup {
        CgroupVersion::V1 => bfq(facts, settings, BackEnd::BfqV1),
        _ => bfq(facts, settings, BackEnd::Bfq),
    };
    if bfq.bites {
        return bfq;
    }
    if facts.cgroup == CgroupVersion::V2 && facts.iocost_enabled {
        return iocost(facts, settings);
    }
    let may_have_bfq = asks_for_bfq(settings) && can_have(facts, "bfq");
    if facts.elevator.as_deref() != Some("bfq") && !facts.stacked_on.is_empty() && !may_have_bfq {
        return stacked(facts);
    }
    bfq
}

/// What the operator's file asks for, if it works here.
fn forced(facts: &DeviceFacts, settings: Option<&DeviceSettings>, back_end: BackEnd) -> Suitability {
    let wanted_version = match back_end {
        BackEnd::Bfq | BackEnd::IoCost | BackEnd::Max => Some(CgroupVersion::V2),
        BackEnd::BfqV1 | BackEnd::ThrottleV1 => Some(CgroupVersion::V1),
        BackEnd::Blk | BackEnd::Observe => None,
    };
    if wanted_version.is_some_and(|version| version != facts.cgroup) {
        let (has, instead) = match facts.cgroup {
            CgroupVersion::V1 => ("v1", "bfq-v1 or throttle-v1"),
            _ => ("v2", "bfq, iocost or max"),
        };
        return Suitability::watches(
            format!("minerva.toml asks for back end {back_end} on <disk>, and this host's controller is cgroup {has}"),
            format!("set back_end to {instead} for <disk>, or remove the line"),
        );
    }
    match back_end {
        BackEnd::Bfq | BackEnd::BfqV1 => bfq(facts, settings, back_end),
        BackEnd::IoCost => iocost(facts, settings),
        BackEnd::Max | BackEnd::ThrottleV1 if !facts.throttle_available => Suitability::watches(
            format!("minerva.toml asks for back end {back_end} on <disk>, and the kernel offers no throttling"),
            "use a kernel with CONFIG_BLK_DEV_THROTTLING, or remove back_end for <disk>",
        ),
        BackEnd::Max => Suitability::bites(
            back_end,
            "minerva.toml asks for caps through io.max; they are dealt again each slice, because a cap leaves idle what its \
             tenant does not use",
            attribution(facts),
        ),
        BackEnd::ThrottleV1 => Suitability::bites(
            back_end,
            "minerva.toml asks for caps through blkio.throttle; they are dealt again each slice, and buffered writes \
             escape them",
            (facts.elevator.as_deref() != Some("bfq")).then_some(ARM),
        ),
        // What a server of ours serves is steered there, whatever steers the device: no file asks for it.
        BackEnd::Blk | BackEnd::Observe => Suitability {
            back_end: BackEnd::Observe,
            bites: false,
            reason: "minerva.toml asks to watch <disk> only".to_owned(),
            remedy: None,
        },
    }
}

fn bfq(facts: &DeviceFacts, settings: Option<&DeviceSettings>, back_end: BackEnd) -> Suitability {
    let elevator = facts.elevator.as_deref();
    if elevator != Some("bfq") {
        return without_bfq(facts, settings);
    }
    match facts.bfq_low_latency {
        Some(false) if back_end == BackEnd::BfqV1 => Suitability::bites(
            back_end,
            "bfq is in force with low_latency 0, so it obeys weights; on cgroup v1 buffered writes are charged to the root \
             group, not to the tenant",
            None,
        ),
        Some(false) => {
            Suitability::bites(back_end, "bfq is in force with low_latency 0, so it obeys weights", attribution(facts))
        }
        // Raising acts on queues inside a group; between groups weights hold (tried on Linux 6.18, docs/adr/0007).
        Some(true) => Suitability::bites(
            back_end,
            "bfq is in force; with low_latency 1 it favours whom it guesses to be interactive inside a group, and weights hold \
             between groups (minerva-ctl doctor --device <disk> --probe proves it)",
            if back_end == BackEnd::Bfq { attribution(facts) } else { None },
        ),
        None => Suitability::watches(
            "bfq is in force, but its low_latency could not be read, so it is unknown whether it obeys weights",
            "see whether /sys/block/<disk>/queue/iosched/low_latency exists and reads 0",
        ),
    }
}

/// BFQ is not the elevator and iocost is not enabled.
fn without_bfq(facts: &DeviceFacts, settings: Option<&DeviceSettings>) -> Suitability {
    if !can_have(facts, "bfq") {
        return if facts.stacked_on.is_empty() { without_blk_mq(facts) } else { stacked(facts) };
    }
    let Some(elevator) = facts.elevator.as_deref() else {
        return match facts.stacked_on.is_empty() {
            true => Suitability::watches(
                "<disk> has no elevator and iocost is not enabled for it, so nothing reads weights",
                without_elevator(facts).unwrap_or_else(|| {
                    "use a kernel with CONFIG_BLK_CGROUP_IOCOST or CONFIG_BLK_DEV_THROTTLING".to_owned()
                }),
            ),
            false => stacked(facts),
        };
    };
    let reason = format!("the elevator of <disk> is {elevator}, which does not read weights");
    if asks_for_bfq(settings) {
        let remedy = "minerva.toml asks for bfq on <disk>, so Minerva puts it in force itself once its mode is enforce";
        return Suitability::watches(reason, remedy);
    }
    if settings.is_some_and(|settings| settings.enable_iocost) && facts.iocost_available {
        return Suitability::watches(reason, ASKS_FOR_IOCOST);
    }
    let use_bfq = use_bfq(facts);
    // A fast disk that has no elevator is meant to have none: it would feel what BFQ spends on each request.
    let remedy = match without_elevator(facts).filter(|_| elevator == "none" && !facts.rotational) {
        Some(remedy) => format!("{remedy}; weights act under bfq too, which costs a fast disk throughput: {use_bfq}"),
        None => use_bfq,
    };
    Suitability::watches(reason, remedy)
}

/// Nothing that reads weights can act on the disk, whatever the operator's file asks for.
fn without_blk_mq(facts: &DeviceFacts) -> Suitability {
    let remedy = caps(facts).unwrap_or_else(|| "use a kernel with CONFIG_BLK_DEV_THROTTLING, for caps".to_owned());
    Suitability::watches(
        "requests to <disk> do not go through blk-mq, as with NVMe multipath heads and persistent memory, so neither iocost nor bfq can \
         act on it, and nothing else reads weights",
        remedy,
    )
}

fn iocost(facts: &DeviceFacts, settings: Option<&DeviceSettings>) -> Suitability {
    if facts.iocost_enabled {
        let reason = "iocost is enabled for <disk>, and it reads weights";
        let Some(calibrate) = calibrate(facts) else {
            return Suitability::bites(BackEnd::IoCost, reason, attribution(facts));
        };
        let remedies: Vec<&str> = [Some(calibrate), attribution(facts)].into_iter().flatten().collect();
        return Suitability::bites(
            BackEnd::IoCost,
            format!(
                "{reason}, but it is not calibrated: the kernel guesses from the kind of the disk what <disk> delivers. Where it \
                 guesses too little it holds up everybody, where it guesses too much weights do nothing"
            ),
            Some(&remedies.join("; ")),
        );
    }
    if !facts.iocost_available {
        return Suitability::watches(
            "the kernel has no iocost (io.cost.qos is missing in the root group)",
            "use a kernel with CONFIG_BLK_CGROUP_IOCOST, or bfq: set elevator = \"bfq\" for <disk> in minerva.toml",
        );
    }
    if !facts.multi_queue {
        return if facts.stacked_on.is_empty() { without_blk_mq(facts) } else { stacked(facts) };
    }
    let asked = settings.is_some_and(|settings| settings.enable_iocost);
    Suitability::watches(
        "iocost is not enabled for <disk>, so nothing reads io.weight",
        match asked {
            true => ASKS_FOR_IOCOST,
            false => "set enable_iocost = true for <disk> in minerva.toml and Minerva enables it",
        },
    )
}

fn stacked(facts: &DeviceFacts) -> Suitability {
    let leaves: Vec<String> = facts.stacked_on.iter().map(ToString::to_string).collect();
    Suitability::watches(
        format!("<disk> stands on other disks ({}), and weights act there", leaves.join(", ")),
        format!("make weights bite on {}: see the suitability of each", leaves.join(", ")),
    )
}

/// The operator's word that BFQ is to be in force, which covers what BFQ needs to obey weights.
fn asks_for_bfq(settings: Option<&DeviceSettings>) -> bool {
    settings.and_then(|settings| settings.elevator.as_deref()) == Some("bfq")
}

/// An operator is to act on it, though the disk can be steered.
pub(crate) fn not_calibrated(device: &Device, suitability: &Suitability) -> Option<Finding> {
    let name = &device.name;
    let remedy = calibrate(&device.facts).filter(|_| suitability.back_end == BackEnd::IoCost)?;
    let message = format!(
        "iocost is not calibrated for {name}: the kernel guesses from the kind of the disk what it delivers. Remedy: {}.",
        with_name(remedy, name)
    );
    Some(Finding { kind: FindingKind::NotCalibrated, device: Some(device.id), tenant: None, message })
}

/// What to do so that buffered writes are charged to their tenant too.
fn attribution(facts: &DeviceFacts) -> Option<&'static str> {
    (!facts.writeback_attributed).then_some(
        "buffered writes are charged to the root group: enable the memory controller beside io: \
         echo +memory > /sys/fs/cgroup/cgroup.subtree_control",
    )
}

#[cfg(test)]
pub(crate) mod tests;
