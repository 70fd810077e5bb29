//! The daemon as its users meet it: a real process on a real disk under BFQ, with real cgroups.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

mod background;
mod bed;
mod churn;
mod forecasts;
mod jobs;
mod listeners;
mod reload;
mod served;
mod taking_part;
mod trouble;
mod unified;

use bed::replay::replayed;
use bed::{Bed, Daemon, until};
use minerva_api::v1;
use minerva_linux_actuate::{RestoreWhen, WriterSettings, restore};
use std::fs;
use tokio_stream::wrappers::ReceiverStream;

const ENFORCE: &str = "mode = \"enforce\"";

/// A bed on which the daemon holds the heavy tenant down.
fn steered(extra: &str) -> Option<(Bed, Daemon)> {
    let mut bed = Bed::new()?;
    bed.write_config(extra);
    bed.start_readers();
    let daemon = bed.start();
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    Some((bed, daemon))
}

#[test]
fn a_heavy_tenant_is_held_down_and_sigterm_puts_it_back() {
    let Some((bed, mut daemon)) = steered(ENFORCE) else { return };
    // On a machine with other work either may use more for a moment.
    until("only the heavy one is held down", || bed.weight("sparing") == 100 && bed.weight("heavy") < 50);
    let status = daemon.status().expect("an answer");
    let slice = status.slice.expect("a slice");
    assert_eq!((status.mode.as_str(), slice.devices.len(), slice.tenants.len()), ("enforce", 1, 2));
    assert_eq!(slice.devices[0].back_end, bed.hierarchy.back_end);
    let heavy = slice.tenants.iter().find(|tenant| tenant.cgroup.ends_with("/heavy")).expect("the heavy tenant");
    let request = || v1::ExplainRequest { tenant: heavy.id.clone(), at_unix_ns: None };
    let explain = || daemon.ask(async |mut client| client.explain(request()).await.ok()).flatten();
    until("the audit has the decision", || explain().is_some_and(|answer| !answer.get_ref().explanations.is_empty()));
    let explanation = explain().expect("an answer").into_inner().explanations.remove(0);
    assert!(explanation.text.contains("fennel"), "{}", explanation.text);
    let on_the_disk = format!(" on {}: share", slice.devices[0].name);
    assert!(
        explanation.text.contains(&on_the_disk) && heavy.uses[0].why.contains(&on_the_disk),
        "{}",
        explanation.text
    );
    assert!(!explanation.factors.is_empty());
    assert!(bed.metric("minerva_knob_writes_total{outcome=\"done\"}") >= 1.0);
    assert!(bed.scrape().ends_with("# EOF\n"));
    daemon.signal("-TERM");
    let status = daemon.child.wait().expect("an end");
    assert!(status.success(), "{}", daemon.log());
    assert_eq!(bed.weight("heavy"), 100, "{}", daemon.log());
    assert!(!bed.socket().exists());
    assert!(!bed.directory.path().join("run/undo.journal").exists());
}

#[test]
fn caps_are_dealt_and_dealt_again_and_sigterm_lifts_them() {
    let Some(mut bed) = Bed::new() else { return };
    // Caps need no elevator that reads weights, but the kernel has to count, as the suitability of such a disk says.
    fs::write(format!("/sys/block/{}/queue/scheduler", bed.device), "none").expect("every disk can do without");
    bed.arm_throttle();
    let disk = format!(
        "{ENFORCE}\n[devices.{}]\nback_end = \"{}\"\nbandwidth_bytes_per_second = \"32MiB\"",
        bed.device, bed.hierarchy.caps_back_end
    );
    bed.write_config(&disk);
    // The disk's file lies in memory, so that it is never busy for long.
    let text = fs::read_to_string(bed.config()).expect("the file");
    let text = text.replace("[actuation]\n", "[actuation]\ncaps_lift_below_busy_permille = 1\n");
    fs::write(bed.config(), text).expect("the file");
    bed.start_readers();
    let mut daemon = bed.start();
    let capped = |tenant| ["read", "write"].iter().all(|way| bed.cap(tenant, way).is_some());
    let mut before = None;
    // Taken in the same moment: the next slice may lift it.
    daemon.until("both tenants are capped", || {
        before = bed.cap("heavy", "read");
        before.is_some() && capped("heavy") && capped("sparing")
    });
    assert_eq!(
        daemon.status().and_then(|status| status.slice).expect("a slice").devices[0].back_end,
        bed.hierarchy.caps_back_end
    );
    let before = before.expect("a cap");
    // The sparing one begins to read as much as the heavy one, which cannot have as much as before.
    bed.start_reader("sparing", 64);
    daemon.until("the heavy one has another cap", || {
        bed.cap("heavy", "read").is_some_and(|cap| cap.abs_diff(before) > before / 16)
    });
    daemon.signal("-TERM");
    let status = daemon.child.wait().expect("an end");
    assert!(status.success(), "{}", daemon.log());
    for (tenant, way) in [("heavy", "read"), ("heavy", "write"), ("sparing", "read"), ("sparing", "write")] {
        assert_eq!(bed.cap(tenant, way), None, "{tenant} {way}: {}", daemon.log());
    }
    assert!(!bed.directory.path().join("run/undo.journal").exists());
}

#[test]
fn the_guard_puts_back_what_a_killed_daemon_held() {
    let Some((bed, mut daemon)) = steered(ENFORCE) else { return };
    daemon.signal("-KILL");
    daemon.child.wait().expect("an end");
    until("the guard has put it back", || bed.weight("heavy") == 100);
}

#[test]
fn without_a_guard_restore_and_the_next_start_do_it() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let text = fs::read_to_string(bed.config()).expect("the file").replace("[daemon]\n", "[daemon]\nguard = false\n");
    fs::write(bed.config(), text).expect("the file");
    bed.start_readers();
    let settings = WriterSettings::new(bed.directory.path().join("run"), bed.root());
    for by_restore in [true, false] {
        let mut daemon = bed.start();
        until("the heavy tenant is held down", || bed.weight("heavy") < 50);
        let alive = restore(&settings, RestoreWhen::IfDaemonGone).expect("a report");
        assert!(alive.not_due.is_some() && alive.beside_daemon.is_none(), "{alive}");
        daemon.signal("-KILL");
        daemon.child.wait().expect("an end");
        assert!(bed.weight("heavy") < 50);
        if by_restore {
            let report = restore(&settings, RestoreWhen::IfDaemonGone).expect("a report");
            assert!(report.is_complete(), "{report}");
        } else {
            // In shadow mode, so that it stays put back.
            bed.write_config("mode = \"shadow\"");
            let daemon = bed.start();
            assert!(daemon.log().contains("ended without putting everything back"), "{}", daemon.log());
        }
        assert_eq!(bed.weight("heavy"), 100);
    }
}

#[test]
fn a_second_daemon_and_a_bad_file_are_refused() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let daemon = bed.start();
    let second = bed.run(&[]);
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(message.contains(&format!("already runs as process {}", daemon.child.id())), "{message}");
    bed.write_config("mode = \"enforced\"");
    let bad = bed.run(&["--check"]);
    let message = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert_eq!(bad.status.code(), Some(1));
    assert!(message.contains("minerva.toml:1:8"), "{message}");
    assert!(bed.run(&["--mode", "shadow", "--check"]).status.code() == Some(1));
}

#[test]
fn a_slice_in_which_nothing_changed_writes_nothing() {
    let Some((mut bed, daemon)) = steered(ENFORCE) else { return };
    bed.stop_readers();
    let writes = || bed.metric("minerva_knob_writes_total{outcome=\"done\"}");
    // The averages decay for a while, and that changes groups once they are small; then nothing changes any more.
    until("its use is forgotten", || bed.weight("heavy") == bed.weight("sparing"));
    until("sixty slices pass without a write", || {
        let before = writes();
        daemon.pass_slices(60);
        writes() == before
    });
    let before = (writes(), bed.metric("minerva_knob_inspections_total"));
    daemon.pass_slices(20);
    assert!(writes() == before.0, "{} writes in idle slices\n{}", writes() - before.0, daemon.log());
    // Reading goes on: somebody else may write what is held.
    assert!(bed.metric("minerva_knob_inspections_total") >= before.1);
}

#[test]
fn a_disk_that_is_removed_under_load_is_named_and_takes_nothing_with_it() {
    removed_under_load(false);
}

#[test]
fn a_disk_whose_name_is_another_one_s_within_a_slice_is_named_as_gone() {
    removed_under_load(true);
}

/// Takes the disk away, and maybe gives its name to another one at once.
fn removed_under_load(replaced: bool) {
    let Some((mut bed, mut daemon)) = steered(ENFORCE) else { return };
    let losetup = |arguments: &[&str]| {
        std::process::Command::new("losetup").args(arguments).output().expect("losetup").status.success()
    };
    let (disk, start) = (format!("/dev/{}", bed.device), format!("{} (", bed.device));
    assert!(losetup(&["-d", &disk]));
    if replaced {
        let image = bed.directory.path().join(format!("{}-another.img", bed.name));
        fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a backing file");
        // It is free when the last reader has closed it; who looks for a free one at that moment may have it.
        let taken = format!("/sys/block/{}/loop/backing_file", bed.device);
        let is_another = || fs::read_to_string(&taken).is_ok_and(|file| !file.contains(&format!("{}.img", bed.name)));
        until("the name is another disk's", || is_another() || losetup(&[&disk, &image.to_string_lossy()]));
    }
    let findings = || daemon.status().map_or_else(Vec::new, |status| status.findings);
    // Not that there is no disk: whoever looks for a free loop device may have taken this one by then.
    let is_gone = |one: &v1::Finding| one.kind == "disk-gone" && one.message.starts_with(&start);
    daemon.until("the disk is named", || findings().iter().any(is_gone));
    daemon.pass_slices(3);
    // The kernel keeps what was written for a loop device without its file. With another one it may be steered again for a while.
    bed.stop_readers();
    daemon.until("what was written for it is put back", || bed.weight("heavy") == 100);
    assert!(findings().iter().all(|one| one.kind != "write-refused"), "{:?}", findings());
    daemon.signal("-TERM");
    assert!(daemon.child.wait().expect("an end").success(), "{}", daemon.log());
    assert!(bed.weight("heavy") == 100 && !bed.directory.path().join("run/undo.journal").exists());
}

#[test]
fn a_recording_replays_byte_for_byte() {
    let Some((_bed, daemon)) = steered(ENFORCE) else { return };
    let bytes = daemon.ask(async |mut client| {
        let (asking, asked) = tokio::sync::mpsc::channel::<v1::RecordRequest>(1);
        let mut pieces = client.record(ReceiverStream::new(asked)).await.expect("a recording").into_inner();
        let (mut asking, mut bytes, mut slices) = (Some(asking), Vec::new(), 0);
        while let Some(v1::RecordResponse { piece }) = pieces.message().await.expect("a piece") {
            bytes.extend(piece);
            slices += 1;
            if slices == 2 {
                // Another one is refused, and does not end this one.
                let (_open, asked) = tokio::sync::mpsc::channel::<v1::RecordRequest>(1);
                let refused = client.record(ReceiverStream::new(asked)).await.expect_err("one at a time");
                assert!(refused.message().contains("runs already"), "{}", refused.message());
            }
            if slices == 12 {
                asking = None;
            }
        }
        drop(asking);
        bytes
    });
    let effects = replayed(&bytes.expect("a daemon"));
    assert!(effects.len() > 2, "{effects:?}");
}

#[test]
fn a_recording_disturbs_nothing() {
    let Some((mut bed, daemon)) = steered(ENFORCE) else { return };
    // On a slow machine twenty slices take longer than it is remembered for who was heavy.
    bed.remember_long();
    until("the file is in force", || daemon.status().is_some_and(|status| status.config_generation > 1));
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    bed.stop_readers();
    let journal = bed.directory.path().join("run/undo.journal");
    let state = || {
        let written = fs::metadata(&journal).and_then(|data| data.modified()).expect("the journal of what is held");
        let text = fs::read(&journal).expect("the journal");
        let writes = bed.metric("minerva_knob_writes_total{outcome=\"done\"}");
        (bed.weight("heavy"), bed.weight("sparing"), writes.to_bits(), written, text)
    };
    until("twenty slices pass without a write", || {
        let before = state();
        daemon.pass_slices(20);
        state() == before
    });
    let before = state();
    assert!(before.0 < 50, "the heavy tenant is held down: {}", before.0);
    let bytes = daemon.ask(async |mut client| {
        let (asking, asked) = tokio::sync::mpsc::channel::<v1::RecordRequest>(1);
        let mut pieces = client.record(ReceiverStream::new(asked)).await.expect("a recording").into_inner();
        let (mut asking, mut bytes, mut slices) = (Some(asking), Vec::new(), 0);
        while let Some(v1::RecordResponse { piece }) = pieces.message().await.expect("a piece") {
            bytes.extend(piece);
            slices += 1;
            if slices == 10 {
                asking = None;
            }
        }
        drop(asking);
        bytes
    });
    daemon.pass_slices(10);
    assert_eq!(state(), before, "{}", daemon.log());
    let effects = replayed(&bytes.expect("a daemon"));
    assert!(!effects.iter().any(|effect| effect.starts_with("{\"write\"")), "{effects:?}");
}

#[test]
fn a_named_tenant_has_its_weight() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let daemon = bed.start();
    let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
    let request = v1::RegisterRequest { name: "backup".to_owned(), pid: child.id(), weight_percent: Some(50) };
    let answer = daemon.ask(async |mut client| client.register(request).await).expect("a daemon");
    let answer = answer.expect("an answer").into_inner();
    assert_eq!(answer.cgroup, format!("{}/backup", bed.name));
    let tenant = || {
        let slice = daemon.status()?.slice?;
        slice.tenants.into_iter().find(|tenant| tenant.cgroup == answer.cgroup)
    };
    until("the tenant is watched", || tenant().is_some_and(|tenant| tenant.weight_percent == 50));
    let tenant = tenant().expect("the tenant");
    assert_eq!((tenant.kind.as_str(), tenant.name.as_str()), ("named", "backup"));
    let bad = v1::RegisterRequest { name: "../up".to_owned(), pid: child.id(), weight_percent: None };
    let refused = daemon.ask(async |mut client| client.register(bad).await).expect("a daemon").expect_err("a bad name");
    assert!(refused.message().contains("'../up' is no name"), "{}", refused.message());
    child.kill().and_then(|()| child.wait()).expect("an end");
    until("its group is removed", || !bed.cgroup("backup").exists());
}

#[test]
fn the_unit_gives_all_the_capabilities_that_are_needed() {
    if std::process::Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("skipped: needs setpriv");
        return;
    }
    let Some(mut bed) = Bed::new() else { return };
    let unit = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/minervad.service"));
    let unit = unit.expect("the unit");
    let line = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).expect("the set");
    let set: String =
        line.split(' ').map(|name| format!(",+{}", name.trim_start_matches("CAP_").to_lowercase())).collect();
    let setpriv = |set: &str| {
        let words = ["setpriv".to_owned(), "--inh-caps=-all".to_owned(), format!("--bounding-set=-all{set}")];
        words.to_vec()
    };
    bed.write_config(ENFORCE);
    let parent = format!("parent = \"{}", bed.name);
    let text = fs::read_to_string(bed.config()).expect("the file").replace(&parent, &format!("{parent}-named"));
    fs::write(bed.config(), text).expect("the file");
    bed.start_readers();
    let mut daemon = bed.start_under(&setpriv(&set));
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    // What it does without, it says.
    assert!(!daemon.log().contains(", ignoring"), "{}", daemon.log());
    let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
    let request = v1::RegisterRequest { name: "backup".to_owned(), pid: child.id(), weight_percent: None };
    let answer = daemon.ask(async |mut client| client.register(request).await).expect("a daemon");
    child.kill().and_then(|()| child.wait()).expect("an end");
    answer.expect("a group in a parent that did not exist");
    daemon.signal("-TERM");
    assert!(daemon.child.wait().expect("an end").success(), "{}", daemon.log());
    assert_eq!(bed.weight("heavy"), 100);
    // With none at all it still steers.
    let daemon = bed.start_under(&setpriv(""));
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    assert!(daemon.log().contains("CAP_IPC_LOCK"), "{}", daemon.log());
}

#[test]
fn the_service_manager_hears_of_everything() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let path = bed.directory.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
    let heard = |wanted: &str| {
        let mut buffer = [0; 4096];
        loop {
            let length = socket.recv(&mut buffer).unwrap_or_else(|_| panic!("waited in vain for {wanted}"));
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if message.lines().any(|line| line == wanted) {
                return message;
            }
        }
    };
    // `env` becomes the daemon, so the process that systemd would watch is the one that speaks.
    let words = ["env".to_owned(), format!("NOTIFY_SOCKET={}", path.display()), "WATCHDOG_USEC=2000000".to_owned()];
    let daemon = bed.start_under(&words);
    heard("READY=1");
    heard("WATCHDOG=1");
    daemon.signal("-HUP");
    assert!(heard("RELOADING=1").contains("MONOTONIC_USEC="));
    heard("READY=1");
    daemon.signal("-TERM");
    heard("STOPPING=1");
}
