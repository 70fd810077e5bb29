//! What a tenant asks with the tool: without a server, and from the real daemon.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

mod bed;
mod scripted;
#[path = "../../../../api/client/tests/client/server.rs"]
#[expect(dead_code, reason = "the client's own tests need more of it")]
mod server;

use bed::{Bed, text, tool, until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NOBODY: &str = "unix:/nonexistent/minerva.sock";

/// Ends it as `kill` does, and tells its exit code.
fn terminate(mut child: Child) -> Option<i32> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    child.wait().expect("an end").code()
}

/// The first line that it prints.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    line
}

/// What the tool does where `address` leads to no server.
fn goes_on_without(address: &str) {
    let run = |arguments: &[&str]| tool(address, arguments).output().expect("the tool");
    let ran = run(&["run", "--priority", "idle", "--when", "500M", "--deadline", "20s", "--", "sh", "-c", "exit 7"]);
    assert_eq!(ran.status.code(), Some(7));
    assert_eq!(text(&ran.stderr).lines().count(), 1, "one warning: {}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("going on without"), "{}", text(&ran.stderr));
    let when = run(&["when", "--bytes", "500M", "--deadline", "20s"]);
    assert_eq!((when.status.code(), text(&when.stdout).as_str()), (Some(0), "now\n"));
    assert!(text(&when.stderr).contains("going on without"));
    let json = run(&["--json", "when", "--bytes", "500M"]);
    let line: serde_json::Value = serde_json::from_slice(&json.stdout).expect("one object");
    assert_eq!(line["answer"], "now");
    for arguments in [&["priority", "idle"][..], &["credits"], &["boost", "30s"], &["whoami"]] {
        let asked = run(arguments);
        assert_eq!(asked.status.code(), Some(2), "{arguments:?}");
        assert!(text(&asked.stderr).contains("is minervad running?"), "{}", text(&asked.stderr));
    }
}

#[test]
fn without_a_server_commands_run_and_begin_at_once() {
    goes_on_without(NOBODY);
    let misspelt = tool("/run/minerva", &["whoami"]).output().expect("the tool");
    assert!(text(&misspelt.stderr).contains("begins with unix:"), "{}", text(&misspelt.stderr));
}

#[test]
fn behind_an_agent_without_a_server_it_is_the_same() {
    let agent = Path::new(env!("CARGO_BIN_EXE_minerva-ctl")).with_file_name("minerva-agent");
    if !agent.exists() {
        return println!("skipped: needs minerva-agent built beside minerva-ctl (cargo build -p minerva-agent)");
    }
    let place = tempfile::Builder::new().prefix("minerva-test-tool-").tempdir().expect("a directory");
    let socket = place.path().join("agent.sock");
    let mut command = Command::new(agent);
    command.arg("--socket").arg(&socket).args(["--upstream", NOBODY]).stderr(Stdio::null());
    let agent = command.spawn().expect("the agent");
    until("the agent listens", || socket.exists());
    goes_on_without(&format!("unix:{}", socket.display()));
    assert_eq!(terminate(agent), Some(0));
}

#[test]
fn a_commands_end_and_its_signals_are_its_own() {
    let run = |command: &[&str]| {
        let arguments: Vec<&str> = ["run", "--priority", "low", "--"].iter().chain(command).copied().collect();
        tool(NOBODY, &arguments).output().expect("the tool").status.code()
    };
    assert_eq!(run(&["true"]), Some(0));
    assert_eq!(run(&["minerva-test-no-such-command"]), Some(127));
    assert_eq!(run(&["/dev/null"]), Some(126));
    assert_eq!(run(&["sh", "-c", "kill -KILL $$"]), Some(128 + 9));
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = tool(NOBODY, &["run", "--priority", "low", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the tool");
    assert_eq!(first_line(&mut child), "ready\n");
    assert_eq!(terminate(child), Some(9));
}

#[test]
fn a_tenant_steps_back_and_comes_back() {
    let Some(bed) = Bed::new() else { return };
    let says = |script: &str, answer: &str| {
        let output = bed.as_tenant(script);
        assert_eq!(text(&output.stdout), answer, "{script}: {}\n{}", text(&output.stderr), bed.log());
    };
    let who = bed.whoami();
    assert!(who["tenant"].as_str().is_some_and(|name| name.ends_with("vm")), "{who}");
    assert_eq!((who["identified_by"].as_str(), who["level"].as_str()), (Some("cgroup"), Some("normal")), "{who}");
    says("$CTL priority idle --for 8h", "idle\n");
    let who = bed.whoami();
    assert_eq!(who["level"], "idle");
    assert!(who["level_left_ns"].as_u64().is_some_and(|left| left > 7 * 3_600_000_000_000), "{who}");
    let name = who["tenant"].as_str().expect("a name").to_owned();
    until("status tells it", || {
        text(&bed.as_operator(&["status"]).stdout).contains(&format!("{name}: steps back to idle"))
    });
    assert!(text(&bed.as_operator(&["explain", &name]).stdout).contains("steps back to idle"));
    says("$CTL priority normal", "normal\n");
    says("$CTL priority --schedule '00:00-24:00 low' --time-zone Europe/Berlin", "low\n");
    assert!(text(&bed.as_tenant("$CTL whoami").stdout).contains("schedule:  00:00-00:00 low"));
    says("$CTL priority --no-schedule", "normal\n");
    says("sleep 600 & $CTL priority lowest --until-pid $!; kill $!", "lowest\n");
    until("the process's end ends the level", || bed.whoami()["level"] == "normal");
    let strange = bed.as_tenant("$CTL --json priority idle --until-pid 1");
    assert_eq!(strange.status.code(), Some(1), "{}", text(&strange.stderr));
    assert!(text(&strange.stdout).contains("\"refusal\""), "{}", text(&strange.stdout));
    let audit = text(&bed.as_operator(&["--json", "audit"]).stdout);
    assert!(audit.lines().any(|line| line.contains("idle") && line.contains(&name)), "{audit}");
}

#[test]
fn a_tenant_spends_only_what_it_has() {
    let Some(bed) = Bed::new() else { return };
    let credits: serde_json::Value =
        serde_json::from_slice(&bed.as_tenant("$CTL --json credits").stdout).expect("one object");
    assert_eq!(credits["held_micro_credits"], 0);
    assert!(text(&bed.as_tenant("$CTL credits").stdout).contains("price:     25 a slice"));
    let boost = bed.as_tenant("$CTL --json boost 30s");
    assert_eq!(boost.status.code(), Some(1));
    let refusal: serde_json::Value = serde_json::from_slice(&boost.stdout).expect("one object");
    assert_eq!(refusal["refusal"], "not-enough-credits");
    assert!(text(&boost.stderr).contains("credit"), "{}", text(&boost.stderr));
}

#[test]
fn a_command_takes_part_while_it_runs() {
    let Some(bed) = Bed::new() else { return };
    let number = bed.number();
    let inside = |options: &str| -> serde_json::Value {
        let output = bed.as_tenant(&format!("$CTL run {options} -- $CTL --json whoami"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        serde_json::from_slice(&output.stdout).expect("one object")
    };
    assert_eq!(inside("--priority idle")["level"], "idle");
    let who = inside(&format!("--priority low --when 1M --deadline 20s --device {number}"));
    assert_eq!((who["level"].as_str(), who["operations"][0]["begun"].as_bool()), (Some("low"), Some(true)), "{who}");
    until("both end with the command", || {
        let who = bed.whoami();
        who["level"] == "normal" && who["operations"].as_array().is_some_and(Vec::is_empty)
    });
    // A killed one holds nothing, either.
    let mut command = bed.tenant_shell("exec $CTL run --priority lowest -- sh -c 'echo ready; exec sleep 600'");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a shell");
    assert_eq!(first_line(&mut child), "ready\n");
    assert_eq!(bed.whoami()["level"], "lowest");
    assert_eq!(terminate(child), Some(128 + 15));
    until("the level ends with it", || bed.whoami()["level"] == "normal");
    // With a name it is a tenant of its own, and steps back as that.
    let own = env!("CARGO_BIN_EXE_minerva-ctl");
    let address = format!("MINERVA_ADDRESS={}", bed.address());
    let named = ["run", "--name", "copy", "--priority", "lowest", "--", "env", &address, own, "--json", "whoami"];
    let named = bed.as_operator(&named);
    let who: serde_json::Value =
        serde_json::from_slice(&named.stdout).unwrap_or_else(|_| panic!("{}", text(&named.stderr)));
    assert!(who["tenant"].as_str().is_some_and(|name| name.ends_with("copy")), "{who}");
    assert_eq!(who["level"], "lowest");
    assert_eq!(bed.whoami()["level"], "normal");
    // One that the server refuses runs all the same.
    let refused = bed.as_tenant("$CTL run --when 1M --device 0:0 -- echo ran");
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(0), "ran\n"));
    assert!(text(&refused.stderr).contains("the command runs without"), "{}", text(&refused.stderr));
}

#[test]
fn a_command_is_a_job_of_its_own_while_it_runs_and_its_runs_are_shown() {
    let Some(bed) = Bed::new() else { return };
    let read = format!("dd if={} of=/dev/null bs=64k count=64 iflag=direct status=none", bed.node());
    let none = bed.as_operator(&["jobs"]);
    assert_eq!(
        (none.status.code(), text(&none.stdout).contains("no batch jobs")),
        (Some(0), true),
        "{}",
        text(&none.stderr)
    );
    // Long enough that slices end while it runs.
    let slow = format!("{read} && sleep 1 && {read} && sleep 1");
    let ran = bed.as_operator(&["run", "--job", "sort", "--bytes", "8MiB", "--", "sh", "-c", &slow]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    until("its run is kept", || bed.as_operator(&["jobs", "profile", "sort"]).status.code() == Some(0));
    let shown = text(&bed.as_operator(&["jobs"]).stdout);
    assert!(shown.contains("KNOWN JOB") && shown.contains("sort"), "{shown}");
    let page = bed.directory().join("sort.html");
    let profile = bed.as_operator(&["jobs", "profile", "sort", "--html", page.to_str().expect("a path")]);
    let profile = text(&profile.stdout);
    assert!(profile.contains("sort: the last 1 runs") && profile.contains("reads"), "{profile}");
    assert!(fs::read_to_string(page).expect("a page").contains("<svg"));
    let json: serde_json::Value =
        serde_json::from_str(&text(&bed.as_operator(&["--json", "jobs", "profile", "sort"]).stdout)).expect("JSON");
    assert_eq!(json["declared_bytes"], 8 << 20);
    let missing = bed.as_operator(&["jobs", "profile", "nothing"]);
    assert_eq!(missing.status.code(), Some(1), "{}", text(&missing.stderr));
    // A size belongs to a job.
    assert_eq!(bed.as_operator(&["run", "--bytes", "5", "--", "true"]).status.code(), Some(2));
}

#[test]
fn when_answers_and_ends_when_the_time_has_come() {
    let Some(bed) = Bed::new() else { return };
    let number = bed.number();
    let when = bed.as_tenant(&format!("$CTL when --bytes 1M --begin-by 20s --device {number}"));
    assert_eq!(when.status.code(), Some(0), "{}", text(&when.stderr));
    assert_eq!(text(&when.stdout).lines().last(), Some("now"), "{}", text(&when.stdout));
    // What it waited for is left to the next command, and is over when that does not come.
    assert_eq!(bed.whoami()["operations"][0]["begun"], true);
    let refused = bed.as_tenant("$CTL --json when --bytes 1M --device 0:0");
    assert_eq!(refused.status.code(), Some(1));
    let line: serde_json::Value = serde_json::from_slice(&refused.stdout).expect("one object");
    assert_eq!(line["refusal"], "unknown-device");
    let no_wait = bed.as_tenant(&format!("$CTL --json when --no-wait --bytes 1M --begin-by 20s --device {number}"));
    let line: serde_json::Value = serde_json::from_slice(&no_wait.stdout).expect("one object");
    assert!(line["answer"].is_string(), "{line}");
}

#[test]
fn a_wait_that_is_interrupted_is_given_up() {
    let Some(bed) = Bed::new() else { return };
    let number = bed.number();
    // One operation at a time: the second waits as long as the tenant does the first.
    let read = format!("dd if=/dev/{} of=/dev/null bs=64k count=4 iflag=direct status=none", bed.device);
    let mut reader = bed.tenant_shell(&format!("while {read}; do sleep 0.02; done")).spawn().expect("a shell");
    let first = bed.as_tenant(&format!("$CTL when --bytes 100G --begin-by 5s --device {number}"));
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let waits = format!("exec $CTL when --bytes 100G --begin-by 1h --device {number}");
    let mut second = bed.tenant_shell(&waits).stdout(Stdio::piped()).spawn().expect("a shell");
    let answer = first_line(&mut second);
    assert_ne!(answer, "now\n");
    let operations = |count| bed.whoami()["operations"].as_array().is_some_and(|all| all.len() == count);
    assert!(operations(2), "{}", bed.whoami());
    assert_eq!(terminate(second), Some(128 + 15));
    assert!(operations(1), "{}", bed.whoami());
    reader.kill().and_then(|()| reader.wait()).expect("an end");
    until("an operation that nobody does is over", || operations(0));
}

#[test]
fn the_commands_of_the_users_page_do_what_it_says() {
    let Some(bed) = Bed::new() else { return };
    let page = include_str!("../../../../docs/participation.md");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("$ minerva-ctl ")).collect();
    assert!(commands.len() > 8, "{commands:?}");
    for script in ["backup.sh", "load.sh", "lookup.sh"] {
        let path = bed.directory.path().join(script);
        fs::write(&path, "#!/bin/sh\n").expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    // The disk that the tenant uses most, which the page leaves to the daemon.
    let read = format!("dd if=/dev/{} of=/dev/null bs=64k count=4 iflag=direct status=none", bed.device);
    assert_eq!(bed.as_tenant(&read).status.code(), Some(0));
    // What asks minerva-fs is tried where it runs (`apps/minerva-fs/tests`).
    for command in commands.into_iter().filter(|command| !command.starts_with("cache ")) {
        let path = format!("PATH={}:$PATH", bed.directory.path().display());
        let output = bed.as_tenant(&format!("{path}; $CTL {command}"));
        // Who has no credits can buy no boost.
        let expected = if command.starts_with("boost") { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "{command}: {}", text(&output.stderr));
    }
}
