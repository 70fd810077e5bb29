//! A tenant that is a virtual machine: real guests with their trees by virtiofs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod host;
mod projects;

use host::Host;
use minerva_lab::guest::{Guest, GuestOutput};
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(300);

/// What stands behind a name in a script's output.
fn line(output: &GuestOutput, name: &str) -> String {
    let found = output.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no line `{name}` in\n{}\n{}", output.stdout, output.stderr)).trim().to_owned()
}

#[test]
fn a_guest_works_in_its_trees_and_nowhere_else_and_finds_them_again_after_a_kill() {
    let Some(mut host) = Host::new("stable = \"48MiB\"\ntemporary = \"24MiB\"\n") else { return };
    let socket = host.attach();
    let watch = host.act_for_guest();
    let guest = Guest::builder().cpus(2).virtiofs("minerva", socket);
    let output = match guest.run(include_str!("basics.sh"), TIMEOUT) {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    drop(watch);
    let line = |name: &str| line(&output, name);
    let context = format!("{}\n{}", output.stdout, output.stderr);
    assert_eq!((line("mounted"), line("owner")), ("0".into(), "0:0 1777".into()), "{context}");
    assert_eq!(line("renamed"), "0 second 1", "{context}");
    assert_eq!((line("linked"), line("shared")), ("0 1 x".into(), "through".into()), "{context}");
    assert_eq!(line("user"), "1000:1000 4755", "{context}");
    assert_eq!((line("out"), line("neighbour")), ("1".into(), "1".into()), "{context}");
    assert_eq!((line("above"), line("beside")), ("0 2".into(), "1".into()), "{context}");
    assert_eq!((line("node"), line("ours")), ("1".into(), "1".into()), "{context}");
    assert_eq!(line("room"), format!("{} {}", 48 << 10, 24 << 10), "{context}");
    for (tree, mib) in [("stable", 48_u64), ("temporary", 24)] {
        let full = line(&format!("full-{tree}"));
        let bytes: u64 = full.strip_prefix("1 1 ").and_then(|bytes| bytes.parse().ok()).expect(&context);
        assert!(bytes <= mib << 20 && bytes > (mib - 1) << 20, "{full}\n{context}");
        assert_eq!(line(&format!("again-{tree}")), "0", "{context}");
    }
    assert_eq!(line("served-again"), "second before", "{context}");
    assert_eq!((line("held"), line("reopened")), ("1".into(), "0 more".into()), "{context}");
    assert_eq!(line("waits"), "0", "{context}");
    // On the host nothing of it is root's or anybody else's.
    assert_eq!(host.owner_of("name"), (host::IDS, host::IDS));
    assert_eq!(host.owner_of("user"), (host::IDS + 1000, host::IDS + 1000));
}

/// Rounds of kills; more by `MINERVA_KILLS`.
const KILLS: u32 = 6;

#[test]
fn a_guests_files_move_to_its_own_disk_and_none_is_lost_whoever_is_killed() {
    let rounds = std::env::var("MINERVA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let seed = fastrand::u32(..1000);
    println!("seed {seed}, {rounds} kills");
    let Some(mut host) = Host::new("stable = \"48MiB\"\ntemporary = \"24MiB\"\n") else { return };
    let socket = host.attach();
    let watch = host.act_for_guest();
    let (Some(service), Some(tool)) = (host.program("minerva-fs"), host.program("minerva-ctl")) else { return };
    let guest = Guest::builder().cpus(2).memory_mib(768).virtiofs("minerva", socket).disk_mib(128);
    let guest = guest.with_module("ext4", "").with_module("crc32c_generic", "").with_binary(service).with_binary(tool);
    let script = include_str!("moving.sh").replace("ROUNDS", &rounds.to_string()).replace("SEED", &seed.to_string());
    let output = match guest.run(&script, TIMEOUT.max(Duration::from_secs(u64::from(rounds) * 10))) {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    drop(watch);
    let line = |name: &str| line(&output, name);
    let context = format!("seed {seed}\n{}\n{}", output.stdout, output.stderr);
    assert_eq!((line("put"), line("waits")), ("0 0 content".into(), "0 1".into()), "{context}");
    assert_eq!(line("open"), "0", "{context}");
    assert_eq!((line("moved"), line("pool")), ("0 1 content more 644 1".into(), "0".into()), "{context}");
    assert_eq!(line("flushed"), "0", "{context}");
    assert_eq!(line("after-kills"), "lost 0 links 0 dangling 0 left 0 pool 0", "{context}");
    assert_eq!(line("files"), (3 * rounds).to_string(), "{context}");
    assert_eq!((line("host-back"), line("host-moved")), ("0 kept".into(), "0 1 kept".into()), "{context}");
    assert_eq!(line("ended"), "0", "{context}");
}
