//! Offsets on the disk that a worker touches.

use super::WorkloadSpec;

/// Where the next request goes.
pub(super) struct Offsets {
    random: Option<fastrand::Rng>,
    start: u64,
    block: u64,
    blocks: u64,
    next: u64,
}

impl Offsets {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        let block = u64::from(spec.block_bytes);
        Self {
            random: spec.access.is_random().then(|| fastrand::Rng::with_seed(spec.seed)),
            start: spec.region_start,
            block,
            blocks: spec.region_bytes / block,
            next: 0,
        }
    }

    pub(super) fn next(&mut self) -> u64 {
        let index = match &mut self.random {
            Some(random) => random.u64(..self.blocks),
            None => self.next,
        };
        self.next = (index + 1) % self.blocks;
        self.start + index * self.block
    }
}

#[cfg(test)]
mod tests {
    use super::Offsets;
    use crate::workload::{Access, Appearance, Compute, WorkloadSpec};
    use minerva_model::Nanos;

    fn spec() -> WorkloadSpec {
        WorkloadSpec {
            tenant: "t".to_owned(),
            path: "/dev/zero".into(),
            access: Access::SequentialRead,
            bytes: Some(1 << 20),
            block_bytes: 64 << 10,
            region_start: 4096,
            region_bytes: 128 << 10,
            depth: 1,
            compute: Compute::Checksum,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed: 7,
        }
    }

    #[test]
    fn sequential_places_wrap_and_random_ones_stay_inside() {
        let spec = spec();
        let mut places = Offsets::new(&spec);
        assert_eq!([places.next(), places.next(), places.next()], [4096, 4096 + 65536, 4096]);
        for access in [Access::RandomRead, Access::RandomWrite] {
            let mut places = Offsets::new(&WorkloadSpec { access, ..spec.clone() });
            let all: Vec<u64> = (0..100).map(|_| places.next()).collect();
            assert!(all.iter().all(|place| [4096, 4096 + 65536].contains(place)), "{all:?}");
            assert!(all.windows(2).any(|pair| pair[0] == pair[1]), "not one after the other: {all:?}");
        }
    }
}
