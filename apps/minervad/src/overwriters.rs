//! Who else writes a knob that Minerva has written: found out by the kernel, each process named once a knob.

use minerva_linux_actuate::{Overwriters, WriterSettings};
use minerva_model::{DeviceId, KnobFile, KnobRelease, KnobTarget};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Processes that are remembered as named already. Beyond that they are named again.
const NAMED_MAX: usize = 1024;

/// A process that wrote a knob of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overwriter {
    pub(crate) pid: u32,
    /// For people: which knob was written by which process.
    pub(crate) message: String,
}

/// Watches knobs that were overwritten once.
pub(crate) struct OverwriterWatch {
    /// Absent where the kernel does not tell.
    watch: Option<Overwriters>,
    named: BTreeSet<(PathBuf, u32)>,
}

impl OverwriterWatch {
    /// Watches nothing yet.
    pub(crate) fn open(settings: &WriterSettings) -> Self {
        let watch = Overwriters::open(settings)
            .inspect_err(|error| tracing::info!("who overwrites a knob cannot be named, ignoring: {error}"))
            .ok();
        Self { watch, named: BTreeSet::new() }
    }

    /// Somebody wrote a knob of this target; from now on the kernel is asked who it is. It is not known which file it was.
    pub(crate) fn watch(&mut self, target: &KnobTarget, device: Option<DeviceId>) {
        let Some(watch) = &mut self.watch else { return };
        let device = device.unwrap_or(DeviceId { major: 0, minor: 0 });
        for file in KnobFile::ALL {
            // Most of these files are not there.
            let _ = watch.watch(target, file, device);
        }
    }

    /// The knob was left to somebody else: who writes it is nobody's business any more.
    pub(crate) fn let_go(&mut self, release: &KnobRelease) {
        if let Some(watch) = &mut self.watch {
            watch.unwatch(&release.target, release.file, release.device);
        }
    }

    /// Those who wrote watched knobs since this was last asked and were not named before.
    pub(crate) fn take_unnamed(&mut self) -> Vec<Overwriter> {
        let mut unnamed = Vec::new();
        for culprit in self.watch.as_mut().map(Overwriters::culprits).unwrap_or_default() {
            if self.named.len() >= NAMED_MAX {
                self.named.clear();
            }
            if self.named.insert((culprit.path.clone(), culprit.pid)) {
                let message = format!("{} was written by {culprit}", culprit.path.display());
                unnamed.push(Overwriter { pid: culprit.pid, message });
            }
        }
        unnamed
    }
}
