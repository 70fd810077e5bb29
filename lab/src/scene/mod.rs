//! The demonstration's scenes: who comes when, and with how much work. A scene is only a description; [`run_scene`] plays
//! it on a fresh emulated disk with real processes, under a [`Steering`].
//!
//! The four workloads are those of the Minerva paper's section 3.3: a checksum of 200 MB, a load of 500 MB, a scan of 3 GB
//! and a scan of 12 GB.

mod arm;
mod compare;
mod endogenic;
mod hour;
mod html;
mod iocost;
mod known;
mod machine;
mod plot;
mod result;
mod run;
mod steering;
mod table;
mod weights;
mod words;

pub use arm::Arm;
pub use compare::{Comparison, TenantChange, signed_percent};
pub use endogenic::{ENDOGENIC_SCALE_DEFAULT, EndogenicPlan, PAPER_ENDOGENIC, endogenic_slice_ms};
pub use hour::{Hour, play_hour};
pub use html::write_report;
pub use iocost::{IoCostModel, WithIoCost};
pub use known::Known;
pub use machine::check_machine;
pub use result::{Phase, RunResult, Series, TenantResult, jain_index};
pub(crate) use run::Contents;
pub use run::{Live, Stage, run_scene};
pub use steering::{Equal, FixedWeights, Minervad, Steered, Steering, SteeringContext, TenantInScene};
pub use table::{render_comparisons, render_run, render_table};
pub use words::in_plain_words;

pub(crate) use iocost::Calibrated;
pub(crate) use steering::Directory;

use crate::workload::{Access, Appearance, Compute, Part, Rests};
use minerva_model::Nanos;
use serde::{Deserialize, Serialize};

/// At this scale one run takes about 50 s on the profile `sata7200-80g`. At a smaller one the third tenant would be nearly done
/// when the short ones arrive, and what they get before it would weigh more in its time than in the full scene.
pub const SCALE_DEFAULT: f64 = 0.125;
/// What all tenants of a scene together get of the profile of the scenes, as measured at [`SCALE_DEFAULT`].
const USUAL_PROFILE: &str = "sata7200-80g";
const USUAL_BYTES_PER_SECOND: f64 = 40e6;
/// How long the scans have been going when the short tenants arrive, in the scene of the noisy neighbour.
const HEAD_START: Nanos = Nanos::from_secs(10);
/// What a reader of a file gets from the kernel's read-ahead at its usual setting, twice.
const BLOCK_BYTES: u32 = 256 << 10;

/// One tenant's part in a scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantPlan {
    /// Name of the tenant and of its cgroup.
    pub name: String,
    /// What it does, for people.
    pub description: String,
    /// Its work in bytes, a multiple of the block.
    pub bytes: u64,
    /// Bytes a request.
    pub block_bytes: u32,
    /// Order of the requests.
    pub access: Access,
    /// Requests under way at once.
    pub depth: u32,
    /// What it does with the data.
    pub compute: Compute,
    /// Where its data starts, as a part of the disk from 0 to 1.
    pub region: f64,
    /// Over how many bytes its data lies; as many as its work has, unless told.
    pub region_bytes: Option<u64>,
    /// When it comes, after the scene's start.
    pub starts_at: Nanos,
    /// It works this long, however much it gets done; otherwise until its bytes are done.
    pub lasts: Option<Nanos>,
    /// When it pauses, if it alternates between the disk and other work.
    pub rests: Option<Rests>,
    /// What else an observer sees of it.
    pub appearance: Appearance,
    /// Seed of what it draws.
    pub seed: u64,
    /// How it takes part in its own scheduling, where it can.
    pub part: Option<Part>,
}

impl TenantPlan {
    /// When it is told to stop, after the scene's start; nothing for one that works until its bytes are done.
    pub fn ends_at(&self) -> Option<Nanos> {
        self.lasts.map(|lasts| self.starts_at + lasts)
    }
}

/// Who comes when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// Short name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Factor on the bytes of the workloads.
    pub scale: f64,
    /// The tenants.
    pub tenants: Vec<TenantPlan>,
}

impl Scene {
    /// Scene one: the scans have been running for a while when the short tenants arrive.
    pub fn noisy_neighbour(scale: f64) -> Self {
        let mut tenants = workloads(scale);
        tenants[0].starts_at = HEAD_START;
        tenants[1].starts_at = HEAD_START;
        let title = "The noisy neighbour: two scans are running when two short tenants arrive".to_owned();
        Self { name: "noisy-neighbour".to_owned(), title, scale, tenants }
    }

    /// Scene two: all four start together, so that nobody has a history.
    pub fn together(scale: f64) -> Self {
        let title = "All at once: four tenants start together".to_owned();
        Self { name: "together".to_owned(), title, scale, tenants: workloads(scale) }
    }

    /// About how long one run takes, in seconds; nothing for a profile of which no run was measured.
    pub fn estimate_s(&self, profile: &str) -> Option<f64> {
        let bytes: u64 = self.tenants.iter().map(|tenant| tenant.bytes).sum();
        (profile == USUAL_PROFILE).then(|| bytes as f64 / USUAL_BYTES_PER_SECOND)
    }

    /// When the last tenant comes.
    pub fn last_arrival(&self) -> Nanos {
        self.tenants.iter().map(|tenant| tenant.starts_at).max().unwrap_or(Nanos::ZERO)
    }
}

/// The four workloads, each with its data in its own quarter of the disk, as virtual machines' images lie.
fn workloads(scale: f64) -> Vec<TenantPlan> {
    let plans = [
        ("tenant-1", "checksum of 200 MB", 200e6, Compute::Checksum),
        ("tenant-2", "load of 500 MB", 500e6, Compute::Nothing),
        ("tenant-3", "scan of 3 GB", 3e9, Compute::Nothing),
        ("tenant-4", "scan of 12 GB", 12e9, Compute::Nothing),
    ];
    let quarters = [0.0, 0.25, 0.5, 0.75];
    let tenant = |((name, description, bytes, compute), region): ((&str, &str, f64, Compute), f64)| TenantPlan {
        name: name.to_owned(),
        description: description.to_owned(),
        bytes: ((bytes * scale) as u64).next_multiple_of(u64::from(BLOCK_BYTES)).max(u64::from(BLOCK_BYTES)),
        block_bytes: BLOCK_BYTES,
        access: Access::SequentialRead,
        compute,
        region,
        depth: 1,
        region_bytes: None,
        starts_at: Nanos::ZERO,
        lasts: None,
        rests: None,
        appearance: Appearance::default(),
        seed: 1,
        part: None,
    };
    plans.into_iter().zip(quarters).map(tenant).collect()
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, Scene};
    use minerva_model::Nanos;

    #[test]
    fn a_scene_scales_its_bytes_to_whole_blocks_and_keeps_the_order() {
        let scene = Scene::noisy_neighbour(0.1);
        let bytes: Vec<u64> = scene.tenants.iter().map(|tenant| tenant.bytes).collect();
        assert!(bytes.iter().all(|bytes| bytes % u64::from(BLOCK_BYTES) == 0));
        assert!(bytes.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((20_000_000..20_300_000).contains(&bytes[0]));
        assert_eq!(scene.last_arrival(), Nanos::from_secs(10));
        assert_eq!(Scene::together(0.1).last_arrival(), Nanos::ZERO);
        let estimate = Scene::together(super::SCALE_DEFAULT).estimate_s("sata7200-80g").unwrap();
        assert!((45.0..55.0).contains(&estimate));
        assert_eq!(Scene::together(0.1).estimate_s("sata-ssd"), None);
        assert!(Scene::together(0.0).tenants.iter().all(|tenant| tenant.bytes == u64::from(BLOCK_BYTES)));
    }
}
