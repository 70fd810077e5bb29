//! `minerva-ctl rm`, with and without a daemon.

use crate::{Daemon, place, text, tool, until, with_loop_under_bfq};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn rm_deletes_without_a_server_and_tells_what_it_left() {
    let directory = place("minerva");
    fs::create_dir_all(directory.path().join("big/deep")).expect("directories");
    fs::write(directory.path().join("big/deep/file"), [0; 4096]).expect("a file");
    let refused = tool(directory.path(), &["rm", "big"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("use -r"), "{}", text(&refused.stderr));
    let deleted = tool(directory.path(), &["--json", "rm", "-r", "--pace", "100", "big"]);
    assert_eq!(deleted.status.code(), Some(0), "{}", text(&deleted.stderr));
    let line: serde_json::Value = serde_json::from_str(text(&deleted.stdout).trim()).expect("an object");
    assert_eq!((line["directories"].as_u64(), line["files"].as_u64()), (Some(2), Some(1)));
    assert!(!directory.path().join("big").exists());
    assert_eq!(tool(directory.path(), &["rm", "-r", "big"]).status.code(), Some(1), "there is nothing");
}

#[test]
fn names_that_are_no_text_or_orders_to_a_terminal_are_deleted_and_told_as_they_can_be() {
    let directory = place("minerva");
    let name = OsStr::from_bytes(b"a\xff\x1b[2J\nminerva-ctl: b");
    let remove = |options: &[&str]| {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        tool.current_dir(&directory).args(["--config", "minerva.toml", "rm"]).args(options);
        tool.arg(name).output().expect("the tool")
    };
    let delete = |options: &[&str]| {
        fs::write(directory.path().join(name), []).expect("a file");
        remove(options)
    };
    let json = delete(&["--json", "--pace", "100"]);
    assert_eq!(json.status.code(), Some(0), "{}", text(&json.stderr));
    let line: serde_json::Value = serde_json::from_str(text(&json.stdout).trim()).expect("an object");
    assert_eq!(line["path"], "a\u{FFFD}\x1b[2J\nminerva-ctl: b");
    let shown = delete(&["--pace", "100"]);
    assert_eq!(
        text(&shown.stdout),
        "a\u{FFFD}\u{FFFD}[2J\u{FFFD}minerva-ctl: b: 0 directories and 1 files deleted, 0 B\n"
    );
    assert!(!directory.path().join(name).exists());
    // Of what is not there the error names it.
    let missing = remove(&[]);
    assert!(!text(&missing.stderr).contains('\x1b'), "{:?}", text(&missing.stderr));
}

/// A file system on a disk that a daemon watches, and a group for somebody else who reads it.
struct Scene {
    directory: tempfile::TempDir,
    mounted: PathBuf,
    group: PathBuf,
    disk: String,
    reader: Option<Child>,
    daemon: Option<Daemon>,
}

impl Scene {
    fn new(disk: &str) -> Option<Self> {
        let minervad = Path::new(env!("CARGO_BIN_EXE_minerva-ctl")).with_file_name("minervad");
        if !minervad.exists() {
            eprintln!("skipped: needs minervad beside minerva-ctl (cargo build -p minervad)");
            return None;
        }
        let parent = format!("minerva-test-ctl-rm-{}", std::process::id());
        let directory = place(&parent);
        let (mounted, group) = (directory.path().join("mounted"), Path::new("/sys/fs/cgroup/blkio").join(&parent));
        fs::create_dir_all(group.join("reader")).and_then(|()| fs::create_dir(&mounted)).expect("directories");
        let node = format!("/dev/{disk}");
        let made = Command::new("mkfs.ext4").args(["-q", "-F", &node]).status().expect("mkfs.ext4");
        let is_mounted = Command::new("mount").arg(&node).arg(&mounted).status().expect("mount").success();
        assert!(made.success() && is_mounted);
        let file = directory.path().join("minerva.toml");
        let settings =
            format!("[observe]\nslice = \"100ms\"\n[daemon]\ninclude = [\"{parent}\"]\ndevices_only = [\"{disk}\"]\n");
        let settings = fs::read_to_string(&file).expect("the file").replace("[daemon]\n", &settings);
        fs::write(&file, settings).expect("the file");
        let mut scene = Self { directory, mounted, group, disk: disk.to_owned(), reader: None, daemon: None };
        scene.read();
        let log = fs::File::create(scene.directory.path().join("log")).expect("a log");
        let daemon = Command::new(minervad).arg("--config").arg(&file).stderr(log).spawn().expect("the daemon");
        scene.daemon = Some(Daemon(daemon));
        until("the daemon answers", || tool(scene.directory.path(), &["status"]).status.code() != Some(2));
        Some(scene)
    }

    /// Somebody else reads all the time.
    fn read(&mut self) {
        let read = format!("dd if=/dev/{} of=/dev/null bs=64k count=256 iflag=direct status=none", self.disk);
        let procs = self.group.join("reader/cgroup.procs");
        let script = format!("echo $$ > {} && while {read}; do :; done", procs.display());
        self.reader = Some(Command::new("sh").args(["-c", &script]).spawn().expect("a shell"));
    }

    fn stop_reading(&mut self) {
        if let Some(mut reader) = self.reader.take() {
            let _ = reader.kill();
            let _ = reader.wait();
        }
    }

    /// A tree with files in it.
    fn tree(&self) -> PathBuf {
        let tree = self.mounted.join("big");
        fs::create_dir(&tree).expect("a directory");
        (0..200).for_each(|file| fs::write(tree.join(file.to_string()), [1; 4096]).expect("a file"));
        tree
    }

    fn rm(&self, tree: &Path) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        command.arg("--config").arg(self.directory.path().join("minerva.toml")).args(["--json", "rm", "-r"]).arg(tree);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool")
    }

    fn listed(&self) -> String {
        text(&tool(self.directory.path(), &["--json", "background", "list"]).stdout).to_owned()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop_reading();
        if let Some(Daemon(child)) = &mut self.daemon {
            let pid = child.id().to_string();
            let _ = Command::new("kill").args(["-TERM", &pid]).status();
            let _ = child.wait();
        }
        let _ = Command::new("umount").arg("-l").arg(&self.mounted).status();
        for _ in 0..200 {
            // The kernel lets go of a group some time after its last process.
            let _ = fs::remove_dir(self.group.join("reader"));
            if fs::remove_dir(&self.group).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn rm_follows_the_gaps_by_the_daemons_plan_and_leaves_the_rest_when_it_is_interrupted() {
    let directory = place("minerva");
    with_loop_under_bfq(directory.path(), "rm", |disk| {
        let Some(mut scene) = Scene::new(disk) else { return };
        let tree = scene.tree();
        let mut interrupted = scene.rm(&tree);
        until("it is listed", || scene.listed().contains("\"rm-"));
        let pid = interrupted.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
        assert_eq!(interrupted.wait().expect("an end").code(), Some(130), "{}", scene.listed());
        assert!(tree.join("199").exists(), "somebody else read all the time");
        until("it is forgotten", || scene.listed().is_empty());
        let deleting = scene.rm(&tree);
        until("it is listed", || scene.listed().contains("\"rm-"));
        assert!(tree.join("199").exists(), "somebody else reads all the time");
        scene.stop_reading();
        let output = deleting.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let line: serde_json::Value = serde_json::from_str(text(&output.stdout).trim()).expect("an object");
        assert_eq!((line["entries"].as_f64(), line["disk"].as_str()), (Some(201.0), Some(disk)), "{line}");
        assert!(!tree.exists());
        assert_eq!(scene.listed(), "");
        // What is on no disk is deleted too, at a pace of its own.
        let memory = tempfile::Builder::new().prefix("minerva-test-ctl-").tempdir_in("/dev/shm").expect("a directory");
        fs::create_dir(memory.path().join("big")).expect("a directory");
        let output = scene.rm(&memory.path().join("big")).wait_with_output().expect("an end");
        assert!(text(&output.stderr).contains("not by the plan"), "{}", text(&output.stderr));
        assert!(output.status.success() && !memory.path().join("big").exists());
    });
}

/// As a service with `PrivateTmp=yes` or a container that has the daemon's socket.
#[test]
fn who_has_mounts_of_its_own_deletes_its_own_tree_and_not_the_one_of_that_name_that_the_daemon_sees() {
    let directory = place("minerva");
    with_loop_under_bfq(directory.path(), "rm-unshared", |disk| {
        let Some(mut scene) = Scene::new(disk) else { return };
        scene.stop_reading();
        let tree = scene.tree();
        let script = "set -e; mount -t tmpfs tmpfs \"$2\"; mkdir \"$3\"; echo mine > \"$3/file\"
            tool=$0 config=$1 tree=$3
            if \"$tool\" --config \"$config\" background add --name own --kind delete --path \"$tree\"; then exit 90; fi
            \"$tool\" --config \"$config\" rm -r \"$tree\"
            test ! -e \"$tree\"";
        let mut unshared = Command::new("unshare");
        unshared.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_minerva-ctl")]);
        unshared.arg(scene.directory.path().join("minerva.toml")).arg(&scene.mounted).arg(&tree);
        let output = unshared.output().expect("unshare");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said.matches("the daemon finds another at").count(), 2, "{said}");
        assert!(said.contains("not by the plan"), "{said}");
        assert!((0..200).all(|file| tree.join(file.to_string()).exists()), "the host's tree is whole");
        assert_eq!(scene.listed(), "");
        // Whoever sees what the daemon does has it done by the plan.
        let output = scene.rm(&tree).wait_with_output().expect("an end");
        assert!(output.status.success() && !text(&output.stderr).contains("not by"), "{}", text(&output.stderr));
        assert!(!tree.exists());
    });
}
