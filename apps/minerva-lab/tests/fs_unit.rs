//! The package of the cache and its unit, in a guest with Debian's systemd as process 1.

mod packing;

#[test]
fn the_cache_runs_under_systemd_and_tenants_come_and_go_at_a_reload() {
    let guest =
        packing::guest(&[("minerva-fs", &[1, 2]), ("minerva-ctl", &[1])]).memory_mib(1024).with_module("fuse", "");
    let Some(answers) = packing::run(guest, include_str!("fs_unit.sh")) else { return };
    let line = |name| answers.line(name);
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
    assert_eq!((line("tried-on"), line("serves-late")), ("0 0", "0 active"));
    // An upgrade leaves the service that runs, with what programs have open.
    assert_eq!(line("upgraded"), "0 0.1.0-2 same");
    assert_eq!((line("stopped"), line("again")), ("0 inactive success 0", "0 text memory"));
    assert_eq!((line("machine"), line("machine-stopped"), line("machine-left")), ("0 active 0", "0 inactive", "0"));
    assert_eq!(line("purged"), "0 inactive /etc/minerva/fs.toml /var/lib/minerva/pool/tenants/web/file");
    assert_eq!(line("failed"), "");
}
