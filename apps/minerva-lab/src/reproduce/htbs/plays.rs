//! What came of each arm of each scene.

use crate::figure::median;
use crate::reproduce::beside::By;
use crate::vm::contracts::{Scene, seconds_kb, think};
use minerva_lab::figure::{VmKept, VmRun};
use minerva_model::Nanos;
use serde::Serialize;

/// What is played of each number of equal readers.
pub(super) const READER_ARMS: [&str; 3] = ["pclock", "htbs", "kernel-bfq"];

/// One arm of one scene, once.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Play {
    pub(super) by: By,
    /// The four jobs of the paper; else equal readers.
    pub(super) is_four_jobs: bool,
    pub(super) arm: String,
    pub(super) readers: usize,
    pub(super) guests: Vec<GuestPlay>,
    pub(super) mb_per_second: f64,
    /// The greatest part of the time for which a guest waited for a processor.
    pub(super) waited: f64,
    #[serde(skip)]
    pub(super) think: Option<Nanos>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct GuestPlay {
    pub(super) promised_kb: u32,
    pub(super) seconds_kb: Vec<f64>,
    pub(super) seconds: u64,
    pub(super) seconds_missed: u64,
    pub(super) requests: u64,
    pub(super) requests_late: u64,
}

impl Play {
    /// What came of a run.
    pub(super) fn of(scene: &Scene, arm: &str, run: &VmRun, by: By) -> Self {
        let one = |(place, kept): (usize, VmKept)| GuestPlay {
            promised_kb: scene.rates_kb[place],
            seconds_kb: seconds_kb(run, place),
            seconds: kept.asked,
            seconds_missed: kept.missed,
            requests: kept.requests,
            requests_late: kept.late,
        };
        let guests: Vec<GuestPlay> = scene.judge(run).into_iter().enumerate().map(one).collect();
        let seconds = guests.first().map_or(0, |guest| guest.seconds_kb.len()).max(1) as f64;
        let kb: f64 = guests.iter().flat_map(|guest| &guest.seconds_kb).sum();
        Self {
            by,
            is_four_jobs: scene.is_every_second,
            arm: arm.to_owned(),
            readers: guests.len(),
            guests,
            mb_per_second: kb / 1e3 / seconds,
            waited: run.waited.guests.iter().copied().fold(0.0, f64::max),
            think: (by == By::Guests).then(|| think(run)).flatten(),
        }
    }

    /// Seconds missed, by guest.
    pub(super) fn missed(&self) -> Vec<u64> {
        self.guests.iter().map(|guest| guest.seconds_missed).collect()
    }

    /// In a line.
    pub(super) fn told(&self) -> String {
        let late: Vec<u64> = self.guests.iter().map(|guest| guest.requests_late).collect();
        format!("{:.1} MB/s, seconds missed {:?}, requests late {late:?}", self.mb_per_second, self.missed())
    }
}

/// All that was played.
pub(super) struct Plays<'a>(pub(super) &'a [Play]);

impl Plays<'_> {
    /// Of the four jobs, by round.
    pub(super) fn four_jobs(&self, arm: &str, by: By) -> Vec<&Play> {
        self.0.iter().filter(|play| play.is_four_jobs && play.arm == arm && play.by == by).collect()
    }

    /// MB a second of so many equal readers, the median of the rounds; none where they were not played.
    pub(super) fn throughput(&self, arm: &str, by: By, readers: usize) -> Option<f64> {
        let own = self.0.iter().filter(|play| !play.is_four_jobs && play.arm == arm && play.by == by);
        let own: Vec<f64> = own.filter(|play| play.readers == readers).map(|play| play.mb_per_second).collect();
        (!own.is_empty()).then(|| median(own))
    }

    /// The numbers of equal readers that were played.
    pub(super) fn counts(&self) -> Vec<usize> {
        let mut counts: Vec<usize> = self.0.iter().filter(|play| !play.is_four_jobs).map(|play| play.readers).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}
