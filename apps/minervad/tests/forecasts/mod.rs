//! Forecasts as operators meet them: of a real reader, through the socket, and over a restart.

use crate::bed::{Bed, until};
use minerva_api::v1;
use std::fs;
use std::process::{Command, Stdio};

const SHADOW: &str = "mode = \"shadow\"\n[forecast]\nkeep_every = \"1m\"";

/// The line `slice` of the bed's file, in place of its own.
fn with_slices_of_a_second(bed: &Bed, extra: &str) {
    bed.write_config(extra);
    let text = fs::read_to_string(bed.config()).expect("the operator's file");
    fs::write(bed.config(), text.replace("slice = \"100ms\"", "slice = \"1s\"")).expect("the operator's file");
}

fn forecast(daemon: &crate::bed::Daemon, tenant: &str) -> Option<v1::ForecastResponse> {
    let request = v1::ForecastRequest { tenant: tenant.to_owned() };
    Some(daemon.ask(async |mut client| client.forecast(request).await.ok())??.into_inner())
}

/// Reads 8 MiB every eight seconds.
#[test]
fn a_periodic_reader_is_foreseen_with_skill_and_what_was_learnt_outlives_a_restart() {
    let Some(mut bed) = Bed::new() else { return };
    with_slices_of_a_second(&bed, SHADOW);
    let procs = bed.cgroup("sparing").join("cgroup.procs");
    let read = format!("dd if=/dev/{} of=/dev/null bs=1M count=8 iflag=direct status=none", bed.device);
    // By the clock, so that a busy machine does not stretch the period.
    let pause = "sleep $((8 - $(date +%s) % 8))";
    let script = format!("echo $$ > {} && while {pause}; do {read}; done", procs.display());
    let reader = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().expect("a shell");
    bed.adopt(reader);
    let mut daemon = bed.start();
    let path = format!("{}/sparing", bed.name);
    let skilled = || {
        let disk = forecast(&daemon, &path)?.disks.into_iter().next()?;
        disk.forecasts.into_iter().find(|forecast| forecast.horizon == "next-slice" && forecast.skill > 0.0)
    };
    crate::bed::until_within(150, "the forecast has skill", || skilled().is_some());
    let answer = forecast(&daemon, &path).expect("an answer");
    assert_eq!((answer.mode.as_str(), answer.slice_ns, answer.disks.len()), ("shadow", 1_000_000_000, 1));
    let disk = &answer.disks[0];
    assert_eq!((disk.device_name.as_str(), disk.reads_ahead.len()), (bed.device.as_str(), 15));
    let read: f64 = disk.past.iter().map(|slice| slice.read_bytes_per_second).sum();
    assert!(disk.past.len() >= 30 && read > 3.0 * 8e6, "{read} bytes in {} slices", disk.past.len());
    let expected = disk.past.iter().filter_map(|slice| slice.expected).map(|expected| expected.value);
    assert!(expected.fold(0.0, f64::max) > 4e6, "bursts had been expected");
    assert!(bed.metric("minerva_forecasts_skilled{horizon=\"next-slice\"}") >= 1.0);
    let shown = daemon.status().and_then(|status| status.slice).expect("a slice");
    let uses = shown.tenants.iter().flat_map(|tenant| &tenant.uses);
    assert!(uses.flat_map(|used| &used.forecasts).any(|forecast| forecast.mode == "shadow"));

    let unknown = v1::ForecastRequest { tenant: "nobody".to_owned() };
    let refused =
        daemon.ask(async |mut client| client.forecast(unknown).await).expect("a daemon").expect_err("unknown");
    assert_eq!(refused.code(), tonic::Code::NotFound);

    // A session is over after ten seconds of silence, and teaches what its like transfer.
    bed.stop_readers();
    let class = || Some(forecast(&daemon, &path)?.disks.into_iter().next()?.session_class);
    until("the session is over", || class().is_some_and(|class| class.is_empty()));
    daemon.signal("-TERM");
    assert!(daemon.child.wait().expect("an end").success(), "{}", daemon.log());
    let models = bed.directory.path().join("state/models");
    assert!(models.join("families.1").exists(), "{}", daemon.log());
    // The newest is damaged by a flipped bit; there is no older one.
    let damaged = models.join("families.1");
    let mut bytes = fs::read(&damaged).expect("a model");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, bytes).expect("a model");
    let daemon = bed.start();
    let findings = || daemon.status().expect("an answer").findings;
    until("the damage is told", || findings().iter().any(|one| one.kind == "model-damaged"));
    let finding = findings().into_iter().find(|one| one.kind == "model-damaged").expect("told");
    assert!(finding.message.contains("families.1: the checksum does not match"), "{}", finding.message);
}
