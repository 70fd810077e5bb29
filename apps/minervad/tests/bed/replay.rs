//! What a recording of the daemon says, gone through again by an engine of the test's own.

use minerva_engine::Engine;
use minerva_store::{Entry, Recording};

/// The effects of a whole recording as JSON, each found to be what the recorded events give from the recorded state on.
pub(crate) fn replayed(recording: &[u8]) -> Vec<String> {
    let mut recording = Recording::new(recording).expect("a recording");
    let snapshot = recording.take_snapshot().expect("a recording of the daemon begins with a snapshot");
    let mut engine = Engine::restored(&snapshot).expect("the state of an engine");
    let mut effects = Vec::new();
    for entry in recording {
        match entry.expect("a whole recording") {
            Entry::Event { at, what } => engine.handle(at, what),
            Entry::Effect { what, .. } => {
                let effect = serde_json::to_string(&engine.poll_effect()).expect("JSON");
                assert_eq!(effect, serde_json::to_string(&Some(what)).expect("JSON"));
                effects.push(effect);
            }
        }
    }
    effects
}
