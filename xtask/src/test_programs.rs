//! The programs of the workspace's tests: built together, and run two at a time.
//!
//! Those that share the machine's disks, cgroups and guests run one after the other; beside them run the others, which need
//! nothing but a processor and give way to them.

use crate::shell::{cargo, display, root};
use crate::skips::Skips;
use anyhow::{Context, Result, anyhow};
use cargo_metadata::{Message, TargetKind};
use std::ffi::OsStr;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Folders whose tests use what there is once: disks, cgroups, mounts, guests.
const SHARING: &[&str] = &["apps/", "data/", "lab", "linux/", "sdk/", "tests/conformance"];
/// Of those folders, tests that use none of it, and guests, which have a kernel of their own.
const NOT_SHARING: &[(&str, &str)] = &[
    ("apps/minerva-sim", "program"),
    ("apps/minerva-agent", "guest"),
    ("apps/minerva-lab", "guest_back_ends"),
    ("apps/minerva-lab", "package"),
    ("apps/minerva-lab", "power_cut"),
    ("apps/minerva-lab", "vm"),
    ("lab", "guest"),
];
/// So many programs that failed are run again; of more the cause is not chance.
const RETRIED_MAX: usize = 3;
/// By so much tests that need only a processor give way to the others, which measure disks.
const NICE: &str = "10";
/// Tests are told that the programs of the workspace are built as they are to be: whoever packs some need not build them again.
const BUILT: &str = "MINERVA_PROGRAMS_BUILT";

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

/// Runs all of them, and `others` after those that share nothing, even when one fails; whether all passed. `path` is the `PATH` for
/// them, and `show` gets what each has printed.
///
/// A few that fail while something else runs are run once more, alone: on a loaded machine a test of the kernel can miss what it
/// waits for. What fails then has failed; what passes then is named at the end, so that it is not forgotten.
pub(crate) fn run(
    programs: &[TestProgram],
    others: Vec<(&str, Command)>,
    path: &OsStr,
    skips: &mut Skips,
    show: Show<'_>,
) -> Result<bool> {
    let (sharing, alone): (Vec<_>, Vec<_>) = programs.iter().partition(|program| program.is_sharing());
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut lane = Lane::new(path, show);
            lane.run_all(&alone, true)?;
            for (title, mut command) in others {
                lane.passed &= lane.run(title, &mut command)?;
            }
            Ok::<_, anyhow::Error>(lane)
        });
        let mut lane = Lane::new(path, show);
        lane.run_all(&sharing, false)?;
        let beside = beside.join().map_err(|_| anyhow!("a thread that runs tests panicked"))??;
        let failed: Vec<_> = lane.failed.iter().chain(&beside.failed).copied().collect();
        let mut again = Lane::new(path, show);
        let passed = again.passed_alone(&failed)? && lane.passed && beside.passed;
        for lane in [lane, beside, again] {
            skips.join(lane.skips);
        }
        Ok(passed)
    })
}

impl TestProgram {
    fn is_sharing(&self) -> bool {
        let is_alone = NOT_SHARING.contains(&(self.folder.as_str(), self.name.as_str()));
        SHARING.iter().any(|folder| self.folder.starts_with(folder)) && !is_alone
    }

    fn title(&self) -> String {
        format!("{}: {}", Path::new(&self.folder).display(), self.name)
    }

    /// Whether it is this test of this folder's package.
    pub(crate) fn is(&self, folder: &str, name: &str) -> bool {
        (self.folder.as_str(), self.name.as_str()) == (folder, name)
    }

    /// As cargo would run it.
    pub(crate) fn command(&self) -> Command {
        self.command_by(Command::new(&self.path))
    }

    /// The same, giving way to others.
    fn nice_command(&self) -> Command {
        let mut nice = Command::new("nice");
        nice.args(["-n", NICE]).arg(&self.path);
        self.command_by(nice)
    }

    fn command_by(&self, mut command: Command) -> Command {
        let folder = root().join(&self.folder);
        command.args(["--quiet", "--show-output"]).env("CARGO_MANIFEST_DIR", &folder).current_dir(folder);
        command
    }
}

/// Shows a piece of text; of two threads at once.
type Show<'a> = &'a (dyn Fn(&str) + Sync);

/// Runs one after the other.
struct Lane<'a> {
    path: &'a OsStr,
    show: Show<'a>,
    skips: Skips,
    /// Programs that failed.
    failed: Vec<&'a TestProgram>,
    /// Whether everything else passed.
    passed: bool,
}

impl<'a> Lane<'a> {
    fn new(path: &'a OsStr, show: Show<'a>) -> Self {
        Self { path, show, skips: Skips::default(), failed: Vec::new(), passed: true }
    }

    fn run_all(&mut self, programs: &[&'a TestProgram], gives_way: bool) -> Result<()> {
        for &program in programs {
            let mut command = if gives_way { program.nice_command() } else { program.command() };
            if !self.run(&program.title(), &mut command)? {
                self.failed.push(program);
            }
        }
        Ok(())
    }

    /// Runs those that failed beside others once more, if they are few, and says what became of each; whether all passed.
    fn passed_alone(&mut self, failed: &[&'a TestProgram]) -> Result<bool> {
        let is_retried = failed.len() <= RETRIED_MAX;
        if is_retried {
            self.run_all(failed, false)?;
        }
        let still = if is_retried { &self.failed[..] } else { failed };
        for &program in failed {
            let is_still = still.iter().any(|&one| std::ptr::eq(one, program));
            let outcome = if is_still { "FAILED" } else { "failed beside others, passed alone" };
            (self.show)(&format!("> {}: {outcome}\n", program.title()));
        }
        Ok(still.is_empty())
    }

    /// Whether it passed. What it prints is shown when it is over, so that lines of two never mix.
    fn run(&mut self, title: &str, command: &mut Command) -> Result<bool> {
        let begun = Instant::now();
        let (passed, said) = self.skips.test(command.env("PATH", self.path).env(BUILT, "1"))?;
        // What passing tests print would only hide what failing ones do.
        let (outcome, said) = if passed { ("passed", "") } else { ("FAILED", said.as_str()) };
        (self.show)(&format!("> {title}: {outcome}, {:.1} s\n{said}", begun.elapsed().as_secs_f64()));
        Ok(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::{NOT_SHARING, TestProgram, run};
    use crate::shell::root;
    use crate::skips::Skips;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn tests_that_share_nothing_are_there_under_their_names() {
        for (folder, name) in NOT_SHARING {
            let tests = root().join(folder).join("tests");
            let is_there = tests.join(format!("{name}.rs")).exists() || tests.join(name).join("main.rs").exists();
            assert!(is_there, "{folder} has no test {name}");
        }
    }

    fn program(scratch: &Path, folder: &str, name: &str, script: &str) -> TestProgram {
        let path = scratch.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
        TestProgram { folder: folder.to_owned(), name: name.to_owned(), path }
    }

    #[test]
    fn those_that_share_the_machine_never_run_at_once_and_each_failure_and_skip_counts() {
        let scratch = tempfile::tempdir().expect("a directory");
        let alone = format!("mkdir {0}/held && sleep 0.05 && rmdir {0}/held", scratch.path().display());
        let sharing = |name| program(scratch.path(), "lab", name, &alone);
        let (one, two, other) = (sharing("one"), sharing("two"), program(scratch.path(), "store", "other", "exit 0"));
        let path = std::env::var_os("PATH").expect("a path");
        let mut skips = Skips::default();
        assert!(run(&[one, two, other], Vec::new(), &path, &mut skips, &|_| ()).expect("they start"));
        let skipping = program(scratch.path(), "apps/minervad", "skipping", "echo 'skipped: needs X'");
        let mut failing = Command::new("sh");
        failing.args(["-c", "exit 1"]);
        assert!(!run(&[skipping], vec![("failing", failing)], &path, &mut skips, &|_| ()).expect("they start"));
        assert_eq!(skips.refused(), 1);
    }

    #[test]
    fn one_that_fails_beside_others_is_run_again_alone_and_named() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = std::env::var_os("PATH").expect("a path");
        let said = std::sync::Mutex::new(String::new());
        let show = |text: &str| said.lock().expect("no panic").push_str(text);
        let once = |name| format!("mkdir {}/{name}.begun && exit 1; exit 0", scratch.path().display());
        let one = program(scratch.path(), "lab", "once", &once("once"));
        assert!(run(&[one], Vec::new(), &path, &mut Skips::default(), &show).expect("they start"));
        assert!(said.lock().expect("no panic").ends_with("> lab: once: failed beside others, passed alone\n"));
        let always = program(scratch.path(), "lab", "always", "exit 1");
        assert!(!run(&[always], Vec::new(), &path, &mut Skips::default(), &show).expect("they start"));
        assert!(said.lock().expect("no panic").ends_with("> lab: always: FAILED\n"));
        let many = ["a", "b", "c", "d"].map(|name| program(scratch.path(), "lab", name, &once(name)));
        assert!(
            !run(&many, Vec::new(), &path, &mut Skips::default(), &show).expect("they start"),
            "more than a few: not by chance"
        );
    }
}
