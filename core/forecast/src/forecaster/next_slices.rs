//! The next slice of all tenants at once: what it is told from lies side by side, so that no tenant's state, of some 17 kB each, has to
//! be fetched to ask the trees and to tell what they say.

use super::basis::{Basis, NextSlice};
use super::tenants::Tenant;
use super::{Forecaster, Key, SILENT_SLICES};
use crate::boosting::{BLOCK, Block};
use crate::host::{Answer, Learner};

/// See the file's documentation. Made anew from the tenants in each slice, while they are at hand.
#[derive(Clone, Debug, Default)]
pub(super) struct NextSlices {
    /// In order; and of each tenant how its own forecasts stand, and what the trees say where they were asked.
    keys: Vec<Key>,
    told_from: Vec<Basis>,
    answers: Vec<Option<Answer>>,
    /// Rows about which the trees are asked, and whose they are, as places among the keys.
    blocks: Vec<Block>,
    asked: Vec<usize>,
    /// All of it is of the tenants as they are. If not, only answers to rows that are still there hold.
    is_current: bool,
    /// Of the slice before, while the next is taken in: its answers are scored.
    keys_before: Vec<Key>,
    cursor: usize,
}

impl NextSlices {
    /// Forgets all tenants but what the trees said of them.
    pub(super) fn begin(&mut self) {
        std::mem::swap(&mut self.keys, &mut self.keys_before);
        self.keys.clear();
        self.told_from.clear();
        self.asked.clear();
        self.blocks.iter_mut().for_each(Block::clear);
        (self.cursor, self.is_current) = (0, false);
    }

    /// What the trees said of a tenant's row, once.
    pub(super) fn take(&mut self, key: Key) -> Option<Answer> {
        let at = self.keys_before.binary_search(&key).ok()?;
        self.answers.get_mut(at)?.take()
    }

    /// The same for tenants in their order.
    pub(super) fn take_next(&mut self, key: Key) -> Option<Answer> {
        while self.keys_before.get(self.cursor).is_some_and(|before| *before < key) {
            self.cursor += 1;
        }
        self.keys_before.get(self.cursor).filter(|before| **before == key)?;
        self.answers.get_mut(self.cursor)?.take()
    }

    /// Takes the next tenant, in order.
    pub(super) fn push(&mut self, key: Key, tenant: &Tenant) {
        if let Some(row) = tenant.row().filter(|_| tenant.idle_slices() < SILENT_SLICES) {
            let block = self.asked.len() / BLOCK;
            if block == self.blocks.len() {
                self.blocks.push(Block::default());
            }
            self.blocks[block].push(&row[..]);
            self.asked.push(self.keys.len());
        }
        self.keys.push(key);
        self.told_from.push(tenant.basis());
    }

    /// That was all of them.
    pub(super) fn end(&mut self) {
        self.answers.clear();
        self.answers.resize(self.keys.len(), None);
        self.is_current = true;
    }

    /// Asks the trees.
    fn ask(&mut self, learner: &Learner) {
        self.answers.fill(None);
        for (block, asked) in self.blocks.iter().zip(self.asked.chunks(BLOCK)) {
            let Some(answers) = learner.predict_block(block, &block.bases()) else { return };
            for (at, answer) in asked.iter().zip(answers) {
                self.answers[*at] = Some(answer);
            }
        }
    }

    /// What is told of a tenant whose row the trees were asked about.
    fn told(&self, key: Key, learner: &Learner) -> Option<NextSlice> {
        let at = self.keys.binary_search(&key).ok().filter(|_| self.is_current)?;
        let answer = self.answers[at]?;
        Some(self.told_from[at].next_slice(answer.told(learner.mean_percent())))
    }
}

impl Forecaster {
    /// Asks the trees anew what they say of each tenant's next slice, as [`Self::observe`] does at its end. Allocates nothing.
    pub fn foresee_next_slices(&mut self) {
        if !self.next_slices.is_current {
            self.next_slices.begin();
            self.tenants.iter().for_each(|(key, tenant)| self.next_slices.push(*key, tenant));
            self.next_slices.end();
        }
        self.next_slices.ask(&self.next_slice);
    }

    /// What the trees said is of other trees than there are now.
    pub(super) fn forget_next_slices(&mut self) {
        self.next_slices.answers.fill(None);
    }

    /// Tenants came or went since the slice.
    pub(super) fn tenants_change(&mut self) {
        self.next_slices.is_current = false;
    }

    /// The next slice alone, as [`Self::outlook`] has it.
    pub fn next_slice(&self, key: Key) -> Option<NextSlice> {
        let told = self.next_slices.told(key, &self.next_slice);
        told.or_else(|| self.tenants.get(&key).map(|tenant| tenant.next_slice(&self.next_slice)))
    }

    /// The same of a tenant that is at hand.
    pub(super) fn next_slice_of(&self, key: Key, tenant: &Tenant) -> NextSlice {
        let told = self.next_slices.told(key, &self.next_slice);
        told.unwrap_or_else(|| tenant.next_slice(&self.next_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::NextSlices;
    use crate::tenant::Reading;
    use crate::{Family, Forecaster, ForecasterSettings, Key, SliceTime};
    use minerva_model::{DeviceId, TenantId};

    const TENANTS: u64 = 40;

    fn key(tenant: u64) -> Key {
        (TenantId(tenant), DeviceId { major: 8, minor: 0 })
    }

    /// Tenants that read now and then, of whom some come later and some are named twice.
    fn slice(at: u64, seed: &mut u64) -> Vec<(Key, Family, Reading)> {
        let mut named = Vec::new();
        for tenant in (0..TENANTS).filter(|tenant| tenant % 4 > 0 || at > 100) {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let read_bytes = 1e6 * (*seed >> 40) as f64 * f64::from(u8::from((at + tenant) % 7 < 3));
            let reading = Reading { elapsed_seconds: 1.0, read_bytes, ..Reading::default() };
            let times = usize::from(*seed >> 62 > 0) + usize::from(tenant == 9);
            named.extend(std::iter::repeat_n((key(tenant), tenant % 5, reading), times));
        }
        named
    }

    /// A forecaster that was kept and taken up again has nothing but its tenants' states to tell from.
    #[test]
    fn what_lies_side_by_side_tells_the_same_to_the_bit_as_the_states_of_tenants() {
        let (mut forecaster, mut seed) = (Forecaster::new(ForecasterSettings::default()), 5);
        let (mut had_trees, mut went_on) = (false, forecaster.clone());
        for at in 0..330_u64 {
            let slice = slice(at, &mut seed);
            if at % 50 == 20 {
                forecaster.tenant_gone(TenantId(at % TENANTS));
                went_on.tenant_gone(TenantId(at % TENANTS));
                assert_eq!(forecaster.next_slice(key(at % TENANTS)), None, "slice {at}");
            }
            forecaster.observe(SliceTime::default(), &slice);
            went_on.observe(SliceTime::default(), &slice);
            if at % 10 > 0 {
                continue;
            }
            // As what is read back from a snapshot, of which the arrays are no part.
            let mut kept = forecaster.clone();
            kept.next_slices = NextSlices::default();
            had_trees |= kept.next_slice.has_trees();
            for tenant in 0..=TENANTS {
                let told = forecaster.next_slice(key(tenant));
                assert_eq!(told, kept.next_slice(key(tenant)), "slice {at}, tenant {tenant}");
                assert_eq!(told, went_on.next_slice(key(tenant)), "slice {at}, tenant {tenant}");
                let outlook = forecaster.outlook(key(tenant));
                assert_eq!(outlook, kept.outlook(key(tenant)), "slice {at}, tenant {tenant}");
            }
            // One goes on from what was kept: what follows is the same.
            went_on = kept;
            if at % 100 == 50 {
                went_on.foresee_next_slices();
            }
        }
        assert!(had_trees, "only ridge was asked");
    }
}
