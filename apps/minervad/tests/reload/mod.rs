//! What a reload takes, and what it says of settings that are not in force.

use super::{ENFORCE, steered};
use crate::bed::{Bed, Daemon, until};
use minerva_api::v1;
use std::fs;

/// What the daemon answers to a reload of a good file.
fn reload(daemon: &Daemon) -> String {
    let answer = daemon.ask(async |mut client| client.reload(v1::ReloadRequest {}).await).expect("a daemon");
    let answer = answer.expect("an answer").into_inner();
    assert!(answer.accepted && answer.message.contains("is in force"), "{}", answer.message);
    answer.message
}

/// Replaces the operator's file, and waits until the loop has read it by itself.
fn replace(bed: &Bed, daemon: &Daemon, text: &str) {
    let generation = daemon.status().expect("an answer").config_generation;
    fs::write(bed.config(), text).expect("the file");
    let is_read = || daemon.status().is_some_and(|status| status.config_generation > generation);
    daemon.until("the loop has read the file", is_read);
}

#[test]
fn what_takes_a_restart_is_told_at_every_reload_until_the_file_says_what_runs() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let daemon = bed.start();
    let first = fs::read_to_string(bed.config()).expect("the file");
    assert!(!reload(&daemon).contains("take a restart"));
    let parent = format!("parent = \"{}\"", bed.name);
    let other = first.replace(&parent, &format!("parent = \"{}-named\"", bed.name));
    assert_ne!(first, other);
    replace(&bed, &daemon, &other);
    // What the loop read by itself is still not what runs.
    for _ in 0..2 {
        let answer = reload(&daemon);
        assert!(answer.contains("[named]") && answer.contains("take a restart"), "{answer}");
    }
    replace(&bed, &daemon, &first);
    assert!(!daemon.log().lines().last().is_some_and(|line| line.contains("take a restart")), "{}", daemon.log());
    assert!(!reload(&daemon).contains("take a restart"));
}

#[test]
fn a_mode_on_the_command_line_that_outweighs_the_files_is_told() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let daemon = bed.start_under(&["sh", "-c", "exec \"$@\" --mode shadow", "sh"].map(str::to_owned));
    assert!(!reload(&daemon).contains("outweighs"));
    let text = fs::read_to_string(bed.config()).expect("the file");
    replace(&bed, &daemon, &text.replace("mode = \"shadow\"", "mode = \"observe\""));
    for _ in 0..2 {
        let answer = reload(&daemon);
        assert!(answer.contains("`--mode shadow` outweighs mode = \"observe\""), "{answer}");
    }
    assert_eq!(daemon.status().expect("an answer").mode, "shadow");
}

#[test]
fn a_guard_that_died_is_replaced_by_one_that_watches_where_the_daemon_writes_and_cannot_be_a_tenant() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config("mode = \"shadow\"");
    let daemon = bed.start();
    let guard = |than: Option<u32>| {
        let path = format!("/proc/{0}/task/{0}/children", daemon.child.id());
        let children = fs::read_to_string(path).unwrap_or_default();
        let mut children = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
        children.find(|pid| Some(*pid) != than && command_line(*pid).get(1).is_some_and(|word| word == "guard"))
    };
    let first = guard(None).expect("a guard");
    let request = v1::RegisterRequest { name: "guard".to_owned(), pid: first, weight_percent: None };
    let refused = daemon.ask(async |mut client| client.register(request).await).expect("a daemon");
    let message = refused.expect_err("Minerva's own").message().to_owned();
    assert!(message.contains("is Minerva's guard"), "{message}");
    let (text, at) = (fs::read_to_string(bed.config()).expect("the file"), bed.directory.path().display());
    let elsewhere = format!("runtime_dir = \"{at}/elsewhere\"");
    replace(&bed, &daemon, &text.replace(&format!("runtime_dir = \"{at}/run\""), &elsewhere));
    let killed = std::process::Command::new("kill").args(["-KILL", &first.to_string()]).status().expect("kill");
    assert!(killed.success());
    let mut next = None;
    until("there is another guard", || {
        next = guard(Some(first));
        next.is_some()
    });
    assert_eq!(command_line(next.expect("a guard"))[2], format!("{at}/run"));
}

fn command_line(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn a_good_new_file_is_taken_and_a_bad_one_is_not() {
    let Some((bed, daemon)) = steered(ENFORCE) else { return };
    bed.write_config("mode = \"enfroce\"");
    until("the bad file is refused", || daemon.status().is_some_and(|status| !status.config_error.is_empty()));
    let status = daemon.status().expect("an answer");
    assert!(status.config_error.contains("minerva.toml:1:8"), "{}", status.config_error);
    assert_eq!((status.mode.as_str(), status.config_generation), ("enforce", 1));
    assert!(daemon.log().contains("the one before it stays in force"));
    let answer = daemon.ask(async |mut client| client.reload(v1::ReloadRequest {}).await).expect("a daemon");
    assert!(!answer.expect("an answer").into_inner().accepted);
    bed.write_config("mode = \"shadow\"");
    daemon.signal("-HUP");
    until("the good file is in force", || daemon.status().is_some_and(|status| status.mode == "shadow"));
    until("shadow mode holds nothing", || bed.weight("heavy") == 100);
    assert_eq!(daemon.status().expect("an answer").config_error, "");
}
