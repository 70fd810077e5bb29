//! The processors that a worker's processes may use, and whether they use any.

use super::Run;
use crate::activity::GroupPaths;
use crate::directories::Groups;
use crate::processors::{self, Hierarchy};
use minerva_model::{Nanos, ProcessorUse};
use std::path::Path;

impl Run {
    /// Its group in the unified hierarchy, if there is one.
    pub(crate) fn unified_group(&self) -> &Path {
        &self.place.groups.freezer
    }

    /// Whether its processes did anything since the last call; nothing while there are none, or where nobody can tell.
    pub(super) fn gets_on(&mut self, worker: Nanos) -> Option<bool> {
        let Groups { io, freezer, .. } = &self.place.groups;
        let (group, times) = (GroupPaths { freezer, io }, (worker, self.ran_in_all));
        self.is_alive.then(|| self.activity.look(group, Path::new("/proc"), times)).flatten()
    }

    /// What is told to the engine of the processors; nothing where its processes cannot be confined.
    pub(crate) fn processors(
        &self,
        hierarchy: Result<&Hierarchy, &String>,
        seen: ProcessorUse,
    ) -> Option<ProcessorUse> {
        let group = self.place.groups.processors.as_deref().filter(|group| group.is_dir())?;
        let available = hierarchy.ok()?.available(group).ok()?.len();
        Some(ProcessorUse { available: u32::try_from(available).unwrap_or(u32::MAX), ..seen })
    }

    /// Confines its processes to as many processors as it was told, and notes which, or why not.
    pub(crate) fn confine(&mut self, hierarchy: Result<&Hierarchy, &String>) {
        match hierarchy {
            Err(why) => self.processors_said.clone_from(why),
            Ok(hierarchy) if self.is_alive && self.processors_wanted > 0 => {
                let outcome = processors::confine(&self.place, hierarchy, self.processors_wanted);
                self.processors_said = match outcome {
                    Ok(_) if self.spec.kind.works_in_kernel() => {
                        "the kernel's own threads do this work, which no group confines".to_owned()
                    }
                    Ok(list) => list,
                    Err(error) => error.in_full(),
                };
            }
            Ok(_) => {}
        }
    }
}
