//! Whose file is it, and who may: judged as on any other file system, by the user and groups of who asks.

use crate::pool_folder::PoolFolder;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output};

const USER: u32 = 12_345;
const OTHER: u32 = 23_456;

fn as_user(uid: u32, groups: &str, line: &str, at: &Path) -> Output {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={uid}"), &format!("--regid={uid}")]);
    command.arg(if groups.is_empty() { "--clear-groups".to_owned() } else { format!("--groups={groups}") });
    command.args(["sh", "-c", line]).current_dir(at).output().unwrap()
}

fn place() -> (PoolFolder, crate::pool_folder::Service) {
    place_with("")
}

fn place_with(further: &str) -> (PoolFolder, crate::pool_folder::Service) {
    let place = PoolFolder::new(&format!("user = \"{USER}\"\n{further}"));
    // Tests' directories are closed to others.
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let service = place.serve();
    (place, service)
}

#[test]
fn what_a_program_makes_belongs_to_it_with_its_mask() {
    let (place, _service) = place();
    for tree in [place.temporary(), place.stable()] {
        let line = "umask 027; echo 1 > file; mkdir folder; ln -s file link; mkfifo pipe";
        let made = as_user(USER, "", line, &tree);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for (name, mode) in [("file", 0o640), ("folder", 0o750), ("link", 0o777), ("pipe", 0o640)] {
            let shown = fs::symlink_metadata(tree.join(name)).unwrap();
            assert_eq!((shown.uid(), shown.gid(), shown.mode() & 0o7777), (USER, USER, mode), "{name}");
        }
    }
}

#[test]
fn nobody_enters_another_tenants_tree() {
    let (place, _service) = place();
    for tree in [place.temporary(), place.stable()] {
        assert!(as_user(USER, "", "echo secret > file", &tree).status.success());
        let line = format!("cat {0}/file || ls {0} || echo 1 > {0}/new", tree.display());
        assert!(!as_user(OTHER, "", &line, Path::new("/")).status.success());
        // Nor past the mounts, where the data lie.
        let line = format!("ls {0}/pool || ls {0}/run/temporary/web", place.folder.path().display());
        assert!(!as_user(OTHER, "", &line, Path::new("/")).status.success());
    }
}

#[test]
fn a_further_group_of_the_caller_lets_it_in() {
    let (place, _service) = place();
    for tree in [place.temporary(), place.stable()] {
        let shared = tree.join("shared");
        fs::create_dir(&shared).unwrap();
        chown(&shared, Some(USER), Some(777)).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o2770)).unwrap();
        fs::set_permissions(&tree, fs::Permissions::from_mode(0o771)).unwrap();
        let made = as_user(OTHER, "777", "echo 1 > shared/file && mkdir shared/folder", &tree);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let shown = fs::metadata(shared.join("file")).unwrap();
        assert_eq!((shown.uid(), shown.gid()), (OTHER, 777), "the directory gives its group");
        assert_eq!(fs::metadata(shared.join("folder")).unwrap().mode() & 0o2000, 0o2000);
        assert!(!as_user(OTHER, "", "echo 1 > shared/other", &tree).status.success());
    }
}

#[test]
fn a_write_by_another_ends_what_the_file_lets_its_runner_do() {
    let ((place, _service), (by_kernel, _other)) = (place(), place_with("writes = \"kernel\""));
    for tree in [place.temporary(), place.stable(), by_kernel.temporary()] {
        let file = tree.join("program");
        for line in ["echo 1 >> program", ": > program", "truncate -s 7 program"] {
            fs::write(&file, "program").unwrap();
            chown(&file, Some(0), Some(0)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o6777)).unwrap();
            let done = as_user(USER, "", line, &tree);
            assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o777, "{line} in {}", tree.display());
        }
    }
}

#[test]
fn access_control_lists_hold_in_stable() {
    if Command::new("setfacl").arg("--version").output().is_err() {
        println!("skipped: setfacl is not installed (package acl)");
        return;
    }
    let (place, _service) = place();
    let tree = place.stable();
    fs::set_permissions(&tree, fs::Permissions::from_mode(0o771)).unwrap();
    let line = format!(
        "umask 077; mkdir d && setfacl -m d:u:{OTHER}:rwx,u:{OTHER}:rwx d && echo 1 > d/file && setfacl -m o::x ."
    );
    let made = as_user(USER, "", &line, &tree);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let read = as_user(OTHER, "", "cat d/file && echo 2 >> d/file", &tree);
    assert!(read.status.success(), "the directory's default list: {}", String::from_utf8_lossy(&read.stderr));
    assert!(!as_user(OTHER + 1, "", "cat d/file", &tree).status.success());
}
