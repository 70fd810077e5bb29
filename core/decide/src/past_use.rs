//! Past use and the place among the groups that it gives: Fennel (Malensek et al. 2016, section 2.1).
//!
//! Use is the moving average of bytes read and written, a second, over two horizons. An average that starts at zero is,
//! for the first minute, the service attained so far divided by the horizon, so newcomers stand below long scanners from
//! their first slice and rise only as they use. The place of a tenant is its average against that of the heaviest tenant
//! on the same disk. It needs no idea of what the disk could deliver, and doubling everybody's bytes changes nothing.
//!
//! What a tenant uses counts per operator's weight: one that may have eight times as much is as sparing with eight times
//! the bytes. Otherwise history would undo what the operator ordered.
//!
//! `group = floor(max(position(recent / heaviest recent), weight * position(long / heaviest long)))`, at most `groups - 1` (`group_scale`).
//!
//! Where disk time is counted, who holds more than an equal part of it is at least in the group that follows from that (`equal_part`).
//!
//! **Averages that nobody touches.** All averages of one horizon shrink by the same factor with time. They are kept in
//! the units of an epoch ("forward decay", Cormode et al. 2009): a new contribution is scaled up instead of all the old
//! ones down. An idle tenant's number then stays as it is, comparisons need no conversion, and only when the scale grows
//! large is everything converted once ([`Fennel::rebase`]). `libm` gives the same bits on every machine, which a replay
//! needs.

use crate::equal_part::{self, Everyone};
use crate::group_scale::position;
use crate::usage::{Averages, Usage, Used};
use minerva_model::{CountedUse, FennelSettings, Nanos, Reason, UsageAverage};
use serde::{Deserialize, Serialize};

/// The scale of an epoch, as a power of two, at which values are converted to a new one.
const REBASE_AT_EXPONENT: f64 = 32.0;
/// How far, in groups, a place must be beyond the border before it asks for the other group. Two equal scanners whose
/// averages cross each other would otherwise swap groups, and weights, for ever.
const DEAD_BAND: f64 = 0.25;

/// The policy with its settings and the epochs of its averages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fennel {
    settings: FennelSettings,
    /// Factor on the share by group: geometric, because weights are compared by their ratio.
    factors: Vec<f64>,
    recent: Horizon,
    long_term: Horizon,
}

/// What one history is measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Yardstick {
    heaviest: Averages,
    /// Of the disk's time per operator's weight, where it counts and somebody uses it.
    equal_part: Option<f64>,
    /// What makes of disk time in the units of the epoch a part of it.
    held_scale: f64,
}

/// What put a history at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Recent,
    LongTerm,
    DiskTime,
}

/// One time scale.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Horizon {
    half_life: Nanos,
    epoch: Nanos,
}

impl Horizon {
    fn new(half_life: Nanos, epoch: Nanos) -> Self {
        // A half-life of nothing is no average at all; the least one is as good and divides.
        Self { half_life: half_life.max(Nanos(1)), epoch }
    }

    fn half_lives(&self, time: Nanos) -> f64 {
        time.0 as f64 / self.half_life.0 as f64
    }

    fn exponent(&self, now: Nanos) -> f64 {
        self.half_lives(now.since(self.epoch))
    }

    /// What one byte a second, kept up for the `elapsed` before `now`, adds to an average.
    fn gain(&self, now: Nanos, elapsed: Nanos) -> f64 {
        -libm::expm1(-self.half_lives(elapsed) * std::f64::consts::LN_2) * libm::exp2(self.exponent(now))
    }

    /// Starts a new epoch now; the factor converts what was kept.
    fn rebase(&mut self, now: Nanos) -> f64 {
        let factor = libm::exp2(-self.exponent(now));
        self.epoch = self.epoch.max(now);
        factor
    }
}

impl Fennel {
    pub(crate) fn new(settings: &FennelSettings, epoch: Nanos) -> Self {
        let groups = settings.groups.max(1);
        let sparing = f64::from(settings.share_sparing.get());
        let ratio = f64::from(settings.share_heavy.get()) / sparing;
        let steps = f64::from(groups - 1).max(1.0);
        let factor = |group| sparing / 100.0 * libm::pow(ratio, f64::from(group) / steps);
        Self {
            settings: FennelSettings { groups, ..*settings },
            factors: (0..groups).map(factor).collect(),
            recent: Horizon::new(settings.recent_half_life, epoch),
            long_term: Horizon::new(settings.long_term_half_life, epoch),
        }
    }

    /// Whether the scale has grown so far that [`Fennel::rebase`] is due.
    pub(crate) fn needs_rebase(&self, now: Nanos) -> bool {
        self.recent.exponent(now).max(self.long_term.exponent(now)) > REBASE_AT_EXPONENT
    }

    /// Starts new epochs; `Usage::convert` every history by the result.
    pub(crate) fn rebase(&mut self, now: Nanos) -> Averages {
        Averages { recent: self.recent.rebase(now), long_term: self.long_term.rebase(now) }
    }

    /// What one byte a second over the `elapsed` before `now` adds to the averages.
    pub(crate) fn gain(&self, now: Nanos, elapsed: Nanos) -> Averages {
        Averages { recent: self.recent.gain(now, elapsed), long_term: self.long_term.gain(now, elapsed) }
    }

    /// Averages as bytes a second at `now`.
    pub(crate) fn rates(&self, averages: Averages, now: Nanos) -> UsageAverage {
        UsageAverage {
            recent_bytes_per_second: averages.recent * libm::exp2(-self.recent.exponent(now)),
            long_term_bytes_per_second: averages.long_term * libm::exp2(-self.long_term.exponent(now)),
        }
    }

    /// Bytes a second that were true `age` before `now`, as averages.
    pub(crate) fn averages(&self, rates: UsageAverage, age: Nanos, now: Nanos) -> Averages {
        let scale = |horizon: &Horizon| libm::exp2(horizon.exponent(now) - horizon.half_lives(age));
        Averages {
            recent: rates.recent_bytes_per_second * scale(&self.recent),
            long_term: rates.long_term_bytes_per_second * scale(&self.long_term),
        }
    }

    /// What a tenant of the operator's `weight` used in a slice: bytes a second, and its part of the disk's time.
    pub(crate) fn used(&self, (bytes_per_second, disk_part): (f64, f64), weight: f64) -> Used {
        let disk_part = match self.settings.counted {
            CountedUse::Bytes => 0.0,
            CountedUse::DiskTime => disk_part / weight,
        };
        Used { bytes_per_second: bytes_per_second / weight, disk_part, weight }
    }

    /// A part of the disk's time that was true `age` before `now`, in the units of the epoch.
    pub(crate) fn held(&self, disk_part: f64, age: Nanos, now: Nanos) -> f64 {
        self.averages(UsageAverage { recent_bytes_per_second: disk_part, ..UsageAverage::default() }, age, now).recent
    }

    /// What makes of disk time in the units of the epoch a part of it.
    pub(crate) fn held_scale(&self, now: Nanos) -> f64 {
        libm::exp2(-self.recent.exponent(now))
    }

    /// All who are remembered on a disk.
    pub(crate) fn everyone(&self, usages: &[Usage], now: Nanos) -> Everyone {
        Everyone::of(usages, self.held_scale(now))
    }

    /// What everyone is measured against: the heaviest, and on a quiet disk the rate below which nobody is heavy.
    pub(crate) fn yardstick(&self, everyone: Everyone, now: Nanos) -> Yardstick {
        let quiet = self.settings.quiet_bytes_per_second.max(f64::MIN_POSITIVE);
        let quiet = UsageAverage { recent_bytes_per_second: quiet, long_term_bytes_per_second: quiet };
        Yardstick {
            heaviest: everyone.heaviest.or_heavier(self.averages(quiet, Nanos::ZERO, now)),
            equal_part: everyone.equal_part().filter(|_| self.settings.counted == CountedUse::DiskTime),
            held_scale: self.held_scale(now),
        }
    }

    /// The factor on the share of `group`; without one, that of the most sparing.
    pub(crate) fn factor(&self, group: Option<u8>) -> f64 {
        let last = self.factors.len() - 1;
        self.factors[usize::from(group.unwrap_or(0)).min(last)]
    }

    /// `group`, brought into range: it may have been stored under other settings.
    pub(crate) fn known_group(&self, group: u8) -> u8 {
        group.min(self.settings.groups - 1)
    }

    /// The place among the groups, from 0, and what put it there.
    fn place(&self, usage: &Usage, yardstick: &Yardstick) -> (f64, By) {
        let (averages, Yardstick { heaviest, equal_part, held_scale }) = (usage.counted(), yardstick);
        let FennelSettings { group_scale, groups, long_term_weight, .. } = self.settings;
        let recent = position(group_scale, groups, averages.recent / heaviest.recent, 1.0);
        let long_term = position(group_scale, groups, averages.long_term / heaviest.long_term, long_term_weight);
        let place = recent.max(long_term);
        let held = usage.counted_held() * held_scale;
        match equal_part.map(|equal| equal_part::place(groups, held, equal)) {
            Some(held) if held > place => (held, By::DiskTime),
            _ => (place, if long_term > recent { By::LongTerm } else { By::Recent }),
        }
    }

    /// One slice of one history.
    ///
    /// A change must be asked for by `group_change_slices` slices in a row, each at least this far; it then goes as far as the
    /// mildest of them. Two changes take effect at once. The first group of a tenant, because there is nothing to hold on
    /// to. And a leap of three groups in ten: the average is smooth already, so within a slice only something real moves it
    /// so far, such as the heaviest tenant leaving or a burst that is a large part of all that was read for a minute.
    pub(crate) fn settle(&self, usage: &mut Usage, yardstick: &Yardstick) {
        if usage.group.is_none() && usage.averages == Averages::default() {
            return;
        }
        let place = self.place(usage, yardstick).0;
        let Some(group) = usage.group else {
            usage.group = Some(self.group_at(place));
            return;
        };
        let group = self.known_group(group);
        usage.group = Some(group);
        // The nearest group in whose widened borders the place is. This moves no further than it must, so of two tenants
        // the heavier never overtakes the other on the way down.
        let nearest = group.clamp(self.group_at(place - DEAD_BAND), self.group_at(place + DEAD_BAND));
        if nearest == group {
            usage.asking_slices = 0;
            return;
        }
        if nearest.abs_diff(group) >= self.leap() {
            usage.group = Some(nearest);
            usage.asking_slices = 0;
            return;
        }
        let agrees = usage.asking_slices > 0 && (usage.wanted > group) == (nearest > group);
        usage.wanted = match (agrees, nearest > group) {
            (false, _) => nearest,
            (true, true) => usage.wanted.min(nearest),
            (true, false) => usage.wanted.max(nearest),
        };
        usage.asking_slices = if agrees { usage.asking_slices.saturating_add(1) } else { 1 };
        if usage.asking_slices >= self.settings.group_change_slices {
            usage.group = Some(usage.wanted);
            usage.asking_slices = 0;
        }
    }

    fn group_at(&self, place: f64) -> u8 {
        self.known_group(place.clamp(0.0, 255.0) as u8)
    }

    fn leap(&self) -> u8 {
        (u16::from(self.settings.groups) * 3).div_ceil(10) as u8
    }

    /// Why a history has its group.
    pub(crate) fn reason(&self, usage: &Usage, everyone: Everyone, now: Nanos) -> Reason {
        let Some(group) = usage.group else { return Reason::NoHistory };
        if usage.asking_slices > 0 {
            let needed = self.settings.group_change_slices;
            return Reason::Holding { group, wanted: usage.wanted, slices: usage.asking_slices, needed };
        }
        let yardstick = self.yardstick(everyone, now);
        let groups = self.settings.groups;
        let long_term = match (self.place(usage, &yardstick).1, yardstick.equal_part) {
            (By::DiskTime, Some(equal_part)) => {
                let disk_part = usage.counted_held() * yardstick.held_scale;
                return Reason::Held { group, groups, disk_part, equal_part };
            }
            (by, _) => by == By::LongTerm,
        };
        let (everyone, yardstick) = (everyone.heaviest, yardstick.heaviest);
        let pick = |averages| {
            let rates = self.rates(averages, now);
            if long_term { rates.long_term_bytes_per_second } else { rates.recent_bytes_per_second }
        };
        let quiet =
            if long_term { everyone.long_term < yardstick.long_term } else { everyone.recent < yardstick.recent };
        Reason::Group {
            group,
            groups,
            usage_bytes_per_second: pick(usage.counted()),
            heaviest_bytes_per_second: pick(yardstick),
            quiet,
            long_term,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Averages, Fennel, Usage, Used, Yardstick};
    use minerva_model::{FennelSettings, Nanos};

    fn fennel() -> Fennel {
        Fennel::new(&FennelSettings::default(), Nanos::ZERO)
    }

    fn usage(recent: f64) -> Usage {
        let mut usage = Usage::default();
        usage.averages.recent = recent;
        usage
    }

    const ONE: Averages = Averages { recent: 1.0, long_term: 1.0 };
    const TOP: Yardstick = Yardstick { heaviest: ONE, equal_part: None, held_scale: 1.0 };

    fn used(bytes_per_second: f64) -> Used {
        Used { bytes_per_second, disk_part: 0.0, weight: 1.0 }
    }

    #[test]
    fn shares_fall_geometrically_from_sparing_to_heavy() {
        let fennel = fennel();
        let shares: Vec<i64> = (0..10).map(|group| (100.0 * fennel.factor(Some(group))).round() as i64).collect();
        assert_eq!(shares, [100, 72, 51, 37, 26, 19, 14, 10, 7, 5]);
        assert_eq!(fennel.factor(None), 1.0);
        assert_eq!(fennel.factor(Some(200)), fennel.factor(Some(9)));
    }

    #[test]
    fn an_average_over_a_half_life_is_half_and_late_slices_weigh_what_they_lasted() {
        let fennel = fennel();
        let minute = Nanos::from_secs(60);
        let (mut once, mut often) = (Usage::default(), Usage::default());
        once.add(used(8e6), fennel.gain(minute, minute));
        for second in [1, 2, 10, 11, 30, 59, 60] {
            let elapsed = match second {
                1 | 2 | 11 | 60 => 1,
                10 => 8,
                30 => 19,
                _ => 29,
            };
            often.add(used(8e6), fennel.gain(Nanos::from_secs(second), Nanos::from_secs(elapsed)));
        }
        let rate = |usage: &Usage, now| fennel.rates(usage.averages, now).recent_bytes_per_second;
        assert!((rate(&once, minute) - 4e6).abs() < 1.0);
        assert!((rate(&often, minute) - 4e6).abs() < 1.0);
        assert!((rate(&once, Nanos::from_secs(120)) - 2e6).abs() < 1.0);
    }

    #[test]
    fn a_new_epoch_changes_no_rate() {
        let mut fennel = fennel();
        let now = Nanos::from_secs(3_000);
        let mut usage = Usage::default();
        usage.add(used(5e6), fennel.gain(Nanos::from_secs(2_990), Nanos::from_secs(5)));
        let before = fennel.rates(usage.averages, now);
        assert!(fennel.needs_rebase(now));
        let factors = fennel.rebase(now);
        usage.convert(factors);
        assert!(!fennel.needs_rebase(now));
        let after = fennel.rates(usage.averages, now);
        assert!((before.recent_bytes_per_second / after.recent_bytes_per_second - 1.0).abs() < 1e-9);
        assert!((before.long_term_bytes_per_second / after.long_term_bytes_per_second - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_first_group_and_leaps_come_at_once_and_the_rest_after_three_slices() {
        let fennel = fennel();
        let mut one = usage(0.15);
        fennel.settle(&mut one, &TOP);
        assert_eq!(one.group, Some(1));
        let mut groups = Vec::new();
        for recent in [0.34, 0.39, 0.45, 0.31, 0.99] {
            one.averages.recent = recent;
            fennel.settle(&mut one, &TOP);
            groups.push(one.group.unwrap());
        }
        // The third slice would be a leap from group 1; after it 0.31 asks once for group 3; 0.99 is a leap.
        assert_eq!(groups, [1, 1, 4, 4, 9]);
        let mut two = usage(0.15);
        for recent in [0.15, 0.34, 0.39, 0.26] {
            two.averages.recent = recent;
            fennel.settle(&mut two, &TOP);
        }
        assert_eq!(two.group, Some(2), "the mildest of three slices");
    }

    #[test]
    fn a_place_at_the_border_asks_for_nothing() {
        let fennel = fennel();
        let mut one = usage(0.89);
        fennel.settle(&mut one, &TOP);
        for turn in 0..20 {
            one.averages.recent = if turn % 2 == 0 { 0.92 } else { 0.88 };
            fennel.settle(&mut one, &TOP);
            assert_eq!((one.group, one.asking_slices), (Some(8), 0));
        }
    }
}
