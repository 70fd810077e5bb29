//! The scene of endogenic scheduling (Malensek et al. 2016, section 3.3 and Fig. 2): all tenants start together; one steps back, one may
//! wait for its turn, and two say nothing. And others like it, so that the gain is not that of one case.

use super::{BLOCK_BYTES, Scene, TenantPlan, workloads};
use crate::workload::{Access, Compute, Part};
use minerva_model::{Level, Nanos};

/// By how much the paper's I/O times were shorter for its tenants 1 to 4, in percent (Fig. 2).
pub const PAPER_ENDOGENIC: [f64; 4] = [29.0, 38.0, 13.0, 1.0];

/// The scale of the scene unless told. A scheduler serves one after the other for an eighth of a second each at every scale: at an
/// eighth the shortest of four tenants ends in its fifth turn, and a turn more or less is a fifth of its completion.
pub const ENDOGENIC_SCALE_DEFAULT: f64 = 0.25;

/// Within which the paper's second tenant wants its data, at full scale.
const WITHIN_S: f64 = 20.0;

/// The daemon's slice at a scale, in milliseconds: times are scaled as bytes are, down to the least there is.
pub fn endogenic_slice_ms(scale: f64) -> u64 {
    ((1000.0 * scale) as u64).clamp(100, 1000)
}

/// A scene like the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndogenicPlan {
    /// Factor on bytes and times.
    pub scale: f64,
    /// How many tenants; of every four, one steps back and one coordinates.
    pub tenants: u32,
    /// 0: sizes and order of the paper. Otherwise sizes are half to one and a half times as large and the order is rotated.
    pub seed: u64,
    /// How they read.
    pub access: Access,
    /// Bytes a request.
    pub block_bytes: u32,
    /// How far those step back that do. The paper says `low`.
    pub level: Level,
    /// Who coordinates wants to be done within its time; otherwise to have begun.
    pub done_within: bool,
}

impl EndogenicPlan {
    /// The paper's scene.
    pub const fn paper(scale: f64) -> Self {
        Self {
            scale,
            tenants: 4,
            seed: 0,
            access: Access::SequentialRead,
            block_bytes: BLOCK_BYTES,
            level: Level::Lowest,
            done_within: false,
        }
    }

    /// The scene.
    pub fn scene(&self) -> Scene {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let rotation = if self.seed == 0 { 0 } else { random.usize(..4) };
        let plans = workloads(self.scale);
        let part = |role: usize| match role {
            1 if self.done_within => Some(Part::DoneWithin(Nanos((WITHIN_S * self.scale * 1e9) as u64))),
            1 => Some(Part::BeginsWithin(Nanos((WITHIN_S * self.scale * 1e9) as u64))),
            3 => Some(Part::StepsBack(self.level)),
            _ => None,
        };
        let tenant = |index: usize| {
            let role = (index + rotation) % 4;
            let factor = if self.seed == 0 { 1.0 } else { 0.5 + random.f64() };
            let block = u64::from(self.block_bytes);
            let bytes = ((plans[role].bytes as f64 * factor) as u64).next_multiple_of(block).max(block);
            let words = part(role).map_or_else(String::new, |part| format!(", {}", part.words()));
            TenantPlan {
                name: format!("tenant-{}", index + 1),
                description: format!("{}{words}", plans[role].description),
                bytes,
                block_bytes: self.block_bytes,
                access: self.access,
                // Beside others the checksum would wait for a processor, which is not what is measured.
                compute: if self.tenants > 4 { Compute::Nothing } else { plans[role].compute },
                region: index as f64 / f64::from(self.tenants),
                depth: 1,
                region_bytes: None,
                starts_at: Nanos::ZERO,
                lasts: None,
                part: part(role),
                ..plans[role].clone()
            }
        };
        let tenants: Vec<TenantPlan> = (0..self.tenants as usize).map(tenant).collect();
        let access = if self.access == Access::RandomRead { "random" } else { "sequential" };
        let title = format!("Endogenic: {} tenants start together, {access} reads, seed {}", self.tenants, self.seed);
        Scene { name: format!("endogenic-{}-{access}-{}", self.tenants, self.seed), title, scale: self.scale, tenants }
    }
}

#[cfg(test)]
mod tests {
    use super::EndogenicPlan;
    use crate::workload::{Access, Part};
    use minerva_model::{Level, Nanos};

    #[test]
    fn the_papers_scene_is_that_of_the_paper() {
        let scene = EndogenicPlan::paper(1.0).scene();
        let megabytes: Vec<u64> = scene.tenants.iter().map(|tenant| tenant.bytes / 1_000_000).collect();
        assert_eq!(megabytes, [200, 500, 3000, 12_000]);
        let parts: Vec<Option<Part>> = scene.tenants.iter().map(|tenant| tenant.part).collect();
        let within = Part::BeginsWithin(Nanos::from_secs(20));
        assert_eq!(parts, [None, Some(within), None, Some(Part::StepsBack(Level::Lowest))]);
    }

    #[test]
    fn the_papers_own_words_are_one_of_the_ways() {
        let plan = EndogenicPlan { level: Level::Low, done_within: true, ..EndogenicPlan::paper(1.0) };
        let parts: Vec<Option<Part>> = plan.scene().tenants.iter().map(|tenant| tenant.part).collect();
        let within = Part::DoneWithin(Nanos::from_secs(20));
        assert_eq!(parts, [None, Some(within), None, Some(Part::StepsBack(Level::Low))]);
    }

    #[test]
    fn other_scenes_differ_by_their_seed_and_keep_the_mix() {
        let plan = EndogenicPlan { tenants: 8, access: Access::RandomRead, ..EndogenicPlan::paper(0.1) };
        let scenes = [1, 1, 2].map(|seed| EndogenicPlan { seed, ..plan }.scene());
        assert_eq!(scenes[0], scenes[1]);
        assert_ne!(scenes[0], scenes[2]);
        let back = |scene: &super::Scene| {
            scene.tenants.iter().filter(|tenant| matches!(tenant.part, Some(Part::StepsBack(_)))).count()
        };
        assert!(scenes.iter().all(|scene| back(scene) == 2 && scene.tenants.len() == 8));
        assert!(scenes[0].tenants.windows(2).all(|pair| pair[0].region < pair[1].region));
    }
}
