//! `minerva-ctl replay`: a recording through the engine again, from the state that it begins with. Its effects must come out as
//! recorded, byte for byte.

use crate::output::{self, CommandStatus};
use crate::progress::Progress;
use anyhow::Context;
use minerva_engine::Engine;
use minerva_model::{Effect, Event};
use minerva_store::{BEHAVIOUR_REVISION, Entry, Recording, RecordingErrorKind, changes_since};
use serde::Serialize;
use std::cmp::Ordering;
use std::io::BufRead;
use std::path::Path;

/// What came of a replay.
#[derive(Debug, Default, Serialize)]
struct Replayed {
    events: u64,
    effects: u64,
    /// The recording's end is missing; what there is was replayed.
    truncated: bool,
    difference: Option<Difference>,
}

/// The first effect that differs.
#[derive(Debug, Serialize)]
struct Difference {
    /// The line of the recording, the header counted.
    line: u64,
    /// What was recorded there; nothing when the recording holds no further effect.
    recorded: Option<String>,
    /// What the engine wants now; nothing when it wants nothing more.
    replayed: Option<String>,
}

/// What came of a replay, and why it may have come so.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    replayed: Replayed,
    /// The revision of what the engine does in the program that made the recording, and in this one.
    recorded_revision: u32,
    replayed_revision: u32,
    /// What changed in between; nothing where there is no difference to explain.
    changes_since: Vec<&'static str>,
}

impl Report {
    fn new(replayed: Replayed, recorded_revision: u32) -> Self {
        let changes_since = match replayed.difference {
            Some(_) => changes_since(recorded_revision).collect(),
            None => Vec::new(),
        };
        Self { replayed, recorded_revision, replayed_revision: BEHAVIOUR_REVISION, changes_since }
    }
}

/// Replays and compares; a difference is a finding.
pub(crate) fn run(file: &Path, json: bool) -> anyhow::Result<CommandStatus> {
    let mut recording = Recording::open(file).with_context(|| format!("failed to open {}", file.display()))?;
    let engine = engine(&mut recording).with_context(|| format!("failed to replay {}", file.display()))?;
    let recorded_revision = recording.behaviour_revision();
    let replayed = replay(engine, recording).with_context(|| format!("failed to read {}", file.display()))?;
    let report = Report::new(replayed, recorded_revision);
    if json {
        output::json(&report)?;
    } else {
        output::text(&page(&report))?;
    }
    Ok(CommandStatus::found_if(report.replayed.difference.is_some()))
}

/// The engine that the recording begins with.
pub(crate) fn engine<R: BufRead>(recording: &mut Recording<R>) -> anyhow::Result<Engine> {
    let Some(snapshot) = recording.take_snapshot() else { return Ok(Engine::new()) };
    Engine::restored(&snapshot).with_context(|| {
        let (theirs, ours) = (recording.version(), env!("CARGO_PKG_VERSION"));
        format!(
            "it was made by version {theirs} of Minerva, and this is {ours}: replay it with the program that made it"
        )
    })
}

fn replay(
    mut engine: Engine,
    entries: impl Iterator<Item = Result<Entry, minerva_store::RecordingError>>,
) -> anyhow::Result<Replayed> {
    let mut result = Replayed::default();
    // The header is the first line.
    let (mut line, mut progress) = (1, Progress::new());
    for entry in entries {
        line += 1;
        progress.tell(|| format!("{} events and {} effects are as recorded so far", result.events, result.effects));
        let difference = match entry {
            Ok(Entry::Event { at, what }) => {
                // The driver answers an inspection or a write before it asks for more; before anything else the engine was
                // asked until it wanted nothing.
                let left = if matches!(what, Event::Answered { .. }) { None } else { engine.poll_effect() };
                result.events += 1;
                engine.handle(at, what);
                left.map(|effect| differ(line, None, Some(&effect)))
            }
            Ok(Entry::Effect { what, .. }) => {
                result.effects += 1;
                compare(line, &what, engine.poll_effect().as_ref())
            }
            Err(error) if error.kind == RecordingErrorKind::Truncated => {
                result.truncated = true;
                return Ok(result);
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(difference) = difference {
            result.difference = Some(difference?);
            return Ok(result);
        }
    }
    Ok(result)
}

/// Compared as text, because two numbers may be equal and yet not the same (0 and -0), and none is equal to itself if it is none.
fn compare(line: u64, recorded: &Effect, replayed: Option<&Effect>) -> Option<anyhow::Result<Difference>> {
    let same = || -> anyhow::Result<bool> {
        let Some(replayed) = replayed else { return Ok(false) };
        Ok(serde_json::to_vec(recorded)? == serde_json::to_vec(replayed)?)
    };
    match same() {
        Ok(true) => None,
        Ok(false) => Some(differ(line, Some(recorded), replayed)),
        Err(error) => Some(Err(error)),
    }
}

fn differ(line: u64, recorded: Option<&Effect>, replayed: Option<&Effect>) -> anyhow::Result<Difference> {
    let text = |effect: Option<&Effect>| effect.map(serde_json::to_string).transpose();
    Ok(Difference { line, recorded: text(recorded)?, replayed: text(replayed)? })
}

fn page(report: &Report) -> String {
    let replayed = &report.replayed;
    let mut text = format!("{} events gave {} effects", replayed.events, replayed.effects);
    match &replayed.difference {
        None => text.push_str(", each as recorded, byte for byte\n"),
        Some(Difference { line, recorded, replayed }) => {
            let shown = |effect: &Option<String>| effect.clone().unwrap_or_else(|| "nothing".to_owned());
            text.push_str(&format!("\nthe first difference is at line {line} of the recording\n"));
            text.push_str(&format!("recorded: {}\nreplayed: {}\n", shown(recorded), shown(replayed)));
            text.push_str(&explanation(report));
        }
    }
    if replayed.truncated {
        text.push_str("the recording's end is missing: the daemon or the recorder was killed\n");
    }
    text
}

/// Why there may be a difference.
fn explanation(report: &Report) -> String {
    let (recorded, replayed) = (report.recorded_revision, report.replayed_revision);
    match recorded.cmp(&replayed) {
        Ordering::Less => {
            let changes: String = report.changes_since.iter().map(|change| format!("  - {change}\n")).collect();
            format!(
                "The recording was made by an earlier version (behaviour revision {recorded}; this program has {replayed}). \
                 Since then the engine changed on purpose, which may be the reason:\n{changes}"
            )
        }
        Ordering::Greater => format!(
            "The recording was made by a later version (behaviour revision {recorded}; this program has {replayed}): replay \
             it with that version\n"
        ),
        Ordering::Equal => format!(
            "The recording was made by a version with the same behaviour revision ({recorded}), so this should not happen: \
             please report it\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{BEHAVIOUR_REVISION, Difference, Replayed, Report, changes_since, page};

    fn differing(recorded_revision: u32) -> Report {
        let difference = Difference { line: 3, recorded: Some("{}".to_owned()), replayed: None };
        Report::new(Replayed { difference: Some(difference), ..Replayed::default() }, recorded_revision)
    }

    #[test]
    fn at_a_difference_what_changed_since_the_recording_is_told() {
        let old = page(&differing(0));
        assert!(old.contains("an earlier version (behaviour revision 0;"), "{old}");
        for change in changes_since(0) {
            assert!(old.contains(&format!("\n  - {change}\n")), "{old}");
        }
        let same = page(&differing(BEHAVIOUR_REVISION));
        assert!(same.contains("please report it") && !same.contains("  - "), "{same}");
        let newer = page(&differing(BEHAVIOUR_REVISION + 1));
        assert!(newer.contains("replay it with that version") && !newer.contains("  - "), "{newer}");
        // Where nothing differs there is nothing to explain.
        let well = Report::new(Replayed::default(), 0);
        assert!(well.changes_since.is_empty() && !page(&well).contains("revision"), "{well:?}");
    }
}
