//! How much a session will still read and write.

use super::families::{Families, Family};
use crate::codec::{Damaged, Reader, Writer};
use crate::host::{Learner, LearnerSettings};
use crate::online::{Account, IntervalMeter, NAIVE, OrderMeter, Orders, SkillMeter};
use crate::tenant::{Cutter, Reading, Row, SessionClass};
use serde::{Deserialize, Serialize};

/// Moments of a session that are learnt from: after 1, 2, 4, ... slices.
const MOMENTS: usize = 12;
/// As a file: before the fourth it was that of the learner alone, and before the fifth accounts were not told apart.
const VERSION: u16 = 5;
const VERSION_OF_ALL: u16 = 4;
/// An agent is believed once so many of its sessions ended and its declarations were off by less than this factor's logarithm.
const PROVED_SESSIONS: u32 = 3;
const PROVED_ERROR: f64 = 0.7;
/// Weight of the newest session in that error: a lie of any size ends it, however long the truth was told.
const DECLARED_WEIGHT: f64 = 1.0 / 8.0;
const DECLARED_MIN_BYTES: f64 = 1024.0 * 1024.0;

/// What is foreseen of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionOutlook {
    /// Of the session as a whole.
    pub class: SessionClass,
    /// Bytes that are still to come.
    pub remaining_bytes: f64,
    /// 80 % of what comes is above this, and below `high_bytes` and so on; equal to the value until enough sessions ended.
    pub low_bytes: f64,
    /// See `low_bytes`.
    pub high_bytes: f64,
    /// Earned against the best naive forecast of a session's size, 0 to 1; 0 once the session has outgrown what was foreseen.
    pub skill: f64,
    /// No model speaks: it is what the family's sessions, or the last of them, transferred.
    pub is_naive: bool,
    /// What ordering sessions by this is worth against forecasts that know nothing of the tenant, 0 to 1; 0 once it has been outgrown.
    pub ordering: f64,
}

/// The host's model of sessions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sessions {
    pub(super) learner: Learner,
    skill: SkillMeter,
    #[serde(default)]
    ordering: OrderMeter,
    /// The same of each account by its own, in place of that.
    #[serde(default)]
    orders: Orders,
    interval: IntervalMeter,
    /// The last session of a tenant's like is taken in place of what the model says (see [`super::Forecaster::set_sessions_by_last`]).
    #[serde(default)]
    pub(super) by_last: bool,
    /// See [`super::Forecaster::set_declared_at_beginning`].
    #[serde(default)]
    pub(super) declared_at_beginning: bool,
    /// See [`super::Forecaster::set_only_its_own`].
    #[serde(default)]
    pub(super) only_its_own: bool,
}

/// The session of one tenant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) cutter: Cutter,
    #[serde(default)]
    pub(super) account: Account,
    slices: u32,
    /// Rows and what had been transferred by then, at the moments.
    moments: Vec<(Row, f64)>,
    /// The first forecast of this session's whole size, and the naive ones: as log1p.
    first: Option<(f64, [f64; NAIVE])>,
    /// It was the model that made it.
    is_by_model: bool,
    declared_log: Option<f64>,
    /// What was first declared in this session, and what it had transferred by then.
    #[serde(default)]
    first_word: Option<(f64, f64)>,
    /// Mean absolute error of the logarithm of what was declared, and of how many sessions.
    declared_error: (f64, u32),
    last_total_log: f64,
}

impl Sessions {
    pub(super) fn new(settings: LearnerSettings) -> Self {
        Self {
            learner: Learner::new(settings),
            skill: SkillMeter::default(),
            ordering: OrderMeter::default(),
            orders: Orders::default(),
            interval: IntervalMeter::new(0.8),
            by_last: false,
            declared_at_beginning: true,
            only_its_own: true,
        }
    }

    /// What outlives a restart: the model, and what ordering by it was worth. `None` before there is a model.
    pub(super) fn encode(&self, kind: u16) -> Option<Vec<u8>> {
        let mut writer = Writer::default();
        self.learner.write(&mut writer)?;
        if self.only_its_own {
            self.orders.write(&mut writer);
            return Some(writer.seal(kind, VERSION));
        }
        self.ordering.write(&mut writer);
        Some(writer.seal(kind, VERSION_OF_ALL))
    }

    /// Takes over what was kept; bytes that are damaged change nothing.
    pub(super) fn decode(&mut self, bytes: &[u8], kind: u16) -> Result<(), Damaged> {
        if let Ok(mut reader) = Reader::open(bytes, kind, VERSION) {
            let kept = self.learner.read(&mut reader)?;
            let orders = Orders::read(&mut reader)?;
            reader.end()?;
            self.learner.adopt(kept);
            self.orders = orders;
            return Ok(());
        }
        // Whose merit what was earned then is, nobody knows: where accounts are told apart it begins anew.
        let Ok(mut reader) = Reader::open(bytes, kind, VERSION_OF_ALL) else { return self.learner.decode(bytes, kind) };
        let kept = self.learner.read(&mut reader)?;
        let ordering = OrderMeter::read(&mut reader)?;
        reader.end()?;
        self.learner.adopt(kept);
        self.ordering = ordering;
        Ok(())
    }

    /// A slice has ended: what follows from the sessions that did.
    pub(super) fn settle(&mut self) {
        if self.only_its_own {
            self.orders.settle();
        }
    }

    fn ordering(&self, account: Account) -> f64 {
        if self.only_its_own { self.orders.earned(account) } else { self.ordering.earned() }
    }

    /// A session ended with `total` bytes: how far what its agent declared was off.
    fn judge_agent(&self, session: &mut Session, total: f64) {
        let (last_word, first_word) = (session.declared_log.take(), session.first_word.take());
        let off = if self.declared_at_beginning {
            // That nothing is left where nothing is says nothing of an agent.
            let told = first_word.map(|(declared, attained)| (declared, (total - attained).max(0.0)));
            let told = told.filter(|(declared, came)| declared.max(*came) >= DECLARED_MIN_BYTES);
            told.map(|(declared, came)| (libm::log1p(declared) - libm::log1p(came)).abs())
        } else {
            last_word.map(|declared| (declared - libm::log1p(total)).abs())
        };
        if let Some(off) = off {
            let (error, count) = &mut session.declared_error;
            *count += 1;
            let least = if self.declared_at_beginning { DECLARED_WEIGHT } else { 0.0 };
            *error += (off - *error) * least.max(1.0 / f64::from(*count));
        }
    }

    /// A session ended with `total` bytes.
    fn learn(&mut self, session: &mut Session, family: Family, total: f64, families: &mut Families) {
        let total_log = libm::log1p(total);
        for (row, attained) in session.moments.drain(..) {
            let left = libm::log1p((total - attained).max(0.0)) as f32;
            self.learner.observe_of(session.account, &row, 0.0, left);
        }
        if let Some((forecast, naive)) = session.first.take() {
            // What was said before there was a model is no merit of it, nor a fault.
            if session.is_by_model {
                self.skill.observe(forecast, &naive, total_log);
                if self.only_its_own {
                    self.orders.observe(session.account, forecast, total_log);
                } else {
                    self.ordering.observe(forecast, total_log);
                }
                self.interval.observe(libm::expm1(forecast), total);
            }
        }
        self.judge_agent(session, total);
        session.last_total_log = total_log;
        families.learn(family, session.account, total_log);
    }
}

impl Session {
    /// One that begins with a reading, if it begins one.
    pub(super) fn beginning(reading: &Reading) -> Self {
        let mut session = Self { account: reading.account, ..Self::default() };
        session.cutter.observe(reading);
        session
    }

    /// What is left of a session that came to nothing: it would be taken for the beginning of the next.
    fn begin_anew(&mut self) {
        self.moments.clear();
        (self.first, self.declared_log, self.first_word, self.slices) = (None, None, None, 0);
    }

    /// Takes a slice; what its tenant declares is left out of the answer unless it has proved right.
    pub(super) fn observe(
        &mut self,
        reading: &Reading,
        family: Family,
        sessions: &mut Sessions,
        families: &mut Families,
    ) -> Reading {
        if reading.account != 0 {
            self.account = reading.account;
        }
        match self.cutter.observe(reading) {
            Some(total) if total > 0.0 => {
                sessions.learn(self, family, total, families);
                self.slices = 0;
            }
            Some(_) if sessions.only_its_own => self.begin_anew(),
            _ => {}
        }
        if let Some(declared) = reading.declared_bytes.filter(|declared| declared.is_finite() && *declared >= 0.0) {
            self.declared_log = Some(libm::log1p(declared));
            if self.cutter.is_open() && self.first_word.is_none() {
                self.first_word = Some((declared, self.cutter.progress().0));
            }
        }
        let (error, count) = self.declared_error;
        let is_proved = count >= PROVED_SESSIONS && error < PROVED_ERROR;
        let declared_bytes = self.declared_log.filter(|_| is_proved && self.cutter.is_open()).map(libm::expm1);
        Reading { declared_bytes, ..*reading }
    }

    /// The tenant is gone: what its session transferred so far is all.
    pub(super) fn end(&mut self, family: Family, sessions: &mut Sessions, families: &mut Families) {
        let (attained, _) = self.cutter.progress();
        if self.cutter.is_open() && attained > 0.0 {
            sessions.learn(self, family, attained, families);
        }
    }

    /// Takes the row made of the slice.
    pub(super) fn note(
        &mut self,
        row: &Row,
        open_file_log: f64,
        family: Family,
        sessions: &Sessions,
        families: &Families,
    ) {
        if !self.cutter.is_open() {
            return;
        }
        self.slices = self.slices.saturating_add(1);
        let (attained, _) = self.cutter.progress();
        if self.slices.is_power_of_two() && self.moments.len() < MOMENTS {
            self.moments.push((*row, attained));
        }
        if self.first.is_none() {
            let total = if sessions.by_last {
                families.last_log(family)
            } else {
                self.remaining_log(row, sessions).map(|left| libm::log1p(libm::expm1(left) + attained))
            };
            self.is_by_model = total.is_some();
            let otherwise = || libm::log1p(libm::expm1(families.expected_log(family)) + attained);
            let total = total.unwrap_or_else(otherwise);
            let naive = [0.0, self.last_total_log, families.host_log(), families.expected_log(family), open_file_log];
            self.first = Some((total, naive));
        }
    }

    fn remaining_log(&self, row: &Row, sessions: &Sessions) -> Option<f64> {
        sessions.learner.median(row, 0.0).filter(|_| !sessions.by_last).map(f64::from)
    }

    /// What is foreseen of the session under way.
    pub(super) fn outlook(&self, row: &Row, sessions: &Sessions) -> Option<SessionOutlook> {
        let (first, _) = self.first.filter(|_| self.cutter.is_open())?;
        let (attained, _) = self.cutter.progress();
        let foreseen = libm::expm1(first);
        let by_model = self.remaining_log(row, sessions).map(libm::expm1);
        let is_naive = by_model.is_none();
        let by_model = by_model.unwrap_or((foreseen - attained).max(0.0));
        // A session that has outgrown what was foreseen of it says so: it is then as long again as it was so far, and nothing is
        // sure (least attained service). So one that looks short and reads for ever sinks.
        let is_outgrown = attained > foreseen;
        let remaining = if is_outgrown { by_model.max(attained) } else { by_model };
        // It was learnt around first forecasts of whole sessions, of which a part is no longer in doubt.
        let interval = sessions.interval.interval(foreseen);
        let left = |end: f64| (end - attained).max(0.0);
        Some(SessionOutlook {
            class: SessionClass::of(attained + remaining),
            remaining_bytes: remaining,
            low_bytes: interval.map_or(remaining, |interval| left(interval.low).min(remaining)),
            high_bytes: interval.map_or(remaining, |interval| left(interval.high).max(remaining)),
            is_naive,
            skill: if is_outgrown { 0.0 } else { sessions.skill.told() },
            ordering: if is_outgrown { 0.0 } else { sessions.ordering(self.account) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Session, Sessions};
    use crate::forecaster::families::Families;
    use crate::host::LearnerSettings;
    use crate::tenant::{Reading, Row, Usage};

    const FAMILY: u64 = 7;

    /// A tenant with what all of the host know.
    struct Followed {
        session: Session,
        sessions: Sessions,
        families: Families,
    }

    impl Followed {
        fn new() -> Self {
            let mut families = Families::default();
            families.learn(FAMILY, 0, libm::log1p(5e8));
            Self { session: Session::default(), sessions: Sessions::new(LearnerSettings::default()), families }
        }

        fn slice(&mut self, read_bytes: f64, open_sockets: f64) {
            let usage = Some(Usage { open_files: 9.0, open_sockets, ..Usage::default() });
            let reading = Reading { elapsed_seconds: 1.0, read_bytes, usage, ..Reading::default() };
            self.session.observe(&reading, FAMILY, &mut self.sessions, &mut self.families);
            let row = Row::from(vec![libm::log1p(read_bytes) as f32, open_sockets as f32]);
            self.session.note(&row, 0.0, FAMILY, &self.sessions, &self.families);
        }
    }

    #[test]
    fn a_session_that_came_to_nothing_leaves_the_next_as_if_it_had_not_been() {
        let begun = |has_prelude: bool, only_its_own| {
            let mut followed = Followed::new();
            followed.sessions.only_its_own = only_its_own;
            followed.slice(0.0, if has_prelude { 1.0 } else { 2.0 });
            (0..16).for_each(|_| followed.slice(0.0, 2.0));
            followed.slice(1e6, 2.0);
            let Session { first, moments, slices, .. } = followed.session;
            (first.map(|(total, _)| total), moments, slices)
        };
        let without = begun(false, true);
        assert_eq!(begun(true, true), without);
        assert_eq!((without.1.len(), without.1[0].1, without.2), (1, 1e6, 1), "its first slice is what is learnt from");
        assert_ne!(begun(true, false), without, "as in recordings of earlier versions");
    }

    #[test]
    fn what_an_accounts_sessions_are_worth_is_told_of_its_own() {
        let mut followed = Followed::new();
        let Followed { session, sessions, families } = &mut followed;
        for number in 0..300_u32 {
            // One account's sessions are as foreseen, and every fifth is another's, of which the opposite is foreseen.
            let size = 14.0 + f64::from(number * 7 % 11);
            let is_liar = number % 5 == 0;
            session.account = if is_liar { 2 } else { 1 };
            session.first = Some((if is_liar { 38.0 - size } else { size }, [0.0; super::NAIVE]));
            session.is_by_model = true;
            sessions.learn(session, FAMILY, libm::expm1(size), families);
        }
        sessions.settle();
        assert!(
            sessions.ordering(1) > 0.5 && sessions.ordering(2) == 0.0,
            "{} {}",
            sessions.ordering(1),
            sessions.ordering(2)
        );
        followed.session.account = 2;
        followed.slice(1e3, 1.0);
        let row = Row::from(vec![0.0]);
        let told =
            |followed: &Followed| followed.session.outlook(&row, &followed.sessions).expect("one has begun").ordering;
        assert_eq!(told(&followed), 0.0);
        followed.session.account = 1;
        assert!(told(&followed) > 0.5);
    }
}
