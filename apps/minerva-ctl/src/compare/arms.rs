//! The ways to treat the readers of a comparison, and what they need to be told to the operator's file.

use super::{Outcome, drop_in};
use minerva_model::{BackEnd, CgroupVersion, Device, DeviceSettings, KnobFile};

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

    /// What the operator's file has to say of the disk, beside what it says already, for Minerva to treat it so. Nothing where Minerva does
    /// by itself.
    pub(super) fn file_lines(&self, device: &Device, said: &DeviceSettings) -> Vec<drop_in::Line> {
        let mut lines = Vec::new();
        let elevator = said.elevator.as_deref().or(device.facts.elevator.as_deref());
        if elevator != Some(self.elevator.as_str()) {
            lines.push(("elevator", format!("\"{}\"", self.elevator)));
        }
        if let Some(BfqSettings { low_latency, strict_guarantees }) = self.settings {
            if strict_guarantees != said.strict_guarantees {
                lines.push(("strict_guarantees", strict_guarantees.to_string()));
            }
            // What is found to be 0 stays so by itself.
            let by_use = !low_latency && (said.low_latency_by_use || BfqSettings::found(device).low_latency);
            if by_use != said.low_latency_by_use {
                lines.push(("low_latency_by_use", by_use.to_string()));
            }
        }
        lines.extend(self.back_end(device, said).map(|back_end| ("back_end", format!("\"{}\"", back_end.as_str()))));
        lines
    }

    /// The back end that the file has to name; nothing where it does, or where Minerva chooses it without that.
    fn back_end(&self, device: &Device, said: &DeviceSettings) -> Option<BackEnd> {
        let (back_end, is_chosen) = match self.treatment {
            Treatment::Caps(KnobFile::IoMax) => (BackEnd::Max, false),
            Treatment::Caps(_) => (BackEnd::ThrottleV1, false),
            Treatment::Weights(KnobFile::BfqWeight) => (BackEnd::Bfq, true),
            Treatment::Weights(KnobFile::BfqV1Weight) => (BackEnd::BfqV1, true),
            Treatment::Weights(_) => (BackEnd::IoCost, true),
            // It would give weights wherever they act.
            Treatment::Equal => {
                let weighs = self.elevator == BFQ || device.facts.iocost_enabled || said.enable_iocost;
                (BackEnd::Observe, !weighs)
            }
        };
        let named = said.back_end.or(device.facts.back_end_forced);
        let is_so = named.map_or(is_chosen, |named| named == back_end);
        (!is_so).then_some(back_end)
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
