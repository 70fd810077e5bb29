//! Who else writes a knob that Minerva has written: found out by the kernel, each process named once a knob.

use minerva_linux_actuate::{Overwriters, WriterSettings};
use minerva_model::{KnobFile, KnobRelease, KnobWatch};
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

    /// Somebody wrote this knob; from now on the kernel is asked who it is.
    pub(crate) fn watch(&mut self, KnobWatch { target, file, device }: &KnobWatch) {
        let Some(watch) = &mut self.watch else { return };
        for file in files_of(*file) {
            // A knob at a server of ours is no file, and one that is gone is nobody's quarrel.
            let _ = watch.watch(target, file, *device);
        }
    }

    /// The knob was left to somebody else: who writes it is nobody's business any more.
    pub(crate) fn let_go(&mut self, release: &KnobRelease) {
        let KnobRelease { target, file, device } = release;
        if let Some(watch) = &mut self.watch {
            files_of(*file).for_each(|file| watch.unwatch(target, file, *device));
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

/// The files through which a knob can be written: a write of a group's own weight on v1 removes those of single disks.
fn files_of(file: KnobFile) -> impl Iterator<Item = KnobFile> {
    let own_weight = (file == KnobFile::BfqV1WeightDevice).then_some(KnobFile::BfqV1Weight);
    std::iter::once(file).chain(own_weight)
}
