//! The file of the server for VM disks: what a good one gives, and what an operator sees for each mistake.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use expect_test::{Expect, expect, expect_file};
use minerva_blocksched::SchedulerName;
use minerva_config::{BlkConfig, blk_default_file, parse_blk};
use minerva_model::Nanos;
use std::path::{Path, PathBuf};

fn good(text: &str) -> BlkConfig {
    parse_blk(text, Path::new("blk.toml")).unwrap_or_else(|errors| panic!("{errors}"))
}

fn shows(text: &str, expected: Expect) {
    let errors = parse_blk(text, Path::new("blk.toml")).expect_err("the file has a mistake");
    expected.assert_eq(&errors.to_string());
}

#[test]
fn the_committed_default_file_is_the_generated_one_and_serves_nothing() {
    expect_file!["../blk.toml"].assert_eq(&blk_default_file());
    assert_eq!(good(&blk_default_file()), BlkConfig::default());
}

#[test]
fn every_example_in_the_default_file_is_accepted() {
    let uncommented: String = blk_default_file()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let config = good(&uncommented);
    assert_eq!(config.devices["sda"].scheduler, SchedulerName::Bfq);
    assert_eq!(config.disks["vm1"].image, PathBuf::from("/var/lib/minerva/vm1.raw"));
}

#[test]
fn a_disk_has_a_contract_a_weight_and_bounds_of_tags() {
    let config = good(
        "[devices.sda]\nscheduler = \"htbs\"\n\n[disks.vm1]\nimage = \"/dev/vg/vm1\"\nweight = 300\nrate = \"8800kB\"\n\
         burst = \"256KiB\"\ndelay = \"150ms\"\ntag_max = 200\n",
    );
    let disk = &config.disks["vm1"];
    assert_eq!(config.devices["sda"].scheduler, SchedulerName::Htbs);
    assert_eq!((disk.rate_bytes_per_second, disk.burst_bytes), (Some(8_800_000), 256 << 10));
    assert_eq!((disk.delay, disk.weight, disk.tag_max), (Nanos::from_millis(150), 300, 200));
    assert_eq!(disk.place, "blk.toml:4");
}

#[test]
fn every_mistake_is_shown_with_its_line_and_what_to_do() {
    shows(
        "[devices.sda]\nscheduler = \"cfg\"\n[disks.vm1]\nimages = \"/a\"\n[disks.vm2]\nimage = \"/b\"\nburst = \"1MiB\"\n\
         [disks.vm3]\nimage = \"/b\"\ntag_default = 200\nlimit = 10\nrate = 20\n[disks.\"a/b\"]\n[disk.vm4]\n",
        expect![[r#"
            error: invalid value of `scheduler`
             --> blk.toml:2:13
              |
            2 | scheduler = "cfg"
              |             ^^^^^ `cfg` is not known
              |
              = help: did you mean `cfq`? valid: `noop`, `mq-deadline`, `anticipatory`, `cfq`, `bfq`, `sfq`, `pclock`, `htbs`, `htbs-original`, `mclock`, `mclock-allow`, `tag`, `tag-original`

            error: unknown key `images`
             --> blk.toml:4:1
              |
            4 | images = "/a"
              | ^^^^^^ `disks.vm1` has no key of this name
              |
              = help: did you mean `image`?

            error: `a/b` cannot be a disk's name
              --> blk.toml:13:8
               |
            13 | [disks."a/b"]
               |        ^^^^^ 1 to 20 letters, digits, `-`, `_` and `.`

            error: unknown key `disk`
              --> blk.toml:14:2
               |
            14 | [disk.vm4]
               |  ^^^^ nothing has this name
               |
               = help: did you mean `disks`?

            error: the disk `vm1` has no image
             --> blk.toml:3:8
              |
            3 | [disks.vm1]
              |        ^^^ nothing to serve
              |
              = help: add `image = "/PATH"`: a raw image or a block device

            error: `burst` without `rate`
             --> blk.toml:7:9
              |
            7 | burst = "1MiB"
              |         ^^^^^^ no contract
              |
              = help: add `rate`, the bytes a second that are promised

            error: `vm3` and `vm2` have one image
             --> blk.toml:9:9
              |
            9 | image = "/b"
              |         ^^^^ the second
              |
              = help: give each its own, or set `read_only = true` for both

            error: `tag_default` is 200, above `tag_max`, which is 128
              --> blk.toml:10:15
               |
            10 | tag_default = 200
               |               ^^^ set here
               |
               = help: lower `tag_default` or raise `tag_max`

            error: `limit` is below `rate`
              --> blk.toml:11:9
               |
            11 | limit = 10
               |         ^^ set here
               |
               = help: what is promised must be allowed: raise `limit`

            9 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn processors_that_cannot_be_are_shown_with_their_line() {
    assert_eq!(good("[devices.sda]\ncpus = \"2-3,5\"\n").devices["sda"].cpus, Some("2-3,5".parse().unwrap()));
    shows(
        "[devices.sda]\ncpus = \"3-2\"\n[devices.sdb]\ncpus = \"first\"\n",
        expect![[r#"
        error: invalid value of `cpus`
         --> blk.toml:2:8
          |
        2 | cpus = "3-2"
          |        ^^^^^ 3 is above 2
          |
          = help: write processors, such as "2-3" or "0,4-7"

        error: invalid value of `cpus`
         --> blk.toml:4:8
          |
        4 | cpus = "first"
          |        ^^^^^^^ `first` is no processor's number, 0 to 1023
          |
          = help: write processors, such as "2-3" or "0,4-7"

        2 errors in the configuration; nothing was changed"#]],
    );
}
