//! The native form gives back what it was given, and a damaged file is an error.

use super::super::{Format, NativeWriter, ReadOptions, Record, Slice, SummaryBuilder, TraceError, TraceReader};
use super::record;
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use std::path::Path;

fn write(path: &Path, records: &[Record], names: &[String]) {
    let mut writer = NativeWriter::create(path).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish(names).unwrap();
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let kind = (0..4usize).prop_map(|kind| [Kind::Read, Kind::Write, Kind::Flush, Kind::Discard][kind]);
    let latency = proptest::option::of((0..u64::MAX / 2).prop_map(Nanos));
    let one = (0..1u64 << 40, kind, 0..u64::MAX - (1 << 33), 1..u32::MAX, any::<u32>(), latency);
    proptest::collection::vec(one, 1..200).prop_map(|rows| {
        let mut at = 0;
        let row = |(gap, kind, offset_bytes, length_bytes, volume, latency)| {
            let record = Record { at: Nanos(at), kind, offset_bytes, length_bytes, volume, latency };
            at += gap;
            record
        };
        rows.into_iter().map(row).collect()
    })
}

proptest! {
    #[test]
    fn round_trip(records in records()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let names = ["vm one".to_owned(), "vm two".to_owned()];
        write(&path, &records, &names);
        let mut reader = TraceReader::open(&path, ReadOptions::default()).unwrap();
        let back: Vec<Record> = reader.by_ref().map(Result::unwrap).collect();
        prop_assert_eq!(&back, &records);
        prop_assert_eq!(reader.volume_names(), names);
        prop_assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn damage_is_an_error(records in records(), at in any::<proptest::sample::Index>(), to: u8, cut: bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        write(&path, &records, &[]);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = to }
        if let Ok(reader) = TraceReader::from_native_bytes(bytes, "t", ReadOptions::default()) {
            let _ = reader.count();
        }
    }
}

#[test]
fn what_stands_beside_stays_and_a_link_leads_to_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("t.parquet"), "an earlier one").unwrap();
    std::fs::write(at("t.parquet.partial"), "somebody's").unwrap();
    std::os::unix::fs::symlink("t.parquet", at("link")).unwrap();
    write(&at("link"), &[record(0, Kind::Read, 0, 4096)], &[]);
    assert!(at("link").is_symlink());
    assert_eq!(TraceReader::open(&at("t.parquet"), ReadOptions::default()).unwrap().count(), 1);
    drop(NativeWriter::create(&at("t.parquet")).unwrap());
    assert_eq!(std::fs::read_to_string(at("t.parquet.partial")).unwrap(), "somebody's");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
}

#[test]
fn many_rows_go_through_several_batches() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let rows: Vec<Record> = (0..10_000).map(|row| record(row * 7, Kind::Write, row * 512, 512)).collect();
    write(&path, &rows, &[]);
    let reader = TraceReader::open(&path, ReadOptions::default()).unwrap();
    assert_eq!(reader.format(), Format::Native);
    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), rows);
}

#[test]
fn a_writer_that_is_given_up_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = NativeWriter::create(&directory.path().join("t.parquet")).unwrap();
    writer.write(&record(0, Kind::Read, 0, 512)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_list_that_pretends_to_have_billions_of_elements_is_damage() {
    let bytes = include_bytes!("../../../../../fuzz/corpus/trace_native/endless-list").to_vec();
    let mut reader = TraceReader::from_native_bytes(bytes, "t", ReadOptions::default()).unwrap();
    let error = reader.next().and_then(Result::err);
    assert!(matches!(error, Some(TraceError::Read { .. })), "{error:?}");
}

#[test]
fn what_is_not_ours_is_said() {
    let damaged = TraceReader::from_native_bytes(b"PAR1PAR1".to_vec(), "t", ReadOptions::default()).err();
    assert!(matches!(damaged, Some(TraceError::Parquet { .. })), "{damaged:?}");
    let stream = TraceReader::from_stream(&b"PAR1"[..], "t", ReadOptions::default()).err().unwrap();
    assert!(stream.to_string().contains("the native form must be a plain file"), "{stream}");
}

#[test]
fn slices_select_by_time_volume_and_count() {
    let rows: Vec<Record> =
        (0..10).map(|row| Record { volume: row as u32 % 2, ..record(row, Kind::Read, row, 512) }).collect();
    let slice = |slice: Slice| -> Vec<(u64, u64)> {
        let part = slice.of(rows.iter().map(|record| Ok(*record)));
        part.map(|record| record.map(|record| (record.at.0, record.offset_bytes)).unwrap()).collect()
    };
    assert_eq!(slice(Slice::default()).len(), 10);
    let by_time = Slice { from: Nanos(3), until: Some(Nanos(6)), ..Slice::default() };
    assert_eq!(slice(by_time), [(0, 3), (1, 4), (2, 5)]);
    let by_volume = Slice { volumes: [1].into(), skip: 1, count: Some(2), ..Slice::default() };
    assert_eq!(slice(by_volume), [(3, 3), (5, 5)]);
}

/// So slices of two volumes, or of two parts of one trace, stay beside each other.
#[test]
fn a_slice_keeps_its_times_when_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let second = |second: u64, volume| Record { volume, ..record(second * 1_000_000_000, Kind::Read, 0, 512) };
    let rows = [second(0, 1), second(10, 1), second(40, 2), second(50, 1), second(55, 2)];
    let part = Slice { from: Nanos::from_secs(10), volumes: [2].into(), ..Slice::default() };
    let rows: Vec<Record> = part.of(rows.into_iter().map(Ok)).map(Result::unwrap).collect();
    write(&path, &rows, &[]);
    let reader = TraceReader::open(&path, ReadOptions::default()).unwrap();
    let back: Vec<Record> = reader.map(Result::unwrap).collect();
    assert_eq!(back.iter().map(|record| record.at).collect::<Vec<_>>(), [30, 45].map(Nanos::from_secs));
    let mut summary = SummaryBuilder::default();
    back.iter().for_each(|record| summary.note(record));
    assert_eq!(summary.finish().span, Nanos::from_secs(15));
}
