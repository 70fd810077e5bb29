//! The package of the cache and its unit, in a guest with Debian's systemd as process 1.

mod packing;

use minerva_lab::guest::Guest;
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(600);

#[test]
fn the_cache_runs_under_systemd_and_tenants_come_and_go_at_a_reload() {
    let folder = tempfile::tempdir().expect("a directory");
    packing::pack(folder.path());
    let mut guest = Guest::builder().debian().memory_mib(1024).cpus(2).with_module("fuse", "");
    for entry in folder.path().read_dir().expect("packages") {
        let path = entry.expect("a package").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        // What has no part in it costs an emulated processor seconds to unpack.
        if name.starts_with("minerva-fs_") || name.starts_with("minerva-ctl_") && name.contains("-1_") {
            guest = guest.with_file(format!("/packages/{name}"), std::fs::read(&path).expect("readable"));
        }
    }
    let output = match guest.progress(|line| println!("{line}")).run(include_str!("fs_unit.sh"), TIMEOUT) {
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
    assert_eq!((line("started"), line("serves")), ("0 active notify", "0 text"));
    // Directives that this systemd does not know would be told.
    assert_eq!(line("complaints"), "");
    assert!(line("doctor").starts_with("0 "), "{}", line("doctor"));
    assert_eq!((line("reloaded"), line("bad-reload")), ("0 2", "1 active 2"));
    assert_eq!((line("scraped"), line("deferred")), ("1", "0 deferred"));
    assert_eq!((line("leaves"), line("left")), ("0 2 is used", "0 0"));
    assert_eq!((line("restarted"), line("serves-again")), ("0 1", "0 text memory"));
    // An upgrade leaves the service that runs, with what programs have open.
    assert_eq!(line("upgraded"), "0 0.1.0-2 same");
    assert_eq!((line("stopped"), line("again")), ("0 inactive success 0", "0 text memory"));
    assert_eq!(line("purged"), "0 inactive /etc/minerva/fs.toml /var/lib/minerva/pool/tenants/web/file");
    assert_eq!(line("failed"), "");
}
