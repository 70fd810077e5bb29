//! Bad input: a message with the place and a remedy, never a panic, never silence. One test for each kind.

use super::{Ran, fed, place, sim};
use expect_test::{Expect, expect};

/// Runs the program on a file of this name and content.
pub(super) fn on(name: &str, content: &[u8], arguments: &[&str]) -> Ran {
    sim(place(&[(name, content)]).path(), arguments)
}

pub(super) fn refused(name: &str, content: impl AsRef<[u8]>, expected: &Expect) {
    expected.assert_eq(&on(name, content.as_ref(), &["run", name]).refusal());
}

/// Lines of Alibaba's format, one a millisecond.
pub(super) fn lines(count: u64) -> String {
    (0..count).map(|n| format!("1,W,{},4096,{}\n", n * 4096, 1000 * n)).collect()
}

#[test]
fn keys_that_nobody_knows() {
    refused(
        "a.fio",
        "[reader]\nrw=read\niodpeth=4\nverify=crc32c\nsize=1g\n",
        &expect![[r#"
        minerva-sim: a.fio:3:1: unknown key `iodpeth`; did you mean `iodepth`?
         3 | iodpeth=4
           | ^^^^^^^
        a.fio:4:1: unknown key `verify`; keys of fio's that are not simulated cannot be used here
         4 | verify=crc32c
           | ^^^^^^
    "#]],
    );
}

#[test]
fn sizes_that_cannot_be() {
    refused(
        "a.fio",
        "[a]\nbs=0\n[b]\nbs=1000\nsize=4q\n[c]\nsize=99999999999t\n[d]\nsize=1k\nbs=2%\n",
        &expect![[r#"
        minerva-sim: a.fio:2:4: `bs`: a block of no bytes
         2 | bs=0
           |    ^
        a.fio:4:4: `bs`: 1000 bytes are not a multiple of a sector, 512 bytes
         4 | bs=1000
           |    ^^^^
        a.fio:5:6: `size`: `q` is not a unit of bytes (k, m, g, t, p)
         5 | size=4q
           |      ^^
        a.fio:7:6: `size`: `99999999999t` is not a size, or too great
         7 | size=99999999999t
           |      ^^^^^^^^^^^^
        a.fio:10:4: `bs`: `%` is not a unit of bytes (k, m, g, t, p)
         10 | bs=2%
            |    ^^
    "#]],
    );
    refused(
        "a.fio",
        "[a]\nbs=64k\nsize=4k\n[b]\nnumjobs=0\n",
        &expect![[r#"
        minerva-sim: a.fio:5:9: `numjobs`: `0` is not a whole number from 1 to 100000
         5 | numjobs=0
           |         ^
    "#]],
    );
    refused(
        "a.fio",
        "[a]\nbs=64k\nsize=4k\n[b]\nnumjobs=100001\n",
        &expect![[r#"
        minerva-sim: a.fio:5:9: `numjobs`: `100001` is not a whole number from 1 to 100000
         5 | numjobs=100001
           |         ^^^^^^
    "#]],
    );
}

#[test]
fn times_before_time() {
    refused(
        "a.fio",
        "[a]\nthinktime=-5\nruntime=-1s\nstartdelay=-2\n",
        &expect![[r#"
        minerva-sim: a.fio:2:11: `thinktime`: a time cannot be negative
         2 | thinktime=-5
           |           ^^
        a.fio:3:9: `runtime`: a time cannot be negative
         3 | runtime=-1s
           |         ^^^
        a.fio:4:12: `startdelay`: a time cannot be negative
         4 | startdelay=-2
           |            ^^
    "#]],
    );
    refused(
        "t.csv",
        format!("1,W,0,4096,-7\n1,W,0,4096,-3\n{}", lines(100)),
        &expect![[r#"
            2 entries were not understood and were left out; the first:
              line 1: the timestamp is negative in `1,W,0,4096,-7`
              line 2: the timestamp is negative in `1,W,0,4096,-3`
            minerva-sim: the trace could not be replayed: t.csv: 2 of the first 102 entries could not be understood as alibaba, the first at line 1: the timestamp is negative in `1,W,0,4096,-7`; name another format, or allow more malformed entries
        "#]],
    );
}

#[test]
fn places_past_the_end_of_the_disk() {
    refused(
        "a.fio",
        "[a]\noffset=90g\n[b]\noffset=70g\nsize=10g\n",
        &expect![[r#"
        minerva-sim: a.fio:2:8: job `a`: process 0 would start past the disk's end at 80026361856 bytes
         2 | offset=90g
           |        ^^^
        a.fio:5:6: job `b`: 10737418240 bytes from byte 75161927680 end 5872984064 bytes past the disk's end at 80026361856
         5 | size=10g
           |      ^^^
    "#]],
    );
    let trace = format!("{}1,R,80026361856,4096,3000\n", lines(2));
    refused(
        "t.csv",
        &trace,
        &expect![[r#"
        minerva-sim: the trace does not fit the disk (--fold folds its addresses, --profile names another disk): t.csv: line 3: the request of 4096 bytes at byte 80026361856 is past the disk's end at 80026361856; fold the addresses, or take a greater disk
    "#]],
    );
    let folded = on("t.csv", trace.as_bytes(), &["run", "t.csv", "--fold", "--json"]);
    expect![[r#"
        folded onto the disk: 1 of 3 requests, which lay past its end; the first: line 3
    "#]]
    .assert_eq(&folded.err);
    assert_eq!(folded.json()["requests"], 3);
}

#[test]
fn records_out_of_order() {
    let trace = format!("{}1,R,0,4096,2500\n1,R,0,4096,9000\n", lines(4));
    let sorted = on("t.csv", trace.as_bytes(), &["run", "t.csv", "--json"]);
    expect![[r#"
        1 request was out of order and was sorted by time, by up to 500.0 us
    "#]]
    .assert_eq(&sorted.err);
    assert_eq!(sorted.json()["requests"], 6);
    let clamped = on("t.csv", trace.as_bytes(), &["run", "t.csv", "--json", "--sort-window", "100us"]);
    expect![[r#"
        1 request was out of order by more than --sort-window, by up to 500.0 us, and moved to the time of the request before
        the first out of order:
          line 5: 500.0 us earlier than the one before it
    "#]]
    .assert_eq(&clamped.err);
    assert_eq!(clamped.json()["requests"], 6);
    let refused = on("t.csv", trace.as_bytes(), &["run", "t.csv", "--in-order"]);
    expect![[r#"
        minerva-sim: the trace could not be replayed: t.csv: line 5 is 500.0 us earlier than the request before it; sort the trace, or let it be sorted within a window
    "#]].assert_eq(&refused.refusal());
}

#[test]
fn records_that_are_cut_off_or_malformed() {
    let trace = format!("{}1,W,12", lines(200));
    let tolerated = on("t.csv", trace.as_bytes(), &["run", "t.csv", "--json"]);
    expect![[r#"
        1 entry was not understood and was left out; the first:
          line 201: 3 columns, where this format has 5 in `1,W,12`
    "#]]
    .assert_eq(&tolerated.err);
    assert_eq!(tolerated.json()["requests"], 200);
    let noisy = lines(100).replace(",W,8192,", ",W,eight,").replace(",W,12288,", ",X,12288,");
    refused(
        "t.csv",
        &noisy,
        &expect![[r#"
        2 entries were not understood and were left out; the first:
          line 3: the offset is not a whole number in `1,W,eight,4096,2000`
          line 4: the type is neither R nor W in `1,X,12288,4096,3000`
        minerva-sim: the trace could not be replayed: t.csv: 2 of the first 100 entries could not be understood as alibaba, the first at line 3: the offset is not a whole number in `1,W,eight,4096,2000`; name another format, or allow more malformed entries
    "#]],
    );
    let allowed = on("t.csv", noisy.as_bytes(), &["trace", "info", "t.csv", "--malformed-max", "5"]);
    expect![[r#"
        2 entries were not understood and were left out; the first:
          line 3: the offset is not a whole number in `1,W,eight,4096,2000`
          line 4: the type is neither R nor W in `1,X,12288,4096,3000`
    "#]]
    .assert_eq(&allowed.err);
    assert_eq!(allowed.code, Some(0));
}

#[test]
fn packed_files_that_are_cut_off() {
    let packed = zstd::encode_all(lines(1000).as_bytes(), 1).expect("packed");
    refused(
        "t.csv.zst",
        &packed[..packed.len() - 9],
        &expect![[r#"
        minerva-sim: t.csv.zst: cannot be read beyond byte 0; is the file cut off or damaged?: incomplete frame
    "#]],
    );
}

#[test]
fn bytes_in_the_other_order() {
    let event = |big: bool, time: u64| -> Vec<u8> {
        let fields: [&[u8]; 10] = [
            &0x6561_7407_u32.to_le_bytes(),
            &1_u32.to_le_bytes(),
            &time.to_le_bytes(),
            &8_u64.to_le_bytes(),
            &4096_u32.to_le_bytes(),
            &(1_u32 | 1 << 16).to_le_bytes(),
            &1_u32.to_le_bytes(),
            &(8_u32 << 20).to_le_bytes(),
            &0_u32.to_le_bytes(),
            &[0; 4],
        ];
        let turned = |field: &&[u8]| if big { field.iter().rev().copied().collect() } else { field.to_vec() };
        fields.iter().flat_map(turned).collect()
    };
    let mixed: Vec<u8> = (0..200).flat_map(|n| event(n == 100, n * 1000)).collect();
    let info = on("sda.blktrace.0", &mixed, &["trace", "info", "sda.blktrace.0"]);
    expect![[r#"
        1 entry was not understood and was left out; the first:
          byte 4800: a record of the other byte order
    "#]]
    .assert_eq(&info.err);
    assert_eq!(info.code, Some(0));
    let half: Vec<u8> = (0..200).flat_map(|n| event(n % 2 == 1, n * 1000)).collect();
    refused(
        "sda.blktrace.0",
        &half,
        &expect![[r#"
            100 entries were not understood and were left out; the first:
              byte 48: a record of the other byte order
              byte 144: a record of the other byte order
              byte 240: a record of the other byte order
              byte 336: a record of the other byte order
              byte 432: a record of the other byte order
            minerva-sim: the trace could not be replayed: sda.blktrace.0: 100 of the first 100 entries could not be understood as blktrace, the first at byte 48: a record of the other byte order; name another format, or allow more malformed entries
        "#]],
    );
}

#[test]
fn files_with_nothing_in_them() {
    refused(
        "a.fio",
        "",
        &expect![[r#"
        minerva-sim: a.fio: the job file is empty
    "#]],
    );
    refused(
        "a.fio",
        "[global]\nbs=4k\n",
        &expect![[r#"
        minerva-sim: a.fio: no job in it: add a section such as [reader]
    "#]],
    );
    refused(
        "t.csv",
        "",
        &expect![[r#"
        minerva-sim: t.csv: the trace is empty
    "#]],
    );
    refused(
        "t.parquet",
        "PAR1",
        &expect![[r#"
        minerva-sim: t.parquet: the Parquet file is damaged: EOF: Parquet file too small. Size is 4 but need 8
    "#]],
    );
    let nothing = fed(place(&[]).path(), &["trace", "info", "-"], &[]);
    expect![[r#"
        minerva-sim: standard input: the trace is empty
    "#]]
    .assert_eq(&nothing.refusal());
}

#[test]
fn a_line_that_does_not_end() {
    // Eight mebibytes stand for a terabyte; no reader keeps more than one of them.
    let endless = "7".repeat(8 << 20);
    refused(
        "t.csv",
        &endless,
        &expect![[r#"
            minerva-sim: t.csv: not a trace of a known format (text, and none of its first lines has the columns of a known format; the first is `77777777777777777777777777777777777777777777777777777777777777777777777777777777…`); name the format if it is one of: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general, native
        "#]],
    );
    let between = format!("{}{endless}\n{}", lines(100), lines(1));
    let info = on("t.csv", between.as_bytes(), &["trace", "info", "t.csv"]);
    expect![[r#"
        1 entry was not understood and was left out; the first:
          line 101: a line of more than 1048576 bytes in `77777777777777777777777777777777777777777777777777777777777777777777777777777777…`
        1 request was out of order and was sorted by time, by up to 99.0 ms
    "#]].assert_eq(&info.err);
    refused(
        "a.fio",
        &endless,
        &expect![[r#"
        minerva-sim: a.fio is longer than 1048576 bytes, which is too long for such a file
    "#]],
    );
}

#[test]
fn files_that_are_something_else() {
    refused(
        "t.csv",
        "Dear diary,\ntoday nothing was read.\n",
        &expect![[r#"
            minerva-sim: t.csv: not a trace of a known format (text, and none of its first lines has the columns of a known format; the first is `Dear diary,`); name the format if it is one of: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general, native
        "#]],
    );
    refused(
        "t.bin",
        [0xEE; 512],
        &expect![[r#"
        minerva-sim: t.bin: not a trace of a known format (binary, without a mark that is known); name the format if it is one of: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general, native
    "#]],
    );
    refused(
        "a.fio",
        b"[reader]\n# caf\xe9\nsize=1g\n",
        &expect![[r#"
        minerva-sim: a.fio:2: not UTF-8; save the file as UTF-8
    "#]],
    );
    let missing = sim(place(&[]).path(), &["run", "missing.fio"]);
    expect![[r#"
        minerva-sim: failed to read missing.fio: No such file or directory (os error 2)
    "#]]
    .assert_eq(&missing.refusal());
    let directory = sim(place(&[]).path(), &["run", "."]);
    expect![[r#"
        minerva-sim: cannot open the trace .: is a directory
    "#]]
    .assert_eq(&directory.refusal());
}
