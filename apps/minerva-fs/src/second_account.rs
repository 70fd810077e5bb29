//! A second account of what a tenant uses, which does not come from us: the kernel's or a walk's, compared with the service's own from time to
//! time (docs/adr/0065).

use crate::projects::{self, Project};
use anyhow::Context;
use minerva_cachefs::{Tree, take_census, take_census_up_to};
use minerva_config::{FsConfig, SecondAccount as Setting};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the kernel is asked, which takes one system call a tree.
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// How often a tree is walked through that the kernel does not count; one tree a look.
const WALK_EVERY: Duration = Duration::from_secs(600);
/// A tree with more nodes is not walked through while it is served.
const WALKED_MAX: u64 = 100_000;
/// A difference is one when two comparisons in a row find it: files change meanwhile.
const FOUND_IN_A_ROW: u32 = 2;
/// What is no difference: what a file system allocates late, of a few files.
const BYTES_ALLOWED: u64 = 1 << 20;
const FILES_ALLOWED: u64 = 64;
/// And this part of what is used.
const PART_ALLOWED: u64 = 100;
/// What a directory made since the start may occupy, which the kernel counts and our account does not.
const BYTES_OF_A_DIRECTORY: u64 = 8 << 10;
/// What of a tenant's memory is not in its tree: the page that says which memory it is.
const MARKER_BYTES: u64 = 4096;
/// Directories of a tenant's that are in no tree's count: its tree, where it spills to, and the one of this memory in that.
const ROOTS: u64 = 3;

/// Bytes and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    bytes: u64,
    files: u64,
}

/// Who counts.
#[derive(Debug)]
enum Way {
    /// The size of the tenant's own file system in memory.
    Memory,
    /// The kernel, by project. What it counts beside files: that much at the start.
    Project { project: Project, besides_bytes: u64 },
    /// A walk through these, the tree and what was spilled; why not the kernel.
    Walk { folders: [PathBuf; 2], why: String },
}

/// What was found so far.
#[derive(Debug, Default)]
struct State {
    theirs: Option<Count>,
    /// Comparisons in a row that found a difference.
    differed: u32,
    difference: String,
    walk_at: Option<Instant>,
    is_too_large: bool,
}

/// The second account of one tree.
#[derive(Debug)]
pub(crate) struct SecondAccount {
    way: Way,
    /// Nodes at the start.
    files_then: u64,
    state: Mutex<State>,
}

/// What is told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecondTold {
    /// Who counts.
    pub(crate) by: String,
    /// What they count; none before the first comparison.
    pub(crate) bytes: u64,
    /// Where they count otherwise.
    pub(crate) difference: String,
}

/// Those of one tenant.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecondAccounts {
    pub(crate) temporary: Option<Arc<SecondAccount>>,
    pub(crate) stable: Option<Arc<SecondAccount>>,
}

impl SecondAccounts {
    /// Who counts beside the trees, which nobody uses yet.
    pub(crate) fn open(config: &FsConfig, name: &str, temporary: &Tree, stable: &Tree) -> anyhow::Result<Self> {
        if config.stable.second_account == Setting::None {
            return Ok(Self::default());
        }
        let pool = &config.stable.path;
        let folders = ["tenants", "spilled"].map(|kind| pool.join(kind).join(name));
        let project = match config.stable.second_account {
            Setting::Kernel => projects::prepare(pool, name),
            _ => Err(anyhow::anyhow!("`second_account` is \"walk\"")),
        };
        let of_disk = match project {
            Ok(project) => {
                let spilled =
                    File::open(&folders[1]).with_context(|| format!("failed to open {}", folders[1].display()))?;
                SecondAccount::of_project(project, stable, &spilled)
            }
            Err(error) => {
                let why = format!("{error:#}");
                if config.stable.second_account == Setting::Kernel {
                    eprintln!("minerva-fs: {name}/stable: {why}; a walk compares instead");
                }
                SecondAccount::of_walk(folders, why, stable)
            }
        };
        let of_memory = SecondAccount::of_memory(temporary);
        for (kind, account) in [("temporary", &of_memory), ("stable", &of_disk)] {
            let difference = account.look_at_start(temporary, stable);
            if !difference.is_empty() {
                eprintln!("minerva-fs: {name}/{kind}: {difference}");
            }
        }
        Ok(Self { temporary: Some(Arc::new(of_memory)), stable: Some(Arc::new(of_disk)) })
    }
}

impl SecondAccount {
    /// Of memory.
    pub(crate) fn of_memory(tree: &Tree) -> Self {
        Self::new(Way::Memory, tree)
    }

    /// Of the disk, where the kernel counts; `spilled` is where the tenant's memory spills to.
    pub(crate) fn of_project(project: Project, tree: &Tree, spilled: &File) -> Self {
        let spilled = take_census(spilled).map_or(0, |census| census.besides_bytes);
        Self::new(Way::Project { project, besides_bytes: tree.found().besides_bytes + spilled }, tree)
    }

    /// Of the disk, where nobody does.
    pub(crate) fn of_walk(folders: [PathBuf; 2], why: String, tree: &Tree) -> Self {
        Self::new(Way::Walk { folders, why }, tree)
    }

    fn new(way: Way, tree: &Tree) -> Self {
        Self { way, files_then: tree.usage().files, state: Mutex::default() }
    }

    /// What is known now.
    pub(crate) fn told(&self) -> SecondTold {
        let state = self.state();
        let by = match &self.way {
            Way::Memory => "the kernel, as the size of its memory".to_owned(),
            Way::Project { project, .. } => format!("the kernel, as project {}", project.number),
            Way::Walk { why, .. } if state.is_too_large => {
                format!("nobody: it has more than {WALKED_MAX} files to walk through, and {why}")
            }
            Way::Walk { why, .. } => format!("a walk every {} minutes; {why}", WALK_EVERY.as_secs() / 60),
        };
        let difference = if state.differed < FOUND_IN_A_ROW { String::new() } else { state.difference.clone() };
        SecondTold { by, bytes: state.theirs.map_or(0, |theirs| theirs.bytes), difference }
    }

    /// Compares before anybody uses the trees: what differs then does not pass. What it told of that.
    pub(crate) fn look_at_start(&self, temporary: &Tree, stable: &Tree) -> String {
        // A walk has just made our account.
        if !self.is_walk() {
            self.look(temporary, stable);
            let mut state = self.state();
            state.differed *= FOUND_IN_A_ROW;
        }
        self.told().difference
    }

    /// Whether it takes a walk.
    pub(crate) fn is_walk(&self) -> bool {
        matches!(self.way, Way::Walk { .. })
    }

    /// Compares; whether that was a walk.
    pub(crate) fn look(&self, temporary: &Tree, stable: &Tree) -> bool {
        let tree = if matches!(self.way, Way::Memory) { temporary } else { stable };
        let before = tree.usage();
        let Some((theirs, expected)) = self.count(temporary, stable) else { return false };
        let after = tree.usage();
        let moved = |then: u64, now: u64| then.abs_diff(now);
        let made = if self.is_walk() { 0 } else { moved(self.files_then, after.files) };
        let allowed = Count {
            bytes: BYTES_ALLOWED
                + after.bytes / PART_ALLOWED
                + made * BYTES_OF_A_DIRECTORY
                + moved(before.bytes, after.bytes),
            files: FILES_ALLOWED + after.files / PART_ALLOWED + moved(before.files, after.files),
        };
        let mut state = self.state();
        let difference = judge(theirs, expected, allowed);
        state.differed = if difference.is_some() { state.differed + 1 } else { 0 };
        state.difference = difference.unwrap_or_default();
        state.theirs = Some(theirs);
        let is_walk = self.is_walk();
        // What a walk found is looked at again soon.
        let next = if state.differed == 1 { LOOK } else { WALK_EVERY };
        state.walk_at = is_walk.then(|| Instant::now() + next);
        is_walk
    }

    /// What they count, and what they should by our account; nothing where it is not time for it, or nobody can tell.
    fn count(&self, temporary: &Tree, stable: &Tree) -> Option<(Count, Count)> {
        match &self.way {
            Way::Memory => {
                let bytes = temporary.usage().bytes + MARKER_BYTES;
                // The kernel counts a name of a file in memory as one more file, so that files say nothing.
                Some((Count { bytes: temporary.used_below(), files: 0 }, Count { bytes, files: 0 }))
            }
            Way::Project { project, besides_bytes } => {
                let (ours, [(_, gone), _]) = (stable.usage(), stable.gone());
                let files = ours.files + ROOTS + temporary.spilled_now() + gone;
                let theirs = project.usage().ok()?;
                let theirs = Count { bytes: theirs.bytes, files: theirs.files };
                Some((theirs, Count { bytes: ours.bytes + besides_bytes, files }))
            }
            Way::Walk { folders, .. } => {
                let mut state = self.state();
                if state.walk_at.is_some_and(|at| Instant::now() < at) {
                    return None;
                }
                state.walk_at = Some(Instant::now() + WALK_EVERY);
                drop(state);
                let walk = |folder: &PathBuf| take_census_up_to(File::open(folder).ok()?, WALKED_MAX).ok()?;
                let (tree, spilled) = (walk(&folders[0]), walk(&folders[1]));
                self.state().is_too_large = tree.is_none() || spilled.is_none();
                let (tree, spilled) = (tree?, spilled?);
                let (ours, [(here, _), _], [_, (there, _)]) = (stable.usage(), stable.gone(), temporary.gone());
                let bytes = ours.bytes.saturating_sub(here + there);
                let theirs = Count { bytes: tree.bytes + spilled.bytes, files: tree.files };
                Some((theirs, Count { bytes, files: ours.files }))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In words, where two accounts differ by more than is allowed.
fn judge(theirs: Count, expected: Count, allowed: Count) -> Option<String> {
    let bytes = theirs.bytes.abs_diff(expected.bytes);
    let files = theirs.files.abs_diff(expected.files);
    if bytes <= allowed.bytes && files <= allowed.files {
        return None;
    }
    let than = |theirs: u64, ours: u64| if theirs > ours { "more" } else { "fewer" };
    Some(format!(
        "{bytes} bytes {} and {files} files {} than the service's own account are found, which makes up {} bytes; does something else \
         write to the pool, or has a program had a removed file open since before the last start? A restart counts anew",
        than(theirs.bytes, expected.bytes),
        than(theirs.files, expected.files),
        theirs.bytes
    ))
}

#[cfg(test)]
mod tests {
    use super::{Count, judge};

    #[test]
    fn what_is_allowed_is_no_difference_and_what_is_beyond_says_which_way() {
        let count = |bytes, files| Count { bytes, files };
        let allowed = count(100, 10);
        for (theirs, is_same) in
            [((1000, 50), true), ((1100, 60), true), ((900, 40), true), ((1101, 50), false), ((1000, 61), false)]
        {
            assert_eq!(judge(count(theirs.0, theirs.1), count(1000, 50), allowed).is_none(), is_same, "{theirs:?}");
        }
        let said = judge(count(5000, 10), count(1000, 50), allowed).unwrap();
        assert!(said.starts_with("4000 bytes more and 40 files fewer than"), "{said}");
    }
}
