//! Background work of a daemon that systemd confines, on real arrays and file systems: in a guest with Debian's systemd as process 1
//! each kind is done, and stops, crashes and the host's end leave nothing behind.

mod packing;

#[test]
fn each_kind_of_background_work_is_done_under_the_packaged_unit() {
    let mut guest = packing::guest(&[("minervad", &[1]), ("minerva-ctl", &[1])]).memory_mib(1536);
    for size_mib in [32, 32, 64, 512] {
        guest = guest.disk_mib(size_mib);
    }
    for module in ["md_mod", "raid1", "btrfs"] {
        guest = guest.with_module(module, "");
    }
    for program in ["/sbin/mkfs.ext4", "/sbin/mkfs.btrfs", "/bin/btrfs"] {
        guest = guest.with_binary(program);
    }
    let Some(answers) = packing::run(guest, include_str!("background_unit.sh")) else { return };
    let line = |name| answers.line(name);
    assert_eq!(line("installed"), "0 active");
    for kind in ["md-check", "fstrim", "btrfs-scrub", "btrfs-snapshot-delete", "btrfs-defragment", "btrfs-balance"] {
        assert!(line(kind).contains("state done"), "{kind}: {}", line(kind));
    }
    assert!(line("md-check").contains("0 sectors differ between copies"), "{}", line("md-check"));
    assert_eq!(line("md-speeds"), "200000 (system) 1000 (system)");
    assert_ne!(line("fstrim-sectors"), "0");
    assert_eq!(line("live"), "live 38");
    assert_eq!((line("begun"), line("stopped")), ("0 1", "0 success"));
    // 1: nothing was counted while nobody could tell it when to stop.
    assert_eq!((line("frozen"), line("goes-on")), ("1 1", "0 1"));
    // Begun once only: nothing was counted twice.
    assert_eq!((line("frozen-by-crash"), line("after-crash")), ("1 1", "0 0"));
    assert_eq!((line("down"), line("removed"), line("over"), line("unmounted")), ("0 0 soon 0", "0", "0", "0"));
    assert_eq!((line("complaints"), line("failed")), ("", ""));
}
