//! The same tests where users are: on the unified hierarchy, under Debian with systemd as process 1, in a guest. This program sends
//! itself and the daemon there. Processors are emulated, so every test run takes the tests named here, and
//! `MINERVA_GUEST_TESTS=1`, which the figure `guest-tests` sets, all of them. With names, `MINERVA_GUEST_TESTS='one two'` runs those.

use minerva_lab::guest::{Guest, GuestBuilder};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What of each promise's kind a test run tries: holding down, putting back, the guard, a reload, processors of
/// background work, who asks, brief groups.
const SOME: &[&str] = &[
    "a_heavy_tenant_is_held_down_and_sigterm_puts_it_back",
    "caps_are_dealt_and_dealt_again_and_sigterm_lifts_them",
    "the_guard_puts_back_what_a_killed_daemon_held",
    "reload::a_good_new_file_is_taken_and_a_bad_one_is_not",
    "a_named_tenant_has_its_weight",
    "the_unit_gives_all_the_capabilities_that_are_needed",
    "background::processors::background_work_is_confined_to_some_processors_and_is_free_again_after_its_daemon",
    "listeners::a_process_is_its_cgroups_tenant_also_in_a_new_one",
    "churn::whoever_goes_from_one_brief_group_to_the_next_is_held_down_in_the_next_that_lasts",
    "jobs::where_no_weight_acts_the_job_that_waits_is_capped_and_a_kill_leaves_no_cap",
];

/// What runs all of them, or those that it names.
const ALL: &str = "MINERVA_GUEST_TESTS";

/// Processors are emulated, and slices with everything else take many times as long.
const SLOWNESS: u32 = 8;

/// Generous, as the machine may be busy; all of them have an hour.
const TIMEOUT: Duration = Duration::from_secs(600);
const TIMEOUT_ALL: Duration = Duration::from_secs(3600);

/// The daemon and its unit lie where the tests were told, which may be among temporary files, and these in memory, so that only the
/// disks of tests are disks.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=1g,mode=1777 tmpfs /tmp
mkdir -p "$SOURCES" "${UNIT%/*}" "${DAEMON%/*}" && cp /etc/minervad.service "$UNIT"
for program in $PROGRAMS; do ln -s "/usr/bin/$program" "${DAEMON%/*}"; done
exec "$TESTS" --test-threads 2 --show-output $ARGUMENTS
"#;

/// A copy without what only debuggers need, which would not fit a guest's memory.
fn stripped(program: &Path, folder: &Path) -> Option<PathBuf> {
    let copy = folder.join(program.file_name()?);
    let done = Command::new("strip").arg("-o").arg(&copy).arg(program).status();
    done.is_ok_and(|status| status.success()).then_some(copy)
}

/// For tests that need a file system of their own.
fn with_ext4(guest: GuestBuilder<'static>) -> GuestBuilder<'static> {
    installed("mkfs.ext4").into_iter().fold(guest, GuestBuilder::with_binary).with_module("ext4", "")
}

/// For the tests of work on a btrfs, and of disks that are emulated.
fn with_others(guest: GuestBuilder<'static>) -> GuestBuilder<'static> {
    let programs = ["mkfs.btrfs", "btrfs", "filefrag"].into_iter().filter_map(installed);
    programs.fold(guest, GuestBuilder::with_binary).with_module("fuse", "").with_module("btrfs", "")
}

/// Where a program of the host is. One that is missing is said by the tests that are skipped for it.
fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/sbin")]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[test]
fn the_same_tests_pass_on_the_unified_hierarchy_under_systemd() {
    let folder = tempfile::tempdir().expect("a directory");
    let tests = std::env::current_exe().expect("this program");
    let daemon = Path::new(env!("CARGO_BIN_EXE_minervad"));
    let [Some(tests), Some(stripped_daemon)] = [&tests, daemon].map(|program| stripped(program, folder.path())) else {
        return println!("skipped: needs `strip`");
    };
    let named = std::env::var(ALL).ok();
    let is_all = named.is_some();
    let names = match named.as_deref() {
        None => SOME.to_vec(),
        // Not this one again.
        Some("1") => Vec::new(),
        Some(names) => names.split_whitespace().collect(),
    };
    let arguments =
        if names.is_empty() { "--skip unified::".to_owned() } else { format!("--exact {}", names.join(" ")) };
    // Those of VM disks and of the pool are skipped where these were not built.
    let others = ["minerva-blk", "minerva-fs"].map(|name| daemon.with_file_name(name)).into_iter();
    let others: Vec<PathBuf> =
        others.filter(|other| is_all && other.is_file()).filter_map(|other| stripped(&other, folder.path())).collect();
    let programs = others.iter().chain([&stripped_daemon]).filter_map(|program| program.file_name()?.to_str());
    let programs = programs.collect::<Vec<_>>().join(" ");
    let name = tests.file_name().expect("a name").to_string_lossy();
    let (daemon, sources) = (daemon.display(), env!("CARGO_MANIFEST_DIR"));
    let unit = Path::new(sources).join("../../packaging/minervad.service").canonicalize().expect("the unit");
    let files = format!("PROGRAMS='{programs}' DAEMON={daemon} SOURCES={sources} UNIT={}", unit.display());
    let slowness = crate::bed::SLOWNESS;
    let script = format!("export {slowness}={SLOWNESS}\nTESTS={name} {files} ARGUMENTS='{arguments}'\n{SCRIPT}");
    let guest = Guest::builder().debian().memory_mib(2048).cpus(2).with_binary(&tests).with_binary(stripped_daemon);
    let guest = guest.with_file("/etc/minervad.service", std::fs::read(&unit).expect("the unit"));
    let guest = others.into_iter().fold(guest, GuestBuilder::with_binary);
    let guest = if is_all { with_others(with_ext4(guest)) } else { with_ext4(guest) };
    let timeout = if is_all { TIMEOUT_ALL } else { TIMEOUT };
    let output = match guest.run(&script, timeout) {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    for line in output.stdout.lines().filter(|line| line.starts_with("skipped: ") || line.starts_with("test ")) {
        println!("{line}");
    }
    assert_eq!(output.status, 0, "{}\n{}", output.stdout, output.stderr);
    let summary = output.stdout.lines().find(|line| line.starts_with("test result: ok. ")).expect("a summary");
    let passed: usize = summary.split(' ').nth(3).and_then(|word| word.parse().ok()).expect("a number");
    assert!(passed >= names.len(), "a name that is no test's is no test that passed: {summary}");
}
