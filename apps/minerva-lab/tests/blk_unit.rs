//! The package of the server for VM disks and its unit, in a guest with Debian's systemd as process 1.

mod packing;

use minerva_lab::guest::Guest;
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(600);

#[test]
fn the_server_for_disks_runs_under_systemd_and_hands_over_at_a_reload_and_an_upgrade() {
    let folder = tempfile::tempdir().expect("a directory");
    packing::pack(folder.path());
    let mut guest = Guest::builder().debian().memory_mib(1024).cpus(2);
    for entry in folder.path().read_dir().expect("packages") {
        let path = entry.expect("a package").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("minerva-blk_") || name.starts_with("minerva-ctl_") {
            guest = guest.with_file(format!("/packages/{name}"), std::fs::read(&path).expect("readable"));
        }
    }
    let output = match guest.progress(|line| println!("{line}")).run(include_str!("blk_unit.sh"), TIMEOUT) {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    println!("{}", output.stdout);
    let line = |name: &str| {
        let found = output.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let missing = || panic!("no line `{name}` in\n{}\n{}", output.stdout, output.stderr);
        found.unwrap_or_else(missing).trim_end_matches(';').trim_end()
    };
    // Without a file there is nothing to serve.
    assert_eq!(line("installed"), "0 enabled inactive");
    assert_eq!((line("started"), line("serves")), ("0 active notify", "0"));
    // Directives that this systemd does not know would be told.
    assert_eq!(line("complaints"), "");
    assert_eq!((line("user"), line("socket")), ("nobody", "nobody 660"));
    assert_eq!((line("reloaded"), line("took-over")), ("0", "0 0 1"));
    assert!(line("bad-reload").starts_with("1 active serves"), "{}", line("bad-reload"));
    assert_eq!(line("restarted"), "0 1");
    assert_eq!((line("upgraded"), line("upgraded-serves")), ("0 0.1.0-2", "0 1"));
    // It ended by itself, and was not killed.
    assert_eq!(line("stopped"), "0 inactive");
    assert_eq!(line("again"), "0");
    assert_eq!(line("purged"), "0 inactive /etc/minerva/blk.toml");
    assert_eq!(line("failed"), "");
}
