//! A model of the kernel's files, as the back ends' module texts describe them, that performs effects and answers.
//! The real files are exercised where a driver exists; this one can refuse, vanish and be overwritten at will.

use minerva_model::{BackEnd, CgroupVersion, DeviceFacts, DeviceId, Effect, KnobFile, KnobTarget, Outcome, WriteId};
use std::collections::{BTreeMap, BTreeSet};

/// A file in a place: a cgroup's path, or `disk:` and a name.
pub(crate) type KnobLocation = (String, KnobFile);

#[derive(Debug, Default)]
pub(crate) struct Kernel {
    /// Per-disk lines, without the number of the disk.
    pub(crate) lines: BTreeMap<(KnobLocation, DeviceId), String>,
    /// Weights at servers of ours.
    pub(crate) served: BTreeMap<String, String>,
    /// Elevators by disk.
    pub(crate) elevators: BTreeMap<DeviceId, String>,
    pub(crate) low_latency: BTreeMap<DeviceId, bool>,
    pub(crate) strict_guarantees: BTreeMap<DeviceId, bool>,
    /// Cgroups that are gone.
    pub(crate) vanished: BTreeSet<String>,
    /// Cgroups where every write is refused.
    pub(crate) refusing: BTreeSet<String>,
    /// Somebody puts everything back: a driver reads nothing.
    pub(crate) is_busy: bool,
    /// What undoes what was written, as a driver journals it.
    pub(crate) journal: BTreeMap<(KnobLocation, DeviceId), String>,
}

pub(crate) fn place(target: &KnobTarget) -> String {
    match target {
        KnobTarget::Cgroup { cgroup, .. } => cgroup.path.clone(),
        KnobTarget::Disk { name } => format!("disk:{name}"),
        KnobTarget::Server { server, disk } => format!("{server}:{disk}"),
    }
}

pub(crate) fn facts(elevator: &str, low_latency: bool, cgroup: CgroupVersion, forced: Option<BackEnd>) -> DeviceFacts {
    DeviceFacts {
        cgroup,
        controller_enabled: true,
        writeback_attributed: cgroup == CgroupVersion::V2,
        elevator: Some(elevator.to_owned()),
        elevators_available: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
        bfq_low_latency: (elevator == "bfq").then_some(low_latency),
        bfq_strict_guarantees: (elevator == "bfq").then_some(false),
        iocost_available: cgroup == CgroupVersion::V2,
        iocost_enabled: false,
        iocost_model_guessed: false,
        throttle_available: true,
        multi_queue: true,
        rotational: true,
        stacked_on: Vec::new(),
        size_bytes: 1 << 30,
        back_end_forced: forced,
    }
}

impl Kernel {
    /// Does what an effect asks; the answer, if it asks for one.
    pub(crate) fn perform(&mut self, effect: &Effect) -> Option<(WriteId, Outcome)> {
        match effect {
            Effect::Inspect(one) if self.is_busy => Some((one.id, Outcome::Busy)),
            Effect::Inspect(one) => Some((one.id, self.answer(&one.target, one.file, one.device, None))),
            Effect::Write(one) => {
                let outcome = self.answer(&one.target, one.file, one.device, Some(&one.text));
                if matches!(outcome, Outcome::Text(_)) {
                    let key = ((place(&one.target), one.file), one.device);
                    if one.text == one.undo {
                        self.journal.remove(&key);
                    } else {
                        self.journal.entry(key).or_insert_with(|| one.undo.clone());
                    }
                }
                Some((one.id, outcome))
            }
            Effect::LetGo(one) => {
                self.journal.remove(&((place(&one.target), one.file), one.device));
                None
            }
            _ => None,
        }
    }

    /// What the guard or `minerva-ctl restore` does: all that is journalled is put back, disks last.
    pub(crate) fn restore(&mut self) {
        let (disks, groups): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.journal).into_iter().partition(|(((at, _), _), _)| at.starts_with("disk:"));
        for (((at, file), device), undo) in groups.iter().chain(&disks) {
            // What was lost with its elevator needs no undoing.
            drop(self.write(at, *file, *device, undo));
        }
    }

    fn answer(&mut self, target: &KnobTarget, file: KnobFile, device: DeviceId, text: Option<&str>) -> Outcome {
        let at = place(target);
        if self.vanished.contains(&at) {
            return Outcome::Vanished;
        }
        if let Some(text) = text {
            if self.refusing.contains(&at) {
                return Outcome::Refused { errno: Some(1), detail: format!("'{text}' was refused: EPERM") };
            }
            if let Err(detail) = self.write(&at, file, device, text) {
                return Outcome::Refused { errno: None, detail };
            }
        }
        Outcome::Text(self.read(&at, file, device))
    }

    /// What somebody else, or an effect, writes.
    pub(crate) fn write(&mut self, at: &str, file: KnobFile, device: DeviceId, text: &str) -> Result<(), String> {
        match file {
            KnobFile::Elevator => {
                let former = self.elevators.insert(device, text.to_owned());
                if former.as_deref() != Some(text) {
                    self.low_latency.insert(device, true);
                    self.strict_guarantees.insert(device, false);
                    self.lines.retain(|((_, file), on), _| *on != device || !is_bfq(*file));
                }
                return Ok(());
            }
            KnobFile::BfqLowLatency => {
                self.low_latency.insert(device, text == "1");
                return Ok(());
            }
            KnobFile::ServerWeight => {
                self.served.insert(at.to_owned(), text.to_owned());
                return Ok(());
            }
            KnobFile::BfqStrictGuarantees => {
                self.strict_guarantees.insert(device, text == "1");
                return Ok(());
            }
            _ => {}
        }
        let (id, value) = text.split_once(' ').ok_or("EINVAL")?;
        if id != device.to_string() {
            return Err("ENODEV".to_owned());
        }
        if is_bfq(file) && self.elevators.get(&device).is_none_or(|elevator| elevator != "bfq") {
            return Err("EOPNOTSUPP".to_owned());
        }
        let key = ((at.to_owned(), file), device);
        let value = match file {
            KnobFile::IoMax => limits(self.lines.get(&key).map_or("", String::as_str), value),
            _ => value.to_owned(),
        };
        match &*value {
            "default" | "0" | "rbps=max wbps=max" => self.lines.remove(&key),
            _ => self.lines.insert(key, value),
        };
        Ok(())
    }

    fn read(&self, at: &str, file: KnobFile, device: DeviceId) -> String {
        match file {
            KnobFile::Elevator => {
                let in_force = self.elevators.get(&device).map_or("none", String::as_str);
                let words = ["none", "mq-deadline", "bfq"].map(|name| match name == in_force {
                    true => format!("[{name}]"),
                    false => name.to_owned(),
                });
                return words.join(" ");
            }
            KnobFile::ServerWeight => return self.served.get(at).cloned().unwrap_or_else(|| "100".to_owned()),
            KnobFile::BfqLowLatency => return u8::from(self.low_latency.get(&device) == Some(&true)).to_string(),
            KnobFile::BfqStrictGuarantees => {
                return u8::from(self.strict_guarantees.get(&device) == Some(&true)).to_string();
            }
            _ => {}
        }
        let mut text = String::new();
        if matches!(file, KnobFile::BfqWeight | KnobFile::BfqV1WeightDevice | KnobFile::IoWeight) {
            text.push_str("default 100\n");
        }
        for (((path, name), on), value) in &self.lines {
            if path == at && *name == file {
                text.push_str(&format!("{on} {value}\n"));
            }
        }
        text
    }
}

/// A line of `io.max` after another was written: what that does not name stays.
fn limits(before: &str, written: &str) -> String {
    let named = |text: &str, key: &str| text.split(' ').find_map(|word| Some(word.strip_prefix(key)?.to_owned()));
    let way = |key| named(written, key).or_else(|| named(before, key)).unwrap_or_else(|| "max".to_owned());
    format!("rbps={} wbps={}", way("rbps="), way("wbps="))
}

fn is_bfq(file: KnobFile) -> bool {
    matches!(file, KnobFile::BfqWeight | KnobFile::BfqV1WeightDevice)
}
