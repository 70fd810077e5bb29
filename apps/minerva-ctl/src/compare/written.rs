//! `--write`: the lines of the arm under which the light reader got most go into a drop-in of the operator's file.

use super::arms::Arm;
use super::drop_in::DropIn;
use super::page::{best, shown};
use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use anyhow::Context;
use minerva_model::{Device, DeviceSettings};
use serde::Serialize;
use std::path::PathBuf;

/// What was written.
#[derive(Debug, Serialize)]
pub(super) struct Written {
    kind: &'static str,
    disk: String,
    /// Nothing where there was nothing to write.
    path: Option<PathBuf>,
    lines: Vec<String>,
    /// Those that do not hold, as a file that is read later says otherwise.
    outweighed: Vec<String>,
}

/// Writes what has to be said of a disk beside what the file says already (`said`), if the light reader got more by it in every round than it gets
/// now, and looks whether that holds.
pub(super) fn write(
    arms: &[Arm],
    (device, said): (&Device, &DeviceSettings),
    file: &OperatorFile,
    drop_in: &DropIn,
) -> anyhow::Result<Written> {
    let now = arms.iter().find(|arm| arm.is_in_force(device));
    // Where something is left to be set by hand, the lines alone would give what was not best.
    let is_by_lines = |best: &&Arm| !best.is_in_force(device) && best.by_hand(device).is_empty();
    let better = now.map(|now| best(arms, now)).filter(is_by_lines);
    let lines = better.map(|arm| arm.file_lines(device, said)).unwrap_or_default();
    let (disk, outweighed) = (device.name.clone(), Vec::new());
    let mut written = Written { kind: "written", disk, path: None, lines: shown(&lines), outweighed };
    if let Some(better) = better.filter(|_| !lines.is_empty()) {
        drop_in.write(&lines)?;
        let config = file.load().with_context(|| format!("{} is written", drop_in.path.display()))?;
        let said = config.engine.devices.get(&device.name).cloned().unwrap_or_default();
        // A drop-in of a later name may say otherwise.
        written.outweighed = shown(&better.file_lines(device, &said));
        written.path = Some(drop_in.path.clone());
    }
    Ok(written)
}

impl Written {
    /// Says it. Lines that do not hold are a finding.
    pub(super) fn tell(&self, json: bool) -> anyhow::Result<CommandStatus> {
        if json {
            output::json(self)?;
        } else {
            output::say(&self.words());
        }
        Ok(CommandStatus::found_if(!self.outweighed.is_empty()))
    }

    fn words(&self) -> String {
        let Some(path) = &self.path else {
            return format!(
                "{}: no lines to write that would do by themselves, so the files stay as they are",
                self.disk
            );
        };
        let path = output::path(path);
        match self.outweighed.as_slice() {
            [] => format!("{path}: written; minervad reads it within a slice, or when it starts"),
            lines => format!(
                "{path}: written, but another file that is read later outweighs it: take out there what is against {}",
                lines.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::super::arms::{Treatment, arms};
    use super::super::tests::device;
    use super::{DropIn, OperatorFile, Written, write};
    use crate::output::CommandStatus;
    use crate::probe_reader::Reading;
    use minerva_model::{CgroupVersion, DeviceSettings};
    use std::fs;
    use std::path::Path;

    /// What is written where the light reader gets so much under caps, and as much as ever under all else.
    fn written(file: &Path, reads: u64) -> Written {
        let disk = device(CgroupVersion::V2, "mq-deadline");
        let mut arms = arms(&disk, "mq-deadline", true);
        for arm in &mut arms {
            let is_capped = arm.elevator == "none" && matches!(arm.treatment, Treatment::Caps(_));
            let reads = if is_capped { reads } else { 10 };
            let light = Reading { bytes: 0, reads, p50_ns: 1, p99_ns: 1 };
            arm.readings = vec![Outcome { heavy_bytes_per_second: 1e6, light }];
        }
        let file = OperatorFile::Named(file.to_owned());
        let drop_in = DropIn::of("sda", file.path()).expect("nobody's");
        write(&arms, (&disk, &DeviceSettings::default()), &file, &drop_in).expect("written")
    }

    #[test]
    fn only_what_is_better_is_written_and_what_outweighs_it_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("minerva.toml");
        fs::write(&file, "").expect("a file");
        let none = written(&file, 10);
        assert!(none.path.is_none() && none.words().contains("no lines to write"), "{none:?}");
        assert!(!place.path().join("minerva.toml.d").exists());

        let some = written(&file, 20);
        assert_eq!(some.lines, ["elevator = \"none\"", "back_end = \"max\""]);
        let text = fs::read_to_string(place.path().join("minerva.toml.d/disk-sda.toml")).expect("a drop-in");
        assert!(text.ends_with("[devices.sda]\nback_end = \"max\"\nelevator = \"none\"\n"), "{text}");
        assert_eq!(some.tell(false).expect("said"), CommandStatus::Well);

        let later = place.path().join("minerva.toml.d/zz.toml");
        fs::write(later, "[devices.sda]\nback_end = \"observe\"\n").expect("a file");
        let outweighed = written(&file, 20);
        assert_eq!(outweighed.outweighed, ["back_end = \"max\""]);
        assert_eq!(outweighed.tell(false).expect("said"), CommandStatus::Found);
        assert!(outweighed.words().contains("outweighs it"), "{}", outweighed.words());
    }
    #[test]
    fn nothing_is_written_where_something_is_to_be_set_by_hand_beside_the_lines() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("minerva.toml");
        fs::write(&file, "").expect("a file");
        let mut disk = device(CgroupVersion::V1, "bfq");
        (disk.facts.bfq_low_latency, disk.facts.bfq_strict_guarantees) = (Some(false), Some(false));
        let mut arms = arms(&disk, "bfq", true);
        for arm in &mut arms {
            let both = arm.settings.is_some_and(|settings| settings.low_latency && settings.strict_guarantees);
            let light = Reading { bytes: 0, reads: if both { 20 } else { 10 }, p50_ns: 1, p99_ns: 1 };
            arm.readings = vec![Outcome { heavy_bytes_per_second: 1e6, light }];
        }
        assert!(arms.iter().any(|arm| arm.readings[0].light.reads == 20 && !arm.by_hand(&disk).is_empty()));
        let drop_in = DropIn::of("sda", &file).expect("nobody's");
        let none = write(&arms, (&disk, &DeviceSettings::default()), &OperatorFile::Named(file), &drop_in);
        assert!(none.expect("looked at").path.is_none());
        assert!(!place.path().join("minerva.toml.d").exists());
    }
}
