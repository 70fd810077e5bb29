//! One tenant's state: some 17 kB with its place in the map, of which its two series of rates are four.

use super::basis::{Basis, NextSlice, Source};
use super::families::{Families, Family};
use super::sessions::{Session, SessionOutlook, Sessions};
use crate::host::{Answer, Learner};
use crate::number::quantity;
use crate::online::{Account, Adwin, Cusum, IntervalMeter, Naive, SkillMeter};
use crate::tenant::{BUSY_BYTES_PER_SECOND, Bursts, FeatureState, Phases, RateForecast, Rates, Reading, Row};
use serde::{Deserialize, Serialize};

/// Slices over which a series' own model is scored before it may speak.
const SCORED_MIN: u32 = 30;

/// All that is foreseen of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantOutlook {
    /// The next slice.
    pub next_slice: NextSlice,
    /// The next 15 s of reads.
    pub reads: Option<RateForecast>,
    /// The same of writes.
    pub writes: Option<RateForecast>,
    /// The session under way, if one is.
    pub session: Option<SessionOutlook>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tenant {
    pub(super) is_named: bool,
    pub(super) family: Family,
    features: FeatureState,
    session: Session,
    row: Option<Row>,
    /// The last rate was more than anyone would have foreseen.
    #[serde(default)]
    was_beyond_reach: bool,
    naive: Naive,
    /// Of the trees.
    skill: SkillMeter,
    /// Of the series' own models, and what they say of the next slice.
    series: SkillMeter,
    by_series: Option<f64>,
    interval: IntervalMeter,
    /// For sudden shifts of the rate and slow ones of the forecast's error, both as logarithms.
    shift: Cusum,
    drift: Adwin,
    rates: [Rates; 2],
    phases: Phases,
    #[serde(default)]
    bursts: Bursts,
    idle: u32,
}

impl Tenant {
    /// One of which nothing was seen. Its forecasts are bounded by what will be, unless they are those of earlier versions.
    pub(super) fn new(family: Family, is_bounded: bool) -> Self {
        Self {
            is_named: true,
            family,
            features: if is_bounded { FeatureState::bounded() } else { FeatureState::default() },
            session: Session::default(),
            row: None,
            was_beyond_reach: false,
            naive: Naive::default(),
            skill: SkillMeter::default(),
            series: SkillMeter::default(),
            by_series: None,
            interval: IntervalMeter::around_any(0.8),
            shift: Cusum::default(),
            drift: Adwin::default(),
            rates: [Rates::default(), Rates::default()],
            phases: Phases::default(),
            bursts: Bursts::default(),
            idle: 0,
        }
    }

    /// Takes a slice in. `by_trees` is what the trees said of the row before it, where they were asked.
    pub(super) fn observe(
        &mut self,
        reading: &Reading,
        ahead: usize,
        (learner, by_trees): (&mut Learner, Option<Answer>),
        (sessions, families): (&mut Sessions, &mut Families),
    ) {
        self.is_named = true;
        let seconds = if reading.elapsed_seconds > 0.0 && reading.elapsed_seconds.is_finite() {
            reading.elapsed_seconds
        } else {
            1.0
        };
        let rate = |bytes: f64| quantity(quantity(bytes) / seconds);
        let (read, write) = (rate(reading.read_bytes), rate(reading.write_bytes));
        let came = read + write;
        let came_log = libm::log1p(came);
        self.idle = if came > 0.0 { 0 } else { self.idle.saturating_add(1) };
        self.score(came, by_trees, learner);
        let has_shifted = self.shift.observe(came_log);
        self.naive.observe(came);
        for (rates, value) in self.rates.iter_mut().zip([read, write]) {
            rates.observe(value, ahead);
            match has_shifted {
                true if sessions.only_its_own => rates.reset(),
                true => rates.reset_models(),
                false => {}
            }
        }
        self.phases.observe(came >= f64::from(BUSY_BYTES_PER_SECOND), &self.rates);
        self.bursts.observe(came * seconds, seconds);
        self.by_series = self.rates[0].next().zip(self.rates[1].next()).map(|(reads, writes)| reads + writes);
        let believed = self.session.observe(reading, self.family, sessions, families);
        let row =
            self.features.observe(&believed, self.session.cutter.progress(), families.expected_log(self.family) as f32);
        let open_log = libm::log1p(quantity(reading.usage.map_or(0.0, |usage| usage.open_file_bytes)));
        self.session.note(&row, open_log, self.family, sessions, families);
        self.row = Some(row);
    }

    /// What is foreseen of a session that begins with this reading, a part of a step; nothing where one is under way already. Nothing is
    /// learnt from it: the whole step will be.
    pub(super) fn beginning(
        known: Option<&Self>,
        family: Family,
        reading: &Reading,
        sessions: &Sessions,
        families: &Families,
    ) -> Option<SessionOutlook> {
        if known.is_some_and(|tenant| tenant.session.cutter.is_open()) {
            return None;
        }
        let mut session = Session::beginning(reading);
        let mut features = known.map_or_else(FeatureState::default, |tenant| tenant.features);
        let row = features.observe(reading, session.cutter.progress(), families.expected_log(family) as f32);
        let open_log = libm::log1p(quantity(reading.usage.map_or(0.0, |usage| usage.open_file_bytes)));
        session.note(&row, open_log, family, sessions, families);
        session.outlook(&row, sessions)
    }

    /// Scores what was said of the slice that ended, and learns from it.
    fn score(&mut self, came: f64, by_trees: Option<Answer>, learner: &mut Learner) {
        let came_log = libm::log1p(came);
        // A tenant that sleeps teaches nothing and needs no scores.
        if let Some(row) = self.row.filter(|_| self.idle <= 60) {
            let told = self.log(&row, by_trees, learner);
            let forecast = libm::expm1(told);
            self.interval.observe(self.instead_of_trees().map_or(forecast, |(value, _)| value), came);
            let naive = self.naive.forecasts();
            self.skill.observe(forecast, &naive, came);
            if let Some(by_series) = self.by_series {
                self.series.observe(by_series, &naive, came);
            }
            self.teach(&row, came_log as f32, learner);
            if self.drift.observe(told - came_log) {
                // The forecast has changed its error: what it earned is no longer true.
                (self.skill, self.series) = (SkillMeter::default(), SkillMeter::default());
                self.interval = IntervalMeter::around_any(0.8);
            }
        }
    }

    /// The learner takes what a row turned out to be. A mean follows a single value however far off it is, as that of a counter that jumped: so what
    /// is beyond reach is learnt as what is just within, and what follows it not at all. Medians alone, as of earlier versions, need no such
    /// care.
    fn teach(&mut self, row: &Row, came_log: f32, learner: &mut Learner) {
        let within = if learner.mean_percent() > 0 { self.features.within_reach(came_log) } else { came_log };
        if !std::mem::replace(&mut self.was_beyond_reach, came_log > within) {
            learner.observe_of(self.account(), row, row[0], within);
        }
    }

    /// The tenant is gone, and its session over.
    pub(super) fn end(mut self, sessions: &mut Sessions, families: &mut Families) {
        self.session.end(self.family, sessions, families);
    }

    pub(super) fn account(&self) -> Account {
        self.session.account
    }

    pub(super) fn idle_slices(&self) -> u32 {
        self.idle
    }

    pub(super) fn rates_mut(&mut self) -> &mut [Rates; 2] {
        &mut self.rates
    }

    pub(super) fn rates(&self) -> &[Rates; 2] {
        &self.rates
    }

    pub(super) fn phases(&self) -> &Phases {
        &self.phases
    }

    pub(super) fn bursts(&self) -> &Bursts {
        &self.bursts
    }

    pub(super) fn read_share(&self) -> f64 {
        self.features.read_share()
    }

    /// The forecast that did best for this tenant lately, if it is not that of the trees.
    fn instead_of_trees(&self) -> Option<(f64, Source)> {
        let series = self.by_series.filter(|_| self.series.seen() >= SCORED_MIN);
        match series {
            Some(by_series) if self.series.skill() > self.skill.skill().max(0.0) => Some((by_series, Source::Series)),
            _ if self.skill.is_switched_off() => Some((self.naive.forecasts()[self.skill.best_naive()], Source::Naive)),
            _ => None,
        }
    }

    /// What the host's model tells of the row, log1p of bytes a second.
    fn log(&self, row: &Row, by_trees: Option<Answer>, learner: &Learner) -> f64 {
        let answer = by_trees.or_else(|| learner.predict(row, row[0]));
        let told = answer.map_or(row[0], |answer| answer.told(learner.mean_percent()));
        f64::from(self.features.within_reach(told))
    }

    pub(super) fn row(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    /// How its forecasts stand.
    pub(super) fn basis(&self) -> Basis {
        let instead_of_trees = self.instead_of_trees();
        let skill = match instead_of_trees {
            Some((_, Source::Series)) => self.series.told(),
            _ => self.skill.told(),
        };
        Basis { instead_of_trees, skill, reach: self.features.reach(), interval: self.interval }
    }

    pub(super) fn next_slice(&self, learner: &Learner) -> NextSlice {
        let basis = self.basis();
        match &self.row {
            Some(row) => basis.of_log(self.log(row, None, learner)),
            None => basis.of_log(0.0),
        }
    }

    pub(super) fn outlook(&self, next_slice: NextSlice, sessions: &Sessions) -> TenantOutlook {
        TenantOutlook {
            next_slice,
            reads: self.rates[0].forecast(),
            writes: self.rates[1].forecast(),
            session: self.row.as_ref().and_then(|row| self.session.outlook(row, sessions)),
        }
    }
}
