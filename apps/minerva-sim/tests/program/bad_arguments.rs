//! Arguments that make no sense, or would change nothing: refused with what to do.

use super::bad_input::{lines, on, refused};
use super::{place, sim};
use expect_test::expect;

#[test]
fn arguments_that_make_no_sense() {
    let job = b"[reader]\nsize=1m\n";
    let refusals = [
        &["--until", "0"][..],
        &["--until", "nan"],
        &["--profile", "floppy"],
        &["--profile", "none.toml"],
        &["--fault", "2-1x4"],
        &["--fault", "soon"],
        &["--report", "nowhere/out.html"],
    ];
    let said: String =
        refusals.iter().map(|arguments| on("a.fio", job, &[&["run", "a.fio"], *arguments].concat()).err).collect();
    expect![[r#"
        minerva-sim: a run of 0 seconds is not possible: --until takes a number above 0, up to 1000000000
        minerva-sim: a run of NaN seconds is not possible: --until takes a number above 0, up to 1000000000
        minerva-sim: there is no disk profile `floppy`; there are sata7200-80g, sas10k-300g, sata-ssd, slow-ssd, and files that end in .toml
        minerva-sim: failed to read none.toml: No such file or directory (os error 2)
        error: invalid value '2-1x4' for '--fault <FAULT>': `2-1x4` ends before it starts

        For more information, try '--help'.
        error: invalid value 'soon' for '--fault <FAULT>': `soon` is not FROM-UNTILxSLOWER, such as 10-20x4

        For more information, try '--help'.
        minerva-sim: the report cannot be written to nowhere/out.html: there is no such folder; make it first
    "#]].assert_eq(&said);
    let of_trace = [["--speed", "0"], ["--malformed-max", "101"]];
    let said = of_trace.map(|option| on("t.csv", lines(9).as_bytes(), &[&["run", "t.csv"], &option[..]].concat()).err);
    expect![[r#"
        minerva-sim: a speed of 0 is not possible: --speed takes a number above 0
        minerva-sim: --malformed-max is 101, but must be from 0 to 100
    "#]]
    .assert_eq(&said.concat());
    let guest = "[a]\nsize=1m\nminerva_tenant=vm\nminerva_guest_scheduler=fifo\n";
    refused(
        "a.fio",
        guest,
        &expect![[r#"
            minerva-sim: a.fio:4:25: there is no scheduler `fifo`; there are noop, mq-deadline, anticipatory, cfq, bfq, sfq, pclock, htbs, htbs-original, mclock, mclock-allow, tag, tag-original
             4 | minerva_guest_scheduler=fifo
               |                         ^^^^
        "#]],
    );
}

#[test]
fn a_trace_is_not_written_over_itself() {
    let refused = on("t.csv", lines(9).as_bytes(), &["trace", "convert", "t.csv", "t.csv"]);
    expect![[r#"
        minerva-sim: t.csv is the input trace; choose another file for the output
    "#]]
    .assert_eq(&refused.refusal());
    let nowhere = on("t.csv", lines(9).as_bytes(), &["trace", "convert", "t.csv", "nowhere/t.parquet"]);
    expect![[r#"
        minerva-sim: cannot write the trace nowhere/t.parquet: No such file or directory (os error 2)
    "#]]
    .assert_eq(&nowhere.refusal());
}

/// To `/dev/null` as root, too.
#[test]
fn a_pipe_is_not_replaced_by_a_trace() {
    let directory = place(&[("t.csv", lines(9).as_bytes())]);
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = sim(directory.path(), &["trace", "convert", "t.csv", "pipe"]);
    expect![[r#"
        minerva-sim: cannot write the trace pipe: it is no file, and the native form is written beside it and put in its place
    "#]]
    .assert_eq(&refused.refusal());
    assert!(!pipe.metadata().unwrap().is_file());
}

/// Whoever gives an option takes it to act.
#[test]
fn options_that_would_change_nothing() {
    let directory =
        place(&[("a.fio", b"[a]\nsize=1m\nminerva_contract=1m,64k,100ms\n"), ("t.csv", lines(3).as_bytes())]);
    let refused = |arguments: &[&str]| sim(directory.path(), arguments).refusal();
    let traces: [&[&str]; 11] = [
        &["--speed", "2"],
        &["--fold"],
        &["--format", "alibaba"],
        &["--malformed-max", "5"],
        &["--sort-window", "2s"],
        &["--in-order"],
        &["--object-bytes", "512"],
        &["--trace-tenants", "one"],
        &["--trace-weight", "0=5"],
        &["--trace-tag", "0=5"],
        &["--trace-depth", "5"],
    ];
    let each = traces.map(|option| refused(&[&["run", "a.fio"], option].concat()));
    expect![[r#"
        minerva-sim: --speed would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --fold would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --format would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --malformed-max would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --sort-window would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --in-order would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --object-bytes would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --trace-tenants would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --trace-weight would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --trace-tag would change nothing: a.fio is a job file, and not a trace
        minerva-sim: --trace-depth would change nothing: a.fio is a job file, and not a trace
    "#]]
    .assert_eq(&each.concat());
    let htbs = [
        refused(&["run", "a.fio", "--htbs-wait", "3ms"]),
        refused(&["compare", "t.csv", "--schedulers", "noop,pclock", "--htbs-turn", "9"]),
        refused(&["admit", "a.fio", "--scheduler", "pclock", "--htbs-turn", "9"]),
    ];
    expect![[r#"
        minerva-sim: --htbs-wait would change nothing: it is for htbs and htbs-original, and not for bfq
        minerva-sim: --htbs-turn would change nothing: it is for htbs and htbs-original, and not for noop, pclock
        minerva-sim: --htbs-turn would change nothing: it is for htbs and htbs-original, and not for pclock
    "#]]
    .assert_eq(&htbs.concat());
    let reproduced = [
        &["tag", "--plot", "x.svg"][..],
        &["htbs", "--traces", "t.csv"],
        &["makespan", "--slice", "1s", "--scale", "1"],
        &["fennel", "--runs", "5"],
        &["background", "--traces", "t.csv", "--seed", "1"],
    ]
    .map(|arguments| refused(&[&["reproduce"], arguments].concat()));
    expect![[r#"
        minerva-sim: --plot would change nothing: only background plays traces and draws days
        minerva-sim: --traces would change nothing: only background plays traces and draws days
        minerva-sim: --slice, --scale would change nothing: only proactive has slices and a scale
        minerva-sim: --runs would change nothing: only makespan, proactive, mapreduce and interleave have runs
        minerva-sim: --seed would change nothing: with --traces nothing is drawn
    "#]]
    .assert_eq(&reproduced.concat());
    // One of several schedulers has it, and so does a trace.
    let used =
        ["compare", "t.csv", "--schedulers", "noop,htbs", "--htbs-turn", "9", "--speed", "1", "--sort-window", "1s"];
    assert_eq!(sim(directory.path(), &used).code, Some(0));
}
