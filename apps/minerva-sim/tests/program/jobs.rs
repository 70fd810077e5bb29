//! Job files: `run` and `compare`.

use super::{place, sim};
use expect_test::expect;
use serde_json::Value;

/// Every key of the subset that the simulator promises, in four jobs of two tenants.
const FILE: &str = "\
[global]
bs=64k
runtime=3
time_based

[sequential]
rw=read
ioengine=psync
size=2g
minerva_contract=8MB/s,64k,200ms

[queued]
rw=randread
bs=4k
ioengine=libaio
iodepth=4
offset=10g
size=1g

[paced]
rw=write
offset=20g
size=1g
rate=1m
numjobs=2
offset_increment=1g
minerva_tenant=writers

[thinker]
rw=randrw
rwmixread=70
offset=30g
size=1g
thinktime=5ms
prio=2
minerva_tenant=writers
";

/// What is printed, with every number as `#` and blanks run together: numbers change whenever a scheduler gets better.
fn shape(out: &str) -> String {
    let is_number = |word: &&str| word.chars().next().is_some_and(|first| first.is_ascii_digit());
    let line = |line: &str| {
        let words = line.split_whitespace().map(|word| if is_number(&word) { "#" } else { word });
        format!("{}\n", words.collect::<Vec<_>>().join(" "))
    };
    out.lines().map(line).collect()
}

#[test]
fn a_job_file_runs_and_its_table_says_who_got_what() {
    let directory = place(&[("four.fio", FILE.as_bytes())]);
    let ran = sim(directory.path(), &["run", "four.fio"]);
    assert_eq!(ran.err, "");
    expect![[r#"
        bfq on sata7200-80g, # at the disk at once: # MB/s, # requests in # s, Jain's index #
        process tenant MB/s share p50 ms p95 ms p99 ms max ms ended s guarantee missed
        sequential sequential # # % # # # # # # of # s, # of # late
        queued queued # # % # # # # # -
        paced.0 writers # # % # # # # # -
        paced.1 writers # # % # # # # # -
        thinker writers # # % # # # # # -

        tenant processes MB share
        sequential # # # %
        queued # # # %
        writers # # # %
    "#]]
    .assert_eq(&shape(&ran.out()));
}

#[test]
fn the_eight_schedulers_stand_side_by_side() {
    let directory = place(&[("four.fio", FILE.as_bytes())]);
    let eight = "noop,mq-deadline,cfq,bfq,pclock,htbs,mclock,tag";
    let ran = sim(directory.path(), &["compare", "four.fio", "--schedulers", eight]);
    assert_eq!(ran.err, "");
    expect![[r#"
        sata7200-80g
        scheduler depth MB/s Jain p50 ms p99 ms guarantee s missed sequential queued paced.0 paced.1 thinker
        noop # # # # # # of # # # # # #
        mq-deadline # # # # # # of # # # # # #
        cfq # # # # # # of # # # # # #
        bfq # # # # # # of # # # # # #
        pclock # # # # # # of # # # # # #
        htbs # # # # # # of # # # # # #
        mclock # # # # # # of # # # # # #
        tag # # # # # # of # # # # # #
        each percentile is the greatest of any process; the last columns are MB/s by process
    "#]]
    .assert_eq(&shape(&ran.out()));
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let directory = place(&[("four.fio", FILE.as_bytes())]);
    let compared = |threads: &str, report: &str| {
        let schedulers = "noop,bfq,htbs,mclock,tag";
        let arguments =
            ["compare", "four.fio", "--schedulers", schedulers, "--seed", "7", "--json", "--report", report];
        let out = sim(directory.path(), &[&arguments[..], &["--threads", threads]].concat()).out();
        (out, std::fs::read(directory.path().join(report)).expect("a report"))
    };
    let alone = compared("1", "1.html");
    assert!(alone.0.len() > 1000);
    assert!(alone == compared("4", "4.html"), "one thread and four give different output");
    assert!(alone == compared("1", "again.html"), "equal seeds give different output");
}

#[test]
fn another_seed_is_another_run() {
    let directory = place(&[("four.fio", FILE.as_bytes())]);
    let seeded = |seed| sim(directory.path(), &["run", "four.fio", "--json", "--seed", seed]).out();
    assert_ne!(seeded("1"), seeded("2"));
}

#[test]
fn a_disk_that_stands_still_serves_nothing_meanwhile() {
    let job = "[reader]\nrw=read\nbs=64k\nruntime=6\ntime_based\n";
    let directory = place(&[("one.fio", job.as_bytes())]);
    let bins = |faults: &[&str]| -> Vec<u64> {
        let report = sim(directory.path(), &[&["run", "one.fio", "--json"], faults].concat()).json();
        let bins = report["processes"][0]["bins_bytes"].as_array().expect("bins").clone();
        bins.iter().filter_map(Value::as_u64).collect()
    };
    let (well, ill) = (bins(&[]), bins(&["--fault", "1-2x0", "--fault", "3-5x4"]));
    assert!(ill[1] <= 65_536, "at most what was on its way is served while the disk stands still: {ill:?}");
    for second in [3, 4] {
        let part = ill[second] as f64 / well[second] as f64;
        assert!((0.2..0.3).contains(&part), "four times slower is {part} of the throughput: {ill:?} of {well:?}");
    }
    assert!(ill[2] as f64 > 0.9 * well[2] as f64, "it goes on as before: {ill:?} of {well:?}");
}

#[test]
fn the_engine_steers_and_says_so() {
    let job = "[global]\nrw=read\nbs=64k\n[heavy]\nsize=1500m\n[newcomer]\noffset=40g\nsize=100m\nstartdelay=10\n";
    let directory = place(&[("two.fio", job.as_bytes())]);
    let plain = sim(directory.path(), &["run", "two.fio", "--json"]).json();
    let steered = sim(directory.path(), &["run", "two.fio", "--json", "--engine"]).json();
    assert_eq!(plain["weights"].as_array().map(Vec::len), Some(0));
    assert!(steered["weights"].as_array().is_some_and(|weights| !weights.is_empty()));
    let took = |report: &Value| report["processes"][1]["finished_s"].as_f64().expect("it ended");
    assert!(took(&steered) < took(&plain));
    let text = sim(directory.path(), &["run", "two.fio", "--engine"]).out();
    assert!(text.contains("Minerva set ") && text.contains("  newcomer "), "{text}");
    let deaf = sim(directory.path(), &["run", "two.fio", "--engine", "--scheduler", "noop"]);
    assert_eq!(deaf.err, "--engine steers bfq's weights and changes nothing under noop\n");
    assert!(!deaf.out().contains("Minerva set "));
}

#[test]
fn a_report_is_one_file_with_plots_and_without_scripts() {
    let directory = place(&[("four.fio", FILE.as_bytes())]);
    let arguments = ["compare", "four.fio", "--schedulers", "noop,bfq", "--report", "out.html"];
    let ran = sim(directory.path(), &arguments);
    assert_eq!(ran.err, "report with plots: out.html\n");
    let page = std::fs::read_to_string(directory.path().join("out.html")).expect("the report");
    assert_eq!(page.matches("<svg").count(), 5, "throughput of both; over time, and latencies, of each");
    assert!(!page.contains("<script"));
    for name in ["noop", "bfq", "sequential", "paced.1", "thinker", "Throughput over time, bfq"] {
        assert!(page.contains(name), "{name}");
    }
}

#[test]
fn what_has_not_ended_is_said() {
    let directory = place(&[("long.fio", b"[long]\nsize=20g\n")]);
    let ran = sim(directory.path(), &["run", "long.fio", "--until", "2"]);
    assert_eq!(ran.err, "bfq: 1 of 1 processes had not ended after 2.0 s and were stopped; --until runs longer\n");
    assert_eq!(ran.code, Some(0));
}

/// The only process of a job file with one job, and the whole report.
fn alone(job: &str, arguments: &[&str]) -> (Value, Value) {
    let directory = place(&[("a.fio", format!("[a]\n{job}").as_bytes())]);
    let report = sim(directory.path(), &[&["run", "a.fio", "--json"], arguments].concat()).json();
    (report["processes"][0].clone(), report)
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn every_key_means_what_it_says() {
    let (process, report) = alone("rw=write\nbs=32k\nsize=1m\noffset=512m\n", &[]);
    assert_eq!((&process["requests"], &report["device"]["writes"]), (&Value::from(32), &Value::from(32)));
    assert_eq!(process["bytes"], 1 << 20);
    let (mixed, report) = alone("rw=randrw\nrwmixread=25\nio_size=4m\n", &[]);
    let (reads, all) = (number(&report["device"]["reads"]), number(&mixed["requests"]));
    assert!((0.2..0.3).contains(&(reads / all)), "{reads} reads of {all} requests");
    let (paced, _) = alone("rate=1m\nbs=64k\nruntime=10\ntime_based\n", &[]);
    assert!((0.98..1.02).contains(&(number(&paced["bytes_per_second"]) / 1_048_576.0)), "{paced}");
    let (thinker, _) = alone("thinktime=10ms\nruntime=10\ntime_based\n", &["--profile", "sata-ssd"]);
    assert!((950..=1000).contains(&(number(&thinker["requests"]) as u32)), "a request and 10 ms: {thinker}");
    assert!((number(&thinker["finished_s"]) - 10.0).abs() < 0.1, "{thinker}");
}

#[test]
fn a_deeper_queue_is_faster_where_the_disk_has_room_for_it() {
    let rate = |keys: &str| {
        let job = format!("rw=randread\nruntime=2\ntime_based\n{keys}");
        number(&alone(&job, &["--profile", "sata-ssd", "--scheduler", "noop"]).0["bytes_per_second"])
    };
    let (one, eight) = (rate("ioengine=libaio\niodepth=1\n"), rate("ioengine=libaio\niodepth=8\n"));
    assert!(eight > 4.0 * one, "{one} at depth 1, {eight} at depth 8");
    assert_eq!(rate("ioengine=sync\niodepth=8\n"), one, "a synchronous engine has one request at a time");
}

#[test]
fn the_depth_is_the_disks_own_unless_it_is_given_or_the_scheduler_bounds_it() {
    let job = "rw=randread\nioengine=libaio\niodepth=32\nio_size=1m\n";
    let depth = |arguments: &[&str]| alone(job, arguments).1["setup"]["depth"].as_u64();
    assert_eq!(depth(&["--scheduler", "noop", "--profile", "sas10k-300g"]), Some(64));
    assert_eq!(depth(&["--scheduler", "noop", "--profile", "sas10k-300g", "--depth", "1000"]), Some(64));
    assert_eq!(depth(&["--scheduler", "noop", "--depth", "3"]), Some(3));
    assert_eq!(depth(&["--scheduler", "htbs"]), Some(1));
    assert_eq!(depth(&["--scheduler", "htbs", "--depth", "0"]), Some(32));
    assert_eq!(depth(&["--scheduler", "htbs", "--profile", "sata-ssd"]), Some(32));
}

#[test]
fn a_report_says_how_the_run_was_set_up() {
    let (_, report) = alone("size=1m\n", &["--seed", "7", "--fault", "1-2x4", "--scheduler", "sfq"]);
    let setup = &report["setup"];
    assert_eq!((&setup["seed"], &setup["profile"]), (&Value::from(7), &Value::from("sata7200-80g")));
    assert_eq!((&setup["scheduler"], &setup["faults"][0]["slower"]), (&Value::from("sfq"), &Value::from(4)));
    assert_eq!(setup["settings"], "depth 1, PerBytes(4096)");
}

#[test]
fn b_max_and_t_wait_of_htbs_are_options() {
    let job = "[global]\nbs=64k\nruntime=3\ntime_based\n[a]\nrw=read\n[b]\nrw=read\noffset=20g\nsize=10g\n";
    let directory = place(&[("a.fio", job.as_bytes())]);
    let run = |options: &[&str]| {
        let arguments = [&["run", "a.fio", "--json", "--scheduler", "htbs-original"], options].concat();
        sim(directory.path(), &arguments).json()
    };
    let (plain, tuned) = (run(&[]), run(&["--htbs-turn", "200", "--htbs-wait", "3ms"]));
    let settings = tuned["setup"]["settings"].as_str().expect("a text");
    assert!(settings.contains("turn_units_max: 200,") && settings.contains("wait_max: Nanos(3000000)"), "{settings}");
    // Longer turns, fewer seeks.
    let rate = |report: &Value| report["bytes_per_second"].as_f64().expect("a rate");
    assert!(rate(&tuned) > 1.2 * rate(&plain), "{} and {}", rate(&tuned), rate(&plain));
    let refused = sim(directory.path(), &["run", "a.fio", "--htbs-turn", "0"]).refusal();
    assert!(refused.contains("--htbs-turn"), "{refused}");
}

#[test]
fn a_flow_that_starves_to_the_end_is_said_to_have_missed_its_guarantee() {
    let job = "[global]\nbs=64k\nruntime=20\ntime_based\n[promised]\nrw=randread\nminerva_contract=8MB/s,64k,100ms\n\
        minerva_guest_scheduler=noop\n[crowd]\nrw=randread\nioengine=libaio\niodepth=64\noffset=20g\nsize=20g\n";
    let directory = place(&[("a.fio", job.as_bytes())]);
    // From the third second on the disk stands still.
    let arguments = ["run", "a.fio", "--json", "--scheduler", "noop", "--fault", "3-1000x0", "--until", "30"];
    let report = sim(directory.path(), &arguments).json();
    let promised = &report["processes"][0];
    assert_eq!(promised["promise"]["seconds"], 29);
    assert!(number(&promised["promise"]["seconds_missed"]) >= 27.0, "{promised}");
    assert!(number(&promised["promise"]["requests_late"]) >= 1.0, "{promised}");
    let rate = number(&promised["bytes"]) / 30.0;
    assert!((number(&promised["bytes_per_second"]) - rate).abs() < 1.0, "until the end of the run: {promised}");
}

#[test]
fn trims_are_told_apart_from_throughput() {
    let (process, report) = alone("rw=trim\nbs=64k\nsize=1m\n", &["--profile", "sata-ssd"]);
    assert_eq!((&process["requests"], &process["bytes"]), (&Value::from(16), &Value::from(0)));
    assert_eq!(process["discarded_bytes"], 1 << 20);
    assert_eq!(report["device"]["discards"], 16);
}

#[test]
fn processes_of_one_job_have_places_of_their_own_and_priorities_count() {
    let job = "[global]\nrw=read\nbs=64k\nruntime=5\ntime_based\nminerva_tenant=one\n[high]\nprio=0\nnumjobs=2\noffset_increment=1g\nsize=1g\n\
        [low]\nprio=7\noffset=40g\nsize=1g\n";
    let directory = place(&[("a.fio", job.as_bytes())]);
    for scheduler in ["cfq", "bfq"] {
        let ran = sim(directory.path(), &["run", "a.fio", "--json", "--scheduler", scheduler]);
        assert_eq!(ran.err, "");
        let report = ran.json();
        let processes = report["processes"].as_array().expect("processes");
        let names: Vec<&str> = processes.iter().filter_map(|process| process["name"].as_str()).collect();
        assert_eq!(names, ["high.0", "high.1", "low"]);
        assert!(number(&processes[0]["bytes"]) > 2.0 * number(&processes[2]["bytes"]), "{report}");
    }
}

#[test]
fn what_changes_nothing_in_a_run_is_said() {
    let job = "[global]\nsize=1m\nnice=-5\n[alone]\nprio=0\nprioclass=1\nminerva_tenant_level=low\n[one]\nminerva_tenant=vm\n\
        minerva_weight=50\n[other]\nminerva_tenant=vm\nprio=7\n";
    let directory = place(&[("a.fio", job.as_bytes())]);
    let said = |arguments: &[&str]| sim(directory.path(), &[&["run", "a.fio"], arguments].concat()).err;
    expect![[r#"
        a.fio:7:22: `minerva_tenant_level` changes nothing without --engine
         7 | minerva_tenant_level=low
           |                      ^^^
        a.fio:5:6: `prio` changes nothing under bfq and cfq: job `alone` is alone in its tenant, and they share between tenants first; give jobs the same `minerva_tenant`, or the tenant a `minerva_tenant_weight`
         5 | prio=0
           |      ^
        a.fio:6:11: `prioclass` changes nothing under bfq and cfq: job `alone` is alone in its tenant, and they share between tenants first; give jobs the same `minerva_tenant`, or the tenant a `minerva_tenant_weight`
         6 | prioclass=1
           |           ^
        a.fio:3:6: `nice` changes nothing under bfq and cfq: job `alone` is alone in its tenant, and they share between tenants first; give jobs the same `minerva_tenant`, or the tenant a `minerva_tenant_weight`
         3 | nice=-5
           |      ^^
    "#]].assert_eq(&said(&["--scheduler", "bfq"]));
    // For the idle class no disk is kept idle, also in a tenant of its own.
    let idle = place(&[("a.fio", job.replace("prioclass=1", "prioclass=3").as_bytes())]);
    let of_idle = sim(idle.path(), &["run", "a.fio", "--scheduler", "bfq"]).err;
    assert!(of_idle.contains("`prio` changes nothing") && !of_idle.contains("`prioclass`"), "{of_idle}");
    expect![[r#"
        --engine steers bfq's weights and changes nothing under tag
    "#]]
    .assert_eq(&said(&["--scheduler", "tag", "--engine"]));
}

/// fio's defaults of both.
#[test]
fn a_runtime_or_an_io_size_of_nothing_is_none() {
    for key in ["runtime=0", "io_size=0", "io_size=0%"] {
        let (process, _) = alone(&format!("size=1m\n{key}\n"), &[]);
        assert_eq!(process["bytes"], 1 << 20, "{key}");
    }
    let endless = sim(place(&[("a.fio", b"[a]\nruntime=0\ntime_based\n")]).path(), &["run", "a.fio"]).refusal();
    assert!(endless.contains("without `runtime` it would never end"), "{endless}");
}

#[test]
fn the_engine_sees_how_busy_a_slow_disk_is() {
    let job = "[reader]\nrw=randread\nruntime=10\ntime_based\n";
    let directory = place(&[("a.fio", job.as_bytes())]);
    let report = sim(directory.path(), &["run", "a.fio", "--engine", "--json", "--fault", "0-10x4"]).json();
    let busy_s = number(&report["device"]["busy_time"]) / 1e9;
    assert!((9.9..10.1).contains(&busy_s), "{busy_s}");
}

#[test]
fn guarantees_that_a_guest_hides_from_the_host() {
    let job = |guest: &str| {
        format!(
            "[a]\nsize=1m\nminerva_tenant=vm\nminerva_contract=1m,64k,100ms\n[b]\nsize=1m\nminerva_tenant=vm\n\
             minerva_guest_scheduler={guest}\nminerva_tag_max=9\n"
        )
    };
    let run = |guest: &str| {
        let directory = place(&[("a.fio", job(guest).as_bytes())]);
        sim(directory.path(), &["run", "a.fio", "--scheduler", "htbs"])
    };
    expect![[r#"
        minerva-sim: a.fio:4:18: job `a`: nobody keeps `minerva_contract`: cfq in its guest does not, and the host sees the guest as one flow; take noop in the guest, which leaves the order to the host, or leave the key out
         4 | minerva_contract=1m,64k,100ms
           |                  ^^^^^^^^^^^^
        a.fio:9:17: job `b`: nobody keeps `minerva_tag_max`: cfq in its guest does not, and the host sees the guest as one flow; take noop in the guest, which leaves the order to the host, or leave the key out
         9 | minerva_tag_max=9
           |                 ^
    "#]].assert_eq(&run("cfq").refusal());
    assert_eq!(run("noop").code, Some(0));
}
