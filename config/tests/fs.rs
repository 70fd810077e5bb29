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
         when_full = \"spill\"\n",
    );
    let tenant = &config.tenants["web"];
    assert_eq!(config.stable.path, PathBuf::from("/srv/ssd"));
    assert_eq!((tenant.temporary_bytes, tenant.stable_files), (1 << 30, 7));
    assert_eq!((tenant.user.as_deref(), tenant.spills_when_full), (Some("www-data"), true));
    assert_eq!(tenant.place, "fs.toml:4");
}

#[test]
fn every_mistake_is_shown_with_its_line_and_what_to_do() {
    shows(
        "[server]\nmount = \"/srv\"\n[pools.temporary]\nwatermark = 50\n[pools.stable]\npath = \"/srv/pool\"\n[pools.tape]\n\
         [tenants.\"a/b\"]\n[tenants.web]\nwhen_full = \"wait\"\nquota = 5\ntemporary = 5\n[tenant.x]\n",
        expect![[""]],
    );
}
