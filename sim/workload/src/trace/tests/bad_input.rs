//! What is wrong is said, with its place; nothing panics, and nothing takes memory by the terabyte.

use super::super::{Format, OutOfOrder, ReadOptions, TraceError, TraceReader};
use super::formats::{QUEUE_READ, blktrace_event, oracle_record, vscsi_record};
use super::{read, read_as};
use minerva_model::Nanos;
use proptest::prelude::{any, prop_assert, proptest};
use std::io::{Read, repeat};

fn message(result: Result<impl Sized, TraceError>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    assert_eq!(message(read("", "nothing.csv")), "nothing.csv: the trace is empty");
    let empty_gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()).finish().unwrap();
    assert_eq!(message(read(empty_gzip, "nothing.csv.gz")), "nothing.csv.gz: the trace is empty");
    let heading = read("Timestamp,Response,IOType,LUN,Offset,Size\n", "a");
    assert!(message(heading).contains("not a trace of a known format"));
    let options = ReadOptions { format: Some(Format::Systor), ..ReadOptions::default() };
    let heading = read_as("Timestamp,Response,IOType,LUN,Offset,Size\n", "a", options);
    assert_eq!(message(heading), "a: no request in it when read as systor (0 entries could not be understood)");
}

#[test]
fn a_malformed_line_is_counted_with_its_place() {
    let text =
        "1,W,0,4096,1\n1,W,-5,4096,2\n1,X,0,4096,3\n1,R,0,0,4\n1,R,18446744073709551615,4096,5\n1,R\n1,R,0,512,9\n";
    let (records, faults, _) = read(text, "a").unwrap();
    assert_eq!((records.len(), faults.malformed), (2, 5));
    let said: Vec<String> = faults.examples.iter().map(ToString::to_string).collect();
    expect_test::expect![[r#"
        line 2: the offset is negative in `1,W,-5,4096,2`
        line 3: the type is neither R nor W in `1,X,0,4096,3`
        line 4: a request of no bytes in `1,R,0,0,4`
        line 5: a request that ends past 2^64 bytes in `1,R,18446744073709551615,4096,5`
        line 6: 2 columns, where this format has 5 in `1,R`"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn more_than_the_set_share_stops_the_run() {
    let mut text = "1,W,0,4096,1\n".repeat(98);
    text.push_str("nonsense\n");
    assert_eq!(read(&text, "a").unwrap().1.malformed, 1);
    text.push_str("nonsense\n");
    let error = message(read(&text, "a"));
    assert!(error.starts_with("a: 2 of the first 100 entries could not be understood as alibaba, the first at line 99: 1 columns, where this format has 5 in `nonsense`"), "{error}");
    let patient = ReadOptions { malformed_permille_max: 20, ..ReadOptions::default() };
    assert_eq!(read_as(&text, "a", patient).unwrap().1.malformed, 2);
    let mistaken = ReadOptions { format: Some(Format::Msr), ..ReadOptions::default() };
    assert!(message(read_as(&text, "a", mistaken)).contains("100 of the first 100 entries"));
}

#[test]
fn time_that_goes_back_is_clamped_or_refused() {
    let text = "1,W,0,4096,100\n1,W,0,4096,90\n1,W,0,4096,300\n1,R,0,512,150\n";
    let unsorted = ReadOptions { out_of_order: OutOfOrder::Sort(Nanos::ZERO), ..ReadOptions::default() };
    let (records, faults, _) = read_as(text, "a", unsorted).unwrap();
    assert_eq!(records.iter().map(|record| record.at.0).collect::<Vec<_>>(), [0, 0, 200_000, 200_000]);
    assert_eq!((faults.out_of_order, faults.back_max.0), (2, 150_000));
    let said: Vec<String> = faults.misplaced.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["line 2: 10.0 us earlier than the one before it", "line 4: 150.0 us earlier than the one before it"]
    );
    let strict = ReadOptions { out_of_order: OutOfOrder::Refuse, ..ReadOptions::default() };
    let error = message(read_as(text, "a", strict));
    assert_eq!(
        error,
        "a: line 2 is 10.0 us earlier than the request before it; sort the trace, or let it be sorted within a window"
    );
}

/// As the real SYSTOR '17 files are: a row is written when its request is done.
#[test]
fn rows_by_completion_are_put_back_into_the_order_in_which_they_were_made() {
    let made: Vec<(u64, u64)> = (0..500_u64).map(|n| (n * 137, 200 + n * 7919 % 9_000)).collect();
    let mut rows: Vec<(u64, u64)> = made.clone();
    rows.sort_by_key(|(at_us, took_us)| at_us + took_us);
    let line = |(at_us, took_us): &(u64, u64)| {
        format!("1456095145.{:06}000,0.{took_us:06}000,R,0,{},4096\n", at_us + 100_000, at_us * 4096)
    };
    let text = format!("Timestamp,Response,IOType,LUN,Offset,Size\n{}", rows.iter().map(line).collect::<String>());
    let (records, faults, reader) = read(&text, "2016022219-LUN0.csv").unwrap();
    assert_eq!(reader.format(), Format::Systor);
    let read_back: Vec<(u64, u64)> = records.iter().map(|one| (one.at.0 / 1000, one.offset_bytes / 4096)).collect();
    assert_eq!(read_back, made.iter().map(|(at_us, _)| (*at_us, *at_us)).collect::<Vec<_>>());
    assert_eq!((faults.out_of_order, faults.misplaced.len()), (0, 0));
    // As far as a request made later was done sooner.
    let reach_us = rows.iter().scan(0_u64, |newest, (at_us, _)| {
        *newest = (*newest).max(*at_us);
        Some(*newest - at_us)
    });
    assert_eq!(faults.sorted_back_max, Nanos(reach_us.max().unwrap() * 1000));
    assert!(faults.sorted > 200 && faults.sorted_back_max < Nanos::from_millis(10), "{faults:?}");
    // A window that is too narrow says where, and what to do.
    let narrow = ReadOptions { out_of_order: OutOfOrder::Sort(Nanos::from_millis(1)), ..ReadOptions::default() };
    let error = message(read_as(&text, "a", narrow));
    assert!(error.contains("the first at line ") && error.contains("sort within a wider window"), "{error}");
}

/// Whatever the order, requests come out by time and none is lost or made, and what is held is bounded.
#[test]
fn sorting_loses_nothing_and_holds_a_bounded_number() {
    // 40,000 requests of one instant but for the last, which was made a nanosecond before: further than is held.
    let mut text: String = (0..40_000).map(|n| format!("1,W,{},4096,1000\n", n * 4096)).collect();
    text.push_str("1,W,0,4096,999\n");
    let (records, faults, _) = read(&text, "a").unwrap();
    assert_eq!((records.len(), faults.sorted, faults.out_of_order), (40_001, 0, 1));
    assert!(records.is_sorted_by_key(|record| record.at));
    // A request that cannot be read ends the trace behind all that was read before it.
    let (mut given, bad) = (0, "1,W,0,4096,1000\n1,W,0,4096,900\n".to_owned() + &"x\n".repeat(200));
    let trace = TraceReader::from_stream(std::io::Cursor::new(bad.into_bytes()), "a", ReadOptions::default()).unwrap();
    let mut ended_badly = false;
    for record in trace {
        match record {
            Ok(_) => given += 1,
            Err(_) => ended_badly = true,
        }
    }
    assert_eq!((given, ended_badly), (2, true));
}

#[test]
fn one_instant_far_ahead_moves_nothing_after_it() {
    let hour_us = 3_600_000_000_u64;
    let trace = |instants: &[u64]| -> String { instants.iter().map(|at| format!("1,W,0,4096,{at}\n")).collect() };
    let instants = |text: &str| {
        let (records, faults, _) = read(text, "a").unwrap();
        (records.iter().map(|record| record.at.0 / 1000).collect::<Vec<_>>(), faults)
    };
    let (at, faults) = instants(&trace(&[100, 200, 200 + 9 * hour_us, 300, 400]));
    assert_eq!(at, [0, 100, 100, 200, 300]);
    assert_eq!((faults.far_ahead, faults.out_of_order), (1, 0));
    assert_eq!(faults.misplaced[0].to_string(), "line 3: 32400.0 s later than the request after it");
    let (at, faults) = instants(&trace(&[9 * hour_us, 200, 300]));
    assert_eq!((at, faults.far_ahead), (vec![0, 0, 100], 1), "also the first");
    let (at, faults) = instants(&trace(&[0, 9 * hour_us, 9 * hour_us + 5, 9 * hour_us + 3]));
    assert_eq!(at, [0, 9 * hour_us, 9 * hour_us + 3, 9 * hour_us + 5], "a real gap is one");
    assert_eq!((faults.far_ahead, faults.out_of_order, faults.sorted), (0, 0, 1));
    let (at, _) = instants(&trace(&[0, 9 * hour_us]));
    assert_eq!(at, [0, 9 * hour_us], "nothing speaks against the last");
}

#[test]
fn more_than_the_set_share_out_of_order_stops_the_run() {
    // A tenth of a second apart: what goes back to the beginning is further than is sorted.
    let mut text: String = (0..99).map(|n| format!("1,W,0,4096,{}\n", 100_000 * n)).collect();
    text.push_str("1,W,0,4096,7\n");
    assert_eq!(read(&text, "a").unwrap().1.out_of_order, 1);
    text.push_str("1,W,0,4096,8\n");
    let error = message(read(&text, "a"));
    assert!(
        error.starts_with("a: 2 of the first 101 requests are out of order, and by more than is sorted, the first at line 100: 9.8 s earlier"),
        "{error}"
    );
}

#[test]
fn records_that_oracle_general_cannot_have_are_counted() {
    let good = |time, next| oracle_record(time, 2, 512, next);
    let trace = [good(1, 4), good(1, -1), oracle_record(2, 2, 1 << 29, -1), good(2, 1), good(3, i64::MAX)].concat();
    let options = ReadOptions { format: Some(Format::OracleGeneral), ..ReadOptions::default() };
    let (records, faults, _) = read_as(trace, "a", options).unwrap();
    assert_eq!(records.len(), 3);
    let said: Vec<String> = faults.examples.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "byte 48: an object of 536870912 bytes, and the greatest has 268435456",
            "byte 72: its next access, 1, does not lie ahead of record 3"
        ]
    );
}

#[test]
fn a_line_without_end_is_skipped_without_being_kept() {
    // 64 MiB stand for a terabyte: the reader keeps no more than a mebibyte of either.
    let line = repeat(b'7').take(64 << 20);
    let stream = (&b"1,W,0,4096,1\n"[..]).chain(line).chain(&b"\n1,R,0,512,2\n"[..]);
    let mut reader = TraceReader::from_stream(stream, "a", ReadOptions::default()).unwrap();
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 2);
    let long = &reader.faults().examples[0];
    assert!(long.to_string().starts_with("line 2: a line of more than 1048576 bytes in `7777"), "{long}");
    assert!(long.excerpt.len() < 100);
}

#[test]
fn binary_records_that_are_cut_off_or_strange_have_their_byte() {
    let whole = vscsi_record(2, 0x28, 4096, 100, 1_000);
    let mut strange = whole.clone();
    strange[2..4].copy_from_slice(&[2, 0]);
    let trace = [&whole[..], &whole, &strange, &whole[..13]].concat();
    let (records, faults, _) = read(trace, "w01").unwrap();
    assert_eq!(records.len(), 2);
    let said: Vec<String> = faults.examples.iter().map(ToString::to_string).collect();
    let version = "byte 80: the version field differs from the first record's; another byte order, or damage?";
    assert_eq!(said, [version, "byte 120: a truncated record: 13 of 40 bytes"]);
    let cut = [oracle_record(1, 2, 512, -1), vec![0; 5]].concat();
    let options = ReadOptions { format: Some(Format::OracleGeneral), ..ReadOptions::default() };
    assert_eq!(
        read_as(cut, "a", options).unwrap().1.examples[0].to_string(),
        "byte 24: a truncated record: 5 of 24 bytes"
    );
}

#[test]
fn blktrace_finds_its_way_back() {
    let good = |time| blktrace_event(false, time, 8, 512, QUEUE_READ, &[]);
    let trace = [
        good(1),
        b"some bytes of no record, more than forty-eight of them, \x07 and \x07ta to mislead".to_vec(),
        good(2),
        blktrace_event(true, 3, 8, 512, QUEUE_READ, &[9; 3]),
        good(4),
        good(5)[..20].to_vec(),
    ];
    let (records, faults, _) = read(trace.concat(), "a").unwrap();
    assert!(records.len() >= 2, "{records:?} {faults:?}");
    let said: Vec<String> = faults.examples.iter().map(ToString::to_string).collect();
    assert_eq!(said[0], "byte 48: not a record of blktrace version 7");
    assert!(said.iter().any(|text| text.ends_with("a record of the other byte order")), "{said:?}");
    assert!(said.iter().any(|text| text.ends_with("a truncated record: 20 of 48 bytes")), "{said:?}");
}

#[test]
fn a_directory_and_a_missing_file_are_named() {
    let directory = tempfile::tempdir().unwrap();
    assert!(message(TraceReader::open(directory.path(), ReadOptions::default())).starts_with("cannot open the trace"));
    let missing = directory.path().join("missing.csv");
    assert!(message(TraceReader::open(&missing, ReadOptions::default())).ends_with("missing.csv"));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..2000), format in 0..10usize, text: bool) {
        if text {
            let letters = b"0123456789,,,,.RW\n\nre -fio";
            bytes.iter_mut().for_each(|byte| *byte = letters[usize::from(*byte) % letters.len()]);
        }
        let options = ReadOptions {
            format: Some(Format::ALL[format]),
            malformed_permille_max: 1000,
            ..ReadOptions::default()
        };
        if let Ok((records, faults, _)) = read_as(&bytes, "x", options) {
            prop_assert!(records.len() as u64 + faults.malformed + faults.dropped <= bytes.len() as u64);
            prop_assert!(records.is_sorted_by_key(|record| record.at));
        }
        let _ = read(&bytes, "x");
    }
}
