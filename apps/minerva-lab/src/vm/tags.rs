//! Guests whose programs have priorities (Bai and Huang, Tag Scheduler).

use super::programs::Played;
use super::{Programs, arm, capacity_bytes, reported_bytes};
use minerva_blk::tag::Priority;
use minerva_blocksched::FlowParameters;
use minerva_lab::figure::{Record, VmGuest, VmReader, VmRun};
use minerva_lab::guest::Architecture;
use minerva_lab::workload::Access;
use minerva_model::Nanos;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

const BEST_EFFORT: u16 = 2 << 13;

/// Guests and the priorities of the programs in each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scene {
    /// By guest, and by program of the guest.
    pub(crate) tags: Vec<Vec<u8>>,
    /// Weights of the guests under the kernel's BFQ.
    pub(crate) bfq_weights: Vec<u32>,
    pub(crate) access: Access,
    /// Requests that each program has under way.
    pub(crate) depth: u32,
    /// Bytes a request.
    pub(crate) block: u32,
    /// The guests' own elevator, where the kernel's BFQ orders.
    pub(crate) nested: &'static str,
    /// A guest beside them, whose one program asks seldom and in a hurry.
    pub(crate) has_urgent: bool,
    /// The last of them has arm64 processors, and its own programs read.
    pub(crate) has_arm64: bool,
}

/// The guest that asks seldom, and its program.
pub(crate) const URGENT: &str = "urgent";
const URGENT_TAG: u8 = 254;
const URGENT_BLOCK: u32 = 4096;
/// Between two of its requests.
const URGENT_THINK: Nanos = Nanos::from_millis(30);

/// One program of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) guest: usize,
    pub(crate) tag: u8,
    pub(crate) bytes: u64,
}

impl Scene {
    /// Three guests with two programs each, priorities 12 to 2: the paper's Fig. 8, dealt as the figure `vm-tags` has it.
    pub(crate) fn three_guests(access: Access, depth: u32, block: u32) -> Self {
        let tags = vec![vec![12, 6], vec![10, 4], vec![8, 2]];
        Self {
            tags,
            bfq_weights: vec![100; 3],
            access,
            depth,
            block,
            nested: "none",
            has_urgent: false,
            has_arm64: false,
        }
    }

    /// Two guests with three programs each, at 6, 4 and 2 in both: the paper's Fig. 7. The guests' priorities are 2 and 5.
    pub(crate) fn two_guests(access: Access, depth: u32, block: u32) -> Self {
        let tags = vec![vec![6, 4, 2]; 2];
        Self {
            tags,
            bfq_weights: vec![200, 500],
            access,
            depth,
            block,
            nested: "bfq",
            has_urgent: false,
            has_arm64: false,
        }
    }

    fn is_arm64(&self, guest: usize) -> bool {
        self.has_arm64 && guest + 1 == self.tags.len()
    }

    /// All priorities.
    pub(crate) fn all_tags(&self) -> Vec<u8> {
        self.tags.concat()
    }

    /// The guests, as `name` is told of them, on the disk `profile`.
    pub(crate) fn guests(&self, name: &str, profile: &str) -> Vec<VmGuest> {
        let programs = self.all_tags().len() as u64 + 1;
        let region = (capacity_bytes(profile) / programs).next_multiple_of(1 << 20) - (1 << 20);
        let mut place = 0;
        let guest = |(number, tags): (usize, &Vec<u8>)| {
            let reader = |(program, tag): (usize, &u8)| {
                place += 1;
                VmReader {
                    access: self.access,
                    block_bytes: self.block,
                    depth: self.depth,
                    think: Nanos::ZERO,
                    region_start: region * (place - 1),
                    region_bytes: region,
                    ioprio: ioprio(name, program, *tag),
                }
            };
            VmGuest {
                name: format!("vm{number}"),
                architecture: if self.is_arm64(number) { Architecture::Arm64 } else { Architecture::HOST },
                served: if name == "tag" { "tag_max = 254".to_owned() } else { String::new() },
                bfq_weight: self.bfq_weights[number],
                limit_bytes_per_second: 0,
                elevator: if name == "kernel-bfq" { self.nested } else { "none" },
                readers: tags.iter().enumerate().map(reader).collect(),
            }
        };
        let mut guests: Vec<VmGuest> = self.tags.iter().enumerate().map(guest).collect();
        if self.has_urgent {
            guests.push(urgent(name, (region * place, region)));
        }
        guests
    }

    /// What the text of [`Scene::guests`] is to a scheduler.
    pub(crate) fn parameters(&self) -> Vec<FlowParameters> {
        vec![FlowParameters::default(); self.tags.len() + usize::from(self.has_urgent)]
    }

    /// The guests boot, and read for some seconds, on the disk `profile`.
    pub(crate) fn play(
        &self,
        programs: &Programs,
        (name, tag_depth): (&str, Option<u32>),
        (profile, seconds): (&str, u64),
        log: Option<PathBuf>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<VmRun> {
        let depth = tag_depth.filter(|_| name == "tag");
        let device = depth.map_or_else(String::new, |depth| format!("tag_depth = {depth}"));
        let (arm, guests) = (arm(name), self.guests(name, profile));
        programs.run(Played { arm, guests, device, profile, seconds, log }, interrupted)
    }

    /// What each program had: by the log of requests, and where there is none by its own reports.
    pub(crate) fn programs(&self, run: &VmRun) -> Vec<Program> {
        let mut programs = Vec::new();
        for (guest, tags) in self.tags.iter().enumerate() {
            let name = format!("vm{guest}");
            for (reader, tag) in tags.iter().enumerate() {
                let own = run.records.iter().filter(|record| record.disk == name);
                // Nobody obeys them under `noop`, and the log has them all the same.
                let own = own.filter(|record| record.tag == *tag && run.begin <= record.done && record.done < run.end);
                let bytes = match run.records.is_empty() {
                    true => reported_bytes(&run.guests[guest], reader).iter().sum(),
                    false => own.map(|record| record.bytes).sum(),
                };
                programs.push(Program { guest, tag: *tag, bytes });
            }
        }
        programs
    }
}

fn urgent(name: &str, (region_start, region_bytes): (u64, u64)) -> VmGuest {
    let reader = VmReader {
        access: Access::RandomRead,
        block_bytes: URGENT_BLOCK,
        depth: 1,
        think: URGENT_THINK,
        region_start,
        region_bytes,
        ioprio: Priority::encode(1, URGENT_TAG),
    };
    VmGuest {
        name: URGENT.to_owned(),
        architecture: Architecture::HOST,
        served: if name == "tag" { "tag_max = 254".to_owned() } else { String::new() },
        bfq_weight: 100,
        limit_bytes_per_second: 0,
        elevator: "none",
        readers: vec![reader],
    }
}

/// How long each request of the guest that asks seldom took, the shortest first.
pub(crate) fn urgent_times(run: &VmRun) -> Vec<Nanos> {
    let is_its = |record: &&Record| record.disk == URGENT && run.begin <= record.arrived && record.done < run.end;
    let mut times: Vec<Nanos> =
        run.records.iter().filter(is_its).map(|record| record.done.since(record.arrived)).collect();
    times.sort_unstable();
    times
}

/// Pairs of programs in different guests of which the one with the lesser priority had more (Bai and Huang, section 1).
pub(crate) fn inverted(programs: &[Program]) -> Vec<(Program, Program)> {
    let pairs = programs.iter().flat_map(|better| programs.iter().map(move |worse| (*better, *worse)));
    let is_inverted = |(better, worse): &(Program, Program)| {
        better.guest != worse.guest && better.tag > worse.tag && worse.bytes > better.bytes
    };
    pairs.filter(is_inverted).collect()
}

/// By which factor programs of one priority in different guests are apart at most; 1 where no priority is in two guests.
pub(crate) fn apart(programs: &[Program]) -> f64 {
    let pairs = programs.iter().flat_map(|more| programs.iter().map(move |less| (more, less)));
    let of_equals = pairs.filter(|(more, less)| more.tag == less.tag && more.guest != less.guest);
    of_equals.map(|(more, less)| more.bytes as f64 / less.bytes.max(1) as f64).fold(1.0, f64::max)
}

/// By how much the program that is furthest off is away from its part by priority.
pub(crate) fn off(programs: &[Program]) -> f64 {
    let bytes = programs.iter().map(|program| program.bytes).sum::<u64>().max(1) as f64;
    let tags = programs.iter().map(|program| f64::from(program.tag)).sum::<f64>();
    let one = |program: &Program| (program.bytes as f64 / bytes / (f64::from(program.tag) / tags) - 1.0).abs();
    programs.iter().map(one).fold(0.0, f64::max)
}

/// What a program gives. Plain levels go from 0, the best, to 7, and six priorities fit.
fn ioprio(name: &str, program: usize, tag: u8) -> Option<u16> {
    match name {
        "kernel-bfq" => Some(BEST_EFFORT | u16::from(7 - tag / 2)),
        _ => Priority::encode(program as u8 + 1, tag),
    }
}

#[cfg(test)]
mod tests {
    use super::{Program, Scene, apart, inverted, off};
    use minerva_lab::workload::Access;

    #[test]
    fn inversions_are_between_guests_and_parts_are_by_priority() {
        let program = |guest, tag, bytes| Program { guest, tag, bytes };
        let programs = [program(0, 6, 10), program(0, 2, 20), program(1, 4, 15), program(1, 2, 5)];
        let pairs: Vec<(u8, u8)> = inverted(&programs).iter().map(|(better, worse)| (better.tag, worse.tag)).collect();
        assert_eq!(pairs, [(6, 4), (4, 2)], "not the pair within one guest");
        assert!((apart(&programs) - 4.0).abs() < 1e-9, "the two at 2");
        assert!(off(&[program(0, 6, 60), program(1, 4, 40)]) < 1e-9);
        assert!((off(&[program(0, 6, 50), program(1, 4, 50)]) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn programs_read_in_regions_of_their_own() {
        let guests = Scene::two_guests(Access::SequentialRead, 1, 4096).guests("tag", "slow-ssd");
        let regions: Vec<(u64, u64)> =
            guests.iter().flat_map(|guest| &guest.readers).map(|one| (one.region_start, one.region_bytes)).collect();
        assert_eq!(regions.len(), 6);
        assert!(regions.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{regions:?}");
    }
}
