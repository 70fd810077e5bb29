//! Installs what the machine lacks, and says so.

use crate::shell::{is_installed, program, succeeds};
use anyhow::Result;

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
    Need { program: "losetup", package: "mount", why: "loop devices" },
    Need { program: "python3", package: "python3-venv", why: "tests the Python package" },
    Need { program: "pkg-config", package: "pkg-config", why: "how C programs find libminerva" },
    Need { program: "valgrind", package: "valgrind", why: "finds what libminerva leaks" },
];

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
    for command in [&mut update, &mut install] {
        command.env("DEBIAN_FRONTEND", "noninteractive").stdout(std::process::Stdio::null());
        if !succeeds(command)? {
            eprintln!("could not install {}, going on without", names.join(" "));
            return Ok(());
        }
    }
    Ok(())
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status
            .lines()
            .any(|line| line.strip_prefix("Uid:").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0")))
    })
}
