//! What is looked after once a second. When memory is short, files that nobody has open go to the disk: above a tenant's watermark its own,
//! under pressure of the whole machine a part of everybody's.

use crate::descriptors::Watch;
use crate::looker::Looker;
use crate::settings::Settings;
use crate::tenant::{Tenant, Tenants};
use minerva_cachefs::Tree;
use minerva_config::{FsConfig, TemporaryPoolSettings};
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_secs(1);
/// Where the kernel says how long tasks waited for memory.
const PRESSURE: &str = "/proc/pressure/memory";
/// Percent of the last ten seconds in which some task waited for memory: from here on everybody gives.
const PRESSURE_PERCENT: f64 = 10.0;
/// The part of what is used that each gives then, a second.
const GIVEN_PART: u64 = 8;

/// Who is on the way down, by name, and to how many bytes.
type Aims = BTreeMap<String, u64>;

/// Looks once a second who has to give, and between these looks moves files of those who are on the way down. A tenant that keeps writing is
/// there all the time, and the others are looked at all the same.
pub(crate) fn start(tenants: Tenants, settings: Arc<Settings>) -> anyhow::Result<Looker> {
    Looker::start("spiller", move |stop| {
        let mut watch = Watch::default();
        let mut aims = Aims::new();
        let mut looked: Option<Instant> = None;
        while !stop.comes_within(if aims.is_empty() { LOOK } else { Duration::ZERO }) {
            let is_look = looked.is_none_or(|at| at.elapsed() >= LOOK);
            if is_look {
                looked = Some(Instant::now());
            }
            if is_look {
                look_at_mapped(&tenants);
            }
            let targets = targets(&tenants, &settings.now(), &aims, is_look);
            aims = spill(targets, &|| stop.comes_within(Duration::ZERO));
            watch.look(&tenants);
        }
    })
}

/// What programs stored to files that they have mapped is counted. Who changes which tenants there are does not wait for it.
fn look_at_mapped(tenants: &Tenants) {
    let of = |tenant: &Tenant| [&tenant.temporary, &tenant.stable].map(|mount| Arc::downgrade(&mount.tree));
    let trees: Vec<_> = tenants.read().unwrap_or_else(PoisonError::into_inner).iter().flat_map(of).collect();
    trees.iter().filter_map(Weak::upgrade).for_each(|tree| tree.look_at_mapped());
}

/// A tenant that uses more memory than it may keep.
struct Target {
    name: String,
    /// Who has left meanwhile has no tree any more, and what it had in memory is given back.
    tree: Weak<Tree>,
    bytes: u64,
}

/// Who has to give, and how much: who is on the way down, and at a look whoever else uses too much. Who changes which tenants there are
/// does not wait until they have.
fn targets(tenants: &Tenants, config: &FsConfig, aims: &Aims, is_look: bool) -> Vec<Target> {
    let is_short = is_look && fs::read_to_string(PRESSURE).is_ok_and(|text| pressure(&text) >= PRESSURE_PERCENT);
    let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
    let of = |tenant: &Tenant| {
        let usage = tenant.temporary.tree.usage();
        let aim = aims.get(&tenant.name).copied().unwrap_or(usage.bytes);
        let bytes = if is_look {
            aim.min(target(usage.bytes, usage.bytes_max, &config.watermarks_of(&tenant.name), is_short))
        } else {
            aim
        };
        let (name, tree) = (tenant.name.clone(), Arc::downgrade(&tenant.temporary.tree));
        (usage.bytes > bytes).then_some(Target { name, tree, bytes })
    };
    tenants.iter().filter_map(of).collect()
}

/// A part of each, so that a tenant with much to move does not keep the others waiting. Who moved something is on the way down; what others
/// have left is open, or cannot be moved, and the next look tries again.
fn spill(targets: Vec<Target>, stop: &dyn Fn() -> bool) -> Aims {
    let mut aims = Aims::new();
    for Target { name, tree, bytes } in targets {
        let Some(tree) = tree.upgrade() else { continue };
        let pass = tree.spill_some(bytes, stop);
        if let Some(error) = pass.error {
            eprintln!(
                "minerva-fs: {name}: {error} while moving files from memory to disk; they stay in memory. Is the stable pool full or \
                 read-only?"
            );
        } else if pass.files > 0 {
            aims.insert(name, bytes);
        }
    }
    aims
}

/// How many bytes may stay in memory.
fn target(used: u64, quota: u64, settings: &TemporaryPoolSettings, is_short: bool) -> u64 {
    let part = |percent: u32| (u128::from(quota) * u128::from(percent) / 100) as u64;
    if used > part(settings.watermark_percent) {
        part(settings.spill_to_percent)
    } else if is_short {
        used - used / GIVEN_PART
    } else {
        used
    }
}

/// The percentage of the last ten seconds; 0 of a line that does not say it.
fn pressure(text: &str) -> f64 {
    let some = text.lines().find_map(|line| line.strip_prefix("some "));
    let average = some.and_then(|some| some.split_whitespace().find_map(|word| word.strip_prefix("avg10=")));
    average.and_then(|average| average.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Aims, Target, pressure, spill, target};
    use minerva_cachefs::{Account, Caller, Descriptors, FileSystem, SpillArea, Tree, TreeOptions, WriteOrigin};
    use minerva_config::TemporaryPoolSettings;
    use rustix::process::{getgid, getuid};
    use std::cell::Cell;
    use std::ffi::OsStr;
    use std::path::Path;
    use std::sync::Arc;

    /// A tenant's tree in memory, empty.
    fn tree(folder: &Path) -> Arc<Tree> {
        let at = folder.join("tree");
        std::fs::create_dir_all(&at).unwrap();
        let [memory, stable] = [(); 2].map(|()| Arc::new(Account::new(1 << 30, 10_000)));
        let spill = SpillArea::open(&folder.join("spilled"), stable).unwrap();
        let options = TreeOptions { descriptors: Arc::new(Descriptors::new(10_000, 1)), ..TreeOptions::default() };
        Arc::new(Tree::open(&at, memory, options, Some(spill)).unwrap())
    }

    /// Another file in it, closed.
    fn write(tree: &Tree, number: u32) {
        let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
        let name = number.to_string();
        let (shown, opened) = tree.create(caller, 1, OsStr::new(&name), 0o600, libc::O_RDWR).unwrap();
        tree.write(opened.handle, 0, &[1; 4096], WriteOrigin { ends_privileges: false, is_mapped: false }).unwrap();
        tree.release(opened.handle).unwrap();
        tree.forget(shown.node, 1);
    }

    #[test]
    fn a_tenant_that_keeps_writing_does_not_keep_the_spiller_to_itself() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [busy, other, left] = [0, 1, 2].map(|number: usize| tree(folders[number].path()));
        let written = Cell::new(0);
        let keep_writing = || {
            written.set(written.get() + 1);
            write(&busy, written.get());
            // Nothing else would end it then.
            written.get() > 2000
        };
        keep_writing();
        write(&other, 0);
        let target =
            |name: &str, tree: &Arc<Tree>| Target { name: name.to_owned(), tree: Arc::downgrade(tree), bytes: 0 };
        let targets = vec![target("busy", &busy), target("other", &other), target("left", &left)];
        drop(left);
        let aims = spill(targets, &keep_writing);
        assert!(written.get() < 2000 && busy.usage().bytes > 0, "it returned though more is to be moved");
        assert_eq!(aims, Aims::from([("busy".to_owned(), 0), ("other".to_owned(), 0)]));
        assert_eq!(other.usage().bytes, 0);
        assert!(spill(vec![target("other", &other)], &|| false).is_empty(), "nothing of it is left to be moved");
    }

    #[test]
    fn above_the_watermark_a_tenant_gives_its_own_and_under_pressure_everybody() {
        let settings = TemporaryPoolSettings { watermark_percent: 80, spill_to_percent: 60 };
        for (used, is_short, left) in
            [(800, false, 800), (801, false, 600), (801, true, 600), (800, true, 700), (0, true, 0), (1200, false, 600)]
        {
            assert_eq!(target(used, 1000, &settings, is_short), left, "{used} {is_short}");
        }
    }

    #[test]
    fn the_kernels_line_is_read_and_a_torn_one_is_no_pressure() {
        assert_eq!(pressure("some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=99.0"), 12.5);
        for torn in ["", "some", "some avg10=", "full avg10=50.0"] {
            assert_eq!(pressure(torn), 0.0, "{torn}");
        }
    }
}
