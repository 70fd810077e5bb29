//! Scenes in which Minerva is set against what the kernel does by itself: heavy tenants are at work when others come.
//!
//! A scene is a table of tenants ([`Contest`]); [`run_scene`](crate::scene::run_scene) plays it under each arm, and
//! [`judge`] says what came of it, against the best single arm of the kernel's own.

mod calibration;
mod judge;
mod plot;

pub use calibration::calibrate;
pub use judge::{Goals, Judgement, Row, judge};
pub use plot::plot;

use crate::scene::{Scene, TenantPlan};
use crate::workload::{Access, Appearance, Compute};
use minerva_model::Nanos;
use serde::Serialize;

/// How long the heavy have been at work when the others come.
const HEAD_START: Nanos = Nanos::from_secs(5);
/// What a reader of a file asks for at once.
const SCAN_BYTES: u32 = 256 << 10;
/// What a database reads or writes at once.
const PAGE_BYTES: u32 = 8 << 10;

/// What a buffered writer writes at once, and how long its file is.
const WRITE_BYTES: u32 = 64 << 10;
const FILE_BYTES: u64 = 48 << 20;

/// Over how much of the disk a database lies.
const REGION_BYTES: u64 = 4 << 30;

/// What a tenant of a contest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Comes with little to do, and is to be done soon.
    Short,
    /// Comes and stays, and is to get as much done in each while as under the best arm.
    Lasting,
    /// Is there from the start, with much to do.
    Heavy,
}

/// How fast a disk is beside the 7200 rpm disk for which the sizes are written down, so that a scene lasts as long on each.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Speed {
    sequential: f64,
    random: f64,
}

impl Speed {
    fn of(profile: &str) -> Self {
        match profile {
            // Its random jobs wait behind scanners, as on any disk of which the cable is the narrowest part.
            "slow-ssd" => Self { sequential: 0.5, random: 0.5 },
            profile if profile.contains("ssd") => Self { sequential: 8.0, random: 60.0 },
            _ => Self { sequential: 1.0, random: 1.0 },
        }
    }
}

/// A scene, and what each of its tenants is.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// Who comes when.
    pub scene: Scene,
    /// What each tenant is, in the order of the scene.
    pub roles: Vec<Role>,
}

/// The scenes there are, in the order in which they are played.
pub const CONTESTS: [&str; 8] = ["demo", "short-2", "short-3", "commit-1", "commit-2", "lasting", "mixed-16", "deep"];

/// The scenes for cgroup v2, where a buffered write is charged to its tenant.
pub const CONTESTS_V2: [&str; 3] = ["demo", "short-2", BUFFERED];

/// A victim that writes through the page cache; not for a machine with much memory, which takes all that it writes at once.
pub const BUFFERED: &str = "buffered";

impl Contest {
    /// The scene `name` of [`CONTESTS`] or [`CONTESTS_V2`] for a disk of this profile, its work or time multiplied by `scale`.
    pub fn of(name: &str, profile: &str, scale: f64) -> Option<Self> {
        let cast = Cast { speed: Speed::of(profile), scale };
        let tenants = match name {
            "demo" => {
                let scene = Scene::noisy_neighbour(crate::scene::SCALE_DEFAULT * scale * cast.speed.sequential);
                let last = scene.last_arrival();
                let role = |plan: &TenantPlan| if plan.starts_at == last { Role::Short } else { Role::Heavy };
                scene.tenants.iter().map(|plan| (plan.clone(), role(plan))).collect()
            }
            "short-2" => cast.beside_scanners((0..2).map(|index| cast.random_job(index))),
            "short-3" => cast.beside_scanners((0..3).map(|index| cast.random_job(index))),
            "commit-1" => cast.beside_lasting_scanners(18, (0..1).map(|index| cast.commits(index, 18))),
            "commit-2" => cast.beside_lasting_scanners(18, (0..2).map(|index| cast.commits(index, 18))),
            "lasting" => cast.beside_lasting_scanners(60, (0..1).map(|index| cast.reads_long(index, 60))),
            "mixed-16" => cast.mixed(),
            "deep" => cast.deep(18),
            BUFFERED => cast.beside_lasting_scanners(18, [cast.writes_buffered(18)].into_iter()),
            _ => return None,
        };
        let (mut tenants, roles): (Vec<TenantPlan>, Vec<Role>) = tenants.into_iter().unzip();
        let count = tenants.len() as f64;
        for (index, plan) in tenants.iter_mut().enumerate() {
            plan.name = format!("tenant-{}", index + 1);
            plan.region = index as f64 / count * 0.9 + 0.08;
        }
        let title = format!("{name}: {}", cast_list(&tenants));
        Some(Self { scene: Scene { name: name.to_owned(), title, scale, tenants }, roles })
    }

    /// Each kind of tenant alone, as scenes of one; with the index of the first tenant of that kind.
    pub fn alone(&self) -> Vec<(usize, Scene)> {
        let mut kinds: Vec<(usize, Scene)> = Vec::new();
        for (index, plan) in self.scene.tenants.iter().enumerate() {
            if kinds.iter().any(|(first, _)| is_same_work(&self.scene.tenants[*first], plan)) {
                continue;
            }
            let mut plan = TenantPlan { starts_at: Nanos::ZERO, ..plan.clone() };
            if self.roles[index] == Role::Heavy {
                // Its rate is what counts.
                plan.lasts = Some(HEAD_START);
            }
            let name = format!("{}-alone-{}", self.scene.name, index + 1);
            kinds.push((index, Scene { name, tenants: vec![plan], ..self.scene.clone() }));
        }
        kinds
    }

    /// The first tenant that does the same work as this one, which [`alone`](Self::alone) plays for both.
    pub fn kind_of(&self, index: usize) -> usize {
        let plan = &self.scene.tenants[index];
        self.scene.tenants.iter().position(|other| is_same_work(other, plan)).unwrap_or(index)
    }
}

fn is_same_work(one: &TenantPlan, other: &TenantPlan) -> bool {
    let work = |plan: &TenantPlan| (plan.access, plan.bytes, plan.block_bytes, plan.depth, plan.compute, plan.lasts);
    work(one) == work(other)
}

/// Each kind of work and how often, such as `2 x scan of 600 MB`.
fn cast_list(tenants: &[TenantPlan]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for plan in tenants {
        match kinds.iter_mut().find(|(kind, _)| *kind == plan.description) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&plan.description, 1)),
        }
    }
    kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect::<Vec<_>>().join(", ")
}

/// Makes tenants for a disk.
#[derive(Clone, Copy)]
struct Cast {
    speed: Speed,
    scale: f64,
}

impl Cast {
    fn plan(self, description: String, access: Access, block: u32, bytes: f64, depth: u32) -> TenantPlan {
        TenantPlan {
            name: String::new(),
            description,
            bytes: (bytes as u64).next_multiple_of(u64::from(block)).max(u64::from(block)),
            block_bytes: block,
            access,
            depth,
            compute: Compute::Nothing,
            region: 0.0,
            // A few reads that lie close together would come from the disk's own read-ahead.
            region_bytes: (access == Access::RandomRead).then_some(REGION_BYTES),
            starts_at: Nanos::ZERO,
            lasts: None,
            rests: None,
            appearance: Appearance::default(),
            seed: 1,
            part: None,
        }
    }

    fn seconds(self, seconds: u64) -> Nanos {
        Nanos((seconds as f64 * self.scale * 1e9) as u64)
    }

    fn scanner(self, megabytes: f64) -> TenantPlan {
        let bytes = megabytes * 1e6 * self.scale * self.speed.sequential;
        self.plan("scan, 256 KiB, depth 4".to_owned(), Access::SequentialRead, SCAN_BYTES, bytes, 4)
    }

    /// 300 reads take some four seconds alone on the 7200 rpm disk.
    fn random_job(self, index: u32) -> TenantPlan {
        let bytes = 300.0 * f64::from(PAGE_BYTES) * self.scale * self.speed.random;
        let plan = self.plan("300 random reads".to_owned(), Access::RandomRead, PAGE_BYTES, bytes, 1);
        TenantPlan { starts_at: HEAD_START + Nanos::from_millis(200 * u64::from(index)), ..plan }
    }

    fn commits(self, index: u32, seconds: u64) -> TenantPlan {
        let plan = self.plan("commits with fsync".to_owned(), Access::Commit, 4096, 4096.0, 1);
        let starts_at = HEAD_START + Nanos::from_millis(10 * u64::from(index));
        TenantPlan { starts_at, lasts: Some(self.seconds(seconds)), ..plan }
    }

    fn writes_buffered(self, seconds: u64) -> TenantPlan {
        let plan = self.plan("buffered writes".to_owned(), Access::BufferedWrite, WRITE_BYTES, 0.0, 1);
        let lasts = Some(self.seconds(seconds));
        TenantPlan { starts_at: HEAD_START, region_bytes: Some(FILE_BYTES), lasts, ..plan }
    }

    fn reads_long(self, _: u32, seconds: u64) -> TenantPlan {
        let plan = self.plan("random reads".to_owned(), Access::RandomRead, PAGE_BYTES, 0.0, 1);
        TenantPlan { starts_at: HEAD_START, lasts: Some(self.seconds(seconds)), ..plan }
    }

    fn beside_scanners(self, others: impl Iterator<Item = TenantPlan>) -> Vec<(TenantPlan, Role)> {
        let scanners = [self.scanner(400.0), self.scanner(400.0)].map(|plan| (plan, Role::Heavy));
        scanners.into_iter().chain(others.map(|plan| (plan, Role::Short))).collect()
    }

    fn beside_lasting_scanners(
        self,
        seconds: u64,
        others: impl Iterator<Item = TenantPlan>,
    ) -> Vec<(TenantPlan, Role)> {
        let lasts = Some(HEAD_START + self.seconds(seconds));
        let scanners = [self.scanner(4000.0), self.scanner(4000.0)];
        let scanners = scanners.map(|plan| (TenantPlan { lasts, ..plan }, Role::Heavy));
        scanners.into_iter().chain(others.map(|plan| (plan, Role::Lasting))).collect()
    }

    /// A scanner and a random reader of great depth, and who commits beside them.
    fn deep(self, seconds: u64) -> Vec<(TenantPlan, Role)> {
        let lasts = Some(HEAD_START + self.seconds(seconds));
        let reader = self.plan("random reads, depth 32".to_owned(), Access::RandomRead, PAGE_BYTES, 0.0, 32);
        let heavy = [self.scanner(4000.0), reader].map(|plan| (TenantPlan { lasts, ..plan }, Role::Heavy));
        heavy.into_iter().chain([(self.commits(0, seconds), Role::Lasting)]).collect()
    }

    /// Three scanners, seven random jobs and six loads, which come one after the other.
    fn mixed(self) -> Vec<(TenantPlan, Role)> {
        let mut tenants: Vec<(TenantPlan, Role)> = (0..3).map(|_| (self.scanner(400.0), Role::Heavy)).collect();
        for index in 0..13_u64 {
            let plan = if index % 2 == 0 {
                self.random_job(0)
            } else {
                let bytes = 30e6 * self.scale * self.speed.sequential;
                self.plan("load of 30 MB".to_owned(), Access::SequentialRead, SCAN_BYTES, bytes, 1)
            };
            let starts_at = HEAD_START + Nanos::from_millis(1500 * index);
            tenants.push((TenantPlan { starts_at, ..plan }, Role::Short));
        }
        tenants
    }
}

#[cfg(test)]
mod tests {
    use super::{CONTESTS, CONTESTS_V2, Contest, Role};

    #[test]
    fn every_scene_has_heavy_ones_first_and_regions_of_their_own() {
        for name in CONTESTS.into_iter().chain(CONTESTS_V2) {
            for profile in ["sata7200-80g", "sata-ssd", "slow-ssd"] {
                let contest = Contest::of(name, profile, 1.0).unwrap();
                let tenants = &contest.scene.tenants;
                assert_eq!(tenants.len(), contest.roles.len());
                for (plan, role) in tenants.iter().zip(&contest.roles) {
                    assert_eq!(*role == Role::Heavy, plan.starts_at.0 == 0, "{name}: {plan:?}");
                    assert_eq!(*role == Role::Lasting, *role != Role::Heavy && plan.lasts.is_some(), "{name}");
                }
                let mut regions: Vec<f64> = tenants.iter().map(|plan| plan.region).collect();
                regions.sort_by(f64::total_cmp);
                assert!(
                    regions.windows(2).all(|pair| pair[0] < pair[1]) && regions.iter().all(|at| *at < 1.0),
                    "{name}"
                );
                assert!(contest.roles.contains(&Role::Heavy) && contest.roles.iter().any(|role| *role != Role::Heavy));
            }
        }
        assert!(Contest::of("nothing", "sata-ssd", 1.0).is_none());
        let mixed = Contest::of("mixed-16", "sata7200-80g", 1.0).unwrap();
        assert_eq!((mixed.scene.tenants.len(), mixed.alone().len()), (16, 3), "one run alone for each kind of work");
        assert_eq!(mixed.kind_of(5), 3, "the second random job does the work of the first");
    }
}
