//! Sessions like the jobs of the paper, drawn: those of an hour before, and the four that then start together.

use crate::arms::LIKE;
use minerva_lab::scene::{Hour, Scene, TenantPlan};
use minerva_lab::workload::{Access, Appearance, Compute};
use minerva_model::Nanos;
use minerva_sim_workload::{PAPER_JOBS, PaperJob, SIZE_PARTS};

/// How often each job came in the hour: the short ones more often, as a host sees them, and all of them a disk that turns reads in some
/// two minutes at the demonstration's scale.
const TIMES: [usize; PAPER_JOBS.len()] = [24, 18, 5, 2];
/// So many of them are under way at once.
const AT_ONCE: usize = 2;
/// A row of reads of the kernel's read-ahead.
const BLOCK_BYTES: u32 = 256 << 10;
/// So much more an SSD is given to read. It is some eight times as fast, but the emulated one costs processor time, which others need.
const SSD_TIMES: f64 = 3.0;

/// What a daemon can know of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Like {
    /// Sessions of the same names came before.
    Named,
    /// No session has a name; those that came before had the same files open, as much memory and as many connections.
    Unnamed,
    /// Nothing like them came before: names are new, and each looks like another job.
    Unseen,
}

impl Like {
    pub(crate) const ALL: [Self; 3] = [Self::Named, Self::Unnamed, Self::Unseen];
    pub(crate) const fn word(self) -> &'static str {
        LIKE[self as usize]
    }
}

/// What is drawn of one pair.
pub(crate) struct Drawn {
    pub(crate) hour: Hour,
    pub(crate) scene: Scene,
}

/// Draws from the seed; `scale` multiplies the paper's bytes on a disk that turns.
pub(crate) fn draw(profile: &str, scale: f64, like: Like, seed: u64) -> Drawn {
    let mut draw = Draw { random: fastrand::Rng::with_seed(seed), scale, like, size: size(profile) };
    let sessions = draw.hour();
    let mut looks: Vec<usize> = (0..PAPER_JOBS.len()).collect();
    if like == Like::Unseen {
        draw.random.shuffle(&mut looks);
    }
    let mut tenants: Vec<TenantPlan> =
        (0..PAPER_JOBS.len()).map(|job| draw.session(job, looks[job], like != Like::Named)).collect();
    let mut quarters = [0.0, 0.25, 0.5, 0.75];
    draw.random.shuffle(&mut quarters);
    tenants.iter_mut().zip(quarters).for_each(|(plan, region)| plan.region = region);
    let title = match like {
        Like::Named => "Foreseen: four tenants start together, after sessions like theirs",
        Like::Unnamed => "Foreseen: four tenants without names start together, after sessions like theirs",
        Like::Unseen => "Never seen: four tenants start together, and nothing like them came before",
    };
    let scene = Scene { name: "proactive".to_owned(), title: title.to_owned(), scale, tenants };
    Drawn { hour: Hour { sessions, at_once: AT_ONCE }, scene }
}

/// The scene's four as sessions that have names and looks, and an hour of sessions like them; the scene keeps its sizes.
pub(crate) fn draw_like(scene: Scene, seed: u64) -> Drawn {
    let mut draw = Draw { random: fastrand::Rng::with_seed(seed), scale: scene.scale, like: Like::Named, size: 1.0 };
    let sessions = draw.hour();
    let dress = |(plan, job): (TenantPlan, usize)| {
        let session = draw.session(job, job, false);
        let appearance = draw.appearance(&PAPER_JOBS[job], plan.bytes);
        TenantPlan { name: session.name, appearance, ..plan }
    };
    let tenants = scene.tenants.into_iter().zip(0..PAPER_JOBS.len()).map(dress).collect();
    Drawn { hour: Hour { sessions, at_once: AT_ONCE }, scene: Scene { tenants, ..scene } }
}

fn size(profile: &str) -> f64 {
    if profile.contains("ssd") { SSD_TIMES } else { 1.0 }
}

struct Draw {
    random: fastrand::Rng,
    scale: f64,
    like: Like,
    size: f64,
}

impl Draw {
    /// The sessions before.
    fn hour(&mut self) -> Vec<TenantPlan> {
        let mut jobs: Vec<usize> = TIMES.iter().enumerate().flat_map(|(job, times)| vec![job; *times]).collect();
        self.random.shuffle(&mut jobs);
        let is_unnamed = self.like == Like::Unnamed;
        jobs.into_iter().map(|job| self.session(job, job, is_unnamed)).collect()
    }

    /// A session of one job that looks like another's.
    fn session(&mut self, job: usize, looks: usize, is_unnamed: bool) -> TenantPlan {
        let (job, looks) = (&PAPER_JOBS[job], &PAPER_JOBS[looks]);
        let part = self.part(SIZE_PARTS);
        let bytes = (job.bytes * self.scale * self.size * part) as u64;
        let name = match is_unnamed {
            // An identifier, as containers have, which says nothing of what they are.
            true => format!("{:012x}", self.random.u64(..1 << 48)),
            false => format!("{}-{}", job.word, self.random.u32(1000..10_000)),
        };
        TenantPlan {
            name,
            description: job.name.to_owned(),
            bytes: bytes.next_multiple_of(u64::from(BLOCK_BYTES)).max(u64::from(BLOCK_BYTES)),
            block_bytes: BLOCK_BYTES,
            access: Access::SequentialRead,
            depth: 1,
            compute: Compute::Nothing,
            region: self.random.f64() * 0.9,
            region_bytes: None,
            starts_at: Nanos::ZERO,
            lasts: None,
            rests: None,
            appearance: self.appearance(looks, bytes),
            seed: self.random.u64(..),
            part: None,
        }
    }

    /// What is seen of it beside its I/O; memory at the scale of the bytes, as the machine has to hold it.
    fn appearance(&mut self, job: &PaperJob, bytes: u64) -> Appearance {
        let file_bytes = match (job.file_bytes, self.like) {
            // What nobody has seen shows a file that says nothing of its size.
            (u64::MAX, Like::Unseen) => 100_000_000.0 * self.scale * self.size,
            (u64::MAX, _) => bytes as f64,
            (file_bytes, _) => file_bytes as f64 * self.scale * self.size,
        };
        let memory_bytes = job.memory_bytes * self.scale * self.part((0.9, 1.1));
        Appearance { file_bytes: file_bytes as u64, memory_bytes: memory_bytes as u64, sockets: job.sockets as u32 }
    }

    fn part(&mut self, (least, most): (f64, f64)) -> f64 {
        least + (most - least) * self.random.f64()
    }
}

#[cfg(test)]
mod tests {
    use super::{Like, PAPER_JOBS, draw};

    #[test]
    fn what_is_drawn_goes_by_the_seed_and_sizes_by_job_and_disk() {
        let sizes = |profile, like, seed| -> Vec<u64> {
            draw(profile, 0.125, like, seed).scene.tenants.iter().map(|plan| plan.bytes).collect()
        };
        assert_eq!(sizes("sata7200-80g", Like::Named, 5), sizes("sata7200-80g", Like::Named, 5));
        assert_ne!(sizes("sata7200-80g", Like::Named, 5), sizes("sata7200-80g", Like::Named, 6));
        for (bytes, job) in sizes("sata-ssd", Like::Named, 5).into_iter().zip(PAPER_JOBS) {
            assert!((0.25..0.54).contains(&(bytes as f64 / job.bytes)), "three times an eighth: {bytes}");
        }
    }

    #[test]
    fn names_say_what_came_before_or_nothing() {
        let drawn = draw("sata7200-80g", 0.125, Like::Named, 1);
        assert!(drawn.scene.tenants[2].name.starts_with("grep-"));
        assert!(drawn.hour.sessions.iter().any(|plan| plan.name.starts_with("grep-")));
        assert!(
            drawn.hour.sessions.iter().all(|before| drawn.scene.tenants.iter().all(|plan| plan.name != before.name))
        );
        let unnamed = draw("sata7200-80g", 0.125, Like::Unnamed, 1);
        let names = unnamed.hour.sessions.iter().chain(&unnamed.scene.tenants).map(|plan| &plan.name);
        assert!(
            names.into_iter().all(|name| name.len() == 12 && name.chars().all(|letter| letter.is_ascii_hexdigit()))
        );
    }
}
