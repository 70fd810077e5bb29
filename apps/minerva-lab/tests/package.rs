//! The Debian packages and their units where they will run: in a guest with Debian's systemd as process 1 they are installed,
//! upgraded with their state, stopped, removed and purged.

mod packing;

#[test]
fn the_packages_install_upgrade_stop_and_go_and_their_units_work() {
    let guest = packing::guest(&[("minervad", &[1, 2]), ("minerva-ctl", &[1, 2]), ("minerva-agent", &[1, 2])])
        .memory_mib(1536)
        .disk_mib(64)
        .with_binary("/sbin/mkfs.ext4");
    let Some(answers) = packing::run(guest, include_str!("package.sh")) else { return };
    let line = |name| answers.line(name);
    assert_eq!(line("installed"), "0 enabled active notify");
    // Directives that this systemd does not know would be told.
    assert_eq!(line("complaints"), "");
    assert_eq!(line("private").trim_end(), "root 755 root 700");
    // The sandbox lets it write weights.
    assert!(line("steers").starts_with("0 "), "{}", line("steers"));
    assert_eq!((line("bad-reload"), line("good-reload")), ("1 active", "0 active"));
    assert_eq!((line("restarted"), line("steers-again")), ("0 1", "0"));
    assert_ne!(line("restored-by-unit"), "0");
    assert_eq!((line("named"), line("given")), (r#"0 {"backup":50}"#, "0"));
    assert_eq!((line("upgraded"), line("steers-upgraded")), ("0 0.1.0-2 active", "0"));
    assert_eq!((line("kept-file"), line("kept-name")), ("# mine", r#"{"backup":50}"#));
    assert_ne!(line("kept-credits"), "0");
    assert_eq!(line("stopped"), "0 success");
    // It ended by itself and said so: it did not wait for its guard, which waits for its end.
    assert_eq!(line("stopped-in-vain"), r#"0 exit-code 1 {"backup":50}"#);
    assert!(line("restored-later").starts_with("0 1 restored"), "{}", line("restored-later"));
    assert!(line("back").starts_with("0 ") && line("back").contains("No such file"), "{}", line("back"));
    assert_eq!(line("probe-left"), "");
    assert_eq!(line("agent").trim_end(), "0 active active");
    // A user of systemd's making (systemd.exec(5), DynamicUser=), whose directory nobody else can enter; its socket anybody can.
    let user: u32 = line("agent-user").trim().parse().expect("a user without a name");
    assert!((61_184..=65_519).contains(&user), "{user}");
    for asked in ["asked-by-nobody", "asked-after-kill", "agent-upgraded"] {
        assert!(line(asked).contains("minerva-agent"), "{asked}: {}", line(asked));
    }
    assert!(
        line("agent-purged").starts_with("0 ") && !line("agent-purged").contains("sock;"),
        "{}",
        line("agent-purged")
    );
    assert!(line("deleting").starts_with("0 "), "{}", line("deleting"));
    assert!(line("commanded").starts_with("0 "), "{}", line("commanded"));
    assert_eq!(line("deleted"), "0 lost+found written 0 written");
    assert!(line("over").starts_with("0 "), "{}", line("over"));
    assert_eq!(line("endless"), "0");
    assert_eq!((line("removed"), line("removed-back")), ("0 inactive 2", "0"));
    assert_eq!((line("units"), line("unmounted")), ("0", "0"));
    assert_eq!(line("purged").trim_end(), "0");
    assert_eq!(line("state-left"), "./pool/tenants/web/file ./vm1.raw");
    assert_eq!(line("state-gone"), "0");
    // What is another's in the directory that they share stays.
    assert_eq!(line("others").trim_end(), "./servers ./servers/blk");
    assert_eq!(line("failed"), "");
}
