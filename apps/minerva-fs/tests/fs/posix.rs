//! Other people's tests of a file system: pjdfstest and fsx, on both trees.

use crate::pool_folder::PoolFolder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations of fsx on each tree; `cargo xtask figures cache-posix` asks for more.
const OPERATIONS: &str = "MINERVA_OPERATIONS";
const OPERATIONS_DEFAULT: u64 = 3000;

/// A program of crates.io, in the `PATH` or where `cargo xtask` builds it.
fn tool(name: &str) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).chain([built]).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: {name} is not installed (cargo install {name})");
    }
    found
}

/// A service for them, with roots that others may enter: pjdfstest becomes other users.
fn place() -> (PoolFolder, crate::pool_folder::Service) {
    use std::os::unix::fs::PermissionsExt;
    let place = PoolFolder::new("");
    std::fs::set_permissions(place.folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let service = place.serve();
    for tree in [place.temporary(), place.stable()] {
        std::fs::set_permissions(&tree, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    (place, service)
}

/// What it does not test here, and why. Every test that it runs has to pass.
const PJDFSTEST: &str = "\
[features]
# Not `chflags`, `nfsv4_acls` and `chflags_sf_snapshot`: other systems have these. Not `stat_st_birthtime`: FUSE has no such time in
# the version of the protocol that the library speaks. `rename_ctime`: what Linux file systems do.
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}

[settings]
naptime = 0.02
# The tree is not mounted anew as read-only: nobody can have it so.
allow_remount = false

[dummy_auth]
entries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]
";

#[test]
fn pjdfstest_finds_nothing() {
    let Some(tool) = tool("pjdfstest") else { return };
    let (place, _service) = place();
    let settings = place.folder.path().join("pjdfstest.toml");
    std::fs::write(&settings, PJDFSTEST).unwrap();
    for tree in [place.temporary(), place.stable()] {
        let output = Command::new(&tool).arg("-c").arg(&settings).arg("-p").arg(&tree).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed: Vec<&str> = said.lines().filter(|line| line.contains("failed")).collect();
        println!("{}: {}", tree.display(), said.lines().last().unwrap_or_default());
        said.lines().filter(|line| line.contains("skipped")).for_each(|line| println!("{line}"));
        assert!(
            output.status.success(),
            "{}: {failed:#?}\n{said}\n{}",
            tree.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn fsx_finds_nothing() {
    let Some(tool) = tool("fsx") else { return };
    let operations = std::env::var(OPERATIONS).ok().and_then(|text| text.parse().ok()).unwrap_or(OPERATIONS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    let (place, _service) = place();
    let settings = place.folder.path().join("fsx.toml");
    let weights = "[weights]\nclose_open = 2\ninvalidate = 1\nmapread = 10\nmapwrite = 10\nread = 10\nwrite = 10\ntruncate = 4\nfsync = 0.2\n\
                   fdatasync = 0.2\nposix_fallocate = 2\npunch_hole = 2\nsendfile = 2\nposix_fadvise = 1\ncopy_file_range = 2\n";
    std::fs::write(&settings, weights).unwrap();
    for tree in [place.temporary(), place.stable()] {
        let mut command = Command::new(&tool);
        command.args(["-N", &operations.to_string(), "-S", &seed.to_string(), "-q", "-f"]).arg(&settings);
        let output = command.arg("-P").arg(place.folder.path()).arg(tree.join("fsx")).output().unwrap();
        assert!(
            output.status.success(),
            "{}, seed {seed}: {}{}",
            tree.display(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    println!("{operations} operations in each tree, seed {seed}");
}
