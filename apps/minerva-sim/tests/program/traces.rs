//! Traces: `trace info`, `convert` and `slice`, and `run`.

use super::{fed, place, sim};
use expect_test::expect;
use serde_json::Value;
use std::path::Path;

/// One event of blktrace, by the layout in linux/blktrace_api.h.
fn blktrace_event(big: bool, time: u64, sector: u64, bytes: u32, action: u32) -> Vec<u8> {
    let fields: [&[u8]; 10] = [
        &0x6561_7407_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        &time.to_le_bytes(),
        &sector.to_le_bytes(),
        &bytes.to_le_bytes(),
        &action.to_le_bytes(),
        &4711_u32.to_le_bytes(),
        &(8_u32 << 20).to_le_bytes(),
        &0_u32.to_le_bytes(),
        &[0; 4],
    ];
    fields.iter().flat_map(|field| if big { field.iter().rev().copied().collect() } else { field.to_vec() }).collect()
}

fn blktrace(big: bool) -> Vec<u8> {
    let (queue_read, queue_write, complete_read) = (1 | 1 << 16, 1 | 1 << 17, 8 | 1 << 16);
    let events = (0..50_u64).flat_map(|n| {
        [
            blktrace_event(big, n * 1_000_000, n * 64, 4096, queue_read),
            blktrace_event(big, n * 1_000_000 + 1000, n * 64 + 32, 8192, queue_write),
            blktrace_event(big, n * 1_000_000 + 90_000, n * 64, 4096, complete_read),
        ]
    });
    events.flatten().collect()
}

/// Version 2 of CloudPhysics' binary form.
fn vscsi() -> Vec<u8> {
    let record = |n: u64| -> Vec<u8> {
        let command: u16 = if n.is_multiple_of(3) { 0x2A } else { 0x28 };
        let fields: [&[u8]; 8] = [
            &command.to_le_bytes(),
            &(2_u16 << 8).to_le_bytes(),
            &7_u32.to_le_bytes(),
            &4096_u32.to_le_bytes(),
            &1_u32.to_le_bytes(),
            &(n * 8).to_le_bytes(),
            &(n * 1500).to_le_bytes(),
            &33_u64.to_le_bytes(),
        ];
        fields.concat()
    };
    (0..100).flat_map(record).collect()
}

fn oracle() -> Vec<u8> {
    let record = |n: u32| -> Vec<u8> {
        [&n.to_le_bytes()[..], &u64::from(n * 8).to_le_bytes(), &4096_u32.to_le_bytes(), &(-1_i64).to_le_bytes()]
            .concat()
    };
    (0..100).flat_map(record).collect()
}

/// A trace of a hundred requests in each format, under a name that says nothing.
fn every_format() -> Vec<(&'static str, Vec<u8>)> {
    let lines = |head: &str, line: fn(u64) -> String| {
        let body: String = (0..100).map(line).collect();
        format!("{head}{body}").into_bytes()
    };
    fn letter(n: u64) -> char {
        if n.is_multiple_of(3) { 'W' } else { 'R' }
    }
    vec![
        (
            "systor",
            lines("Timestamp,Response,IOType,LUN,Offset,Size\n", |n| {
                format!("1456095145.{:09},0.000806000,{},{},{},8192\n", n * 1_000_000, letter(n), n % 3, n * 8192)
            }),
        ),
        (
            "msr",
            lines("", |n| {
                let kind = if n.is_multiple_of(3) { "Write" } else { "Read" };
                format!("{},usr,{},{kind},{},4096,41286\n", 128_166_372_003_061_629 + n * 10_000, n % 2, n * 4096)
            }),
        ),
        (
            "alibaba",
            lines("", |n| format!("{},{},{},4096,{}\n", n % 5, letter(n), n * 4096, 1_577_808_000_000_046 + n * 500)),
        ),
        ("tencent", lines("", |n| format!("{},{},8,{},{}\n", 1_538_323_199 + n / 10, n * 8, n % 2, 1063 + n % 4))),
        (
            "spc",
            lines("", |n| format!("{},{},4096,{},{}.{:06}\n", n % 2, n * 8, letter(n), n / 1000, n * 1000 % 1_000_000)),
        ),
        (
            "fio-iolog",
            lines("fio version 3 iolog\n", |n| {
                format!(
                    "{} /dev/vda {} {} 4096\n",
                    n * 700,
                    if n.is_multiple_of(3) { "write" } else { "read" },
                    n * 4096
                )
            }),
        ),
        ("cloudphysics", lines("t_us,op,bytes,lbn\n", |n| format!("{},{},4096,{}\n", n * 900, letter(n), n * 8))),
        ("blktrace", blktrace(false)),
        ("blktrace", blktrace(true)),
        ("vscsi", vscsi()),
        ("oracle-general", oracle()),
    ]
}

/// What a trace holds, without what depends on its form.
fn holds(directory: &Path, file: &str) -> (String, Value) {
    let mut info = sim(directory, &["trace", "info", file, "--json"]).json();
    let format = info["format"].as_str().expect("a format").to_owned();
    let object = info.as_object_mut().expect("an object");
    // Instants count from the first request in the native form.
    ["format", "compression", "first_ns", "dropped"].iter().for_each(|key| drop(object.remove(*key)));
    (format, info)
}

#[test]
fn every_format_goes_through_the_native_form_and_back() {
    for (name, content) in every_format() {
        let directory = place(&[("trace", &content)]);
        let (format, before) = holds(directory.path(), "trace");
        assert_eq!(format, name);
        assert_eq!(before["requests"], 100, "{name}");
        assert_eq!(before["malformed"], 0, "{name}");
        let said = sim(directory.path(), &["trace", "convert", "trace", "native"]).out();
        assert!(said.starts_with(&format!("100 requests of {name} in ")), "{said}");
        let (format, after) = holds(directory.path(), "native");
        assert_eq!((format.as_str(), &after), ("native", &before), "{name}");
    }
}

#[test]
fn slices_put_together_are_the_whole() {
    let (_, content) = every_format().swap_remove(2);
    let directory = place(&[("trace", &content)]);
    let requests = |arguments: &[&str]| {
        sim(directory.path(), &[&["trace", "slice", "trace", "part"], arguments].concat()).out();
        holds(directory.path(), "part").1["requests"].as_u64().expect("a count")
    };
    assert_eq!(requests(&["--until", "0.02"]) + requests(&["--from", "0.02"]), 100);
    assert_eq!((0..5).map(|volume| requests(&["--volume", &volume.to_string()])).sum::<u64>(), 100);
    assert_eq!(requests(&["--skip", "30", "--count", "50"]), 50);
    let nothing = sim(directory.path(), &["trace", "slice", "trace", "none", "--from", "500"]);
    assert_eq!(nothing.refusal(), "minerva-sim: no request of trace is in that part\n");
    assert!(!directory.path().join("none").exists() && !directory.path().join("none.partial").exists());
}

#[test]
fn info_says_what_a_trace_holds() {
    let (_, content) = every_format().swap_remove(0);
    let directory = place(&[("2016022107-LUN0.csv", &content)]);
    expect![[r#"
        format       systor
        compression  none
        requests     100
        span         99.0 ms
        reads        66 of 540672 bytes in all
        writes       34 of 278528 bytes in all
        flushes      0
        discards     0
        a second     1010.1 on average, 100 in the busiest
        needs a disk of 819200 bytes
        latency      806.0 us on average, of 100 requests
        malformed    0
        sizes
          up to       8192           100  100.0 %
        volumes      3
                   0             0 reads            34 writes            819200 bytes
                   1            33 reads             0 writes            802816 bytes
                   2            33 reads             0 writes            811008 bytes
    "#]]
    .assert_eq(&sim(directory.path(), &["trace", "info", "2016022107-LUN0.csv"]).out());
}

#[test]
fn the_trace_of_a_real_machine_is_read_converted_sliced_and_replayed() {
    let real =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces/cloudphysics_vm_block_2h.csv.gz");
    if !real.exists() {
        println!("skipped: needs {}", real.display());
        return;
    }
    let directory = place(&[("t.csv.gz", &std::fs::read(&real).expect("the trace"))]);
    let (format, before) = holds(directory.path(), "t.csv.gz");
    assert_eq!((format.as_str(), &before["requests"]), ("cloudphysics", &Value::from(113_872)));
    sim(directory.path(), &["trace", "convert", "t.csv.gz", "t.parquet"]).out();
    assert_eq!(holds(directory.path(), "t.parquet"), ("native".to_owned(), before));
    sim(directory.path(), &["trace", "slice", "t.parquet", "minute.parquet", "--from", "600", "--until", "660"]).out();
    let (_, minute) = holds(directory.path(), "minute.parquet");
    let report = sim(directory.path(), &["run", "minute.parquet", "--json"]).json();
    assert_eq!(report["requests"], minute["requests"]);
    let whole = sim(directory.path(), &["run", "t.parquet", "--json", "--profile", "sata-ssd", "--scheduler", "noop"]);
    assert_eq!(whole.err, "");
    assert_eq!(whole.json()["requests"], 113_872);
}

#[test]
fn a_trace_comes_through_a_pipe() {
    let (_, content) = every_format().swap_remove(2);
    let directory = place(&[("trace", &content)]);
    let piped = fed(directory.path(), &["trace", "info", "-"], &content).out();
    assert_eq!(piped, sim(directory.path(), &["trace", "info", "trace"]).out());
    let ran = fed(directory.path(), &["run", "-", "--json"], &content).json();
    assert_eq!(ran["requests"], 100);
    let twice = fed(directory.path(), &["compare", "-", "--schedulers", "noop,bfq"], &content);
    assert_eq!(
        twice.refusal(),
        "minerva-sim: - is not a file, and every scheduler reads the trace again; give a file\n"
    );
}

#[test]
fn the_schedulers_replay_the_same_trace() {
    let (_, content) = every_format().swap_remove(2);
    let directory = place(&[("trace", &content)]);
    let eight = "noop,mq-deadline,cfq,bfq,pclock,htbs,mclock,tag";
    let reports = sim(directory.path(), &["compare", "trace", "--schedulers", eight, "--json", "--speed", "8"]).json();
    let requests: Vec<_> = reports.as_array().expect("reports").iter().map(|report| &report["requests"]).collect();
    assert_eq!(requests, vec![&Value::from(100); 8]);
}

#[test]
fn volumes_are_tenants_and_their_weights_count() {
    // Two volumes that ask for more than the disk has, in runs that BFQ can serve one after the other.
    let line = |n: u64| {
        let (volume, place) = (n % 2, n / 2);
        format!("{volume},R,{},65536,{}\n", place * 65_536, n * 10)
    };
    let content: String = (0..8000).map(line).collect();
    let directory = place(&[("trace", content.as_bytes())]);
    let compared = |arguments: &[&str]| {
        let common = ["compare", "trace", "--schedulers", "bfq,noop", "--json", "--trace-depth", "4", "--until", "2"];
        sim(directory.path(), &[&common[..], arguments].concat()).json()
    };
    let share = |report: &Value| report["tenants"][0]["share"].as_f64().expect("a share");
    let equal = compared(&[]);
    let weighted = compared(&["--trace-weight", "0=400"]);
    assert_eq!(equal[0]["tenants"][1]["name"], "volume 1");
    assert!((share(&equal[0]) - 0.5).abs() < 0.05, "{}", share(&equal[0]));
    assert!(share(&weighted[0]) > 0.7, "four times the weight gets {}", share(&weighted[0]));
    assert!((share(&weighted[1]) - 0.5).abs() < 0.05, "noop knows no weights: {}", share(&weighted[1]));
    let one = compared(&["--trace-tenants", "one"]);
    assert_eq!(one[0]["tenants"].as_array().map(Vec::len), Some(1));
    let tagged = ["run", "trace", "--scheduler", "tag", "--trace-depth", "16", "--until", "2", "--json"];
    let tags = ["--trace-tag", "volume 1=8", "--trace-tag", "0=2"];
    let tagged = sim(directory.path(), &[&tagged[..], &tags].concat()).json();
    assert!(share(&tagged) < 0.35, "priority 2 beside 8 gets {}", share(&tagged));
}

#[test]
fn volumes_that_a_trace_does_not_have_or_a_disk_has_no_room_for() {
    let two = "1,W,0,4096,0\n2,W,60000000000,4096,10\n1,R,50000000000,4096,20\n";
    let directory = place(&[("t.csv", two.as_bytes())]);
    let run = |arguments: &[&str]| sim(directory.path(), &[&["run", "t.csv"], arguments].concat());
    let said = |arguments: &[&str]| run(arguments).err;
    expect![[r#"
        minerva-sim: the trace does not fit the disk: its 2 volumes, one after the other, need 110000865280 bytes of 80026361856; --fold folds each onto its share, --trace-tenants one overlaps them, --profile names another disk
    "#]].assert_eq(&said(&["--trace-weight", "7=300"]));
    expect![[r#"
        minerva-sim: t.csv has no volume `7`; there are volume 1, volume 2
    "#]]
    .assert_eq(&said(&["--fold", "--trace-weight", "7=300"]));
    expect![[r#"
        minerva-sim: --trace-weight 2=0: a weight is from 1 to 10000
    "#]]
    .assert_eq(&said(&["--fold", "--trace-weight", "2=0"]));
    expect![[r#"
        minerva-sim: --trace-tag 2: a tag is from 1 to 254
    "#]]
    .assert_eq(&said(&["--fold", "--trace-tag", "2=255"]));
    expect![[r#"
        minerva-sim: the volumes of t.csv cannot be tenants: --trace-tenants is one
    "#]]
    .assert_eq(&said(&["--trace-tenants", "one", "--trace-weight", "2=3"]));
    expect![[r#"
        error: invalid value '0' for '--trace-depth <REQUESTS>': 0 is not in 1..=4294967295

        For more information, try '--help'.
    "#]]
    .assert_eq(&said(&["--fold", "--trace-depth", "0"]));
    let folded = run(&["--fold", "--json"]);
    expect![[r#"
        folded onto the disk: 2 of 3 requests, which lay past its end; the first: line 2, line 3
    "#]]
    .assert_eq(&folded.err);
    let folded = folded.json();
    assert_eq!((&folded["trace"]["requests"], &folded["trace"]["folded"]), (&Value::from(3), &Value::from(2)));
    assert_eq!(run(&["--trace-tenants", "one"]).code, Some(0));
}
