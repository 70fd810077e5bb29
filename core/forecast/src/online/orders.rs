//! What ordering by a forecast is worth, of each account by itself: nobody earns trust for others, or takes theirs.
//!
//! A value is compared with those before it of its own account and of those that had one lately, as in [`OrderMeter`], and what comes of it
//! counts for its account alone. All others together make up a quarter of that at most, so that liars and helpers bear on it little, however many
//! they are. Only where an account's own values are alike, so that there is next to nothing to order among them, is it the order among accounts
//! that counts. An account of which too little was seen is taken for what accounts are on the whole, of which none makes up more than a
//! quarter either.

use super::order::{COMPARED, OrderMeter, SEEN_MAX, SEEN_MIN, STANDARD_ERRORS};
use crate::codec::{Damaged, Reader, Writer};
use crate::number::bounded;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A hash of what tenants have in common that answer for each other.
pub type Account = u64;

/// Of the values that one is compared with, those of its own account that have room at least, and the most of another.
const OWN_MIN: usize = COMPARED / 2;
const OF_ANOTHER: usize = 4;
/// What a single one may weigh beside all others, and all others beside the own: a quarter of the whole.
const BESIDE_THE_REST: f64 = 1.0 / 3.0;
/// Accounts of which none makes up more of the whole than its part.
const PARTS: usize = 4;
/// Values that differ by less than a factor of two are alike: what is there to order.
const ALIKE: f64 = std::f64::consts::LN_2;
/// A value counts against one of another account as if it differed by a factor of twenty at most: who lies grossly counts no more than others.
const APART_MAX: f64 = 3.0;
/// Accounts that are remembered, of some 400 bytes each.
const ACCOUNTS_MAX: usize = 256;

/// See the file's documentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    accounts: BTreeMap<Account, OfAccount>,
    /// Those that had a value last, the oldest first.
    latest: VecDeque<Account>,
    clock: u64,
    /// What is earned by those of whom too little was seen, as of this clock.
    of_all: f64,
    settled: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct OfAccount {
    meter: OrderMeter,
    last: u64,
}

impl Orders {
    /// Takes a forecast of an account's and what came. What is no number is passed over.
    pub fn observe(&mut self, account: Account, forecast: f64, actual: f64) {
        let (Some(forecast), Some(actual)) = (bounded(forecast), bounded(actual)) else { return };
        let (right, all) = self.compared(account, forecast, actual);
        self.clock += 1;
        if !self.accounts.contains_key(&account) && self.accounts.len() >= ACCOUNTS_MAX {
            // The one that was quiet for longest makes room.
            let oldest = self.accounts.iter().min_by_key(|(_, of)| of.last).map(|(account, _)| *account);
            oldest.and_then(|oldest| self.accounts.remove(&oldest));
        }
        let of = self.accounts.entry(account).or_default();
        of.last = self.clock;
        of.meter.keep(forecast, actual);
        // Where all are alike there is nothing to order.
        if all > 1e-9 {
            of.meter.take(right / all);
        }
        self.latest.retain(|known| *known != account);
        self.latest.push_back(account);
        if self.latest.len() > COMPARED + 1 {
            self.latest.pop_front();
        }
    }

    /// How much of the order the forecast has right, and how much there is.
    fn compared(&self, account: Account, forecast: f64, actual: f64) -> (f64, f64) {
        let own = self.accounts.get(&account);
        let mut room = COMPARED - own.map_or(0, |own| own.meter.kept()).min(OWN_MIN);
        let mut others: Vec<(f64, f64)> = Vec::with_capacity(room);
        for other in self.latest.iter().rev().filter(|other| **other != account) {
            let Some(other) = self.accounts.get(other) else { continue };
            let count = other.meter.kept().min(OF_ANOTHER).min(room);
            room -= count;
            others.push(at_most(APART_MAX * count as f64, other.meter.against(forecast, actual, count)));
        }
        let count = room + own.map_or(0, |own| own.meter.kept()).min(OWN_MIN);
        let (right, all) = own.map_or((0.0, 0.0), |own| own.meter.against(forecast, actual, count));
        let sum = all + others.iter().map(|(_, of_other)| of_other).sum::<f64>();
        let (mut others_right, mut of_others) = (0.0, 0.0);
        for (of_other_right, of_other) in others {
            let (of_other_right, of_other) = at_most(BESIDE_THE_REST * (sum - of_other), (of_other_right, of_other));
            others_right += of_other_right;
            of_others += of_other;
        }
        // They stand in for what there is not to order among its own, as when there are none yet.
        let missing = (ALIKE * count.max(OWN_MIN) as f64 - all).max(0.0);
        let (others_right, of_others) = at_most(BESIDE_THE_REST * all + missing, (others_right, of_others));
        (right + others_right, all + of_others)
    }

    /// Works out what is earned by those of whom too little was seen: what accounts measured on the whole, less two standard errors of that,
    /// in which an account counts as one however many values it had.
    pub fn settle(&mut self) {
        if std::mem::replace(&mut self.settled, self.clock) == self.clock {
            return;
        }
        let values = |of: &OfAccount| f64::from(of.meter.seen()).min(SEEN_MAX);
        let most = no_more_than_a_part(self.accounts.values().map(values).collect());
        let bounded = self.accounts.values().map(|of| (values(of).min(most), &of.meter));
        let bounded: Vec<(f64, &OrderMeter)> = bounded.filter(|(weight, _)| *weight > 0.0).collect();
        let all: f64 = bounded.iter().map(|(weight, _)| weight).sum();
        if all < f64::from(SEEN_MIN) {
            self.of_all = 0.0;
            return;
        }
        let parts = || bounded.iter().map(|(weight, meter)| (weight / all, *meter));
        // An account that has it all wrong is worth no less than one that knows nothing: it is by its own doing.
        let worth = |meter: &OrderMeter| if meter.seen() < SEEN_MIN { meter.mean() } else { meter.mean().max(0.0) };
        let mean: f64 = parts().map(|(part, meter)| part * worth(meter)).sum();
        let between: f64 = parts().map(|(part, meter)| part * (worth(meter) - mean) * (worth(meter) - mean)).sum();
        let error: f64 = parts().map(|(part, meter)| part * part * (between + meter.error_squared())).sum();
        self.of_all = (mean - STANDARD_ERRORS * error.sqrt()).clamp(0.0, 1.0);
    }

    /// What is sure of an account's forecasts, 0 to 1.
    pub fn earned(&self, account: Account) -> f64 {
        let own = self.accounts.get(&account).filter(|own| own.meter.seen() >= SEEN_MIN);
        own.map_or(self.of_all, |own| own.meter.earned())
    }

    /// As bytes within a model.
    pub(crate) fn write(&self, writer: &mut Writer) {
        let mut oldest_first: Vec<_> = self.accounts.iter().collect();
        oldest_first.sort_by_key(|(_, of)| of.last);
        writer.count(oldest_first.len());
        for (account, of) in oldest_first {
            writer.u64(*account);
            of.meter.write(writer);
        }
    }

    /// What [`Self::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let count = reader.count(ACCOUNTS_MAX)?;
        let mut orders = Self { clock: count as u64, ..Self::default() };
        for last in 1..=count as u64 {
            let account = reader.u64()?;
            orders.accounts.insert(account, OfAccount { meter: OrderMeter::read(reader)?, last });
            orders.latest.push_back(account);
        }
        orders.latest.drain(..count.saturating_sub(COMPARED + 1));
        orders.settle();
        Ok(orders)
    }
}

/// What there is to order, and how much of it is right, scaled down where it is more than that.
fn at_most(most: f64, (right, all): (f64, f64)) -> (f64, f64) {
    if all > most { (right * most / all, most) } else { (right, all) }
}

/// The most that each may count for so that none is more than one of [`PARTS`] parts of the whole; nothing where there are fewer than that.
fn no_more_than_a_part(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(|one, other| other.total_cmp(one));
    let mut rest: f64 = values.iter().sum();
    for (cut, next) in values.iter().take(PARTS).enumerate() {
        let most = rest / (PARTS - cut) as f64;
        if *next <= most {
            return most;
        }
        rest -= next;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::{ACCOUNTS_MAX, Account, Orders, no_more_than_a_part};
    use crate::codec::{Reader, Writer};

    /// Numbers from 0 to 1 that have nothing to do with each other.
    fn noise(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// What a session is foreseen as and what it transfers, as logarithms.
    type Drawn = fn(&mut u64) -> (f64, f64);

    fn ordered(seed: &mut u64) -> (f64, f64) {
        let size = 14.0 + 10.0 * noise(seed);
        (size, size)
    }

    fn random(seed: &mut u64) -> (f64, f64) {
        (14.0 + 10.0 * noise(seed), 14.0 + 10.0 * noise(seed))
    }

    /// As good as nothing of what looks largest, and more than anyone's of what looks smallest.
    fn lie(seed: &mut u64) -> (f64, f64) {
        if noise(seed) < 0.5 { (40.0, 0.0) } else { (0.0, 40.0) }
    }

    /// Sessions of accounts 1, 2, ..., so many of each, in random order.
    fn drawn(accounts: &[(u32, Drawn)]) -> Orders {
        let (mut orders, mut seed) = (Orders::default(), 5);
        let mut left: Vec<u32> = accounts.iter().map(|(count, _)| *count).collect();
        while left.iter().any(|left| *left > 0) {
            let at = (noise(&mut seed) * left.iter().sum::<u32>() as f64) as u32;
            let mut sum = 0;
            let account = left
                .iter()
                .position(|left| {
                    sum += left;
                    at < sum
                })
                .unwrap_or(0);
            left[account] -= 1;
            let (forecast, actual) = accounts[account].1(&mut seed);
            orders.observe(account as Account + 1, forecast, actual);
        }
        orders.settle();
        orders
    }

    #[test]
    fn an_account_neither_earns_trust_for_others_nor_takes_theirs() {
        let raised = drawn(&[(300, ordered), (60, random)]);
        assert!(raised.earned(1) > 0.8 && raised.earned(2) < 0.1, "{} {}", raised.earned(1), raised.earned(2));
        assert!(
            raised.earned(9) < 0.1,
            "one alone says nothing of those of whom nothing is known: {}",
            raised.earned(9)
        );
        for by_whom in [random, lie] {
            let ruined = drawn(&[(300, by_whom), (60, ordered)]);
            assert!(ruined.earned(1) < 0.1 && ruined.earned(2) > 0.3, "{} {}", ruined.earned(1), ruined.earned(2));
            let among_others = drawn(&[(300, by_whom), (60, ordered), (60, ordered), (60, ordered), (60, ordered)]);
            let earned = [2, 3, 4, 5].map(|account| among_others.earned(account));
            assert!(earned.iter().all(|earned| *earned > 0.4), "{earned:?}");
            assert!(among_others.earned(9) > 0.15, "{}", among_others.earned(9));
        }
    }

    #[test]
    fn two_that_lie_together_take_nothing_much_of_an_account_and_two_that_help_give_it_next_to_nothing() {
        for others in 0..3 {
            let among = |first: (u32, Drawn), by_whom: Drawn| {
                let all = [vec![first, (300, by_whom), (300, by_whom)], vec![(60, ordered as Drawn); others]].concat();
                drawn(&all).earned(1)
            };
            let (ruined, raised) = (among((120, ordered), lie), among((120, random), ordered));
            assert!(ruined > 0.3 && raised < 0.3, "{others} others: {ruined} {raised}");
        }
        // Nor do two make up half of what accounts are on the whole.
        let helped = drawn(&[(200, ordered), (200, ordered), (60, random), (60, random), (60, random), (60, random)]);
        assert!(helped.earned(9) < 0.2, "{}", helped.earned(9));
        let bounded = [vec![200.0, 200.0, 60.0, 60.0], vec![9.0; 3], vec![1.0; 4], vec![100.0, 4.0, 4.0, 4.0], vec![]];
        assert_eq!(bounded.map(no_more_than_a_part), [60.0, 0.0, 1.0, 4.0, 0.0]);
    }

    #[test]
    fn accounts_whose_values_are_alike_earn_by_the_order_among_them() {
        let about = |size: f64, seed: &mut u64| (size, size + 0.2 * noise(seed));
        let (mut orders, mut seed) = (Orders::default(), 7);
        for number in 0..300 {
            let account = number % 5;
            let (forecast, actual) = about(14.0 + 2.0 * account as f64, &mut seed);
            orders.observe(account, forecast, actual);
        }
        assert!((0..5).all(|account| orders.earned(account) > 0.7), "{}", orders.earned(0));
    }

    #[test]
    fn accounts_that_have_a_single_value_each_are_judged_together() {
        let judged = |drawn: Drawn| {
            let (mut orders, mut seed) = (Orders::default(), 3);
            for account in 0..100 {
                let (forecast, actual) = drawn(&mut seed);
                orders.observe(account, forecast, actual);
            }
            orders.settle();
            orders.earned(1_000)
        };
        assert!(judged(ordered) > 0.9 && judged(random) < 0.1, "{} {}", judged(ordered), judged(random));
    }

    #[test]
    fn they_are_bounded_and_outlive_a_restart() {
        let (mut orders, mut seed) = (Orders::default(), 3);
        for number in 0..4 * ACCOUNTS_MAX as u64 {
            let (forecast, actual) = ordered(&mut seed);
            orders.observe(number, forecast, actual);
            orders.observe(number / 100, f64::NAN, actual);
        }
        assert_eq!(orders.accounts.len(), ACCOUNTS_MAX);
        let bytes = |orders: &Orders| {
            let mut writer = Writer::default();
            orders.write(&mut writer);
            writer.seal(1, 1)
        };
        let kept = bytes(&orders);
        let mut next = Orders::read(&mut Reader::open(&kept, 1, 1).expect("whole")).expect("whole");
        assert_eq!((bytes(&next) == kept, next.latest == orders.latest), (true, true));
        orders.settle();
        assert!((next.earned(1 << 40) - orders.earned(1 << 40)).abs() < 1e-3);
        next.observe(1 << 41, 1.0, 1.0);
        assert!(!next.accounts.contains_key(&(3 * ACCOUNTS_MAX as u64)), "the oldest of them makes room");
    }
}
