//! The ways to treat the readers of a comparison, and what they need to be told to the operator's file.

use super::Outcome;
use minerva_model::{CgroupVersion, Device, KnobFile};

pub(super) const BFQ: &str = "bfq";

/// BFQ's own settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BfqSettings {
    pub(super) low_latency: bool,
    pub(super) strict_guarantees: bool,
}

impl BfqSettings {
    /// Those with which BFQ always starts.
    pub(super) const SHIPPED: Self = Self { low_latency: true, strict_guarantees: false };

    /// Those that are found on a disk, or will be when BFQ becomes its elevator.
    pub(super) fn found(device: &Device) -> Self {
        let facts = &device.facts;
        Self {
            low_latency: facts.bfq_low_latency.unwrap_or(Self::SHIPPED.low_latency),
            strict_guarantees: facts.bfq_strict_guarantees.unwrap_or(Self::SHIPPED.strict_guarantees),
        }
    }

    /// All there are.
    const ALL: [Self; 4] = [
        Self::SHIPPED,
        Self { low_latency: false, strict_guarantees: false },
        Self { low_latency: true, strict_guarantees: true },
        Self { low_latency: false, strict_guarantees: true },
    ];
}

/// What is done to the readers' groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Nothing: all are equal.
    Equal,
    /// Weights as Minerva gives sparing and heavy tenants at most, in this file.
    Weights(KnobFile),
    /// The heavy ones may read half of what they read without, by this file.
    Caps(KnobFile),
}

impl Treatment {
    /// For programs.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Equal => "none",
            Self::Weights(_) => "weights",
            Self::Caps(_) => "caps",
        }
    }
}

/// One of the ways to treat the readers.
pub(super) struct Arm {
    pub(super) elevator: String,
    /// Under BFQ.
    pub(super) settings: Option<BfqSettings>,
    pub(super) treatment: Treatment,
    pub(super) readings: Vec<Outcome>,
}

impl Arm {
    /// For people.
    pub(super) fn name(&self, found: BfqSettings) -> String {
        let mut name = self.elevator.clone();
        name.push_str(match self.treatment {
            Treatment::Equal => "",
            Treatment::Weights(_) => ", weighted as Minerva does",
            Treatment::Caps(_) => ", heavy capped to half",
        });
        if let Some(settings) = self.settings.filter(|settings| *settings != found) {
            let BfqSettings { low_latency, strict_guarantees } = settings;
            if low_latency != found.low_latency {
                name.push_str(&format!(", low_latency {}", u8::from(low_latency)));
            }
            if strict_guarantees != found.strict_guarantees {
                name.push_str(&format!(", strict_guarantees {}", u8::from(strict_guarantees)));
            }
        }
        name
    }

    /// Whether it is how the disk treats its readers now.
    pub(super) fn is_in_force(&self, device: &Device) -> bool {
        let is_found = self.settings.is_none_or(|settings| settings == BfqSettings::found(device));
        device.facts.elevator.as_deref() == Some(self.elevator.as_str())
            && is_found
            && self.treatment == Treatment::Equal
    }

    /// What the operator's file has to say of the disk for Minerva to treat it so. Nothing where Minerva does by itself.
    pub(super) fn file_lines(&self, device: &Device) -> Vec<String> {
        let mut lines = Vec::new();
        if device.facts.elevator.as_deref() != Some(self.elevator.as_str()) {
            lines.push(format!("elevator = \"{}\"", self.elevator));
        }
        if self.settings.is_some_and(|settings| settings.strict_guarantees) {
            lines.push("strict_guarantees = true".to_owned());
        }
        if self.settings.is_some_and(|settings| !settings.low_latency) && BfqSettings::found(device).low_latency {
            lines.push("low_latency_by_use = true".to_owned());
        }
        if let Treatment::Caps(file) = self.treatment {
            let back_end = if file == KnobFile::IoMax { "max" } else { "throttle-v1" };
            lines.push(format!("back_end = \"{back_end}\""));
        }
        lines
    }

    /// Settings of BFQ that are not the operator's file's to give: Minerva leaves alone what somebody set.
    pub(super) fn by_hand(&self, device: &Device) -> Vec<&'static str> {
        let (Some(settings), found) = (self.settings, BfqSettings::found(device)) else { return Vec::new() };
        let mut lines = Vec::new();
        if settings.low_latency && !found.low_latency {
            lines.push("low_latency 1");
        }
        if !settings.strict_guarantees && found.strict_guarantees {
            lines.push("strict_guarantees 0");
        }
        lines
    }
}

/// All that are tried. Only if everybody on the disk may notice it (`change_elevator`) other elevators and settings are among them.
pub(super) fn arms(device: &Device, in_force: &str, change_elevator: bool) -> Vec<Arm> {
    let all = &device.facts.elevators_available;
    let tried = all.iter().filter(|elevator| change_elevator || elevator.as_str() == in_force);
    let arms = tried.flat_map(|elevator| {
        let arm = |settings, treatment| Arm { elevator: elevator.clone(), settings, treatment, readings: Vec::new() };
        let is_bfq = elevator == BFQ;
        let found = is_bfq.then(|| BfqSettings::found(device));
        let mut arms = vec![arm(found, Treatment::Equal)];
        if is_bfq {
            let others = BfqSettings::ALL.into_iter().filter(|settings| change_elevator && Some(*settings) != found);
            let weighted: Vec<BfqSettings> = found.into_iter().chain(others).collect();
            if let Some(file) = bfq_weights(device) {
                arms.extend(weighted.into_iter().map(|settings| arm(Some(settings), Treatment::Weights(file))));
            }
        } else {
            arms.extend(device.facts.iocost_enabled.then(|| arm(None, Treatment::Weights(KnobFile::IoWeight))));
            arms.extend(caps(device).map(|file| arm(None, Treatment::Caps(file))));
        }
        arms
    });
    arms.collect()
}

fn bfq_weights(device: &Device) -> Option<KnobFile> {
    match device.facts.cgroup {
        CgroupVersion::V1 => Some(KnobFile::BfqV1Weight),
        CgroupVersion::V2 => Some(KnobFile::BfqWeight),
        CgroupVersion::Absent => None,
    }
}

fn caps(device: &Device) -> Option<KnobFile> {
    let file = match device.facts.cgroup {
        CgroupVersion::V1 => KnobFile::ThrottleReadBps,
        CgroupVersion::V2 => KnobFile::IoMax,
        CgroupVersion::Absent => return None,
    };
    device.facts.throttle_available.then_some(file)
}
