//! The package of the server for VM disks and its unit, in a guest with Debian's systemd as process 1.

mod packing;

#[test]
fn the_server_for_disks_runs_under_systemd_and_hands_over_at_a_reload_and_an_upgrade() {
    let guest = packing::guest(&[("minerva-blk", &[1, 2]), ("minerva-ctl", &[1])]).memory_mib(1024);
    let Some(answers) = packing::run(guest, include_str!("blk_unit.sh")) else { return };
    let line = |name| answers.line(name);
    // Without a file there is nothing to serve.
    assert_eq!(line("installed"), "0 enabled inactive");
    assert_eq!((line("started"), line("serves")), ("0 active notify", "0"));
    // Directives that this systemd does not know would be told.
    assert_eq!(line("complaints"), "");
    assert_eq!(line("slices"), "0");
    // The package has made the user.
    assert_eq!((line("user"), line("socket")), ("minerva-blk", "minerva-blk 660"));
    assert_eq!((line("reloaded"), line("took-over")), ("0", "0 0 1"));
    assert!(line("bad-reload").starts_with("1 active serves"), "{}", line("bad-reload"));
    assert_eq!(line("restarted"), "0 1");
    assert_eq!((line("tried-on"), line("serves-late")), ("0 0", "0 active"));
    assert_eq!((line("upgraded"), line("upgraded-serves")), ("0 0.1.0-2", "0 0"));
    // It ended by itself, and was not killed.
    assert_eq!(line("stopped"), "0 inactive");
    assert_eq!(line("again"), "0");
    assert_eq!(line("purged"), "0 inactive /etc/minerva/blk.toml");
    assert_eq!(line("failed"), "");
}
