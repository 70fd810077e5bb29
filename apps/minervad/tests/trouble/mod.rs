//! What goes wrong around the daemon: a rival, a full disk, a host or a file that does not fit.

use crate::ENFORCE;
use crate::bed::{Bed, until};
use minerva_linux_actuate::{RestoreWhen, WriterSettings, restore};
use std::fs;

#[test]
fn whoever_overwrites_a_knob_is_named_and_wins_in_the_end() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let text = fs::read_to_string(bed.config()).expect("the file");
    let text = text.replace("verify_every_slices = 5", "verify_every_slices = 5\nfights_before_giving_up = 3");
    fs::write(bed.config(), text).expect("the file");
    bed.start_readers();
    let mut daemon = bed.start();
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    let mut rival = bed.rival("heavy", 77);
    let findings = |kind: &str| -> Vec<String> {
        let findings = daemon.status().map(|status| status.findings).unwrap_or_default();
        findings.into_iter().filter(|finding| finding.kind == kind).map(|finding| finding.message).collect()
    };
    daemon.until("Minerva gives up", || !findings("fight-given-up").is_empty());
    let who = format!("was written by process {} (sh: `sh -c while", rival.id());
    let named = findings("overwritten");
    assert!(named.iter().any(|message| message.contains(&who)), "{named:?}");
    assert!(daemon.log().contains(&who));
    assert!(findings("fight-given-up")[0].contains("leaves it alone from now on"), "{:?}", findings("fight-given-up"));
    rival.kill().and_then(|()| rival.wait()).expect("an end");
    daemon.pass_slices(20);
    assert_eq!(bed.weight("heavy"), 77, "{}", daemon.log());
    // Asked to, it tries again, and what it finds now is what it puts back.
    daemon.signal("-HUP");
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    let mut rival = bed.rival("heavy", 78);
    until("Minerva gives up again", || findings("fight-given-up").len() == 2);
    rival.kill().and_then(|()| rival.wait()).expect("an end");
    daemon.signal("-TERM");
    assert!(daemon.child.wait().expect("an end").success(), "{}", daemon.log());
    assert_eq!(bed.weight("heavy"), 78, "{}", daemon.log());
    assert!(!bed.directory.path().join("run/undo.journal").exists());
}

#[test]
fn whoever_overwrites_a_group_above_tenants_is_named_and_who_writes_what_is_not_held_is_not() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    bed.start_readers();
    let daemon = bed.start();
    daemon.until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    // The group above both, named by nothing below it.
    let mut rival = bed.rival("", 77);
    let who =
        format!("{}/{} was written by process {} (sh", bed.cgroup("").display(), bed.hierarchy.weights, rival.id());
    let who = who.replace("//", "/");
    daemon.until("the one who writes it is named", || daemon.log().contains(&who));
    let writes = format!("echo bfq > /sys/block/{}/queue/scheduler", bed.device);
    assert!(std::process::Command::new("sh").args(["-c", &writes]).status().expect("a shell").success());
    daemon.pass_slices(3);
    rival.kill().and_then(|()| rival.wait()).expect("an end");
    assert!(!daemon.log().contains("queue/scheduler was written"), "{}", daemon.log());
}

#[test]
fn what_a_restore_beside_the_daemon_put_back_is_written_again_within_two_slices_and_is_nobodys_doing() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    bed.remember_long();
    // No look at what others write comes before.
    let text = fs::read_to_string(bed.config()).expect("the file");
    let text = text.replace("verify_every_slices = 5", "verify_every_slices = 3600");
    fs::write(bed.config(), text).expect("the file");
    bed.start_readers();
    let daemon = bed.start();
    daemon.until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    bed.stop_readers();
    let writes = || bed.metric("minerva_knob_writes_total{outcome=\"done\"}");
    daemon.until("twenty slices pass without a write", || {
        let before = writes();
        daemon.pass_slices(20);
        writes() == before
    });
    let before = bed.weight("heavy");
    assert!(before < 50, "{before}");
    let settings = WriterSettings::new(bed.directory.path().join("run"), bed.root());
    let report = restore(&settings, RestoreWhen::Always).expect("a report");
    assert!(report.is_complete() && !report.is_empty() && report.beside_daemon.is_some(), "{report}");
    daemon.pass_slices(2);
    assert_eq!(bed.weight("heavy"), before, "{}", daemon.log());
    let findings = daemon.status().expect("an answer").findings;
    let of = |kind: &str| findings.iter().filter(|finding| finding.kind == kind).count();
    assert_eq!((of("knobs-restored"), of("overwritten")), (1, 0), "{findings:?}");
}

#[test]
fn a_state_directory_that_is_read_only_is_told_with_what_its_unit_needs() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let Some(state) = bed.small_state_disk() else { return };
    let remounted = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(&state).status().expect("mount");
    assert!(remounted.success());
    for arguments in [&["--check"][..], &[]] {
        let refused = bed.run(arguments);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{message}");
        let told =
            format!("{0} is read-only here: under the unit add ReadWritePaths={0} (systemctl edit", state.display());
        assert!(message.contains(&told), "{message}");
    }
}

#[test]
fn a_check_names_groups_and_certificates_with_which_the_daemon_cannot_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path().display();
    let no_certificate = directory.path().join("empty.pem");
    fs::write(&no_certificate, "").expect("a file");
    let daemon = format!("[daemon]\nruntime_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\n");
    let network = |certificate: &str| {
        format!(
            "[participation]\nlisten = \"127.0.0.1:7420\"\ncertificate = \"{certificate}\"\nkey = \"{at}/key.pem\"\n"
        )
    };
    let check = |settings: &str| {
        let file = directory.path().join("minerva.toml");
        fs::write(&file, format!("mode = \"shadow\"\n{daemon}{settings}")).expect("the file");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_minervad"));
        let output = command.arg("--config").arg(file).arg("--check").output().expect("the daemon");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = check("");
    assert_eq!(code, Some(0), "{message}");
    let no_group = "there is no group 'minerva-no-such-group'; mend daemon.";
    for (settings, told) in [
        ("socket_group = \"minerva-no-such-group\"\n".to_owned(), format!("{no_group}socket_group")),
        ("viewer_group = \"minerva-no-such-group\"\n".to_owned(), format!("{no_group}viewer_group")),
        (network(&format!("{at}/absent.pem")), format!("failed to read certificates from {at}/absent.pem")),
        (network(&no_certificate.display().to_string()), format!("{} has no certificate", no_certificate.display())),
    ] {
        let (code, message) = check(&settings);
        assert!(code == Some(1) && message.contains(&told), "{settings}{message}");
    }
    // All of it at once.
    let (_, message) = check(&format!("socket_group = \"minerva-no-such-group\"\n{}", network("/absent.pem")));
    assert!(message.contains(no_group) && message.contains("/absent.pem"), "{message}");
    assert!(!directory.path().join("run").exists(), "nothing is made");
}

#[test]
fn a_full_disk_under_the_store_loses_no_history() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let Some(state) = bed.small_state_disk() else { return };
    bed.start_readers();
    let daemon = bed.start();
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    // Whatever is left is taken, as a log that nobody rotates does.
    let mut filler = fs::File::create(state.join("filler")).expect("a file");
    let block = [0; 4096];
    while std::io::Write::write_all(&mut filler, &block).is_ok() {}
    let error = || daemon.status().expect("an answer").store_error;
    until("the store says so", || !error().is_empty());
    assert!(error().contains("full"), "{}", error());
    let writes = bed.metric("minerva_slices_total");
    daemon.pass_slices(5);
    assert!(bed.metric("minerva_slices_total") > writes && bed.weight("heavy") < 50);
    // Room is there again when nobody has it open any more.
    drop(filler);
    fs::remove_file(state.join("filler")).expect("room again");
    until("the store works again", || error().is_empty());
    assert!(daemon.log().contains("nothing of the histories was lost"), "{}", daemon.log());
    assert_eq!(bed.metric("minerva_store_rows_dropped_total"), 0.0);
}

#[test]
fn a_host_that_cannot_do_what_is_asked_is_told_all_that_is_missing() {
    let Some(bed) = Bed::new() else { return };
    let empty = bed.directory.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    bed.write_config(ENFORCE);
    let good = fs::read_to_string(bed.config()).expect("the file");
    let message_with_root = |root: &std::path::Path| {
        let line = format!("[daemon]\ncgroup_root = \"{}\"\n", root.display());
        fs::write(bed.config(), good.replace("[daemon]\n", &line)).expect("the file");
        let output = bed.run(&["--slices", "1"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        message
    };
    let (message, shown) = (message_with_root(&empty), empty.display());
    let sentence = format!(
        "minervad: cannot do what the settings ask:\n- {shown}, the daemon.cgroup_root, has neither the io controller (v2) nor \
         the blkio controller (v1): name the root of the hierarchy that has it, or leave it out to have it found\n"
    );
    assert!(message.ends_with(&sentence), "{message}");
    let message = message_with_root(&empty.join("nowhere"));
    let sentence =
        format!("- {shown}/nowhere, the daemon.cgroup_root, is not there: mend it, or leave it out to have it found\n");
    assert!(message.ends_with(&sentence), "{message}");
    // What looks like the controller and is no cgroup.
    fs::write(empty.join("blkio.weight"), "").expect("a file");
    let message = message_with_root(&empty);
    let sentence =
        format!("- {shown} has no cgroup.procs, so it is no cgroup: mend daemon.cgroup_root, or leave it out\n");
    assert!(message.ends_with(&sentence), "{message}");
    assert!(!bed.directory.path().join("run").exists(), "nothing is begun");
    // Nor is it as nobody.
    fs::write(bed.config(), good).expect("the file");
    let open = |path: &std::path::Path| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    };
    open(bed.directory.path());
    let Some(output) = bed.run_as_nobody(&["--slices", "1"]) else { return };
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(&format!("{} cannot be written: run as root", bed.hierarchy.root)), "{message}");
    assert!(message.contains("run cannot be written: run as root, or name another in [daemon]"), "{message}");
    assert!(!bed.directory.path().join("run").exists() && bed.weight("heavy") == 100);
}

#[test]
fn the_sockets_belong_to_the_group_that_the_file_names() {
    use std::os::unix::fs::MetadataExt;
    let Some(bed) = Bed::new() else { return };
    let with_group = |group: &str| {
        bed.write_config("mode = \"shadow\"");
        let text = fs::read_to_string(bed.config()).expect("the file");
        let line = format!("[daemon]\nsocket_group = \"{group}\"\n");
        fs::write(bed.config(), text.replace("[daemon]\n", &line)).expect("the file");
    };
    with_group("minerva-no-such-group");
    let refused = bed.run(&["--slices", "1"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("there is no group 'minerva-no-such-group'"), "{message}");
    with_group("65534");
    let _daemon = bed.start();
    for socket in [bed.socket(), bed.directory.path().join("run/metrics.sock")] {
        let status = fs::metadata(&socket).expect("a socket");
        assert_eq!((status.gid(), status.mode() & 0o777), (65534, 0o660), "{}", socket.display());
    }
}

#[test]
fn a_disk_in_the_file_that_is_not_there_is_named() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"\n[devices.nosuch]\nelevator = \"bfq\"");
    let daemon = bed.start();
    let findings = || daemon.status().map(|status| status.findings).unwrap_or_default();
    until("the finding", || findings().iter().any(|finding| finding.kind == "unknown-disk"));
    let finding = findings().into_iter().find(|finding| finding.kind == "unknown-disk").expect("the finding");
    assert!(finding.message.contains("[devices.nosuch]") && finding.message.contains(&bed.device), "{finding:?}");
    assert!(finding.warning);
}

#[test]
fn a_disk_that_the_file_wants_watched_only_is_no_warning() {
    let Some(bed) = Bed::new() else { return };
    let observe = format!("mode = \"shadow\"\n[devices.{}]\nback_end = \"observe\"", bed.device);
    bed.write_config(&observe);
    let daemon = bed.start();
    let found = || -> Vec<bool> {
        let findings = daemon.status().map(|status| status.findings).unwrap_or_default();
        findings.iter().filter(|finding| finding.kind == "not-steerable").map(|finding| finding.warning).collect()
    };
    until("it is said", || !found().is_empty());
    assert_eq!(found(), [false], "{}", daemon.log());
    // Where the file asks for what this host does not have it is one, until it does not ask any more.
    for (back_end, warnings) in [("iocost", vec![false, true]), ("observe", vec![false, false, false])] {
        bed.write_config(&observe.replace("observe", back_end));
        daemon.signal("-HUP");
        until("it is said anew", || found().len() == warnings.len());
        assert_eq!(found(), warnings, "{back_end}");
    }
}

#[test]
fn a_store_that_does_not_work_stops_nothing() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    // A file where the directory should be: nothing can be opened below it.
    fs::write(bed.directory.path().join("state"), "").expect("a file");
    bed.start_readers();
    let daemon = bed.start();
    until("the heavy tenant is held down", || bed.weight("heavy") < 50);
    assert!(!daemon.status().expect("an answer").store_error.is_empty());
    assert!(bed.metric("minerva_store_failures_total") >= 1.0);
}

#[test]
fn a_damaged_store_is_moved_aside() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let state = bed.directory.path().join("state");
    fs::create_dir(&state)
        .and_then(|()| fs::write(state.join("minerva.db"), "no database ".repeat(999)))
        .expect("a file");
    let daemon = bed.start();
    assert!(daemon.log().contains("was moved to"), "{}", daemon.log());
    let status = daemon.status().expect("an answer");
    assert_eq!(status.store_error, "");
    let told: Vec<_> = status.findings.iter().filter(|finding| finding.kind == "store-damaged").collect();
    assert!(matches!(told[..], [one] if one.warning && one.message.contains("credits")), "{:?}", status.findings);
    assert!(state.join("minerva.db.corrupt-1").exists());
}
