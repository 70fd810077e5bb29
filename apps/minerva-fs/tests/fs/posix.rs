//! Other people's tests of a file system: pjdfstest, fsx and stress-ng, on both trees.

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

/// How many operations the figure asks for; none in the short run.
pub(crate) fn operations_asked_for() -> Option<u64> {
    std::env::var(OPERATIONS).ok().and_then(|text| text.parse().ok())
}

/// A service for them, with roots that others may enter: pjdfstest becomes other users.
pub(crate) fn place_for_others() -> (PoolFolder, crate::pool_folder::Service) {
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
    let (place, _service) = place_for_others();
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
    let operations = operations_asked_for().unwrap_or(OPERATIONS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    let (place, _service) = place_for_others();
    let settings = place.folder.path().join("fsx.toml");
    // Not `sendfile`, which is refused of descriptors that may write (`no_program_is_sent_what_a_mapping_has_replaced`), and for which
    // fsx then waits for ever.
    let weights = "[weights]\nclose_open = 2\ninvalidate = 1\nmapread = 10\nmapwrite = 10\nread = 10\nwrite = 10\ntruncate = 4\nfsync = 0.2\n\
                   fdatasync = 0.2\nposix_fallocate = 2\npunch_hole = 2\nposix_fadvise = 1\ncopy_file_range = 2\n";
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

/// Seconds of each stressor when the figure is asked for, one after the other; in the short run a few run at once, for so long.
const STRESS_SECONDS: &str = "2";
/// What makes, names, maps, locks and removes files in the ways that differ most.
const STRESS_SHORT: [&str; 12] =
    ["chmod", "dentry", "dir", "fallocate", "fcntl", "hdd", "link", "lockf", "mmap", "rename", "seek", "symlink"];

/// It mounts a file system of its own, and tests that.
const STRESS_EXCLUDED: &str = "binderfs";
/// How it ends where one of them lacked something, or the kernel has not what it tests.
const STRESS_RESOURCES: i32 = 3;
const STRESS_NOT_THERE: i32 = 4;

#[test]
fn stress_ng_finds_nothing() {
    if Command::new("stress-ng").arg("--version").output().is_err() {
        println!("skipped: stress-ng is not installed (apt-get install stress-ng)");
        return;
    }
    let (place, mut service) = place_for_others();
    for tree in [place.temporary(), place.stable()] {
        let mut command = Command::new("stress-ng");
        command.current_dir(&tree).arg("--temp-path").arg(&tree);
        command.args(["--verify", "--timeout", STRESS_SECONDS, "--mmap-file"]);
        for stressor in ["hdd", "iomix", "mmap", "sync-file", "fallocate"] {
            // Smaller than the quota.
            command.args([format!("--{stressor}-bytes"), "16m".to_owned()]);
        }
        if operations_asked_for().is_some() {
            command.args(["--class", "filesystem", "--sequential", "1", "--exclude", STRESS_EXCLUDED]);
        } else {
            for stressor in STRESS_SHORT {
                command.arg(format!("--{stressor}")).arg("1");
            }
        }
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let told: Vec<&str> = said.lines().filter(|line| line.contains("fail:") || line.contains("skip")).collect();
        println!("{}: {}", tree.display(), told.join("; "));
        let is_well = output.status.code().is_some_and(|code| [0, STRESS_RESOURCES, STRESS_NOT_THERE].contains(&code));
        assert!(is_well && !said.contains("fail:"), "{}: {said}", tree.display());
        assert!(service.0.try_wait().unwrap().is_none(), "the service ended");
    }
}
