//! What `minerva-ctl cache` puts to its place, waits for and explains, when something stands in its way.

use crate::deferred::{PATIENCE, assert_tidy, defer, files, is_link, start, until_moved};
use crate::pool_folder::PoolFolder;
use crate::units::{tool, unit_directory};
use minerva_api::cache::Pool;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// A user that owns nothing else here.
const NOBODY: u32 = 65534;

fn cache(tool: &Path, place: &PoolFolder) -> Command {
    let mut command = Command::new(tool);
    command.args(["cache", "--server"]).arg(place.socket()).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A pool of a user that is not root, and a directory of that user.
fn of_nobody() -> (PoolFolder, PathBuf) {
    let place = PoolFolder::new("user = \"nobody\"\nstable = \"64MiB\"");
    fs::set_permissions(place.folder.path(), Permissions::from_mode(0o711)).unwrap();
    let directory = place.folder.path().join("out");
    fs::create_dir(&directory).unwrap();
    chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    (place, directory)
}

#[test]
fn a_read_only_file_of_a_users_command_replaces_what_stood_at_its_place() {
    let Some(tool) = tool() else { return };
    let (place, directory) = of_nobody();
    let _service = place.serve();
    fs::write(directory.join("file"), "old").unwrap();
    let script = "echo new > \"$1/file\" && chmod 444 \"$1/file\"";
    let mut command = cache(&tool, &place);
    command.arg("run").arg(&directory).args(["--", "sh", "-c", script, "sh"]).arg(&directory);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "new\n");
    until_moved(&place);
    assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "new\n");
    assert_eq!(fs::metadata(directory.join("file")).unwrap().permissions().mode() & 0o7777, 0o444);
    assert_tidy(&place, &directory);
}

/// Puts what lies in a directory to its place, by a process that cannot write files of more than a mebibyte: `sh` says what it meets then.
fn settle_limited(tool: &Path, place: &PoolFolder, sh: &str, (from, to): (&Path, &Path)) -> Output {
    let script = format!("{sh} exec prlimit --fsize=1048576 \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(tool).args(["cache", "--server"]).arg(place.socket());
    command.args(["settle", "--as-caller"]).arg(from).arg(to).output().unwrap()
}

#[test]
fn what_fails_on_its_way_to_its_place_leaves_the_old_file_there() {
    let Some(tool) = tool() else { return };
    let (place, target) = start();
    let _service = place.serve();
    let from = place.folder.path().join("from");
    fs::create_dir(&from).unwrap();
    let data = vec![7; 4 << 20];
    fs::write(from.join("file"), &data).unwrap();
    fs::write(target.join("file"), "old").unwrap();
    let is_old = || fs::read(target.join("file")).is_ok_and(|data| data == b"old");
    // An error, as of a pool that is full.
    let output = settle_limited(&tool, &place, "trap '' XFSZ;", (&from, &target));
    assert!(!output.status.success() && said(&output).contains("File too large"), "{}", said(&output));
    assert!(is_old() && from.join("file").exists());
    assert_eq!(files(&place), [], "nothing of it stays in the pool");
    assert_tidy(&place, &target);
    // A signal that ends it.
    let output = settle_limited(&tool, &place, "", (&from, &target));
    assert_eq!(output.status.code(), None, "{}", said(&output));
    assert!(is_old() && from.join("file").exists());
    let output = cache(&tool, &place).args(["settle", "--as-caller"]).arg(&from).arg(&target).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    until_moved(&place);
    assert!(fs::read(target.join("file")).is_ok_and(|read| read == data));
}

#[test]
fn a_file_is_known_by_the_name_of_its_place_and_what_it_replaces_does_not_stay_in_the_pool() {
    let Some(tool) = tool() else { return };
    let (place, target) = start();
    let _service = place.serve();
    let (from, file) = (place.folder.path().join("from"), target.join("file"));
    fs::create_dir(&from).unwrap();
    // One that waits there already, and does not move as long as it is open.
    let waits = File::create(defer(&place, &file, Pool::Stable).unwrap().1).unwrap();
    fs::write(from.join("file"), "new").unwrap();
    let settle = |name: &str| {
        let output = cache(&tool, &place).args(["settle", "--as-caller"]).arg(&from).arg(&target).output().unwrap();
        assert!(output.status.success(), "{name}: {}", said(&output));
    };
    settle("the first");
    assert!(files(&place).iter().all(|waiting| Path::new(&waiting.path) == file), "{:?}", files(&place));
    assert!(files(&place).len() <= 1, "the file that was replaced has gone: {:?}", files(&place));
    drop(waits);
    until_moved(&place);
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    // A name that has no room for another before it.
    let long = "n".repeat(255);
    fs::write(from.join(&long), "long").unwrap();
    settle(&long);
    assert_eq!(fs::read_to_string(target.join(&long)).unwrap(), "long");
    until_moved(&place);
    assert_tidy(&place, &target);
}

#[test]
fn what_goes_past_a_full_pool_replaces_what_waits_at_its_place_too() {
    let Some(tool) = tool() else { return };
    let place = PoolFolder::new("stable = \"8MiB\"");
    let _service = place.serve();
    let [from, target] = ["from", "data"].map(|name| place.folder.path().join(name));
    [&from, &target].into_iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let waits = |name: &str| File::create(defer(&place, &target.join(name), Pool::Stable).unwrap().1).unwrap();
    let _open = ["file", "link"].map(waits);
    let data = vec![7; 9 << 20];
    fs::write(from.join("file"), &data).unwrap();
    symlink("elsewhere", from.join("link")).unwrap();
    let output = cache(&tool, &place).args(["settle", "--as-caller"]).arg(&from).arg(&target).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(!is_link(&target.join("file")) && fs::read(target.join("file")).unwrap() == data);
    assert_eq!(fs::read_link(target.join("link")).unwrap(), Path::new("elsewhere"));
    assert_eq!(files(&place), [], "nothing of what was replaced stays in the pool");
    assert_tidy(&place, &target);
}

#[test]
fn what_its_owner_cannot_remove_from_the_pool_is_not_put_to_its_place_again_and_again() {
    let Some(tool) = tool() else { return };
    let (place, directory) = of_nobody();
    let _service = place.serve();
    let left = unit_directory(&place, "dump.service-out", (NOBODY, NOBODY)).unwrap();
    // As a command leaves it that runs as root.
    fs::create_dir(left.join("sub")).unwrap();
    fs::write(left.join("sub/file"), "of root's").unwrap();
    fs::create_dir(directory.join("sub")).unwrap();
    chown(directory.join("sub"), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::write(directory.join("sub/file"), "newer").unwrap();
    let settle = || cache(&tool, &place).arg("settle").arg(&left).arg(&directory).output().unwrap();
    let output = settle();
    let told = format!("chown -R {NOBODY}:{NOBODY} {}", left.join("sub").display());
    assert!(!output.status.success() && said(&output).contains(&told), "{}", said(&output));
    assert_eq!(fs::read_to_string(directory.join("sub/file")).unwrap(), "newer");
    assert!(left.join("sub/file").exists());
    for at in [left.join("sub"), left.join("sub/file")] {
        chown(at, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let output = settle();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read_to_string(directory.join("sub/file")).unwrap(), "of root's");
    until_moved(&place);
}

#[test]
fn a_flush_waits_for_what_waited_when_it_began_and_for_nothing_else() {
    let Some(tool) = tool() else { return };
    let (place, target) = start();
    let _service = place.serve();
    let open = |name: &str| File::create(defer(&place, &target.join(name), Pool::Stable).unwrap().1).unwrap();
    let first = open("first");
    let mut flush = cache(&tool, &place).arg("flush").arg(&target).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(flush.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("1 files wait"), "{line}");
    let second = open("second");
    drop(first);
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = flush.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            flush.kill().and_then(|()| flush.wait()).unwrap();
            panic!("it waits for files that came later: {:?}", files(&place));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(status.success());
    assert!(!is_link(&target.join("first")) && is_link(&target.join("second")));
    drop(second);
}

#[test]
fn a_file_is_found_by_its_link_and_by_any_path_to_it() {
    let Some(tool) = tool() else { return };
    let (place, target) = start();
    let _service = place.serve();
    let file = target.join("file");
    let _open = File::create(defer(&place, &file, Pool::Stable).unwrap().1).unwrap();
    let other = place.folder.path().join("other");
    symlink(&target, &other).unwrap();
    for path in [file.clone(), other.join("file"), target.join("../data/file")] {
        let output = cache(&tool, &place).args(["flush", "--no-wait"]).arg(&path).output().unwrap();
        assert_eq!(said(&output), "1 files are asked for\n", "{}", path.display());
        let output = cache(&tool, &place).arg("explain").arg(&path).output().unwrap();
        let waits = format!("{} waits in the pool", file.display());
        assert!(said(&output).starts_with(&waits), "{}: {}", path.display(), said(&output));
    }
    let output = cache(&tool, &place).args(["flush", "--no-wait"]).arg(&other).output().unwrap();
    assert_eq!(said(&output), "1 files are asked for\n", "a link to a directory is that directory");
    // Renamed, it is found by the name that it has now.
    fs::rename(&file, target.join("renamed")).unwrap();
    let output = cache(&tool, &place).args(["flush", "--no-wait"]).arg(target.join("renamed")).output().unwrap();
    assert_eq!(said(&output), "1 files are asked for\n");
}

#[test]
fn a_file_that_is_put_has_the_permissions_that_the_umask_leaves() {
    let Some(tool) = tool() else { return };
    let (place, target) = start();
    let _service = place.serve();
    for (mask, mode) in [("027", 0o640), ("022", 0o644), ("777", 0o200)] {
        let script = format!("umask {mask} && exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(&tool).args(["cache", "--server"]).arg(place.socket());
        let output = command.arg("put").arg(target.join(mask)).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(fs::metadata(target.join(mask)).unwrap().permissions().mode() & 0o7777, mode, "{mask}");
    }
}

#[test]
fn a_file_whose_link_is_gone_is_dropped_before_anybody_else_has_seen_that() {
    let Some(tool) = tool() else { return };
    let (place, target) = start();
    let _service = place.serve();
    let (id, data) = defer(&place, &target.join("file"), Pool::Stable).unwrap();
    let _open = File::create(&data).unwrap();
    let drop_it = || cache(&tool, &place).args(["drop", &id.to_string()]).output().unwrap();
    let output = drop_it();
    assert!(!output.status.success() && said(&output).contains("still leads to it"), "{}", said(&output));
    fs::remove_file(target.join("file")).unwrap();
    let output = drop_it();
    assert!(output.status.success(), "{}", said(&output));
    let below = place.pool().join("tenants/web/.deferred").join(data.file_name().unwrap());
    assert!(!below.exists() && files(&place).is_empty());
}
