//! What an operator sees for each mistake, as golden text.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use expect_test::{Expect, expect};
use minerva_config::{ConfigError, load, parse};
use std::path::Path;

fn shows(text: &str, expected: Expect) {
    let errors = parse(text, Path::new("minerva.toml")).expect_err("the file has a mistake");
    expected.assert_eq(&errors.to_string());
}

fn warns(text: &str, expected: Expect) {
    let config = parse(text, Path::new("minerva.toml")).expect("the file is allowed");
    let shown: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    expected.assert_eq(&shown.join("\n"));
}

#[test]
fn a_misspelt_key_gets_a_suggestion() {
    shows(
        "[fennel]\nshare_heavi = 3\n",
        expect![[r#"
        error: unknown key `share_heavi`
         --> minerva.toml:2:1
          |
        2 | share_heavi = 3
          | ^^^^^^^^^^^ `fennel` has no key of this name
          |
          = help: did you mean `share_heavy`?

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn a_former_name_is_read_and_told() {
    let text = "[fennel]\nverdicts_needed = 5
places = \"decades\"

[coordination]\nturn_max = \"2m\"\nturn_window = \"1h\"\n";
    warns(
        text,
        expect![[r#"
            warning: `verdicts_needed` is called `group_change_slices` now
             --> minerva.toml:2:1
              |
            2 | verdicts_needed = 5
              | ^^^^^^^^^^^^^^^ a former name
              |
              = help: rename it to `group_change_slices`; the former name is still read
            warning: `places` is called `group_scale` now
             --> minerva.toml:3:1
              |
            3 | places = "decades"
              | ^^^^^^ a former name
              |
              = help: rename it to `group_scale`; the former name is still read
            warning: `turn_max` is called `precedence_max` now
             --> minerva.toml:6:1
              |
            6 | turn_max = "2m"
              | ^^^^^^^^ a former name
              |
              = help: rename it to `precedence_max`; the former name is still read
            warning: `turn_window` is called `precedence_window` now
             --> minerva.toml:7:1
              |
            7 | turn_window = "1h"
              | ^^^^^^^^^^^ a former name
              |
              = help: rename it to `precedence_window`; the former name is still read"#]],
    );
    let engine = parse(text, Path::new("minerva.toml")).expect("the file is allowed").engine;
    let now = "[fennel]\ngroup_change_slices = 5\ngroup_scale = \"decades\"\n\n[coordination]\nprecedence_max = \"2m\"\nprecedence_window = \"1h\"\n";
    assert_eq!(engine, parse(now, Path::new("minerva.toml")).expect("the file is allowed").engine);
    shows(
        "[fennel]\nverdicts_needed = 5\ngroup_change_slices = 4\n",
        expect![[r#"
        error: `group_change_slices` is set twice
         --> minerva.toml:2:1
          |
        2 | verdicts_needed = 5
          | ^^^^^^^^^^^^^^^ once by its former name
          |
          = help: `verdicts_needed` is the former name of `group_change_slices`; remove it

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn a_key_in_the_wrong_table_is_sent_to_the_right_one() {
    shows(
        "slice = \"1s\"\n[observe]\ngroups = 3\n",
        expect![[r#"
        error: unknown key `slice`
         --> minerva.toml:1:1
          |
        1 | slice = "1s"
          | ^^^^^ nothing has this name
          |
          = help: `slice` belongs below `[observe]`

        error: unknown key `groups`
         --> minerva.toml:3:1
          |
        3 | groups = 3
          | ^^^^^^ `observe` has no key of this name
          |
          = help: `groups` belongs below `[fennel]`

        2 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn an_unknown_table_and_an_unknown_key_without_a_neighbour() {
    shows(
        "[fennels]\ngroups = 3\n[named]\nzzz = 1\n",
        expect![[r#"
        error: unknown key `fennels`
         --> minerva.toml:1:2
          |
        1 | [fennels]
          |  ^^^^^^^ nothing has this name
          |
          = help: did you mean `fennel`?

        error: unknown key `zzz`
         --> minerva.toml:4:1
          |
        4 | zzz = 1
          | ^^^ `named` has no key of this name
          |
          = help: known here: `parent`

        2 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn all_errors_of_a_file_are_shown_at_once() {
    let text = "\
mode = \"enforced\"

[observe]
slice = \"50ms\"

[fennel]
groups = 0
recent_half_life = \"0s\"
share_heavy = 0
long_term_weight = 1.5
";
    shows(
        text,
        expect![[r#"
            error: invalid value of `mode`
             --> minerva.toml:1:8
              |
            1 | mode = "enforced"
              |        ^^^^^^^^^^ `enforced` is not known
              |
              = help: did you mean `enforce`? valid: `observe`, `shadow`, `enforce`

            error: invalid value of `slice`
             --> minerva.toml:4:9
              |
            4 | slice = "50ms"
              |         ^^^^^^ not in 100ms to 1m

            error: invalid value of `groups`
             --> minerva.toml:7:10
              |
            7 | groups = 0
              |          ^ not in 1 to 100

            error: invalid value of `recent_half_life`
             --> minerva.toml:8:20
              |
            8 | recent_half_life = "0s"
              |                    ^^^^ not in 100ms to 365days

            error: invalid value of `share_heavy`
             --> minerva.toml:9:15
              |
            9 | share_heavy = 0
              |               ^ not in 1 to 10000

            error: invalid value of `long_term_weight`
              --> minerva.toml:10:20
               |
            10 | long_term_weight = 1.5
               |                    ^^^ not in 0 to 1

            6 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn slices_end_at_a_minute() {
    shows(
        "[observe]\nslice = \"61s\"\n",
        expect![[r#"
        error: invalid value of `slice`
         --> minerva.toml:2:9
          |
        2 | slice = "61s"
          |         ^^^^^ not in 100ms to 1m

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn types_are_named() {
    shows(
        "[observe]\nslice = 1\nactive_ops = \"2\"\n[actuation]\nmanage_ancestors = 1\n",
        expect![[r#"
        error: invalid value of `slice`
         --> minerva.toml:2:9
          |
        2 | slice = 1
          |         ^ expected a duration such as "500ms", "1s" or "6h", found a whole number

        error: invalid value of `active_ops`
         --> minerva.toml:3:14
          |
        3 | active_ops = "2"
          |              ^^^ expected a whole number, found text

        error: invalid value of `manage_ancestors`
         --> minerva.toml:5:20
          |
        5 | manage_ancestors = 1
          |                    ^ expected `true` or `false`, found a whole number

        3 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn a_duration_and_a_size_that_are_none() {
    shows(
        "[observe]\nslice = \"1 fortnight\"\n[fennel]\nquiet_bytes_per_second = \"64 kilos\"\n",
        expect![[r#"
            error: invalid value of `slice`
             --> minerva.toml:2:9
              |
            2 | slice = "1 fortnight"
              |         ^^^^^^^^^^^^^ unknown time unit "fortnight", there are ns, us, ms, s, m, h, days and weeks
              |
              = help: write a duration such as "500ms", "1s" or "6h"

            error: invalid value of `quiet_bytes_per_second`
             --> minerva.toml:4:26
              |
            4 | quiet_bytes_per_second = "64 kilos"
              |                          ^^^^^^^^^^ not a size
              |
              = help: write a size such as "64KiB" or "150MB"

            2 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn unknown_back_ends_and_elevators_list_the_valid_ones() {
    shows(
        "[devices.sda]\nback_end = \"bfq_v1\"\nelevator = \"cfq\"\n",
        expect![[r#"
        error: invalid value of `back_end`
         --> minerva.toml:2:12
          |
        2 | back_end = "bfq_v1"
          |            ^^^^^^^^ `bfq_v1` is not known
          |
          = help: did you mean `bfq-v1`? valid: `bfq`, `bfq-v1`, `iocost`, `max`, `throttle-v1`, `observe`

        error: invalid value of `elevator`
         --> minerva.toml:3:12
          |
        3 | elevator = "cfq"
          |            ^^^^^ `cfq` is not known
          |
          = help: did you mean `bfq`? valid: `none`, `mq-deadline`, `kyber`, `bfq`

        2 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn disks_are_named_as_the_kernel_does() {
    shows(
        "[devices.\"/dev/sda\"]\nenable_iocost = true\n",
        expect![[r#"
        error: invalid disk name `/dev/sda`
         --> minerva.toml:1:10
          |
        1 | [devices."/dev/sda"]
          |          ^^^^^^^^^^ write the kernel name, without `/dev/`
          |
          = help: write `[devices.sda]`, with the name that `lsblk` shows

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn rules_are_judged() {
    let text = "\
[[rules]]
pattern = \"/system.slice/*\"
weight_percent = 0

[[rules]]
group = \"batch\"

[[rules]]
pattern = \"a[\"
exclude = true
";
    shows(
        text,
        expect![[r#"
            error: invalid value of `pattern`
             --> minerva.toml:2:11
              |
            2 | pattern = "/system.slice/*"
              |           ^^^^^^^^^^^^^^^^^ cgroup paths have no leading slash here
              |
              = help: write a glob over cgroup paths

            error: invalid value of `weight_percent`
             --> minerva.toml:3:18
              |
            3 | weight_percent = 0
              |                  ^ not in 1 to 10000

            error: a rule without a pattern
             --> minerva.toml:5:1
              |
            5 | [[rules]]
              | ^^^^^^^^^ nothing can match this
              |
              = help: add `pattern = "system.slice/NAME.service"`

            error: invalid value of `pattern`
             --> minerva.toml:9:11
              |
            9 | pattern = "a["
              |           ^^^^ unclosed character class; missing ']'
              |
              = help: write a glob over cgroup paths

            4 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn jobs_are_judged() {
    let text = "\
[[jobs]]
name = \"sort me\"

[[jobs]]
pattern = \"batch/*\"

[[jobs]]
pattern = \"batch/*\"
name = \"sort\"
bytes = 0
";
    shows(
        text,
        expect![[r#"
        error: invalid value of `name`
         --> minerva.toml:2:8
          |
        2 | name = "sort me"
          |        ^^^^^^^^^ 'sort me' is no name of a job: use 1 to 64 letters, digits, '.', '_' or '-'
          |
          = help: write a word such as "sort"

        error: a job without a name
         --> minerva.toml:4:1
          |
        4 | [[jobs]]
          | ^^^^^^^^ which one is it?
          |
          = help: add `name = "sort"`

        error: invalid value of `bytes`
          --> minerva.toml:10:9
           |
        10 | bytes = 0
           |         ^ not in 1B to 1048576TiB

        3 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn a_single_rules_table_is_explained() {
    shows(
        "[rules]\npattern = \"a\"\n",
        expect![[r#"
        error: `rules` is not a list of tables
         --> minerva.toml:1:1
          |
        1 | [rules]
          | ^^^^^^^ a table
          |
          = help: write `[[rules]]`, with two brackets, above each rule

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn paths_metrics_and_names() {
    let text = "\
[daemon]
runtime_dir = \"run\"
state_dir = \"/var/lib/../minerva\"
metrics = \"0.0.0.0:9100\"
include = [\"vm/*\", 3]
[named]
parent = \"/minerva\"
";
    shows(
        text,
        expect![[r#"
        error: invalid value of `runtime_dir`
         --> minerva.toml:2:15
          |
        2 | runtime_dir = "run"
          |               ^^^^^ not an absolute path
          |
          = help: write an absolute path

        error: invalid value of `state_dir`
         --> minerva.toml:3:13
          |
        3 | state_dir = "/var/lib/../minerva"
          |             ^^^^^^^^^^^^^^^^^^^^^ `..` is not allowed here
          |
          = help: write an absolute path

        error: invalid value of `metrics`
         --> minerva.toml:4:11
          |
        4 | metrics = "0.0.0.0:9100"
          |           ^^^^^^^^^^^^^^ expected "none", "unix:PATH" or "loopback:PORT"
          |
          = help: write "none", "unix:PATH" or "loopback:PORT"

        error: invalid value of `include`
         --> minerva.toml:5:20
          |
        5 | include = ["vm/*", 3]
          |                    ^ expected a glob over cgroup paths, found a whole number
          |
          = help: write a glob over cgroup paths

        error: invalid value of `parent`
         --> minerva.toml:7:10
          |
        7 | parent = "/minerva"
          |          ^^^^^^^^^^ not a plain path below the root of the hierarchy
          |
          = help: write the path of a cgroup, without a leading slash

        5 errors in the configuration; nothing was changed"#]],
    );
}

#[test]
fn shares_that_contradict_each_other() {
    shows(
        "[fennel]\nshare_heavy = 200\n",
        expect![[r#"
        error: `share_heavy` is 200, above `share_sparing`, which is 100
         --> minerva.toml:2:15
          |
        2 | share_heavy = 200
          |               ^^^ set here
          |
          = help: heavy tenants would be favoured; lower `share_heavy` or raise `share_sparing`

        1 error in the configuration; nothing was changed"#]],
    );
    shows(
        "[fennel]\nlong_term_half_life = \"10s\"\n",
        expect![[r#"
        error: `long_term_half_life` is 10s, shorter than `recent_half_life`, which is 1m
         --> minerva.toml:2:23
          |
        2 | long_term_half_life = "10s"
          |                       ^^^^^ set here
          |
          = help: the two averages would swap their meaning; change one of the two

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn precedence_that_is_over_before_a_slice_is() {
    shows(
        "[observe]\nslice = \"20s\"\n[coordination]\nprecedence_max = \"10s\"\n",
        expect![[r#"
        error: `precedence_max` is 10s, shorter than `slice`, which is 20s
         --> minerva.toml:4:18
          |
        4 | precedence_max = "10s"
          |                  ^^^^^ set here
          |
          = help: no operation would ever go before others; raise `precedence_max` to a slice at least, or lower `slice`

        1 error in the configuration; nothing was changed"#]],
    );
    let (slice, name) = ("[observe]\nslice = \"1m\"\n", Path::new("minerva.toml"));
    assert!(parse(slice, name).is_ok(), "as long as the default");
    assert!(parse(&format!("{slice}[coordination]\nprecedence_max = \"1m\"\n"), name).is_ok());
}

#[test]
fn text_that_is_not_toml() {
    shows(
        "[fennel\ngroups = \n",
        expect![[r#"
            error: not valid TOML
             --> minerva.toml:1:8
              |
            1 | [fennel
              |        ^ unclosed table, expected `]`

            1 error in the configuration; nothing was changed"#]],
    );
    shows(
        "mode = \"shadow\"\nmode = \"enforce\"\n",
        expect![[r#"
        error: not valid TOML
         --> minerva.toml:2:1
          |
        2 | mode = "enforce"
          | ^^^^ duplicate key

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn what_is_allowed_but_odd_is_a_warning() {
    let text = "\
[[rules]]
pattern = \"vm/*\"
name = \"a\"

[[rules]]
pattern = \"vm/*\"
name = \"b\"

[[rules]]
pattern = \"ct/*\"
";
    warns(
        text,
        expect![[r#"
            warning: two rules with the pattern `vm/*`
             --> minerva.toml:6:11
              |
            6 | pattern = "vm/*"
              |           ^^^^^^ the second
              |
              = help: the first is at minerva.toml:2; both apply, and what this one says wins
            warning: a rule that changes nothing
             --> minerva.toml:9:1
              |
            9 | [[rules]]
              | ^^^^^^^^^ no effect
              |
              = help: set `name`, `group`, `exclude`, `weight_percent`, `role`, `price_percent`, `quota_percent`, `credits_expiry` or `forecast`, or remove the rule"#]],
    );
}

#[test]
fn files_that_are_no_settings() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("minerva.toml");
    let shown = |expected: Expect| {
        let error: ConfigError = load(&path).expect_err("refused");
        let text = error.to_string().replace(directory.path().to_str().expect("a text path"), "DIR");
        expected.assert_eq(&text);
    };
    shown(expect!["read DIR/minerva.toml"]);
    std::fs::write(&path, b"mode = \"shadow\"\n# caf\xe9\n").expect("written");
    shown(expect!["DIR/minerva.toml: line 2 is not UTF-8 text; save the file as UTF-8"]);
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("written");
    shown(expect!["DIR/minerva.toml: longer than 1048576 bytes, so it is not a settings file"]);
}

#[test]
fn an_error_in_a_drop_in_names_the_drop_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("minerva.toml");
    std::fs::create_dir(directory.path().join("minerva.toml.d")).expect("made");
    std::fs::write(&path, "[fennel]\nshare_sparing = 50\n").expect("written");
    std::fs::write(directory.path().join("minerva.toml.d/10-heavy.toml"), "[fennel]\nshare_heavy = 60\n")
        .expect("written");
    let error = load(&path).expect_err("refused").to_string();
    let text = error.replace(directory.path().to_str().expect("a text path"), "DIR");
    expect![[r#"
        error: `share_heavy` is 60, above `share_sparing`, which is 50
         --> DIR/minerva.toml.d/10-heavy.toml:2:15
          |
        2 | share_heavy = 60
          |               ^^ set here
          |
          = help: heavy tenants would be favoured; lower `share_heavy` or raise `share_sparing`

        1 error in the configuration; nothing was changed"#]]
    .assert_eq(&text);
}

#[test]
fn identities_are_judged() {
    let text = "\
[[identities]]
tenant = \"vm1\"

[[identities]]
vsock_cid = 7

[[identities]]
tenant = \"vm2\"
vsock_cid = 8
token_sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"

[[identities]]
tenant = \"vm3\"
token_sha256 = \"secret\"

[[identities]]
tenant = \"vm4\"
vsock_cid = 2

[[identities]]
tenant = \"vm5\"
certificate = \"vm5.example.org\"

[[identities]]
tenant = \"vm6\"
certificate = \"vm5.example.org\"
";
    shows(
        text,
        expect![[r#"
        error: an identity without a proof
         --> minerva.toml:1:1
          |
        1 | [[identities]]
          | ^^^^^^^^^^^^^^ who is it?
          |
          = help: add one of `certificate`, `token_sha256`, `vsock_cid` or `vsock_socket`

        error: an identity without a tenant
         --> minerva.toml:4:1
          |
        4 | [[identities]]
          | ^^^^^^^^^^^^^^ whose is it?
          |
          = help: add `tenant = "NAME"`, as `minerva-ctl status` shows it

        error: an identity with more than one proof
         --> minerva.toml:7:1
          |
        7 | [[identities]]
          | ^^^^^^^^^^^^^^ who is it?
          |
          = help: write an `[[identities]]` for each of `certificate`, `token_sha256`, `vsock_cid` or `vsock_socket`

        error: invalid value of `token_sha256`
          --> minerva.toml:14:16
           |
        14 | token_sha256 = "secret"
           |                ^^^^^^^^ 6 characters, not 64 hexadecimal digits
           |
           = help: write 64 hexadecimal digits

        error: invalid value of `vsock_cid`
          --> minerva.toml:18:13
           |
        18 | vsock_cid = 2
           |             ^ not in 3 to 4294967294

        error: two identities with the certificate `vm5.example.org`
          --> minerva.toml:26:15
           |
        26 | certificate = "vm5.example.org"
           |               ^^^^^^^^^^^^^^^^^ the second
           |
           = help: the first is at minerva.toml:22; one proof names one tenant

        warning: an identity that nobody can prove
         --> minerva.toml:1:1
          |
        1 | [[identities]]
          | ^^^^^^^^^^^^^^ certificates and tokens are shown over TCP, and `listen` is not set
          |
          = help: set `listen` in `[participation]`

        6 errors in the configuration; nothing was changed"#]],
    );
    shows(
        "[identities]\ntenant = \"vm1\"\n",
        expect![[r#"
        error: `identities` is not a list of tables
         --> minerva.toml:1:1
          |
        1 | [identities]
          | ^^^^^^^^^^^^ a table
          |
          = help: write `[[identities]]`, with two brackets, above each identity

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn listeners_that_contradict_themselves() {
    shows(
        "[participation]\nlisten = \"0.0.0.0:7420\"\nclient_ca = \"/etc/ca.pem\"\n",
        expect![[r#"
        error: `client_ca` is set and `certificate` is not
         --> minerva.toml:3:13
          |
        3 | client_ca = "/etc/ca.pem"
          |             ^^^^^^^^^^^^^ set here
          |
          = help: clients show certificates over TLS only; set `certificate` and `key` too

        error: `listen` is 0.0.0.0:7420, which others reach, and there is no certificate
         --> minerva.toml:2:10
          |
        2 | listen = "0.0.0.0:7420"
          |          ^^^^^^^^^^^^^^ set here
          |
          = help: tokens would cross the network in clear; set `certificate` and `key`, or listen on 127.0.0.1

        2 errors in the configuration; nothing was changed"#]],
    );
    shows(
        "[participation]\nlisten = \"example.org:7420\"\nkey = \"/etc/key.pem\"\nsocket = \"run\"\n",
        expect![[r#"
        error: invalid value of `listen`
         --> minerva.toml:2:10
          |
        2 | listen = "example.org:7420"
          |          ^^^^^^^^^^^^^^^^^^ not an address; names are not looked up
          |
          = help: write an address and a port, such as "192.0.2.1:7420" or "[::]:7420"

        error: invalid value of `socket`
         --> minerva.toml:4:10
          |
        4 | socket = "run"
          |          ^^^^^ not an absolute path
          |
          = help: write an absolute path

        error: `key` is set and `certificate` is not
         --> minerva.toml:3:7
          |
        3 | key = "/etc/key.pem"
          |       ^^^^^^^^^^^^^^ set here
          |
          = help: name the key's certificate in `certificate`

        3 errors in the configuration; nothing was changed"#]],
    );
    shows(
        "[participation]\ncertificate = \"/etc/server.pem\"\nburst = 0\nvsock_port = 0\n",
        expect![[r#"
        error: invalid value of `burst`
         --> minerva.toml:3:9
          |
        3 | burst = 0
          |         ^ not in 1 to 1000000

        error: invalid value of `vsock_port`
         --> minerva.toml:4:14
          |
        4 | vsock_port = 0
          |              ^ not in 1 to 4294967294

        error: `certificate` is set and `key` is not
         --> minerva.toml:2:15
          |
        2 | certificate = "/etc/server.pem"
          |               ^^^^^^^^^^^^^^^^^ set here
          |
          = help: name the certificate's private key in `key`

        3 errors in the configuration; nothing was changed"#]],
    );
    shows(
        "[participation]\ncertificate = \"/etc/server.pem\"\n",
        expect![[r#"
        error: `certificate` is set and `key` is not
         --> minerva.toml:2:15
          |
        2 | certificate = "/etc/server.pem"
          |               ^^^^^^^^^^^^^^^^^ set here
          |
          = help: name the certificate's private key in `key`

        1 error in the configuration; nothing was changed"#]],
    );
}

#[test]
fn an_identity_that_nobody_can_prove_is_a_warning() {
    warns(
        "[[identities]]\ntenant = \"vm1\"\nvsock_cid = 42\n",
        expect![[r#"
        warning: an identity that nobody can prove
         --> minerva.toml:1:1
          |
        1 | [[identities]]
          | ^^^^^^^^^^^^^^ nobody can ask over vsock, because `vsock_port` is not set
          |
          = help: set `vsock_port` in `[participation]`"#]],
    );
    warns(
        "[participation]\nlisten = \"127.0.0.1:7420\"\n[[identities]]\ntenant = \"vm1\"\ncertificate = \"vm1\"\n",
        expect![[r#"
            warning: an identity that nobody can prove
             --> minerva.toml:3:1
              |
            3 | [[identities]]
              | ^^^^^^^^^^^^^^ certificates of clients are not asked for, because `client_ca` is not set
              |
              = help: set `client_ca` in `[participation]`"#]],
    );
}
