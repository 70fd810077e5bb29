//! Letting a worker run, and stopping it.

use super::Run;
use crate::directories::{read, replace};
use crate::error::WorkError;
use crate::md::{Array, Speeds};
use crate::spec::Kind;
use crate::{groups, scrub};
use minerva_model::BackgroundHold;
use std::path::Path;

impl Run {
    pub(super) fn let_run(&mut self, sys: &Path) -> Result<(), WorkError> {
        if self.spec.kind == Kind::MdCheck {
            self.put_speeds_back(&Array::of(&self.spec.path, sys)?);
        }
        self.freezer.set(false)
    }

    pub(super) fn stop_with(&mut self, sys: &Path) -> Result<(), WorkError> {
        if self.spec.hold() == BackgroundHold::Cap {
            return Ok(());
        }
        match self.spec.kind {
            Kind::BtrfsScrub => {
                // Takes effect when the call returns, for which the scrub must end.
                self.freezer.set(true)?;
                replace(&self.place.runtime.join("stopped"), &(), false)?;
                scrub::cancel(&self.spec.path)
            }
            // Its worker only looks, and must see the end of what the kernel does slowly now.
            Kind::MdCheck => {
                let array = Array::of(&self.spec.path, sys)?;
                let path = self.place.runtime.join("speeds");
                if !path.exists() {
                    replace(&path, &array.speeds()?, true)?;
                }
                array.stop()
            }
            Kind::Delete | Kind::Command | Kind::Fstrim => self.freezer.set(true),
        }
    }

    pub(super) fn put_speeds_back(&self, array: &Array) {
        let path = self.place.runtime.join("speeds");
        if let Some(speeds) = read::<Speeds>(&path)
            && array.put_back(&speeds).is_ok()
        {
            let _ = std::fs::remove_file(path);
        }
    }

    pub(super) fn clean_up(&mut self) -> bool {
        if let (Kind::MdCheck, Ok(array)) = (self.spec.kind, Array::of(&self.spec.path, Path::new("/sys"))) {
            self.put_speeds_back(&array);
        }
        let is_same = self.place.groups.io == self.place.groups.freezer;
        self.freezer.remove() & (is_same || groups::remove(&self.place.groups.io))
    }
}
