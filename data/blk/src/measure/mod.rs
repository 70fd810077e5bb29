//! What is known of the requests of all VM disks on one disk of the host: times, priorities, parts of the host's disk, and whether contracts
//! are kept. Pure, and without an allocation for a request once its priority was seen.

mod contract;
mod device_time;
mod disk;
mod recent;

pub use contract::ContractTerms;

use device_time::DeviceClock;
use disk::DiskMeasure;
use minerva_model::{DiskFigures, Nanos, TookFigures};

/// Of those who took the time, so many are told.
const TOOK_TOLD_MAX: usize = 4;

/// A request that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) tag: u8,
    /// Its bytes, where it is a read or a write, for which contracts are.
    pub(crate) transfer_bytes: Option<u64>,
}

/// A request that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) tag: u8,
    /// An application of the guest gave it.
    pub(crate) is_given: bool,
    /// It was done, and not failed.
    pub(crate) is_good: bool,
    /// As when it came.
    pub(crate) transfer_bytes: Option<u64>,
    pub(crate) took: Nanos,
    /// From when the contract allowed it, as it was told when the request came.
    pub(crate) allowed: Nanos,
    /// What the clock of the host's disk said when it was sent, or its last part.
    pub(crate) begun: u64,
}

/// Of all disks, by their numbers.
#[derive(Debug)]
pub(crate) struct Measures {
    disks: Vec<DiskMeasure>,
    clock: DeviceClock,
    second_began: Nanos,
}

impl Measures {
    pub(crate) fn new(now: Nanos) -> Self {
        Self { disks: Vec::new(), clock: DeviceClock::default(), second_began: now }
    }

    /// A disk is new, perhaps with the number of one that is gone.
    pub(crate) fn add(&mut self, now: Nanos, number: usize, contract: Option<ContractTerms>) {
        let new = DiskMeasure::new(now, contract);
        match self.disks.get_mut(number) {
            Some(before) => *before = new,
            None => self.disks.push(new),
        }
        let count = self.disks.len();
        self.disks.iter_mut().for_each(|disk| disk.forget_other(number, count));
    }

    /// Another contract is judged from now on; the same one goes on.
    pub(crate) fn set_contract(&mut self, now: Nanos, number: usize, contract: Option<ContractTerms>) {
        self.disks.get_mut(number).into_iter().for_each(|disk| disk.set_contract(now, contract));
    }

    /// A request comes; the instant from when its contract allows it.
    pub(crate) fn came(&mut self, now: Nanos, number: usize, coming: Coming) -> Nanos {
        self.end_seconds(now);
        self.disks.get_mut(number).map_or(now, |disk| disk.came(now, coming))
    }

    /// A request is not this server's any more, and was not sent.
    pub(crate) fn left(&mut self, now: Nanos, number: usize, tag: u8) {
        self.end_seconds(now);
        self.disks.get_mut(number).into_iter().for_each(|disk| disk.left(now, tag));
    }

    /// A request is sent; what the clock of the host's disk says.
    pub(crate) fn begin(&mut self, now: Nanos) -> u64 {
        self.clock.begin(now)
    }

    /// A part of a request is done that was sent when the clock of the host's disk said `begun`, and the rest of it is yet to be sent.
    pub(crate) fn part_done(&mut self, now: Nanos, number: usize, begun: u64) {
        self.end_seconds(now);
        let device_time = self.clock.end(now, begun);
        self.disks.get_mut(number).into_iter().for_each(|disk| disk.had(device_time));
    }

    /// A request is done.
    pub(crate) fn done(&mut self, now: Nanos, number: usize, finished: &Finished) {
        self.end_seconds(now);
        let device_time = self.clock.end(now, finished.begun);
        self.disks.get_mut(number).into_iter().for_each(|disk| disk.done(now, device_time, finished));
    }

    /// Ends the second that ran, if it is over.
    fn end_seconds(&mut self, now: Nanos) {
        if now.since(self.second_began) < Nanos::SECOND {
            return;
        }
        let passed = now.since(self.second_began).0 / Nanos::SECOND.0;
        for number in 0..self.disks.len() {
            if self.disks[number].end_second(self.second_began, passed - 1) {
                for other in 0..self.disks.len() {
                    let had = self.disks[other].second_device_time();
                    self.disks[number].note_took(other, had);
                }
            }
        }
        self.disks.iter_mut().for_each(DiskMeasure::begin_second);
        self.second_began += Nanos(passed * Nanos::SECOND.0);
    }

    /// What is known of a disk. `under_way` are its requests that are not done, each as the instant from when it is allowed; `name` says what
    /// the disk with a number is called.
    pub(crate) fn told<'a>(
        &mut self,
        now: Nanos,
        number: usize,
        under_way: impl Iterator<Item = Nanos>,
        name: impl Fn(usize) -> Option<&'a str>,
    ) -> DiskFigures {
        self.end_seconds(now);
        let Some(disk) = self.disks.get_mut(number) else { return DiskFigures::default() };
        let mut figures = disk.told(now, under_way);
        if let Some(contract) = &mut figures.contract {
            let took = disk.took().iter().enumerate().filter(|(_, time)| **time > Nanos::ZERO);
            let took = took.filter_map(|(other, time)| Some((name(other)?, *time)));
            contract.took =
                took.map(|(disk, device_time)| TookFigures { disk: disk.to_owned(), device_time }).collect();
            contract.took.sort_by_key(|took| std::cmp::Reverse(took.device_time));
            contract.took.truncate(TOOK_TOLD_MAX);
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::{Coming, ContractTerms, Finished, Measures};
    use minerva_model::{DiskFigures, Nanos};

    const TERMS: ContractTerms =
        ContractTerms { bytes_per_second: 1000, burst_bytes: 100, delay: Some(Nanos::from_millis(200)) };

    fn ms(count: u64) -> Nanos {
        Nanos::from_millis(count)
    }

    /// One read of 100 bytes, sent at once.
    fn read(measures: &mut Measures, disk: usize, tag: u8, [from, until]: [u64; 2]) {
        let bytes = Some(100);
        let allowed = measures.came(ms(from), disk, Coming { tag, transfer_bytes: bytes });
        let begun = measures.begin(ms(from));
        let took = ms(until).since(ms(from));
        let (is_given, is_good) = (tag != 64, true);
        let finished = Finished { tag, is_given, is_good, transfer_bytes: bytes, took, allowed, begun };
        measures.done(ms(until), disk, &finished);
    }

    fn told(measures: &mut Measures, now: u64, disk: usize) -> DiskFigures {
        measures.told(ms(now), disk, std::iter::empty(), |number| ["vm0", "vm1", "vm2"].get(number).copied())
    }

    fn with_contract(disks: usize) -> Measures {
        let mut measures = Measures::new(ms(0));
        (0..disks).for_each(|number| measures.add(ms(0), number, (number == 0).then_some(TERMS)));
        measures
    }

    #[test]
    fn who_had_the_disk_while_a_contract_was_missed_is_told() {
        let mut measures = with_contract(3);
        read(&mut measures, 1, 64, [0, 400]);
        read(&mut measures, 2, 64, [400, 500]);
        read(&mut measures, 0, 64, [500, 700]);
        // In the second second the request of the first disk takes too long, and the second disk has most of it.
        let allowed = measures.came(ms(1000), 0, Coming { tag: 64, transfer_bytes: Some(100) });
        read(&mut measures, 1, 64, [1000, 1450]);
        read(&mut measures, 2, 64, [1450, 1500]);
        let begun = measures.begin(ms(1500));
        let finished = Finished {
            tag: 64,
            is_given: false,
            is_good: true,
            transfer_bytes: Some(100),
            took: ms(520),
            allowed,
            begun,
        };
        measures.done(ms(1520), 0, &finished);
        let figures = told(&mut measures, 2000, 0);
        let contract = figures.contract.unwrap();
        assert_eq!((contract.requests, contract.late, contract.late_max), (2, 1, ms(320)));
        assert_eq!((contract.seconds, contract.seconds_late), (2, 1));
        let took: Vec<_> = contract.took.iter().map(|took| (took.disk.as_str(), took.device_time)).collect();
        assert_eq!(took, [("vm1", ms(450)), ("vm2", ms(50)), ("vm0", ms(20))]);
        assert_eq!(figures.device_time, ms(220));
        assert_eq!(told(&mut measures, 2000, 1).contract, None);
        // Another disk with the number of one that is gone took nothing.
        measures.add(ms(2000), 1, None);
        assert_eq!(told(&mut measures, 2000, 0).contract.unwrap().took[0].disk, "vm2");
    }

    #[test]
    fn a_guest_that_is_served_nothing_is_short_in_each_second_and_one_that_asks_for_nothing_in_none() {
        let mut measures = with_contract(1);
        measures.came(ms(500), 0, Coming { tag: 64, transfer_bytes: Some(100) });
        let contract = told(&mut measures, 4700, 0).contract.unwrap();
        assert_eq!((contract.seconds, contract.seconds_short, contract.short_bytes_max), (4, 3, 800));
        measures.left(ms(4800), 0, 64);
        let contract = told(&mut measures, 90_000, 0).contract.unwrap();
        assert_eq!((contract.seconds, contract.seconds_short), (5, 3));
    }

    #[test]
    fn priorities_are_told_apart_and_those_that_applications_gave_are_named() {
        let mut measures = with_contract(1);
        (0..3).for_each(|n| read(&mut measures, 0, 200, [n * 10, n * 10 + 5]));
        read(&mut measures, 0, 64, [50, 51]);
        measures.came(ms(60), 0, Coming { tag: 12, transfer_bytes: Some(1) });
        let figures = told(&mut measures, 100, 0);
        let rows: Vec<_> =
            figures.tags.iter().map(|tag| (tag.tag, tag.ops, tag.given_ops, tag.bytes, tag.under_way)).collect();
        assert_eq!(rows, [(200, 3, 3, 300, 0), (64, 1, 0, 100, 0), (12, 0, 0, 0, 1)]);
        assert_eq!(figures.tags_seen, [200]);
        assert_eq!((figures.recent.ops, figures.tags[0].recent.ops, figures.tags[0].recent.span), (4, 3, ms(100)));
        assert!(figures.tags[0].recent.p99 >= ms(5) && figures.tags[0].recent.p99 < ms(6), "{figures:?}");
        for tag in 1..=100 {
            read(&mut measures, 0, tag, [200, 201]);
        }
        let figures = told(&mut measures, 300, 0);
        assert_eq!((figures.tags.len(), figures.tags_seen.len()), (16, 100), "1 to 100 but for 64, and 200");
    }

    #[test]
    fn the_same_contract_goes_on_and_another_begins_anew() {
        let mut measures = with_contract(1);
        read(&mut measures, 0, 64, [0, 500]);
        measures.set_contract(ms(500), 0, Some(TERMS));
        assert_eq!(told(&mut measures, 500, 0).contract.unwrap().late, 1);
        measures.set_contract(ms(500), 0, Some(ContractTerms { burst_bytes: 200, ..TERMS }));
        assert_eq!(told(&mut measures, 500, 0).contract.unwrap().late, 0);
        measures.set_contract(ms(500), 0, None);
        assert_eq!(told(&mut measures, 500, 0).contract, None);
    }
}
