//! The version of Debian packages, which rises with each commit: of two builds of one version apt would never install the second.

use crate::shell::captured;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// When the last commit of the repository in `folder` was made, in seconds since 1970.
pub(crate) fn last_commit(folder: &Path) -> Result<String> {
    captured(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(folder))
}

/// The version of packages that are made in `folder`: the workspace's, when the last commit was made, how many there are, as many are of
/// one second, and Debian's revision. A shallow clone has fewer commits, but the time stands before their number.
pub(crate) fn version(folder: &Path, revision: u32) -> Result<String> {
    let mut commit = Command::new("git");
    commit.args(["log", "-1", "--date=format-local:%Y%m%d.%H%M%S", "--format=%cd"]).env("TZ", "UTC");
    let commit = captured(commit.current_dir(folder))?;
    let count = captured(Command::new("git").args(["rev-list", "--count", "HEAD"]).current_dir(folder))?;
    Ok(format!("{}+git{commit}.{count}-{revision}", env!("CARGO_PKG_VERSION")))
}

/// Removes what `folder` has of a package but this file, so that a pattern in a shell names the new one alone.
pub(crate) fn remove_others(folder: &Path, name: &str, kept: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path != kept && file.starts_with(&format!("{name}_")) && file.ends_with(".deb") {
            fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{remove_others, version};
    use std::fs;
    use std::iter::repeat_n;
    use std::path::Path;
    use std::process::Command;

    fn commit(folder: &Path, unix_s: u64) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@minerva.invalid", "-c", "commit.gpgsign=false"]);
        git.args(["commit", "--quiet", "--allow-empty", "--message", "a"]).current_dir(folder);
        // Elsewhere than in Greenwich it is the same time.
        git.env("GIT_COMMITTER_DATE", format!("{unix_s} +0100"));
        assert!(git.status().expect("git").success());
    }

    /// As Debian orders versions that differ in their numbers alone: revisions are compared last.
    fn order(version: &str) -> (Vec<u64>, u64) {
        let (upstream, revision) = version.rsplit_once('-').expect("a revision");
        let numbers = upstream.split(|letter: char| !letter.is_ascii_digit());
        (numbers.filter_map(|number| number.parse().ok()).collect(), revision.parse().expect("a number"))
    }

    #[test]
    fn each_commit_gives_a_higher_version_than_the_one_before() {
        let scratch = tempfile::tempdir().expect("a directory");
        let init = Command::new("git").args(["init", "--quiet"]).current_dir(scratch.path()).status();
        assert!(init.expect("git").success());
        // Eleven of one second, so that their number has another length.
        let times = repeat_n(1_795_849_500, 11).chain([1_795_849_501, 1_795_999_999]);
        let made = times.map(|unix_s| {
            commit(scratch.path(), unix_s);
            version(scratch.path(), 1).expect("a version")
        });
        let mut versions: Vec<String> = made.collect();
        assert_eq!(versions[0], format!("{}+git20261128.070500.1-1", env!("CARGO_PKG_VERSION")));
        assert_eq!(versions[10], format!("{}+git20261128.070500.11-1", env!("CARGO_PKG_VERSION")));
        versions.push(version(scratch.path(), 2).expect("a version"));
        // Before there was a number of commits in it.
        versions.insert(0, format!("{}+git20261128.070500-9", env!("CARGO_PKG_VERSION")));
        assert!(versions.is_sorted_by(|one, next| order(one) < order(next)), "{versions:?}");
    }

    #[test]
    fn packages_of_earlier_versions_are_removed_and_nothing_else() {
        let scratch = tempfile::tempdir().expect("a directory");
        let names = ["minervad_1-1_amd64.deb", "minervad_2-1_amd64.deb", "minerva-ctl_1-1_amd64.deb", "minervad_1.txt"];
        for name in names {
            fs::write(scratch.path().join(name), "").expect("a file");
        }
        remove_others(scratch.path(), "minervad", &scratch.path().join(names[1])).expect("removed");
        let left = names.map(|name| scratch.path().join(name).exists());
        assert_eq!(left, [false, true, true, true]);
    }
}
