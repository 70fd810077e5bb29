//! What is deleted and, above all, what is not.

#![expect(clippy::expect_used, reason = "a tree that cannot be made is a failed test")]

use minerva_linux_background::{DeleteError, Deletion, Removed};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A folder of the test's own with a tree to delete in `tree`, and something to be spared in `spared`.
fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::Builder::new().prefix("minerva-test-").tempdir().expect("a folder");
    let (tree, spared) = (folder.path().join("tree"), folder.path().join("spared"));
    for directory in [tree.join("a/b"), tree.join("c"), spared.clone()] {
        fs::create_dir_all(directory).expect("a directory");
    }
    for file in [tree.join("a/b/one"), tree.join("a/two"), tree.join("c/three"), spared.join("kept")] {
        fs::write(file, [0; 8192]).expect("a file");
    }
    (folder, tree, spared)
}

fn finish(deletion: &mut Deletion) {
    while deletion.step() {}
}

fn delete(path: &Path) -> Deletion {
    let mut deletion = Deletion::begin(path, true).expect("it begins");
    finish(&mut deletion);
    deletion
}

#[test]
fn a_tree_is_deleted_with_all_that_is_in_it_and_counted() {
    let (_folder, tree, spared) = folder();
    fs::create_dir(tree.join("many")).expect("a directory");
    (0..3000).for_each(|number| fs::write(tree.join(format!("many/{number}")), []).expect("a file"));
    let deletion = delete(&tree);
    assert!(!tree.exists() && spared.join("kept").exists());
    let Removed { directories, files, bytes } = deletion.removed();
    assert_eq!((directories, files), (5, 3003));
    assert!(bytes >= 3 * 8192, "{bytes}");
    assert_eq!(deletion.left(), []);
}

#[test]
fn links_are_removed_and_not_followed_and_other_names_of_a_file_keep_it() {
    let (_folder, tree, spared) = folder();
    symlink(&spared, tree.join("a/link")).expect("a link");
    fs::hard_link(spared.join("kept"), tree.join("same")).expect("a name");
    let deletion = delete(&tree);
    assert!(!tree.exists());
    assert_eq!(fs::read(spared.join("kept")).expect("spared").len(), 8192);
    assert_eq!(deletion.removed().files, 5);
    assert!(deletion.removed().bytes < 4 * 8192 + 8192, "the file with another name frees nothing");
}

#[test]
fn a_link_that_is_given_is_removed_itself() {
    let (folder, _tree, spared) = folder();
    let link = folder.path().join("link");
    symlink(&spared, &link).expect("a link");
    delete(&link);
    assert!(link.symlink_metadata().is_err() && spared.join("kept").exists());
}

#[test]
fn a_directory_that_is_replaced_by_a_link_at_any_step_is_never_followed() {
    // After each possible number of steps once.
    for steps in 0..14 {
        let (folder, tree, spared) = folder();
        let mut deletion = Deletion::begin(&tree, true).expect("it begins");
        (0..steps).for_each(|_| {
            deletion.step();
        });
        for name in ["a/b", "a", "c"] {
            let directory = tree.join(name);
            if directory.symlink_metadata().is_ok_and(|data| data.is_dir()) {
                let away = folder.path().join(format!("away-{}", name.replace('/', "-")));
                fs::rename(&directory, away).expect("moved");
                symlink(&spared, &directory).expect("a link");
                break;
            }
        }
        finish(&mut deletion);
        assert!(spared.join("kept").exists(), "after {steps} steps");
        assert!(
            tree.symlink_metadata().is_err() || !deletion.left().is_empty(),
            "after {steps}: {:?}",
            deletion.left()
        );
    }
}

#[test]
fn what_is_replaced_before_anything_was_removed_is_left_whole() {
    for is_link in [true, false] {
        let (folder, tree, spared) = folder();
        let mut deletion = Deletion::begin(&tree, true).expect("it begins");
        let away = folder.path().join("away");
        fs::rename(&tree, &away).expect("moved");
        if is_link {
            symlink(&spared, &tree).expect("a link");
        } else {
            fs::rename(&spared, &tree).expect("moved");
        }
        finish(&mut deletion);
        assert!(tree.join("kept").exists() && away.join("a/b/one").exists() && away.join("c/three").exists());
        assert_eq!(deletion.removed(), Removed::default());
        assert_eq!(deletion.left()[0].reason, "another has taken its place");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_touched() {
    let (_folder, tree, _spared) = folder();
    assert!(matches!(Deletion::begin(&tree, false), Err(DeleteError::Directory(_))));
    for path in ["/", "..", "tree/.."] {
        assert!(matches!(Deletion::begin(Path::new(path), true), Err(DeleteError::NoName(_))), "{path}");
    }
    assert!(matches!(Deletion::begin(&tree.join("absent"), true), Err(DeleteError::Kernel { .. })));
    assert!(tree.join("a/b/one").exists());
    finish(&mut Deletion::begin(&tree.join("a/two"), false).expect("a file"));
    assert!(!tree.join("a/two").exists() && tree.join("a/b/one").exists());
}

/// Unmounted at the end of a test.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_directory_on_which_something_is_mounted_at_any_step_is_never_entered() {
    for steps in 0..14 {
        let (_folder, tree, spared) = folder();
        let mut deletion = Deletion::begin(&tree, true).expect("it begins");
        (0..steps).for_each(|_| {
            deletion.step();
        });
        let directory = ["a/b", "a", "c"].map(|name| tree.join(name)).into_iter().find(|directory| directory.is_dir());
        let Some(directory) = directory else { continue };
        if let Err(error) = rustix::mount::mount_bind(&spared, &directory) {
            println!("skipped: binding a mount needs root: {error}");
            return;
        }
        let _unmounted_at_the_end = Mounted(directory.clone());
        finish(&mut deletion);
        assert!(spared.join("kept").exists(), "after {steps} steps");
        assert!(!deletion.left().is_empty() && directory.exists(), "after {steps}: it cannot be removed");
    }
}

#[test]
fn a_mount_inside_is_left_with_a_reason_and_one_that_is_given_is_refused() {
    let (_folder, tree, spared) = folder();
    let mounted = tree.join("a/b");
    if let Err(error) = rustix::mount::mount_bind(&spared, &mounted) {
        println!("skipped: binding a mount needs root: {error}");
        return;
    }
    let _unmounted_at_the_end = Mounted(mounted.clone());
    assert!(matches!(Deletion::begin(&mounted, true), Err(DeleteError::MountPoint(_))));
    let deletion = delete(&tree);
    assert!(spared.join("kept").exists() && mounted.exists());
    assert!(!tree.join("c").exists() && !tree.join("a/two").exists(), "the rest is gone");
    let left: Vec<_> = deletion.left().iter().map(|left| (left.path.clone(), left.reason.clone())).collect();
    assert_eq!(left, [(mounted, "something is mounted there".to_owned())]);
}
