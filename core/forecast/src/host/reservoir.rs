//! A bounded sample of all rows ever seen, with a lean to the recent ones (Vitter 1985; Aggarwal 2006). No account has more than a quarter of
//! it, so that none displaces what others taught, however many rows it offers.

use crate::codec::{Damaged, Reader, Writer};
use crate::online::Account;
use crate::tenant::{FEATURES, FEATURES_WITHOUT_DAY_AGO, Row};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sample reaches back over so many times its size.
const REACH: u64 = 20;
/// An account has no more than one of so many parts of it.
const PARTS: usize = 4;
/// Who has that replaces rows of its own, which are found at random among all: a quarter of them, so that hardly ever more draws are wanted.
const DRAWS_MAX: usize = 32;

/// Rows, or the first features of each, and their targets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reservoir {
    capacity: usize,
    /// Features of each row.
    #[serde(default = "without_day_ago")]
    width: usize,
    #[serde(with = "crate::state::packed")]
    rows: Vec<f32>,
    #[serde(with = "crate::state::packed")]
    targets: Vec<f32>,
    /// On whose account each row is: the account's last 32 bits, 0 where nobody says. Earlier versions kept none.
    #[serde(default, with = "crate::state::packed")]
    accounts: Vec<u32>,
    /// How many rows each account has.
    #[serde(default)]
    held: BTreeMap<u32, u32>,
    seen: u64,
    random: u64,
}

/// Of recordings that do not say.
const fn without_day_ago() -> usize {
    FEATURES_WITHOUT_DAY_AGO
}

impl Reservoir {
    /// For the first `width` features of at most `capacity` rows. The same seed and rows give the same sample.
    pub fn new(capacity: usize, width: usize, seed: u64) -> Self {
        let (capacity, width) = (capacity.max(1), width.clamp(1, FEATURES));
        let (rows, targets, accounts, held) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        Self { capacity, width, rows, targets, accounts, held, seen: 0, random: seed }
    }

    /// Offers a row of an account's, or of nobody's, which is 0; a row with a target or value that is not finite is not taken.
    pub fn offer(&mut self, row: &Row, target: f32, account: Account) {
        if !target.is_finite() || row.iter().any(|value| !value.is_finite()) {
            return;
        }
        self.seen = self.seen.saturating_add(1);
        let account = account as u32;
        self.accounts.resize(self.targets.len(), 0);
        let has_its_part = self.has_its_part(account);
        if !has_its_part && self.targets.len() < self.capacity {
            self.rows.extend_from_slice(&row[..self.width]);
            self.targets.push(target);
            self.accounts.push(account);
            self.count(account);
            return;
        }
        let place = (self.draw() % self.seen.min(REACH * self.capacity as u64)) as usize;
        let place = Some(place).filter(|place| *place < self.capacity);
        if let Some(place) = if has_its_part { place.and_then(|_| self.place_of(account)) } else { place } {
            self.replace(place, row, target, account);
        }
    }

    fn has_its_part(&self, account: u32) -> bool {
        let held = self.held.get(&account).map_or(0, |held| *held as usize);
        account != 0 && held >= (self.capacity / PARTS).max(1)
    }

    fn count(&mut self, account: u32) {
        if account != 0 {
            *self.held.entry(account).or_insert(0) += 1;
        }
    }

    /// One of an account's rows, at random.
    fn place_of(&mut self, account: u32) -> Option<usize> {
        let rows = self.accounts.len().max(1) as u64;
        (0..DRAWS_MAX).find_map(|_| {
            let place = (self.draw() % rows) as usize;
            (self.accounts.get(place) == Some(&account)).then_some(place)
        })
    }

    fn replace(&mut self, place: usize, row: &Row, target: f32, account: u32) {
        let width = self.width;
        self.rows[place * width..(place + 1) * width].copy_from_slice(&row[..width]);
        self.targets[place] = target;
        let before = std::mem::replace(&mut self.accounts[place], account);
        self.count(account);
        if let Some(held) = self.held.get_mut(&before) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&before);
            }
        }
    }

    /// Rows held.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Features of each row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The rows, row by row, and their targets.
    pub fn content(&self) -> (&[f32], &[f32]) {
        (&self.rows, &self.targets)
    }

    /// Some of the rows, evenly from all that are held, at most `most`; what outlives a restart.
    pub(crate) fn encode(&self, most: usize, writer: &mut Writer) {
        let step = self.len().div_ceil(most.max(1)).max(1);
        let kept = || (0..self.len()).step_by(step);
        writer.count(kept().count());
        for at in kept() {
            self.rows[at * self.width..(at + 1) * self.width].iter().for_each(|value| writer.f32(*value));
            writer.f32(self.targets[at]);
        }
    }

    /// Takes over rows of `width` features each in place of those that are held; what they lack is 0, and they are nobody's.
    pub(crate) fn decode(&mut self, most: usize, width: usize, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        for row in 1..=reader.count(most)? {
            for _ in 0..width {
                rows.push(reader.finite_f32()?);
            }
            rows.resize(row * self.width, 0.0);
            targets.push(reader.finite_f32()?);
        }
        (self.accounts, self.held) = (vec![0; targets.len()], BTreeMap::new());
        (self.seen, self.rows, self.targets) = (targets.len() as u64, rows, targets);
        Ok(())
    }

    /// SplitMix64 (Steele, Lea and Flood 2014).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::{PARTS, Reservoir};
    use crate::tenant::Row;

    #[test]
    fn an_account_has_no_more_than_a_quarter_and_displaces_nobody_however_much_it_offers() {
        let mut reservoir = Reservoir::new(400, 2, 7);
        let mut offer = |account: u64, count: u32| {
            (0..count).for_each(|at| reservoir.offer(&Row::from(vec![at as f32]), account as f32, account));
            let held = |account: u64| {
                assert_eq!(reservoir.accounts.len(), reservoir.targets.len());
                reservoir.targets.iter().filter(|target| **target == account as f32).count()
            };
            [0, 1, 2].map(held)
        };
        assert_eq!(offer(0, 60), [60, 0, 0], "what a file has is nobody's");
        assert_eq!(offer(1, 90), [60, 90, 0]);
        assert_eq!(offer(2, 50_000), [60, 90, 400 / PARTS]);
        assert_eq!(offer(3, 100), [60, 90, 100], "who comes later finds room");
        let [nobody, first, second] = offer(0, 10_000);
        assert!(nobody > 60 && first < 90 && second < 100, "once it is full all make room: {nobody} {first} {second}");
        let newest = reservoir.rows.chunks(2).zip(&reservoir.targets).filter(|(_, target)| **target == 2.0);
        assert!(newest.map(|(row, _)| row[0]).fold(0.0, f32::max) > 40_000.0, "what an account has is of late too");
    }
}
