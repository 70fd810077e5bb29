//! Good files against what they mean, bad ones against the text people see.

use super::{JobErrors, parse};
use crate::{Loop, Pattern, Pause, Step};
use minerva_blocksched::{Class, Contract, Cost, Kind};
use minerva_model::{Level, Nanos};
use proptest::prelude::{prop_assert, proptest};

const DISK: u64 = 1 << 30;

const FILE: &str = "\
; the jobs of Rocha and Bona 2012
[global]
ioengine=libaio   # asynchronous
bs=64k
direct=1
size=25%
filename=/dev/sdz

[reader]
rw=read
iodepth=8
minerva_contract=8800KB/s,128k,100ms
minerva_tenant=one

[global]
runtime=30
time_based

[writers]
rw=randwrite
random_distribution=zipf:1.2
numjobs=2
offset=50%
offset_increment=128m
size=128m
ioengine=psync
iodepth=32
thinktime=10ms
thinktime_blocks=4
startdelay=1
fsync=16
prioclass=3
nice=5
minerva_tenant=two
minerva_tenant_weight=300
minerva_tenant_level=idle
minerva_guest_scheduler=cfq
";

#[test]
fn a_file_means_what_it_means_to_fio() {
    let file = parse(FILE, "a.fio").unwrap();
    let ignored: Vec<&str> = file.ignored().iter().map(super::Problem::what).collect();
    assert_eq!(ignored, ["`filename` changes nothing: the disk is named on the command line"]);
    let jobs = file.bind(DISK, 1).unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["reader", "writers.0", "writers.1"]);

    let reader = &jobs[0].plan;
    assert_eq!(
        (reader.pattern, reader.when, reader.read_percent),
        (Pattern::Sequential, Loop::Closed { depth: 8 }, 100)
    );
    assert_eq!((reader.block_bytes, reader.offset_bytes, reader.region_bytes), (65_536, 0, DISK / 4));
    assert_eq!((reader.total_bytes, reader.ends_at), (Some(DISK / 4), None));

    let writer = &jobs[2].plan;
    assert_eq!((writer.pattern, writer.when), (Pattern::Zipf { exponent: 1.2 }, Loop::Closed { depth: 1 }));
    assert_eq!((writer.offset_bytes, writer.region_bytes), (DISK / 2 + (128 << 20), 128 << 20));
    assert_eq!(writer.pause, Some(Pause { time: Nanos::from_millis(10), every: 4 }));
    assert_eq!((writer.total_bytes, writer.ends_at), (None, Some(Nanos::from_secs(31))));
    assert_eq!((writer.flush_every_writes, jobs[2].starts_at), (Some(16), Nanos::SECOND));
    assert_ne!(jobs[1].seed, jobs[2].seed);
    assert_eq!((jobs[2].terms.class, jobs[2].terms.level), (Class::Idle, 5));

    let tenants = file.tenants();
    assert_eq!((tenants[0].name.as_str(), tenants[0].weight, &tenants[0].guest_scheduler), ("one", 100, &None));
    assert_eq!((tenants[0].level, tenants[1].level), (Level::Normal, Level::Idle));
    assert_eq!((tenants[1].weight, tenants[1].guest_scheduler.as_deref()), (300, Some("cfq")));
    assert_eq!([jobs[0].tenant, jobs[1].tenant, jobs[2].tenant], [0, 1, 1]);
}

#[test]
fn contracts_are_told_in_the_units_that_a_scheduler_charges() {
    let jobs = parse(FILE, "a.fio").unwrap().bind(DISK, 1).unwrap();
    let contract = |cost| jobs[0].parameters(cost).contract.unwrap();
    let delay = Nanos::from_millis(100);
    assert_eq!(contract(Cost::PerRequest), Contract { rate_per_second: 137.5, burst: 2.0, delay });
    assert_eq!(contract(Cost::PerBytes(4096)), Contract { rate_per_second: 2200.0, burst: 32.0, delay });
}

#[test]
fn rates_pace_or_arrive() {
    let jobs = |text: &str| parse(text, "a").unwrap().bind(DISK, 1).unwrap();
    assert_eq!(jobs("[a]\nrate=1m")[0].plan.rate_bytes_per_second, Some(1 << 20));
    assert_eq!(jobs("[a]\nrate_iops=100")[0].plan.rate_bytes_per_second, Some(409_600));
    let open = jobs("[a]\nrate_iops=100\nrate_process=poisson")[0].plan;
    assert_eq!((open.when, open.rate_bytes_per_second), (Loop::Open { rate_per_second: 100.0 }, None));
}

#[test]
fn trims_are_discards() {
    let jobs = parse("[a]\nrw=randtrim\nsize=1m", "a").unwrap().bind(DISK, 1).unwrap();
    assert_eq!((jobs[0].plan.pattern, jobs[0].plan.discards), (Pattern::Random, true));
}

#[test]
fn a_flush_key_of_zero_leaves_the_others_alone() {
    let every = |text: &str| {
        parse(&format!("[a]\nrw=write\n{text}"), "a").unwrap().bind(DISK, 1).unwrap()[0].plan.flush_every_writes
    };
    assert_eq!(every("fsync=16\nsync=0\nfdatasync=0"), Some(16));
    assert_eq!(every("fdatasync=8\nfsync=0"), Some(8));
    assert_eq!(every("fsync=4\nfdatasync=4"), Some(4));
    assert_eq!(every("sync=1\nfsync=16"), Some(1));
    assert_eq!(every("sync=1\nsync=0"), None);
}

#[test]
fn what_fio_does_otherwise_is_refused_at_its_place() {
    let text = "[both]\nrate=1m\nrate_iops=100\n[deep]\nrate_process=poisson\nrate_iops=9\nioengine=libaio\niodepth=8\n\
        [alone]\nrate_process=poisson\n[waits]\nrate_process=poisson\nrate=1m\nioengine=psync\n\
        [thinks]\nrate_process=poisson\nrate=1m\nthinktime=5\n[mixed]\nrw=randrw\nrate_process=poisson\nrate=1m\n\
        [flushes]\nrw=write\nfsync=3\nfdatasync=4\n";
    expect_test::expect![[r#"
        a.fio:3:11: job `both`: `rate` and `rate_iops` together are not simulated; give one of them
         3 | rate_iops=100
           |           ^^^
        a.fio:8:9: job `deep`: with `rate_process=poisson` requests come whatever is under way; leave `iodepth` out
         8 | iodepth=8
           |         ^
        a.fio:10:14: job `alone`: `poisson` needs `rate` or `rate_iops`
         10 | rate_process=poisson
            |              ^^^^^^^
        a.fio:14:10: job `waits`: with `rate_process=poisson` requests wait for none; take an asynchronous engine
         14 | ioengine=psync
            |          ^^^^^
        a.fio:18:11: job `thinks`: `thinktime` with `rate_process=poisson` is not simulated; leave one out
         18 | thinktime=5
            |           ^
        a.fio:21:14: job `mixed`: `poisson` with reads and writes in one job is not simulated; make two jobs
         21 | rate_process=poisson
            |              ^^^^^^^
        a.fio:26:11: job `flushes`: `fsync` and `fdatasync` at different distances are not simulated
         26 | fdatasync=4
            |           ^"#]]
    .assert_eq(&said(parse(text, "a.fio").unwrap().bind(DISK, 1)));
    let nothing = "[a]\nminerva_limit=0\n[b]\nminerva_contract=1m,0,10ms\n[c]\nminerva_contract=1m,64k,0\n[d]\nminerva_limit=0k\n";
    expect_test::expect![[r#"
        a.fio:2:15: `minerva_limit`: a limit of nothing; without the key there is no limit
         2 | minerva_limit=0
           |               ^
        a.fio:4:18: `minerva_contract`: a contract with a burst of nothing, which no request is within
         4 | minerva_contract=1m,0,10ms
           |                  ^^^^^^^^^
        a.fio:6:18: `minerva_contract`: a contract with a delay of nothing, which no disk can keep
         6 | minerva_contract=1m,64k,0
           |                  ^^^^^^^^
        a.fio:8:15: `minerva_limit`: a limit of nothing; without the key there is no limit
         8 | minerva_limit=0k
           |               ^^"#]]
    .assert_eq(&said(parse(nothing, "a.fio")));
}

#[test]
fn a_bound_job_flushes_after_its_writes() {
    let jobs = parse("[a]\nrw=write\nfsync=2\nio_size=12k", "a").unwrap().bind(DISK, 1).unwrap();
    let mut source = jobs[0].source();
    let mut kinds = Vec::new();
    while let Step::Issue(request) = source.next(Nanos::ZERO) {
        kinds.push(request.kind);
        assert_eq!(source.next(Nanos::ZERO), Step::Blocked);
        source.completed(Nanos::ZERO, &request);
    }
    assert_eq!(kinds, [Kind::Write, Kind::Write, Kind::Flush, Kind::Write]);
}

fn said(result: Result<impl Sized, JobErrors>) -> String {
    result.err().map(|errors| errors.to_string()).unwrap_or_default()
}

#[test]
fn every_error_of_a_file_is_shown_at_its_place() {
    let text = "bs=4k\n[a\n[a]\n  iodpeth = 4\nbs=4q ; why\nthinktime=-5\nrw=sideways\nsize=\nnumjobs=0\n=7\nverify=crc32c\n\
        minerva_contract=1m,2\nrandom_distribution=pareto:1\nbs=1000\ndirect=0\n";
    expect_test::expect![[r#"
        a.fio:1:1: a setting before the first section; begin with [global] or a job such as [reader]
         1 | bs=4k
           | ^^^^^
        a.fio:2:1: not a section's name; write it as [name]
         2 | [a
           | ^^
        a.fio:10:1: a value without a key
         10 | =7
            | ^^
        a.fio:4:3: unknown key `iodpeth`; did you mean `iodepth`?
         4 |   iodpeth = 4
           |   ^^^^^^^
        a.fio:5:4: `bs`: `q` is not a unit of bytes (k, m, g, t, p)
         5 | bs=4q ; why
           |    ^^
        a.fio:6:11: `thinktime`: a time cannot be negative
         6 | thinktime=-5
           |           ^^
        a.fio:7:4: `rw`: `sideways` is not one of read, write, rw, readwrite, randread, randwrite, randrw, trim, randtrim
         7 | rw=sideways
           |    ^^^^^^^^
        a.fio:8:1: `size`: a value is needed
         8 | size=
           | ^^^^
        a.fio:9:9: `numjobs`: `0` is not a whole number from 1 to 100000
         9 | numjobs=0
           |         ^
        a.fio:11:1: unknown key `verify`; keys of fio's that are not simulated cannot be used here
         11 | verify=crc32c
            | ^^^^^^
        a.fio:12:18: `minerva_contract`: a contract is rate,burst,delay, such as 8800KB/s,64k,100ms
         12 | minerva_contract=1m,2
            |                  ^^^^
        a.fio:13:21: `random_distribution`: `pareto:1` is not simulated; there are random and zipf:theta
         13 | random_distribution=pareto:1
            |                     ^^^^^^^^
        a.fio:14:4: `bs`: 1000 bytes are not a multiple of a sector, 512 bytes
         14 | bs=1000
            |    ^^^^
        a.fio:15:8: `direct`: there is no page cache in front of the simulated disk
         15 | direct=0
            |        ^"#]]
    .assert_eq(&said(parse(text, "a.fio")));
    assert_eq!(said(parse("", "a.fio")), "a.fio: the job file is empty");
    assert_eq!(said(parse("[global]\nbs=4k", "a.fio")), "a.fio: no job in it: add a section such as [reader]");
}

#[test]
fn what_does_not_fit_the_disk_is_shown_at_its_place() {
    let text = "[global]\nbs=64k\n[far]\noffset=2g\n[long]\noffset=512m\nsize=513m\n[short]\nsize=4k\n[many]\nnumjobs=3\noffset_increment=512m\n\
        [endless]\ntime_based\n";
    expect_test::expect![[r#"
        a.fio:4:8: job `far`: process 0 would start past the disk's end at 1073741824 bytes
         4 | offset=2g
           |        ^^
        a.fio:7:6: job `long`: 537919488 bytes from byte 536870912 end 1048576 bytes past the disk's end at 1073741824
         7 | size=513m
           |      ^^^^
        a.fio:9:6: job `short`: 4096 bytes do not hold one block of 65536
         9 | size=4k
           |      ^^
        a.fio:12:18: job `many`: process 2 would start past the disk's end at 1073741824 bytes
         12 | offset_increment=512m
            |                  ^^^^
        a.fio:14:1: job `endless`: without `runtime` it would never end
         14 | time_based
            | ^^^^^^^^^^"#]]
    .assert_eq(&said(parse(text, "a.fio").unwrap().bind(DISK, 1)));
    assert!(
        said(parse("[a]\nnumjobs=60000\n[b]\nnumjobs=60000", "a").unwrap().bind(DISK, 1)).contains("120000 processes")
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(lines in proptest::collection::vec("(\\[[a-c]\\]|(bs|size|offset|numjobs|rate|runtime|offset_increment|io_size|thinktime|minerva_contract)=[-0-9]{0,12}[kmgtpisx%/,.]{0,3}|.{0,20})", 0..12), capacity: u64) {
        if let Ok(file) = parse(&lines.join("\n"), "x")
            && let Ok(jobs) = file.bind(capacity, 7)
        {
            for job in jobs.iter().take(10) {
                let mut source = job.source();
                if let Step::Issue(request) = source.next(Nanos::ZERO) {
                    prop_assert!(request.offset_bytes + u64::from(request.length_bytes) <= capacity);
                }
            }
        }
    }
}
