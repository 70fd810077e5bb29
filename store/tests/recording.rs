//! Recordings come back as they were written, and bad ones give the entries before the fault and its place.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use expect_test::{Expect, expect};
use minerva_model::{DeviceId, Effect, EngineConfig, Event, Nanos, Sample, TenantHistory, TenantId, UsageAverage};
use minerva_store::{
    BEHAVIOUR_REVISION, Entry, LINE_BYTES_MAX, Recorder, Recording, RecordingErrorKind, SNAPSHOT_BYTES_MAX,
    read_entries,
};
use std::io::Write;

fn entries(count: u64) -> Vec<Entry> {
    let mut all = vec![Entry::Event { at: Nanos(1), what: Event::Configured(Box::<EngineConfig>::default()) }];
    for n in 0..count {
        let at = Nanos::from_secs(n);
        all.push(Entry::Event { at, what: Event::Sampled(Box::<Sample>::default()) });
        let usage = UsageAverage { recent_bytes_per_second: n as f64 / 3.0, long_term_bytes_per_second: 1e300 / 7.0 };
        let device = DeviceId { major: 8, minor: 0 };
        let key = format!("cgroup:{n}");
        let history = TenantHistory { key, device, usage, disk_part: 0.1, group: 0, age: Nanos::ZERO };
        all.push(Entry::Effect { at, what: Effect::Remember(history) });
        all.push(Entry::Event { at, what: Event::TenantGone(TenantId(n)) });
    }
    all
}

/// Any bytes, ends of lines among them.
const SNAPSHOT: &[u8] = b"a state\n{\0}\n";

fn record(entries: &[Entry]) -> Recorder<Vec<u8>> {
    let mut recorder = Recorder::from_snapshot(Vec::new(), SNAPSHOT).expect("starts");
    for entry in entries {
        match entry {
            Entry::Event { at, what } => recorder.event(*at, what).expect("written"),
            Entry::Effect { at, what } => recorder.effect(*at, what).expect("written"),
        }
    }
    recorder
}

fn compressed(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).expect("compressed")
}

/// The number of good entries, and the error behind them.
fn fault(bytes: &[u8]) -> (usize, String, RecordingErrorKind) {
    let mut good = 0;
    for entry in read_entries(bytes) {
        match entry {
            Ok(_) => good += 1,
            Err(error) => return (good, error.to_string(), error.kind),
        }
    }
    panic!("no error after {good} entries");
}

fn shows(bytes: &[u8], good: usize, expected: Expect) {
    let (found, text, _) = fault(bytes);
    assert_eq!(found, good);
    expected.assert_eq(&text);
}

const HEADER: &str = "{\"minerva_recording\":2,\"version\":\"0.1.0\"}\n";

#[test]
fn what_is_recorded_comes_back_exactly() {
    let written = entries(50);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.recording");
    let mut recorder = Recorder::create(&path).expect("starts");
    for entry in &written {
        match entry {
            Entry::Event { at, what } => recorder.event(*at, what).expect("written"),
            Entry::Effect { at, what } => recorder.effect(*at, what).expect("written"),
        }
    }
    recorder.finish().expect("ended");
    let read: Result<Vec<Entry>, _> = Recording::open(&path).expect("opens").collect();
    assert_eq!(read.expect("good"), written);
    assert!(Recorder::create(&path).is_err(), "a recording is never overwritten");
}

#[test]
fn a_snapshot_comes_back_before_the_entries() {
    let written = entries(3);
    let bytes = record(&written).finish().expect("ended");
    let mut recording = Recording::new(&bytes[..]).expect("opens");
    assert_eq!(recording.take_snapshot().as_deref(), Some(SNAPSHOT));
    assert_eq!(recording.by_ref().collect::<Result<Vec<_>, _>>().expect("good"), written);
    let new = Recorder::new(Vec::new()).expect("starts").finish().expect("ended");
    assert_eq!(Recording::new(&new[..]).expect("opens").take_snapshot(), None);
    let earlier = compressed(b"{\"minerva_recording\":1,\"version\":\"0.1.0\"}\n");
    let mut earlier = Recording::new(&earlier[..]).expect("the first format had no snapshots");
    assert_eq!((earlier.take_snapshot(), earlier.next().is_none()), (None, true));
}

#[test]
fn a_recording_tells_which_revision_of_the_engine_made_it() {
    let revision = |bytes: &[u8]| Recording::new(bytes).expect("opens").behaviour_revision();
    let new = record(&[]).finish().expect("ended");
    assert_eq!(revision(&new), BEHAVIOUR_REVISION);
    let text = zstd::decode_all(&new[..]).expect("decompressed");
    let header = text.split(|byte| *byte == b'\n').next().expect("a line");
    let header: serde_json::Value = serde_json::from_slice(header).expect("an object");
    assert_eq!(header["behaviour_revision"], BEHAVIOUR_REVISION);
    assert_eq!(revision(&compressed(HEADER.as_bytes())), 0, "of before there was a number");
    let later = b"{\"minerva_recording\":2,\"version\":\"9.0.0\",\"behaviour_revision\":4000}\n";
    assert_eq!(revision(&compressed(later)), 4000);
}

#[test]
fn a_snapshot_that_is_too_long_or_cut_off_is_refused() {
    let header = |length: u64| {
        compressed(
            format!("{{\"minerva_recording\":2,\"version\":\"0.1.0\",\"snapshot_bytes\":{length}}}\n{{}}").as_bytes(),
        )
    };
    assert_eq!(fault(&header(SNAPSHOT_BYTES_MAX + 1)).2, RecordingErrorKind::SnapshotTooLong);
    assert_eq!(fault(&header(u64::MAX)).2, RecordingErrorKind::SnapshotTooLong);
    assert_eq!(fault(&header(3)).2, RecordingErrorKind::Truncated);
}

#[test]
fn a_killed_recorder_leaves_every_flushed_entry() {
    let written = entries(50);
    let mut recorder = record(&written);
    // Every sample flushes what came before it; the last slice's three entries and the end are missing here.
    let prefix = recorder.get_mut().clone();
    let mut read = read_entries(&prefix);
    let good: Vec<Entry> = read.by_ref().map_while(Result::ok).collect();
    assert_eq!(good, written[..written.len() - 3]);
    assert_eq!(fault(&prefix).2, RecordingErrorKind::Truncated);
    recorder.flush().expect("flushed");
    assert_eq!(fault(recorder.get_mut()).0, written.len());
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = record(&entries(5)).finish().expect("ended");
    for length in 0..bytes.len() {
        let (_, text, kind) = fault(&bytes[..length]);
        assert!(matches!(kind, RecordingErrorKind::Truncated | RecordingErrorKind::NotARecording), "{length}: {text}");
    }
    assert_eq!(read_entries(&bytes).filter(Result::is_ok).count(), 16);
}

#[test]
fn every_flipped_byte_is_noticed() {
    let bytes = record(&entries(5)).finish().expect("ended");
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        let good = entries(5);
        let same = read_entries(&bytes).zip(&good).filter(|(read, good)| read.as_ref().ok() == Some(*good)).count();
        // A flip may hit a bit that means nothing; what may not happen is another recording without an error.
        let whole = read_entries(&bytes).all(|entry| entry.is_ok());
        assert!(!whole || same == good.len(), "byte {at}");
    }
}

#[test]
fn faults_are_shown_with_their_place() {
    shows(
        b"",
        0,
        expect!["recording, line 1 (byte 0 of the text): it ends here, before its end; what comes before is complete"],
    );
    shows(
        b"SQLite format 3\0",
        0,
        expect!["recording, line 1 (byte 0 of the text): this is not a recording of Minerva"],
    );
    shows(
        &compressed(b"{\"hello\":1}\n"),
        0,
        expect!["recording, line 1 (byte 0 of the text): this is not a recording of Minerva"],
    );
    shows(
        &compressed(b"{\"minerva_recording\":3,\"version\":\"9.0.0\"}\n"),
        0,
        expect!["recording, line 1 (byte 0 of the text): its format is 3, this program reads 2; use the newer program"],
    );
    let gone = "{\"event\":{\"at\":1,\"what\":{\"tenant-gone\":7}}}\n";
    let text = format!("{HEADER}{gone}{gone}{{\"event\":{{\"at\":1,\"what\":\"earthquake\"}}}}\n{gone}");
    shows(
        &compressed(text.as_bytes()),
        2,
        expect!["recording, line 4 (byte 130 of the text): the line is not an entry that this program knows"],
    );
    shows(
        &compressed(format!("{HEADER}{gone}{{\"event\"").as_bytes()),
        1,
        expect!["recording, line 3 (byte 86 of the text): it ends here, before its end; what comes before is complete"],
    );
}

#[test]
fn a_line_without_end_is_refused_at_the_limit() {
    let mut text = HEADER.as_bytes().to_vec();
    text.resize(HEADER.len() + LINE_BYTES_MAX + 10, b' ');
    let bytes = compressed(&text);
    assert!(bytes.len() < 10_000, "a small file");
    shows(&bytes, 0, expect!["recording, line 2 (byte 42 of the text): the line is longer than 16777216 bytes"]);
}

#[test]
fn a_frame_that_wants_a_great_window_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("starts");
    encoder.window_log(27).expect("set");
    encoder.long_distance_matching(true).expect("set");
    encoder.write_all(HEADER.as_bytes()).expect("written");
    encoder.write_all(&vec![b' '; 1 << 20]).expect("written");
    let bytes = encoder.finish().expect("ended");
    assert_eq!(fault(&bytes).2, RecordingErrorKind::NotARecording);
}
