//! A directory of the pool in place of another, for one command or unit.

use crate::deferred::{start, until_moved, write};
use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, Pool, Request, ask};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The operator's tool; nothing, with the reason printed, where it was not built.
pub(crate) fn tool() -> Option<PathBuf> {
    let tool = Path::new(env!("CARGO_BIN_EXE_minerva-fs")).with_file_name("minerva-ctl");
    if !tool.exists() {
        eprintln!("skipped: needs minerva-ctl beside minerva-fs: cargo build -p minerva-ctl");
        return None;
    }
    Some(tool)
}

fn run(tool: &Path, place: &PoolFolder, directory: &Path, script: &str) -> Output {
    let mut command = Command::new(tool);
    command.args(["cache", "--server"]).arg(place.socket()).arg("run").arg(directory).args(["--", "sh", "-c", script]);
    command.arg("sh").arg(directory).output().unwrap()
}

#[test]
fn names_that_are_not_utf_8_are_refused_and_what_stays_after_a_flush_is_told() {
    let Some(tool) = tool() else { return };
    let (place, target) = start();
    let _service = place.serve();
    let cache = |arguments: &[&OsStr]| {
        let mut command = Command::new(&tool);
        command.args(["cache", "--server"]).arg(place.socket()).args(arguments).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + str::from_utf8(&output.stderr).unwrap())
    };
    let named = target.join(OsStr::from_bytes(b"\xff"));
    for command in ["put", "explain"] {
        let (code, said) = cache(&[OsStr::new(command), named.as_os_str()]);
        assert_eq!((code, said.trim_end()), (Some(2), "minerva-ctl: minerva-fs takes no names that are not UTF-8"));
    }
    write(&place, &target.join("file"), b"text");
    fs::remove_file(target.join("file")).unwrap();
    let (code, said) = cache(&[OsStr::new("flush")]);
    assert!(code == Some(1) && said.starts_with("1 files were asked for; 1 stay: "), "{code:?} {said}");
}

pub(crate) fn unit_directory(place: &PoolFolder, name: &str, owner: (u32, u32)) -> Result<PathBuf, String> {
    let request =
        Request::UnitDirectory { name: name.to_owned(), pool: Pool::Stable, tenant: None, owner, mode: 0o750 };
    match ask(&place.socket(), &request).unwrap() {
        Answer::UnitDirectory { path } => Ok(path),
        Answer::Refused { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_command_writes_goes_to_the_pool_and_is_at_its_place_when_it_has_ended() {
    let Some(tool) = tool() else { return };
    let place = PoolFolder::new("stable = \"64MiB\"");
    let _service = place.serve();
    let directory = place.folder.path().join("out");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("before"), "of before").unwrap();
    fs::write(directory.join("replaced"), "old").unwrap();
    let script = "cd \"$1\" && test ! -e before && mkdir -m 750 sub && echo new > replaced && echo text > sub/file && chmod 640 sub/file && \
                  ln -s sub/file link && touch -d 2001-02-03 sub/file && truncate -s 8M sparse && echo end >> sparse && exit 7";
    let output = run(&tool, &place, &directory, script);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::symlink_metadata(directory.join("sub/file")).unwrap().is_symlink(), "it waits in the pool");
    assert!(!directory.join("sub/file").canonicalize().unwrap().starts_with(&directory));
    until_moved(&place);
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(
        [read("before"), read("replaced"), read("sub/file"), read("link")],
        ["of before", "new\n", "text\n", "text\n"]
    );
    assert_eq!(fs::read_link(directory.join("link")).unwrap(), Path::new("sub/file"));
    let file = fs::symlink_metadata(directory.join("sub/file")).unwrap();
    assert!(file.is_file() && file.permissions().mode() & 0o7777 == 0o640, "{file:?}");
    assert_eq!(file.mtime() / 86_400, 11_356, "its time is its own: 2001-02-03");
    assert_eq!(fs::metadata(directory.join("sub")).unwrap().permissions().mode() & 0o777, 0o750);
    let sparse = fs::metadata(directory.join("sparse")).unwrap();
    assert_eq!((sparse.len(), sparse.blocks() <= 64), ((8 << 20) + 4, true), "holes stay holes");
    let units = place.stable().join(".units");
    assert_eq!(fs::read_dir(units).unwrap().count(), 0, "nothing is left in the pool");
}

/// A command that writes and goes on; what it writes is in the pool by the time this returns.
fn begin(tool: &Path, place: &PoolFolder, directory: &Path) -> Child {
    let mut command = Command::new(tool);
    command.args(["cache", "--server"]).arg(place.socket()).arg("run").arg(directory);
    command.args(["--", "sh", "-c", "echo text > \"$1/file\" && exec sleep 1000", "sh"]).arg(directory);
    let child = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !left(place).iter().any(|at| fs::read_to_string(at.join("file")).is_ok_and(|text| text == "text\n")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not write");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Directories of commands in the pool.
fn left(place: &PoolFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.stable().join(".units"));
    entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_a_command_wrote_is_at_its_place_also_when_a_signal_ends_it() {
    let Some(tool) = tool() else { return };
    let place = PoolFolder::new("stable = \"64MiB\"");
    let _service = place.serve();
    let directory = place.folder.path().join("out");
    fs::create_dir(&directory).unwrap();
    for (signal, to_group) in [("-INT", true), ("-TERM", false), ("-HUP", true)] {
        let child = begin(&tool, &place, &directory);
        let whom = if to_group { format!("-{}", child.id()) } else { child.id().to_string() };
        assert!(Command::new("kill").args([signal, "--", &whom]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let number = match signal {
            "-INT" => 2,
            "-TERM" => 15,
            _ => 1,
        };
        assert_eq!(output.status.code(), Some(128 + number), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "text\n", "{signal}");
        assert!(left(&place).is_empty(), "{:?}", left(&place));
        fs::remove_file(directory.join("file")).unwrap();
    }
}

#[test]
fn what_a_run_left_that_was_killed_goes_before_the_next_but_not_while_its_command_goes_on() {
    let Some(tool) = tool() else { return };
    let place = PoolFolder::new("stable = \"64MiB\"");
    let _service = place.serve();
    let (directory, other) = (place.folder.path().join("out"), place.folder.path().join("other"));
    [&directory, &other].into_iter().for_each(|one| fs::create_dir(one).unwrap());
    let mut killed = begin(&tool, &place, &directory);
    let group = format!("-{}", killed.id());
    killed.kill().and_then(|()| killed.wait()).unwrap();
    let next = || {
        let output = run(&tool, &place, &other, "true");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    next();
    assert!(!directory.join("file").exists() && left(&place).len() == 1, "its command writes there still");
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
    let begun = Instant::now();
    while !directory.join("file").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", left(&place));
        next();
    }
    assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "text\n");
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

#[test]
fn what_one_run_left_goes_before_the_next_and_what_cannot_go_stays() {
    let Some(tool) = tool() else { return };
    let place = PoolFolder::new("stable = \"64MiB\"");
    let _service = place.serve();
    let directory = place.folder.path().join("out");
    fs::create_dir(&directory).unwrap();
    let left = unit_directory(&place, "dump.service-out", (0, 0)).unwrap();
    fs::write(left.join("file"), "text").unwrap();
    fs::hard_link(left.join("file"), left.join("name")).unwrap();
    fs::write(left.join("other"), "other").unwrap();
    let prepare = || {
        let mut command = Command::new(&tool);
        command.args(["cache", "--server"]).arg(place.socket()).args(["prepare", "--name", "dump.service-out"]);
        command.arg("--json").arg(&directory).output().unwrap()
    };
    let output = prepare();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("it has 2 names"), "{said}");
    let again = format!("minerva-ctl cache settle {} {}", left.display(), directory.display());
    assert!(said.contains(&again), "{said}");
    assert_eq!(fs::read_to_string(directory.join("other")).unwrap(), "other");
    fs::remove_file(left.join("name")).unwrap();
    let output = prepare();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success() && told["path"] == left.to_str().unwrap(), "{told}");
    assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "text");
    assert_eq!(fs::read_dir(&left).unwrap().count(), 0);
    until_moved(&place);
}

#[test]
fn no_program_touches_the_directories_that_are_ours() {
    let place = PoolFolder::new("stable = \"64MiB\"");
    let _service = place.serve();
    let (stable, refused) = (place.stable(), Err(io::ErrorKind::PermissionDenied));
    let kind = |done: io::Result<()>| done.map_err(|error| error.kind());
    for name in [".units", ".deferred"] {
        let at = stable.join(name);
        assert_eq!(kind(fs::create_dir(&at)), refused);
        assert_eq!(kind(fs::write(&at, "")), refused);
        assert_eq!(kind(symlink("/etc", &at)), refused);
    }
    let made = unit_directory(&place, "a.service-out", (0, 0)).unwrap();
    assert_eq!(made, stable.join(".units/a.service-out"));
    assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(unit_directory(&place, "a.service-out", (0, 0)), Ok(made.clone()), "it is there already");
    assert_eq!(kind(fs::rename(stable.join(".units"), stable.join("x"))), refused);
    fs::DirBuilder::new().mode(0o777).create(stable.join("own")).unwrap();
    assert_eq!(kind(fs::rename(stable.join("own"), stable.join(".units"))), refused);
    for name in ["", ".", "..", "a/b", "../x"] {
        assert!(unit_directory(&place, name, (0, 0)).unwrap_err().contains("is no name"), "{name}");
    }
    let why = unit_directory(&place, "b", (65534, 65534)).unwrap_err();
    assert!(why.contains("belongs to user 0"), "{why}");
    let line = r#"{"ask":"unit_directory","name":"x","owner":[65534,65534],"mode":511}"#.to_owned() + "\n";
    let Answer::Refused { why } = place.ask_as_nobody(&line) else { panic!("only root may") };
    assert!(why.contains("only root"), "{why}");
    // What is counted is what is there.
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(made.join("f")).unwrap();
    file.write_all_at(&[1; 4096], 0).unwrap();
    assert_eq!(place.status().stable.files, 4, "two directories of ours, one of the program's, and a file");
}
