//! What this process may have open, and how that is shared out among tenants.

use crate::tenant::Tenants;
use minerva_cachefs::Descriptors;
use minerva_config::FsConfig;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// What one process may have open where nothing else is said (`/proc/sys/fs/nr_open`, unless it was changed).
const UNLIMITED: u64 = 1 << 20;
/// What the service itself has open: the log, sockets, files under way.
const OWN: u64 = 256;
/// What a tree has open besides its files: its root, and the connection with a copy for each thread.
const OF_A_TREE: u64 = 4;
/// With a smaller part of its own a tree is easily refused what it needs.
const PART_MIN: u64 = 64;

/// Raises the limit as far as this process may, and shares it out.
pub(crate) fn share_out(config: &FsConfig) -> Descriptors {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // With fewer it serves as well, until there are as many files in use.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let descriptors = Descriptors::default();
    share_among(&descriptors, config.tenants.len(), config.server.threads);
    descriptors
}

/// Shares them out among so many tenants, each of whose trees so many threads serve.
pub(crate) fn share_among(descriptors: &Descriptors, tenants: usize, threads: u32) {
    let all = getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED).min(UNLIMITED);
    let trees = 2 * tenants as u64;
    descriptors.share(all.saturating_sub(OWN + trees * (OF_A_TREE + u64::from(threads))), trees);
    if descriptors.part() < PART_MIN {
        eprintln!(
            "minerva-fs: {all} descriptors for {trees} trees: the kernel can keep about {} files of each tree, and \
             more only while other trees need fewer; raise LimitNOFILE",
            descriptors.part() / 2
        );
    }
}

/// What operators are told of tenants that want more than there is.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    told: BTreeMap<String, u64>,
}

impl Watch {
    /// Says who was refused since the last look.
    pub(crate) fn look(&mut self, tenants: &Tenants) {
        let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
        for tenant in tenants.iter() {
            for mount in [&tenant.temporary, &tenant.stable] {
                let refused = mount.tree.counters().refused_descriptors.load(Ordering::Relaxed);
                let path = mount.at.display().to_string();
                if refused > self.told.get(&path).copied().unwrap_or(0) {
                    // Once, until there was none for a while.
                    if !self.told.contains_key(&path) {
                        eprintln!(
                            "minerva-fs: {path} is refused further files (ENFILE): the kernel knows files of it that take {} descriptors, and \
                             what others do not need is taken; raise LimitNOFILE if that tenant means no harm",
                            mount.tree.descriptors()
                        );
                    }
                    self.told.insert(path, refused);
                }
            }
        }
    }
}
