//! The packages for other languages, `sdk/python` and `sdk/c`: what in them is generated, their tests, and where libminerva is
//! installed.

use crate::limited::{must, succeeds};
use crate::lint::COMPILING;
use crate::packages::is_root;
use crate::python;
use crate::shell::{cargo, root};
use crate::skips::Skips;
use crate::test_programs::TestProgram;
use crate::workspace::{metadata, target};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The Python package.
const PYTHON: &str = "sdk/python";
/// Its development tools, each with its version.
const REQUIREMENTS: &str = "sdk/python/development.txt";
/// What pytest ends with where all tests were run and some failed; also what it ends with where one hung for too long (pyproject.toml).
const SOME_FAILED: i32 = 1;
/// What is generated of it, below `src`.
const STUBS: &str = "minerva/v1";

/// After this time each is taken for something that hangs.
const INSTALLING: Duration = Duration::from_secs(300);
const GENERATING: Duration = Duration::from_secs(300);
const TYPES: Duration = Duration::from_secs(600);
const TESTS: Duration = Duration::from_secs(900);

/// Where loaders look for libraries, once `ldconfig` has.
const PREFIX: &str = "/usr/local";

/// What to do with them.
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Write what is generated of the contract: the Rust code, the Python stubs and the C header.
    Generate,
    /// Check what is generated and the types, and run the tests of both, C programs and the real daemon among them.
    Check,
    /// Build libminerva and install it with its header and pkg-config file.
    Install {
        /// Where to.
        #[arg(long, default_value = PREFIX)]
        prefix: PathBuf,
    },
}

/// Does it; whether all is well.
pub(crate) fn run(action: &Action) -> Result<bool> {
    match action {
        Action::Generate => generate(),
        Action::Check => {
            let mut skips = Skips::default();
            let mut python = None;
            let mut passed = check(&mut skips, None, &mut python)?;
            if let Some(tests) = python {
                passed &= tests.passed_alone(&mut skips)?;
            }
            skips.tell();
            Ok(passed)
        }
        Action::Install { prefix } => install(prefix, Build::Release).map(|()| true),
    }
}

fn generate() -> Result<bool> {
    // First, as the header's test is built with it.
    if !succeeds(rust_test().env("UPDATE_EXPECT", "1"), COMPILING)? {
        return Ok(false);
    }
    let Some(environment) = Environment::ready()? else { bail!("the Python stubs need Python 3.10 and PyPI") };
    environment.stubs(&root().join(PYTHON).join("src"))?;
    succeeds(header_test().env("UPDATE_EXPECT", "1"), COMPILING)
}

fn rust_test() -> Command {
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "minerva-api", "--test", "generated"]);
    command
}

fn header_test() -> Command {
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "minerva-c", "--test", "c", "the_header_is_what_the_sources_say"]);
    command
}

/// Runs every test of both, even when one fails; whether all passed. `programs` are the workspace's tests where they are built: what
/// is built for one package alone has other features, and is built anew. Where tests in Python fail, but do not hang, `python` gets
/// them and decides whether they passed.
pub(crate) fn check(
    skips: &mut Skips,
    programs: Option<&[TestProgram]>,
    python: &mut Option<FailedTests>,
) -> Result<bool> {
    let environment = Environment::ready()?;
    if environment.is_none() {
        skips.note("the Python package's tests need Python 3.10 with venv, and PyPI");
    }
    let mut passed = match &environment {
        Some(environment) => environment.check()?,
        None => true,
    };
    let tested = environment.as_ref().map(|environment| environment.test(skips, &["--cache-clear"])).transpose()?;
    let is_to_be_run_again = tested == Some(Some(SOME_FAILED));
    passed &= is_to_be_run_again || tested.is_none_or(|code| code == Some(0));
    let prefix = scratch().join("prefix");
    let build = if programs.is_some() { Build::Done } else { Build::Debug };
    install(&prefix, build)?;
    let mut run = |folder: &str, package: &str, name: &str, python: Option<PathBuf>| -> Result<bool> {
        let built = programs.and_then(|programs| programs.iter().find(|program| program.is(folder, name)));
        let (mut tests, limit) = match built {
            Some(program) => (program.command(), program.limit),
            None => (cargo(), COMPILING),
        };
        if built.is_none() {
            tests.args(["test", "--quiet", "--package", package, "--test", name, "--", "--show-output"]);
        }
        tests.env("MINERVA_C_PREFIX", &prefix).envs(python.map(|python| ("MINERVA_PYTHON", python)));
        skips.pass_with_all_given(&mut tests, limit, |text| println!("{text}"))
    };
    passed &= run("sdk/c", "minerva-c", "c", None)?;
    if let Some(environment) = environment {
        passed &= run("apps/minervad", "minervad", "sdk", Some(environment.python.clone()))?;
        *python = is_to_be_run_again.then_some(FailedTests(environment));
    }
    Ok(passed)
}

/// Tests of the Python package of which some failed beside others.
pub(crate) struct FailedTests(Environment);

impl FailedTests {
    /// Runs those that failed once more, with nothing beside them, and says what became of them; whether they passed. A run that was
    /// broken off has not written which they are, and has failed; so has one that left out what had failed.
    pub(crate) fn passed_alone(&self, skips: &mut Skips) -> Result<bool> {
        let skipped = skips.count();
        let code = self.0.test(skips, &["--last-failed", "--last-failed-no-failures", "none"])?;
        let passed = code == Some(0) && skips.count() == skipped;
        println!("> {PYTHON}: {}", if passed { "failed beside others, passed alone" } else { "FAILED" });
        Ok(passed)
    }
}

/// How the library comes about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    /// Built for users.
    Release,
    /// Built for tests.
    Debug,
    /// Built already, for tests.
    Done,
}

/// Where what these tasks make is kept from run to run.
fn scratch() -> PathBuf {
    root().join("target/sdk")
}

/// A Python environment with the package and its tools.
struct Environment {
    folder: PathBuf,
    python: PathBuf,
}

impl Environment {
    /// Makes it where it is not ready; nothing where that cannot be.
    fn ready() -> Result<Option<Self>> {
        let folder = scratch().join("venv");
        let Some(python) = python::environment(&folder, REQUIREMENTS)? else { return Ok(None) };
        let environment = Self { folder, python };
        // Installed as a user installs it, so that the tests find what a user finds.
        let install = ["install", "--quiet", "--force-reinstall", "--no-deps", "--no-build-isolation"];
        must(environment.module("pip").args(install).arg(root().join(PYTHON)), INSTALLING)?;
        Ok(Some(environment))
    }

    /// A module of the environment, run as a program.
    fn module(&self, name: &str) -> Command {
        python::module(&self.python, name)
    }

    /// Writes the stubs of the contract below `folder`.
    fn stubs(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        let mut compiler = self.module("grpc_tools.protoc");
        compiler.arg("--proto_path=api/proto");
        for (kind, options) in [("python", ""), ("grpc_python", ""), ("mypy", "quiet:"), ("mypy_grpc", "quiet:")] {
            compiler.arg(format!("--{kind}_out={options}{}", folder.display()));
        }
        for plugin in ["protoc-gen-mypy", "protoc-gen-mypy_grpc"] {
            compiler.arg(format!("--plugin={plugin}={}", self.folder.join("bin").join(plugin).display()));
        }
        must(compiler.arg("minerva/v1/participation.proto"), GENERATING)
    }

    /// All but its tests; whether that is well.
    fn check(&self) -> Result<bool> {
        let mut types = self.module("mypy");
        types.arg("--cache-dir").arg(scratch().join("mypy")).current_dir(root().join(PYTHON));
        Ok(self.stubs_are_current()? & succeeds(&mut types, TYPES)?)
    }

    /// Runs the tests that `which` asks for, and shows what they print when they have ended; what pytest ended with, if it did by
    /// itself. It names what it skipped, as passing tests print nothing.
    fn test(&self, skips: &mut Skips, which: &[&str]) -> Result<Option<i32>> {
        let mut tests = self.module("pytest");
        tests
            .args(["--quiet", "-rs", "--override-ini"])
            .arg(format!("cache_dir={}", scratch().join("pytest").display()));
        let tested = skips.test(tests.args(which).current_dir(root().join(PYTHON)), TESTS)?;
        println!("{}", tested.shown(false));
        Ok(tested.ended.status.and_then(|status| status.code()))
    }

    /// Whether the committed stubs are what the generators write now. Prints which are not.
    fn stubs_are_current(&self) -> Result<bool> {
        let (fresh, committed) = (scratch().join("stubs"), root().join(PYTHON).join("src"));
        self.stubs(&fresh)?;
        let mut is_current = true;
        let folder = fresh.join(STUBS);
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            let path = entry?.path();
            let name = path.strip_prefix(&fresh).unwrap_or(&path);
            let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            if fs::read(committed.join(name)).ok() != Some(text) {
                eprintln!("sdk: {PYTHON}/src/{} is out of date; run `cargo xtask sdk generate`", name.display());
                is_current = false;
            }
        }
        Ok(is_current)
    }
}

/// Builds libminerva and puts it, its header and its pkg-config file where compilers look below `prefix`.
fn install(prefix: &Path, how: Build) -> Result<()> {
    let is_release = how == Build::Release;
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "minerva-c"]).args(is_release.then_some("--release"));
    if how != Build::Done {
        must(&mut build, COMPILING)?;
    }
    let metadata = metadata(&root())?;
    let package = metadata.packages.iter().find(|package| package.name.as_str() == "minerva-c");
    let version = package.context("the workspace has no minerva-c")?.version.to_string();
    let built = target()?.join(if is_release { "release" } else { "debug" });
    let source = root().join("sdk/c");
    // A pkg-config file names whole paths.
    let prefix = std::path::absolute(prefix).context("find the prefix")?;
    let libraries = prefix.join("lib");
    for folder in [prefix.join("include"), libraries.join("pkgconfig")] {
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    }
    let shared = format!("libminerva.so.{version}");
    for (from, to) in [
        (source.join("include/minerva.h"), prefix.join("include/minerva.h")),
        (built.join("libminerva.a"), libraries.join("libminerva.a")),
        (built.join("libminerva.so"), libraries.join(&shared)),
    ] {
        // Removed first: a program that runs with the old library keeps it.
        remove(&to)?;
        fs::copy(&from, &to).with_context(|| format!("copy {} to {}", from.display(), to.display()))?;
    }
    for (name, target) in [("libminerva.so.0", shared.as_str()), ("libminerva.so", "libminerva.so.0")] {
        let link = libraries.join(name);
        remove(&link)?;
        symlink(target, &link).with_context(|| format!("link {}", link.display()))?;
    }
    let text = fs::read_to_string(source.join("minerva.pc.in")).context("read minerva.pc.in")?;
    let text = text.replace("@prefix@", &prefix.display().to_string()).replace("@version@", &version);
    let path = libraries.join("pkgconfig/minerva.pc");
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    eprintln!("sdk: libminerva {version} is in {}", prefix.display());
    // Programs are linked against it without that, and do not start.
    if prefix == Path::new(PREFIX) && is_root() {
        must(&mut Command::new("ldconfig"), INSTALLING)?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Environment, FailedTests};
    use crate::skips::Skips;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn tests_in_python_that_failed_beside_others_have_to_pass_alone() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (python, asked) = (scratch.path().join("python"), scratch.path().join("asked"));
        let skipped = "echo 'SKIPPED [1] tests/a.py:1: skipped: a loop device that was never throttled'; exit 0";
        // 5: there were none to run.
        let ends = [("exit 0", true), ("exit 1", false), ("exit 5", false), (skipped, false)];
        for (end, passes) in ends {
            let script = format!("#!/bin/sh\necho $* > {}\n{end}\n", asked.display());
            std::fs::write(&python, script).expect("a script");
            std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("a program");
            let environment = Environment { folder: scratch.path().to_path_buf(), python: python.clone() };
            let passed = FailedTests(environment).passed_alone(&mut Skips::default()).expect("it starts");
            assert_eq!(passed, passes, "{end}");
        }
        let asked = std::fs::read_to_string(asked).expect("what it was asked");
        assert!(asked.starts_with("-m pytest ") && asked.contains(" cache_dir=/"), "{asked}");
        assert!(asked.contains(" -rs "), "it is to name what it skips: {asked}");
        // What failed in a run long ago, or everything, would not do.
        assert!(asked.ends_with(" --last-failed --last-failed-no-failures none\n"), "{asked}");
    }
}
