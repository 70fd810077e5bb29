//! One sample a format, with the layout's source.

use super::super::{Compression, Format, ReadOptions, TraceReader};
use super::{read, read_as, record};
use crate::trace::Record;
use minerva_blocksched::Kind::{Discard, Flush, Read, Write};
use minerva_model::Nanos;
use std::io::Write as _;
use std::path::Path;

#[test]
fn systor() {
    // The row is the one in the README of the set (SNIA IOTTA 4928).
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
        1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
        1456095145.133176000,,,0,899056122368,4096\n\
        1456095146.133076000,0.001,W,4,512,8192\n";
    let (records, faults, reader) = read(text, "2016022107-LUN0.csv").unwrap();
    assert_eq!(reader.format(), Format::Systor);
    assert_eq!(reader.first_ns(), Some(1_456_095_145_133_076_000));
    let first = Record { latency: Some(Nanos(806_000)), ..record(0, Read, 899_056_122_368, 131_072) };
    let second = Record { latency: Some(Nanos(1_000_000)), volume: 4, ..record(1_000_000_000, Write, 512, 8192) };
    assert_eq!(records, [first, second]);
    assert_eq!((faults.dropped, faults.malformed), (1, 0), "a blank type is a request without an answer");
}

#[test]
fn msr_cambridge() {
    // Columns as of the README of SNIA IOTTA 388; the first row is that of usr_0.
    let text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
        128166372013061629,usr,0,Write,0,4096,10\n\
        128166372013061639,hm,1,Read,512,512,1\n";
    let (records, _, reader) = read(text, "x.csv").unwrap();
    assert_eq!(reader.format(), Format::Msr);
    let expected = [
        Record { latency: Some(Nanos(4_128_600)), ..record(0, Read, 7_014_609_920, 24_576) },
        Record { latency: Some(Nanos(1_000)), ..record(1_000_000_000, Write, 0, 4096) },
        Record { latency: Some(Nanos(100)), volume: 1, ..record(1_000_001_000, Read, 512, 512) },
    ];
    assert_eq!(records, expected);
    assert_eq!(reader.volume_names(), ["usr_0", "hm_1"]);
}

#[test]
fn alibaba() {
    // device_id,opcode,offset,length,timestamp: github.com/alibaba/block-traces.
    let (records, _, reader) =
        read("419,W,8792731648,16384,1577808000000046\n725,R,0,4096,1577808000000146\n", "io").unwrap();
    assert_eq!(reader.format(), Format::Alibaba);
    let first = Record { volume: 419, ..record(0, Write, 8_792_731_648, 16_384) };
    assert_eq!(records, [first, Record { volume: 725, ..record(100_000, Read, 0, 4096) }]);
}

#[test]
fn tencent() {
    // Timestamp,Offset,Size,IOType,VolumeID in sectors: SNIA IOTTA 27917.
    let (records, _, reader) = read("1538323199,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n", "2018").unwrap();
    assert_eq!(reader.format(), Format::Tencent);
    let first = Record { volume: 1063, ..record(0, Read, 12_910_952 * 512, 65_536) };
    assert_eq!(records, [first, Record { volume: 1627, ..record(1_000_000_000, Write, 6_338_688 * 512, 4096) }]);
}

#[test]
fn spc() {
    // ASU,LBA,Size,Opcode,Timestamp: SPC trace file format 1.0.1, section 3; rows in the form of UMass's Financial1.
    let (records, _, reader) = read("0,303567,3584,w,0.000000\n1,240840,4096,R,0.026214,extra\n", "f.spc").unwrap();
    assert_eq!(reader.format(), Format::Spc);
    let first = record(0, Write, 303_567 * 512, 3584);
    assert_eq!(records, [first, Record { volume: 1, ..record(26_214_000, Read, 240_840 * 512, 4096) }]);
}

#[test]
fn fio_iolog_versions_2_and_3() {
    // fio(1), TRACE FILE FORMAT.
    let two = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a read 0 4096\n/dev/a wait 1500 0\n\
        /dev/a write 4096 8192\n/dev/a sync 0 0\n/dev/a wait 500 0\n/dev/a trim 0 512\n/dev/a close\n";
    let three = "fio version 3 iolog\n18 /dev/a add\n191 /dev/a open\n194 /dev/a read 0 4096\n\
        1694 /dev/a write 4096 8192\n1694 /dev/a datasync\n2194 /dev/a trim 0 512\n2200 /dev/a close\n";
    let expected = [
        record(0, Read, 0, 4096),
        record(1_500_000, Write, 4096, 8192),
        record(1_500_000, Flush, 0, 0),
        record(2_000_000, Discard, 0, 512),
    ];
    for text in [two, three] {
        let (records, faults, reader) = read(text, "log").unwrap();
        assert_eq!((reader.format(), faults.malformed), (Format::FioIolog, 0));
        assert_eq!(records, expected);
        assert_eq!(reader.volume_names(), ["/dev/a"]);
    }
}

/// One event of blktrace, by the layout in linux/blktrace_api.h.
pub(super) fn blktrace_event(big: bool, time: u64, sector: u64, bytes: u32, action: u32, pdu: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    let mut put = |bytes: &[u8]| {
        if big { event.extend(bytes.iter().rev()) } else { event.extend(bytes) }
    };
    put(&0x6561_7407_u32.to_le_bytes());
    put(&1_u32.to_le_bytes());
    put(&time.to_le_bytes());
    put(&sector.to_le_bytes());
    put(&bytes.to_le_bytes());
    put(&action.to_le_bytes());
    put(&4711_u32.to_le_bytes());
    put(&(8 << 20 | 16_u32).to_le_bytes());
    put(&0_u32.to_le_bytes());
    put(&0_u16.to_le_bytes());
    put(&(pdu.len() as u16).to_le_bytes());
    event.extend(pdu);
    event
}

pub(super) const QUEUE_READ: u32 = 1 | 1 << 16 | 1 << 20;
pub(super) const QUEUE_WRITE: u32 = 1 | 1 << 17 | 1 << 20;
pub(super) const QUEUE_FLUSH: u32 = 1 | 1 << 17 | 1 << 18 | 1 << 20;
pub(super) const COMPLETE_READ: u32 = 8 | 1 << 16 | 1 << 23;
pub(super) const MESSAGE: u32 = 2 | 1 << 26;

#[test]
fn blktrace_of_both_byte_orders() {
    for big in [false, true] {
        let trace = [
            blktrace_event(big, 5, 0, 0, MESSAGE, b"hello"),
            blktrace_event(big, 1_000, 2048, 4096, QUEUE_READ, &[]),
            blktrace_event(big, 2_000, 2056, 4096, QUEUE_READ, &[1; 7]),
            blktrace_event(big, 3_000, 8, 512, QUEUE_WRITE, &[]),
            blktrace_event(big, 4_000, 0, 0, QUEUE_FLUSH, &[]),
            // One completion for the two reads, which were merged.
            blktrace_event(big, 9_000, 2048, 8192, COMPLETE_READ, &[]),
        ];
        let (records, faults, reader) = read(trace.concat(), "sda.blktrace.0").unwrap();
        assert_eq!((reader.format(), faults.malformed), (Format::Blktrace, 0));
        let volume = 8 << 20 | 16;
        let expected = [
            Record { volume, latency: Some(Nanos(8_000)), ..record(0, Read, 2048 * 512, 4096) },
            Record { volume, latency: Some(Nanos(7_000)), ..record(1_000, Read, 2056 * 512, 4096) },
            Record { volume, ..record(2_000, Write, 8 * 512, 512) },
            Record { volume, ..record(3_000, Flush, 0, 0) },
        ];
        assert_eq!(records, expected, "big {big}");
    }
}

/// One record of a vscsi trace, by the structures in libCacheSim's reader.
pub(super) fn vscsi_record(version: u16, command: u16, length: u32, block: u64, time_us: u64) -> Vec<u8> {
    let (command, version_field) = (command.to_le_bytes(), (version << 8).to_le_bytes());
    let (serial, length, segments) = (7_u32.to_le_bytes(), length.to_le_bytes(), 1_u32.to_le_bytes());
    let mut record = Vec::new();
    match version {
        1 => [&serial[..], &length, &segments, &command, &version_field].iter().for_each(|part| record.extend(*part)),
        _ => [&command[..], &version_field, &serial, &length, &segments].iter().for_each(|part| record.extend(*part)),
    }
    record.extend(block.to_le_bytes());
    record.extend(time_us.to_le_bytes());
    if version == 2 {
        record.extend(33_u64.to_le_bytes());
    }
    record
}

#[test]
fn vscsi_versions_1_and_2() {
    for version in [1, 2] {
        let trace = [
            vscsi_record(version, 0x28, 4096, 100, 1_000),
            vscsi_record(version, 0x2A, 512, 7, 1_500),
            vscsi_record(version, 0x12, 96, 0, 1_600),
            vscsi_record(version, 0x35, 0, 0, 2_000),
        ];
        let (records, faults, reader) = read(trace.concat(), "w01").unwrap();
        assert_eq!((reader.format(), faults.dropped), (Format::Vscsi, 1), "an inquiry moves no data");
        let latency = (version == 2).then_some(Nanos(33_000));
        let expected =
            [record(0, Read, 51_200, 4096), record(500_000, Write, 3584, 512), record(1_000_000, Flush, 0, 0)];
        assert_eq!(records, expected.map(|record| Record { latency, ..record }));
    }
}

pub(super) fn oracle_record(time: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
    [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
}

#[test]
fn oracle_general() {
    let trace = [oracle_record(10, 3, 512, 2), oracle_record(11, 4, 4096, -1), oracle_record(11, 3, 512, -1)].concat();
    let (records, _, reader) = read(&trace, "a").unwrap();
    assert_eq!(reader.format(), Format::OracleGeneral);
    let expected =
        [record(0, Read, 1536, 512), record(1_000_000_000, Read, 2048, 4096), record(1_000_000_000, Read, 1536, 512)];
    assert_eq!(records, expected);
    let hashes = oracle_record(10, u64::MAX, 512, -1);
    let options = ReadOptions { format: Some(Format::OracleGeneral), ..ReadOptions::default() };
    let error = read_as(hashes, "a", options).err().unwrap();
    assert!(error.to_string().contains("if objects are hashes, set the object size to 1"), "{error}");
}

#[test]
fn the_sample_of_a_real_machine() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces/cloudphysics_vm_block_2h.csv.gz");
    if !path.exists() {
        println!("skipped: needs {}", path.display());
        return;
    }
    let mut reader = TraceReader::open(&path, ReadOptions::default()).unwrap();
    assert_eq!((reader.format(), reader.compression()), (Format::CloudPhysics, Compression::Gzip));
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 113_872);
    assert_eq!(reader.faults().malformed, 0);
}

#[test]
fn packed_traces_are_unpacked_by_content() {
    let text = "419,W,8792731648,16384,1577808000000046\n".repeat(1000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text.as_bytes()).unwrap();
    let packed = [
        (gzip.finish().unwrap(), Compression::Gzip),
        (zstd::encode_all(text.as_bytes(), 1).unwrap(), Compression::Zstd),
        (xz.finish().unwrap(), Compression::Xz),
    ];
    for (bytes, compression) in packed {
        // Two members one after the other, as `cat a.gz b.gz` makes them.
        let twice = [bytes.clone(), bytes.clone()].concat();
        let (records, _, reader) = read(twice, "a trace without a telling name").unwrap();
        assert_eq!((records.len(), reader.compression(), reader.format()), (2000, compression, Format::Alibaba));
        let cut = &bytes[..bytes.len() - 9];
        let error = read(cut, "cut").err().unwrap();
        assert!(error.to_string().contains("is the file cut off or damaged?"), "{compression:?}: {error}");
    }
}
