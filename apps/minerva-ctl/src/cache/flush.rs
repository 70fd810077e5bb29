//! `minerva-ctl cache flush`: files are to be moved now, and whoever asks waits for them.

use super::{LOOK, Service, UNKNOWN, paths};
use crate::output::{self, CommandStatus};
use anyhow::bail;
use minerva_api::cache::{Answer, DeferredFile, Request};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After so long a flush says what it waits for.
const TELL_AFTER: Duration = Duration::from_secs(2);

impl Service<'_> {
    pub(super) fn flush(&self, place: Option<&Path>, waits: bool, json: bool) -> anyhow::Result<CommandStatus> {
        let place = place.map(paths::of_place).transpose()?;
        // Looked at before they are asked for: nobody has asked for what is deferred in between, and it might not move for a day.
        let known = if waits { self.deferred(place.clone())? } else { Vec::new() };
        let Answer::Done { files } = self.ask(&Request::Flush { directory: place.clone() })? else { bail!(UNKNOWN) };
        let files = if waits { known.iter().filter(|file| file.step != "left").count() as u64 } else { files };
        let left = self.wait_for(place.as_ref(), &known.into_iter().map(|file| file.id).collect())?;
        if json {
            output::json(&serde_json::json!({ "files": files, "left": left }))?;
        } else if !left.is_empty() {
            let left = left.len();
            output::text(&format!(
                "{files} files were asked for; {left} stay: `minerva-ctl cache deferred` says why\n"
            ))?;
        } else if waits {
            output::text(&format!("{files} files were asked for, all are at their place\n"))?;
        } else {
            output::text(&format!("{files} files are asked for\n"))?;
        }
        Ok(CommandStatus::found_if(!left.is_empty()))
    }

    /// Waits until none of these files waits, whatever others defer meanwhile; what is left, to which no link leads.
    fn wait_for(&self, place: Option<&PathBuf>, known: &BTreeSet<u64>) -> anyhow::Result<Vec<DeferredFile>> {
        let (begun, mut told) = (Instant::now(), None);
        while !known.is_empty() {
            let mut files = self.deferred(place.cloned())?;
            files.retain(|file| known.contains(&file.id));
            let waiting = files.iter().filter(|file| file.step != "left");
            let Some(first) = waiting.clone().next() else { return Ok(files) };
            if begun.elapsed() > TELL_AFTER && told.as_ref() != Some(&first.why) {
                let path = output::path(Path::new(&first.path));
                output::note(&format!("{} files wait; {path}: {}", waiting.count(), first.why));
                told = Some(first.why.clone());
            }
            std::thread::sleep(LOOK);
        }
        Ok(Vec::new())
    }
}
