//! The hierarchy on which this kernel counts and steers disks: v1's `blkio` or v2's `io`. The tests are the same on both.

use std::fs;
use std::path::Path;

/// Names of one version's knobs.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    pub(crate) root: &'static str,
    /// A file, and a word in it, by which the version is known.
    known_by: (&'static str, &'static str),
    /// Weights under BFQ, a line for each disk.
    pub(crate) weights: &'static str,
    pub(crate) back_end: &'static str,
    pub(crate) caps_back_end: &'static str,
    /// Groups see the controller only where the group above passes it on.
    is_passed_on: bool,
}

const VERSIONS: [Hierarchy; 2] = [
    Hierarchy {
        root: "/sys/fs/cgroup/blkio",
        known_by: ("blkio.throttle.io_serviced", ""),
        weights: "blkio.bfq.weight_device",
        back_end: "bfq-v1",
        caps_back_end: "throttle-v1",
        is_passed_on: false,
    },
    Hierarchy {
        root: "/sys/fs/cgroup",
        known_by: ("cgroup.controllers", "io"),
        weights: "io.bfq.weight",
        back_end: "bfq",
        caps_back_end: "max",
        is_passed_on: true,
    },
];

impl Hierarchy {
    /// The one that is mounted; the first where both are.
    pub(crate) fn mounted() -> Option<&'static Self> {
        VERSIONS.iter().find(|version| {
            let (file, word) = version.known_by;
            let text = fs::read_to_string(Path::new(version.root).join(file));
            text.is_ok_and(|text| word.is_empty() || text.split_whitespace().any(|one| one == word))
        })
    }

    /// Makes a group, and lets those in it be counted and steered.
    pub(crate) fn make(&self, group: &Path) {
        fs::create_dir_all(group).expect("a cgroup");
        if self.is_passed_on {
            let below = group.ancestors().take_while(|group| group.starts_with(self.root));
            for group in below.collect::<Vec<_>>().into_iter().rev() {
                fs::write(group.join("cgroup.subtree_control"), "+io").expect("the io controller");
            }
        }
    }

    /// The cap that a group has on a disk, in bytes read (`read`) or written (`write`) a second.
    pub(crate) fn cap(&self, group: &Path, disk: &str, way: &str) -> Option<u64> {
        if !self.is_passed_on {
            let text = fs::read_to_string(group.join(format!("blkio.throttle.{way}_bps_device"))).ok()?;
            return text.lines().find_map(|line| line.strip_prefix(disk)?.trim().parse().ok());
        }
        let text = fs::read_to_string(group.join("io.max")).ok()?;
        let key = if way == "read" { "rbps=" } else { "wbps=" };
        let line = text.lines().find_map(|line| line.strip_prefix(disk))?;
        line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok())
    }

    /// Has v1's throttle count who uses a disk: from its first rule on it does. v2 counts anyway.
    pub(crate) fn arm(&self, disk: &str) {
        if !self.is_passed_on {
            for limit in ["1000000000000", "0"] {
                let file = Path::new(self.root).join("blkio.throttle.read_bps_device");
                fs::write(file, format!("{disk} {limit}")).expect("a throttle");
            }
        }
    }
}
