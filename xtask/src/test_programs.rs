//! The programs of the workspace's tests: built together, and which of them share the machine's disks, cgroups and mounts. How
//! they are run is in `lanes`.

use crate::limited;
use crate::shell::{cargo, display, root};
use anyhow::{Context, Result, ensure};
use cargo_metadata::{Artifact, Message, TargetKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Folders whose tests use what there is once: disks, cgroups, mounts, guests.
const SHARING: &[&str] = &["apps/", "data/", "lab", "linux/", "sdk/", "tests/conformance"];
/// Of those folders, tests that use none of it, and guests, which have a kernel of their own. The longest come first, but for the
/// guests of VM disks, which are many at once and go before everything else: what runs beside them gets little of the processors.
const NOT_SHARING: &[(&str, &str)] = &[
    ("apps/minerva-lab", "package"),
    ("apps/minerva-lab", "blk_unit"),
    ("apps/minerva-lab", "fs_unit"),
    ("apps/minerva-lab", "background_unit"),
    ("apps/minerva-lab", "guest_md"),
    ("apps/minerva-lab", "guest_back_ends"),
    ("apps/minerva-lab", "power_cut"),
    ("apps/minerva-lab", "fs_power_cut"),
    ("apps/minerva-agent", "guest"),
    ("lab", "guest"),
    ("apps/minerva-sim", "bin minerva-sim"),
    ("apps/minerva-sim", "program"),
    ("apps/minerva-lab", "vm"),
];
/// By so much tests that need only a processor give way to the others, which measure disks.
pub(crate) const NICE: &str = "10";
/// What ends a program from a terminal ends tests too. nohup(1), and shells that start something in the background, have it ignored, and
/// programs leave it so.
const SIGNALS: &str = "--default-signal=HUP,INT,QUIT";
/// After this time a program is taken for one that hangs. The longest takes five minutes beside builds.
const LIMIT: Duration = Duration::from_secs(900);
/// The same of programs that wait so long for a guest that they end it themselves, and say what it did.
const LIMIT_LONG: Duration = Duration::from_secs(1_800);
const LONG: &[(&str, &str)] = &[
    ("apps/minerva-lab", "background_unit"),
    ("apps/minerva-lab", "blk_unit"),
    ("apps/minerva-lab", "fs_unit"),
    ("apps/minerva-lab", "package"),
];
/// The same of the build of everything, which is minutes on two cores.
const LIMIT_BUILD: Duration = Duration::from_secs(3_600);
/// Programs with tests that run other people's tools, which are built meanwhile.
const NEED_TOOLS: &[(&str, &str)] = &[("apps/minerva-agent", "guest"), ("apps/minerva-fs", "fs")];

/// One program of tests.
pub(crate) struct TestProgram {
    /// The folder of its package, from the root of the repository.
    folder: String,
    /// The target: the package's library, a program of it, or one of its `tests/`.
    name: String,
    path: PathBuf,
    /// After this time it is ended.
    pub(crate) limit: Duration,
}

/// Builds every library, program and test. `None` if something does not compile, which has been said.
pub(crate) fn build() -> Result<Option<Vec<TestProgram>>> {
    let mut command = cargo();
    // As `cargo test` would, and the libraries that no test is linked with: those for C.
    command.args(["build", "--quiet", "--locked", "--workspace", "--lib", "--bins", "--tests"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let line = display(&command);
    eprintln!("> {line}");
    let (ended, printed) = limited::output(&mut command, LIMIT_BUILD)?;
    eprint!("{}", ended.told);
    if !ended.has_succeeded() {
        return Ok(None);
    }
    let mut programs = Vec::new();
    for message in Message::parse_stream(printed.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message.with_context(|| format!("read what `{line}` says"))? {
            programs.extend(TestProgram::built(artifact));
        }
    }
    // Or none would be all that pass.
    ensure!(!programs.is_empty(), "`{line}` names no program of tests");
    programs.sort_by(|one, other| (&one.folder, &one.name).cmp(&(&other.folder, &other.name)));
    Ok(Some(programs))
}

impl TestProgram {
    /// The program that cargo built, if it is one of tests.
    fn built(artifact: Artifact) -> Option<Self> {
        let path = artifact.executable.filter(|_| artifact.profile.test)?;
        let folder = artifact.manifest_path.parent().map(|folder| folder.as_std_path().to_path_buf());
        let folder = folder.unwrap_or_else(root);
        let folder = folder.strip_prefix(root()).unwrap_or(&folder).to_string_lossy().into_owned();
        // A library and a program of one package may share a name.
        let is_program = artifact.target.kind.contains(&TargetKind::Bin);
        let name = if is_program { format!("bin {}", artifact.target.name) } else { artifact.target.name };
        Some(Self::new(folder, name, path.into()))
    }

    fn new(folder: String, name: String, path: PathBuf) -> Self {
        let limit = if is_among(LONG, &folder, &name) { LIMIT_LONG } else { LIMIT };
        Self { folder, name, path, limit }
    }

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

    /// Whether it has to wait for other people's tools.
    pub(crate) fn needs_tools(&self) -> bool {
        is_among(NEED_TOOLS, &self.folder, &self.name)
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
        command.arg(SIGNALS).args(before).arg(&self.path);
        command.args(["--quiet", "--show-output"]).env("CARGO_MANIFEST_DIR", &folder).current_dir(folder);
        command
    }
}

fn is_among(list: &[(&str, &str)], folder: &str, name: &str) -> bool {
    list.contains(&(folder, name))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{LONG, NEED_TOOLS, NOT_SHARING, TestProgram};
    use crate::shell::root;
    use crate::skips::Skips;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

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
        for (folder, name) in [NOT_SHARING, LONG, NEED_TOOLS].concat() {
            let tests = root().join(folder).join("tests");
            let is_there = match name.strip_prefix("bin ") {
                Some(_) => root().join(folder).join("src/main.rs").exists(),
                None => tests.join(format!("{name}.rs")).exists() || tests.join(name).join("main.rs").exists(),
            };
            assert!(is_there, "{folder} has no test {name}");
        }
    }

    #[test]
    fn a_program_that_hangs_is_ended_and_what_it_said_and_its_end_are_told() {
        let scratch = tempfile::tempdir().unwrap();
        // Its child keeps its output open.
        let program = program(scratch.path(), "xtask", "program", "echo said; sleep 100 & exec sleep 100");
        for mut command in [program.command(), program.nice_command()] {
            let tested = Skips::default().test(&mut command, Duration::from_secs(1)).unwrap();
            assert!(tested.ended.status.is_none());
            assert_eq!(tested.shown(false), "said\nended after 1 s\n");
        }
    }

    #[test]
    fn who_leaves_something_behind_is_named_also_where_tests_pass() {
        let scratch = tempfile::tempdir().unwrap();
        let program = program(scratch.path(), "xtask", "program", "echo said; sleep 100 &");
        let tested = Skips::default().test(&mut program.command(), program.limit).unwrap();
        assert!(tested.ended.has_succeeded());
        assert_eq!(tested.shown(true), "left 1 processes behind: sleep\n");
        assert_eq!(tested.shown(false), "said\nleft 1 processes behind: sleep\n");
    }

    #[test]
    fn a_test_that_waits_for_a_guest_may_wait_for_its_end() {
        let scratch = tempfile::tempdir().unwrap();
        let limit_s = |folder: &str, name: &str| program(scratch.path(), folder, name, "").limit.as_secs();
        // The guest is ended after 1,500 s.
        assert!(limit_s("apps/minerva-lab", "package") > 1_500);
        assert_eq!(limit_s("apps/minervad", "package"), 900);
    }

    /// A script that stands for a program of tests.
    pub(crate) fn program(scratch: &Path, folder: &str, name: &str, script: &str) -> TestProgram {
        let path = scratch.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
        TestProgram::new(folder.to_owned(), name.to_owned(), path)
    }
}
