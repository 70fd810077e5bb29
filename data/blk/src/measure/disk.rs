//! Of one VM disk.

use super::contract::{ContractMeasure, ContractTerms};
use super::recent::Recent;
use super::{Coming, Finished};
use crate::tag::TAG_MAX;
use minerva_model::{DiskFigures, Nanos, TAGS_TOLD_MAX, TagFigures};

/// Significant digits of a disk's percentiles.
const DIGITS: u8 = 2;
/// Of those of one priority: a guest can have 254 of them.
const TAG_DIGITS: u8 = 1;

/// What is known of it.
#[derive(Debug)]
pub(super) struct DiskMeasure {
    recent: Recent,
    /// By priority; made when the first request of one comes.
    tags: Vec<Option<Box<TagMeasure>>>,
    contract: Option<ContractMeasure>,
    device_time: Nanos,
    /// In the second that runs.
    second_device_time: Nanos,
    under_way: u64,
    /// Since when something is under way.
    asking_since: Nanos,
    /// For how long something was under way in the second that runs, before that.
    asked: Nanos,
    /// By number of the disk: what it had of the host's disk in seconds in which a request of this one was late.
    took: Vec<Nanos>,
}

/// Of one priority of a disk.
#[derive(Debug)]
struct TagMeasure {
    ops: u64,
    given_ops: u64,
    bytes: u64,
    under_way: u64,
    recent: Recent,
}

impl DiskMeasure {
    pub(super) fn new(now: Nanos, terms: Option<ContractTerms>) -> Self {
        Self {
            recent: Recent::new(now, DIGITS),
            tags: (0..=TAG_MAX).map(|_| None).collect(),
            contract: terms.map(|terms| ContractMeasure::new(now, terms)),
            device_time: Nanos::ZERO,
            second_device_time: Nanos::ZERO,
            under_way: 0,
            asking_since: now,
            asked: Nanos::ZERO,
            took: Vec::new(),
        }
    }

    /// Another contract is judged from now on; the same one goes on.
    pub(super) fn set_contract(&mut self, now: Nanos, terms: Option<ContractTerms>) {
        if self.contract.as_ref().map(ContractMeasure::terms) != terms {
            self.contract = terms.map(|terms| ContractMeasure::new(now, terms));
            self.took.fill(Nanos::ZERO);
        }
    }

    /// A request comes; the instant from when its contract allows it.
    pub(super) fn came(&mut self, now: Nanos, coming: Coming) -> Nanos {
        if self.under_way == 0 {
            self.asking_since = now;
        }
        self.under_way += 1;
        if let Some(tag) = self.tags.get_mut(usize::from(coming.tag)) {
            tag.get_or_insert_with(|| Box::new(TagMeasure::new(now))).under_way += 1;
        }
        match (&mut self.contract, coming.transfer_bytes) {
            (Some(contract), Some(bytes)) => contract.allow(now, bytes),
            _ => now,
        }
    }

    /// A request is not this server's any more.
    pub(super) fn left(&mut self, now: Nanos, tag: u8) {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 {
            self.asked += now.since(self.asking_since);
        }
        if let Some(tag) = self.tag(tag) {
            tag.under_way = tag.under_way.saturating_sub(1);
        }
    }

    /// It had so much of the host's disk.
    pub(super) fn had(&mut self, device_time: Nanos) {
        self.device_time += device_time;
        self.second_device_time += device_time;
    }

    /// A request is done, which had so much of the host's disk.
    pub(super) fn done(&mut self, now: Nanos, device_time: Nanos, finished: &Finished) {
        self.left(now, finished.tag);
        self.had(device_time);
        if let (Some(contract), Some(bytes)) = (&mut self.contract, finished.transfer_bytes) {
            contract.done(now, finished.allowed, bytes);
        }
        if !finished.is_good {
            return;
        }
        let bytes = finished.transfer_bytes.unwrap_or(0);
        self.recent.note(now, bytes, finished.took);
        if let Some(tag) = self.tag(finished.tag) {
            tag.ops += 1;
            tag.given_ops += u64::from(finished.is_given);
            tag.bytes += bytes;
            tag.recent.note(now, bytes, finished.took);
        }
    }

    fn tag(&mut self, tag: u8) -> Option<&mut TagMeasure> {
        self.tags.get_mut(usize::from(tag))?.as_deref_mut()
    }

    /// A second is over, and `idle_seconds` after it in which nothing came or was done; whether a request was late in it.
    pub(super) fn end_second(&mut self, began: Nanos, idle_seconds: u64) -> bool {
        let end = began + Nanos::SECOND;
        let is_asking = self.under_way > 0;
        if is_asking {
            self.asked += end.since(self.asking_since);
            self.asking_since = self.asking_since.max(end + Nanos(idle_seconds * Nanos::SECOND.0));
        }
        let asked = std::mem::take(&mut self.asked);
        let Some(contract) = &mut self.contract else { return false };
        let is_late = contract.end_second(asked);
        if is_asking {
            (0..idle_seconds).for_each(|_| _ = contract.end_second(Nanos::SECOND));
        }
        is_late
    }

    /// What is known, but for who took the time; `under_way` are the instants from when its requests are allowed that are not done.
    pub(super) fn told(&mut self, now: Nanos, under_way: impl Iterator<Item = Nanos>) -> DiskFigures {
        let of = |(number, tag): (usize, &mut Option<Box<TagMeasure>>)| {
            let tag = tag.as_deref_mut()?;
            let TagMeasure { ops, given_ops, bytes, under_way, .. } = *tag;
            Some(TagFigures { tag: number as u8, ops, given_ops, bytes, under_way, recent: tag.recent.told(now) })
        };
        let mut tags: Vec<TagFigures> = self.tags.iter_mut().enumerate().filter_map(of).collect();
        let tags_seen = tags.iter().filter(|tag| tag.given_ops > 0).map(|tag| tag.tag).collect();
        tags.sort_by_key(|tag| (std::cmp::Reverse(tag.ops), tag.tag));
        tags.truncate(TAGS_TOLD_MAX);
        DiskFigures {
            recent: self.recent.told(now),
            device_time: self.device_time,
            tags,
            tags_seen,
            hung_up: None,
            failure: None,
            image_removed: None,
            contract: self.contract.as_ref().map(|contract| contract.told(now, under_way)),
        }
    }

    /// What it had of the host's disk in the second that runs.
    pub(super) fn second_device_time(&self) -> Nanos {
        self.second_device_time
    }

    pub(super) fn begin_second(&mut self) {
        self.second_device_time = Nanos::ZERO;
    }

    /// A disk had so much of the host's disk in a second in which a request of this one was late.
    pub(super) fn note_took(&mut self, other: usize, time: Nanos) {
        self.took.get_mut(other).into_iter().for_each(|took| *took += time);
    }

    /// The disk with a number is another one; there are so many numbers.
    pub(super) fn forget_other(&mut self, other: usize, count: usize) {
        self.took.resize(count, Nanos::ZERO);
        self.took.get_mut(other).into_iter().for_each(|took| *took = Nanos::ZERO);
    }

    /// What each disk had of the host's disk while this one's contract was missed.
    pub(super) fn took(&self) -> &[Nanos] {
        &self.took
    }
}

impl TagMeasure {
    fn new(now: Nanos) -> Self {
        Self { ops: 0, given_ops: 0, bytes: 0, under_way: 0, recent: Recent::new(now, TAG_DIGITS) }
    }
}
