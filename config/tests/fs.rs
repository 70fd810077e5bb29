//! The file of the cache: what a good one gives, and what an operator sees for each mistake.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use expect_test::{Expect, expect, expect_file};
use minerva_config::{FsConfig, fs_default_file, parse_fs};
use std::path::{Path, PathBuf};

fn good(text: &str) -> FsConfig {
    parse_fs(text, Path::new("fs.toml")).unwrap_or_else(|errors| panic!("{errors}"))
}

fn shows(text: &str, expected: Expect) {
    let errors = parse_fs(text, Path::new("fs.toml")).expect_err("the file has a mistake");
    expected.assert_eq(&errors.to_string());
}

#[test]
fn the_committed_default_file_is_the_generated_one_and_has_no_tenants() {
    expect_file!["../fs.toml"].assert_eq(&fs_default_file());
    assert_eq!(good(&fs_default_file()), FsConfig::default());
}

#[test]
fn a_tenant_has_quotas_an_owner_and_a_choice_for_a_full_pool() {
    let config = good(
        "[pools.stable]\npath = \"/srv/ssd\"\n\n[tenants.web]\nuser = \"www-data\"\ntemporary = \"1GiB\"\nstable_files = 7\n\
         when_full = \"spill\"\nunits = [\"dump.service:/srv/dump\"]\n",
    );
    let tenant = &config.tenants["web"];
    assert_eq!(config.stable.path, PathBuf::from("/srv/ssd"));
    assert_eq!((tenant.temporary_bytes, tenant.stable_files), (1 << 30, 7));
    assert_eq!((tenant.user.as_deref(), tenant.spills_when_full), (Some("www-data"), true));
    assert_eq!(tenant.place, "fs.toml:4");
    assert_eq!((tenant.units[0].unit.as_str(), tenant.units[0].is_temporary), ("dump.service", false));
}

#[test]
fn every_mistake_is_shown_with_its_line_and_what_to_do() {
    shows(
        "[server]\nmount = \"/srv\"\n[pools.temporary]\nwatermark = 50\n[pools.stable]\npath = \"/srv/pool\"\n[pools.tape]\n\
         [tenants.\"a/b\"]\n[tenants.web]\nwhen_full = \"wait\"\nquota = 5\ntemporary = 5\n[tenant.x]\n",
        expect![[r#"
            error: unknown pool `tape`
             --> fs.toml:7:8
              |
            7 | [pools.tape]
              |        ^^^^ there are two

            error: `a/b` cannot be a tenant's name
             --> fs.toml:8:10
              |
            8 | [tenants."a/b"]
              |          ^^^^^ 1 to 64 letters, digits, `-`, `_` and `.`

            error: invalid value of `when_full`
              --> fs.toml:10:13
               |
            10 | when_full = "wait"
               |             ^^^^^^ `wait` is not known
               |
               = help: valid: `refuse`, `spill`

            error: unknown key `quota`
              --> fs.toml:11:1
               |
            11 | quota = 5
               | ^^^^^ `tenants.web` has no key of this name
               |
               = help: known here: `user`, `group`, `temporary`, `temporary_files`, `stable`, `stable_files`, `weight`, `when_full`, `reads`, `writes`, `watermark`, `spill_to`, `units`, `machine`, `ids`

            error: invalid value of `temporary`
              --> fs.toml:12:13
               |
            12 | temporary = 5
               |             ^ not in 1MiB to 1024TiB

            error: unknown key `tenant`
              --> fs.toml:13:2
               |
            13 | [tenant.x]
               |  ^^^^^^ nothing has this name
               |
               = help: did you mean `tenants`?

            error: `spill_to` is 60, not below `watermark`, which is 50
             --> fs.toml:4:13
              |
            4 | watermark = 50
              |             ^^ set here
              |
              = help: lower `spill_to` or raise `watermark`

            error: the pool /srv/pool and the mounts at /srv lie in one another
             --> fs.toml:6:8
              |
            6 | path = "/srv/pool"
              |        ^^^^^^^^^^^ set here
              |
              = help: a file system cannot lie in itself: name two separate directories

            8 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn what_the_kernel_writes_cannot_go_over_to_the_disk() {
    shows(
        "[tenants.web]\nwrites = \"kernel\"\nwhen_full = \"spill\"\n",
        expect![[r#"
            error: files of `web` cannot go over to the disk while the kernel writes them
             --> fs.toml:2:10
              |
            2 | writes = "kernel"
              |          ^^^^^^^^ set here
              |
              = help: remove `writes = "kernel"`, or set `when_full = "refuse"`

            1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn a_machine_has_users_of_its_own_on_the_host() {
    let config =
        good("[tenants.a]\nmachine = \"vm-a\"\nids = 1000000\n[tenants.b]\nmachine = \"vm-b\"\nids = 1065536\n");
    assert_eq!((config.tenants["a"].machine.as_deref(), config.tenants["a"].ids), (Some("vm-a"), 1_000_000));
    shows(
        "[tenants.a]\nmachine = \"vm\"\nids = 1000000\n[tenants.b]\nmachine = \"vm\"\nids = 1065535\nuser = \"www-data\"\n\
         units = [\"dump.service:/srv/dump\"]\n[tenants.c]\nmachine = \"other\"\n[tenants.d]\nids = 70000\n[tenants.e]\n\
         machine = \"x\"\nids = 1000\n[tenants.f]\nmachine = \"a b\"\nids = 2000000\n",
        expect![[r#"
            error: invalid value of `ids`
              --> fs.toml:15:7
               |
            15 | ids = 1000
               |       ^^^^ not in 65536 to 4294901759

            error: invalid value of `machine`
              --> fs.toml:17:11
               |
            17 | machine = "a b"
               |           ^^^^^ 1 to 64 letters, digits, `.`, `_`, `-` and `+` are needed
               |
               = help: write a machine

            error: `b` is a machine, whose root is user 1065535
             --> fs.toml:7:8
              |
            7 | user = "www-data"
              |        ^^^^^^^^^^ set here
              |
              = help: remove `user` and `group`

            error: services of the host cannot write to the trees of the machine `vm`
             --> fs.toml:8:9
              |
            8 | units = ["dump.service:/srv/dump"]
              |         ^^^^^^^^^^^^^^^^^^^^^^^^^^ set here
              |
              = help: the machine can change them while they do: give the services a tenant of their own

            error: `a` is the machine `vm` too
             --> fs.toml:5:11
              |
            5 | machine = "vm"
              |           ^^^^ set here
              |
              = help: a machine is one tenant

            error: the machines of `a` and `b` share users
             --> fs.toml:6:7
              |
            6 | ids = 1065535
              |       ^^^^^^^ set here
              |
              = help: 65,536 numbers belong to each: set them further apart

            error: whose files those of the machine `other` are on the host is not said
              --> fs.toml:10:11
               |
            10 | machine = "other"
               |           ^^^^^^^ set here
               |
               = help: set `ids` to the first of 65,536 numbers that no user of the host and no other machine has

            error: `d` has `ids` and no machine
              --> fs.toml:12:7
               |
            12 | ids = 70000
               |       ^^^^^ set here
               |
               = help: name its `machine`, or say `user`

            error: whose files those of the machine `x` are on the host is not said
              --> fs.toml:14:11
               |
            14 | machine = "x"
               |           ^^^ set here
               |
               = help: set `ids` to the first of 65,536 numbers that no user of the host and no other machine has

            error: `f` has `ids` and no machine
              --> fs.toml:18:7
               |
            18 | ids = 2000000
               |       ^^^^^^^ set here
               |
               = help: name its `machine`, or say `user`

            10 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn a_machine_is_told_how_it_gets_its_trees() {
    let config = good("[server]\nruntime = \"/run/pool\"\n[tenants.a]\nmachine = \"vm-a\"\nids = 1000000\n");
    let lines = minerva_config::machine_attach_lines(&config.server, "a");
    for needed in [
        "systemctl enable --now minerva-virtiofs@a.service",
        "-object memory-backend-memfd,id=memory,size=2G,share=on -machine memory-backend=memory \\",
        "-chardev socket,id=a-minerva,path=/run/pool/machines/a.sock \\",
        "<source socket='/run/pool/machines/a.sock'/>",
        "minerva /minerva virtiofs nosuid,nodev,nofail 0 0",
    ] {
        assert!(lines.lines().any(|line| line.trim() == needed), "no `{needed}` in\n{lines}");
    }
}

#[test]
fn watermarks_of_a_tenant_are_its_own_or_those_of_all_and_are_judged_together() {
    let config = good(
        "[pools.temporary]\nwatermark = 70\nspill_to = 50\n[tenants.web]\nwatermark = 90\n[tenants.db]\nwatermark = 40\nspill_to = 0\n\
         [tenants.other]\n",
    );
    for (name, watermark, spill_to) in [("web", 90, 50), ("db", 40, 0), ("other", 70, 50)] {
        let of = config.watermarks_of(name);
        assert_eq!((of.watermark_percent, of.spill_to_percent), (watermark, spill_to), "{name}");
    }
    let text = "[tenants.web]\nwatermark = 60\n[tenants.db]\nspill_to = 20\n";
    let told = parse_fs(text, Path::new("fs.toml")).expect_err("web has no room between the two").to_string();
    assert!(told.contains("`spill_to` of `web` is 60, not below its `watermark`, which is 60"), "{told}");
    assert!(told.contains("fs.toml:2:13") && !told.contains("`db`"), "{told}");
}
