//! The programs of the workspace's tests: built together, and which of them share the machine's disks, cgroups and mounts. How
//! they are run is in `lanes`.

use crate::shell::{LIMIT, cargo, display, root};
use anyhow::{Context, Result};
use cargo_metadata::{Message, TargetKind};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folders whose tests use what there is once: disks, cgroups, mounts, guests.
const SHARING: &[&str] = &["apps/", "data/", "lab", "linux/", "sdk/", "tests/conformance"];
/// Of those folders, tests that use none of it, and guests, which have a kernel of their own. The longest come first, but for the
/// guests of VM disks, which are many at once and go before everything else: what runs beside them gets little of the processors.
const NOT_SHARING: &[(&str, &str)] = &[
    ("apps/minerva-lab", "package"),
    ("apps/minerva-lab", "blk_unit"),
    ("apps/minerva-lab", "fs_unit"),
    ("apps/minerva-lab", "guest_back_ends"),
    ("apps/minerva-lab", "power_cut"),
    ("apps/minerva-lab", "fs_power_cut"),
    ("apps/minerva-agent", "guest"),
    ("lab", "guest"),
    ("apps/minerva-sim", "program"),
    ("apps/minerva-lab", "vm"),
];
/// By so much tests that need only a processor give way to the others, which measure disks.
const NICE: &str = "10";
/// What ends a program from a terminal ends tests too. nohup(1), and shells that start something in the background, have it ignored, and
/// programs leave it so.
const SIGNALS: &str = "--default-signal=HUP,INT,QUIT";
/// After so many seconds a program is taken for one that hangs. The longest takes five minutes beside builds.
const LIMIT_S: u64 = 900;
/// Programs that may take longer: they wait so long for a guest that they end it themselves, and say what it did.
const LIMITS_S: &[(&str, &str, u64)] = &[
    ("apps/minerva-lab", "background_unit", 1_800),
    ("apps/minerva-lab", "blk_unit", 1_800),
    ("apps/minerva-lab", "fs_unit", 1_800),
    ("apps/minerva-lab", "package", 1_800),
];

/// One program of tests.
pub(crate) struct TestProgram {
    /// The folder of its package, from the root of the repository.
    folder: String,
    /// The target: the package's library, a program of it, or one of its `tests/`.
    name: String,
    path: PathBuf,
}

/// Builds every library, program and test. `None` if something does not compile, which has been said.
pub(crate) fn build() -> Result<Option<Vec<TestProgram>>> {
    let mut command = cargo();
    // As `cargo test` would, and the libraries that no test is linked with: those for C.
    command.args(["build", "--quiet", "--workspace", "--lib", "--bins", "--tests"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let line = display(&command);
    eprintln!("> {line}");
    let mut built = command.stdout(Stdio::piped()).spawn().with_context(|| format!("start `{line}`"))?;
    let output = built.stdout.take().context("a build without an output")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(output)) {
        let Message::CompilerArtifact(artifact) = message.with_context(|| format!("read what `{line}` says"))? else {
            continue;
        };
        if let Some(path) = artifact.executable.filter(|_| artifact.profile.test) {
            let folder = artifact.manifest_path.parent().map(|folder| folder.as_std_path().to_path_buf());
            let folder = folder.unwrap_or_else(root);
            let folder = folder.strip_prefix(root()).unwrap_or(&folder).to_string_lossy().into_owned();
            // A library and a program of one package may share a name.
            let is_program = artifact.target.kind.contains(&TargetKind::Bin);
            let name = if is_program { format!("bin {}", artifact.target.name) } else { artifact.target.name };
            programs.push(TestProgram { folder, name, path: path.into() });
        }
    }
    programs.sort_by(|one, other| (&one.folder, &one.name).cmp(&(&other.folder, &other.name)));
    Ok(built.wait().with_context(|| format!("wait for `{line}`"))?.success().then_some(programs))
}

impl TestProgram {
    /// Whether it uses what the machine has once.
    pub(crate) fn is_sharing(&self) -> bool {
        SHARING.iter().any(|folder| self.folder.starts_with(folder)) && self.place_among_long().is_none()
    }

    /// Its place among the few that take longest though they share nothing: guests, mostly.
    pub(crate) fn place_among_long(&self) -> Option<usize> {
        NOT_SHARING.iter().position(|&(folder, name)| self.is(folder, name))
    }

    /// The name under which its result is shown.
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", Path::new(&self.folder).display(), self.name)
    }

    /// Whether it is this test of this folder's package.
    pub(crate) fn is(&self, folder: &str, name: &str) -> bool {
        (self.folder.as_str(), self.name.as_str()) == (folder, name)
    }

    /// After so many seconds it is ended.
    pub(crate) fn limit_s(&self) -> u64 {
        LIMITS_S.iter().find(|&&(folder, name, _)| self.is(folder, name)).map_or(LIMIT_S, |&(_, _, limit_s)| limit_s)
    }

    /// As cargo would run it from a terminal.
    pub(crate) fn command(&self) -> Command {
        self.command_by(&[])
    }

    /// The same, giving way to others.
    pub(crate) fn nice_command(&self) -> Command {
        self.command_by(&["nice", "-n", NICE])
    }

    fn command_by(&self, before: &[&str]) -> Command {
        let folder = root().join(&self.folder);
        let mut command = Command::new("env");
        command.arg(SIGNALS).args(before).args(LIMIT).arg(self.limit_s().to_string()).arg(&self.path);
        command.args(["--quiet", "--show-output"]).env("CARGO_MANIFEST_DIR", &folder).current_dir(folder);
        command
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{LIMITS_S, NOT_SHARING, TestProgram};
    use crate::shell::{root, was_ended_by_limit};
    use crate::skips::Skips;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn what_ends_a_program_from_a_terminal_ends_tests_also_where_it_is_ignored() {
        let scratch = tempfile::tempdir().unwrap();
        let program = program(scratch.path(), "xtask", "program", "grep SigIgn: /proc/self/status");
        for command in [program.command(), program.nice_command()] {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' HUP INT QUIT; exec \"$@\"", "sh"]).arg(command.get_program());
            shell.args(command.get_args());
            let said = String::from_utf8(shell.output().unwrap().stdout).unwrap();
            let ignored = u64::from_str_radix(said.trim().rsplit('\t').next().unwrap(), 16).unwrap();
            assert_eq!(ignored & 0b111, 0, "{said}");
        }
    }

    #[test]
    fn tests_that_are_listed_are_there_under_their_names() {
        let limited = LIMITS_S.iter().map(|(folder, name, _)| (folder, name));
        for (folder, name) in NOT_SHARING.iter().map(|(folder, name)| (folder, name)).chain(limited) {
            let tests = root().join(folder).join("tests");
            let is_there = tests.join(format!("{name}.rs")).exists() || tests.join(name).join("main.rs").exists();
            assert!(is_there, "{folder} has no test {name}");
        }
    }

    #[test]
    fn a_program_that_hangs_is_ended_and_what_it_said_and_its_end_are_told() {
        let scratch = tempfile::tempdir().unwrap();
        // Its child keeps its output open.
        let program = program(scratch.path(), "xtask", "program", "echo said; sleep 100 & exec sleep 100");
        for command in [program.command(), program.nice_command()] {
            let arguments = command.get_args().map(|one| if one == "900" { "0.2".as_ref() } else { one });
            let mut sooner = Command::new(command.get_program());
            let ended = Skips::default().test(sooner.args(arguments)).unwrap();
            assert!(was_ended_by_limit(ended.status), "{}", ended.status);
            let said = ended.shown(false);
            assert!(said.contains("said\n") && said.contains("timeout: sending signal TERM"), "{said}");
            assert!(said.ends_with("left 1 processes behind: sleep\n"), "{said}");
            // Nobody sees what a passing one says, but who takes the machine from others is named.
            assert_eq!(ended.shown(true), "left 1 processes behind: sleep\n");
        }
    }

    #[test]
    fn a_test_that_waits_for_a_guest_may_wait_for_its_end() {
        let scratch = tempfile::tempdir().unwrap();
        let limit_s = |folder: &str, name: &str| program(scratch.path(), folder, name, "").limit_s();
        // The guest is ended after 1,500 s.
        assert!(limit_s("apps/minerva-lab", "package") > 1_500);
        assert_eq!(limit_s("apps/minervad", "package"), 900);
    }

    /// A script that stands for a program of tests.
    pub(crate) fn program(scratch: &Path, folder: &str, name: &str, script: &str) -> TestProgram {
        let path = scratch.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
        TestProgram { folder: folder.to_owned(), name: name.to_owned(), path }
    }
}
