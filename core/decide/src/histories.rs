//! Histories of use: what a slice adds to them, what the store is given of them and gives back, and which are forgotten.

use crate::Decider;
use crate::disk::TenantTerms;
use crate::keys::Key;
use crate::usage::{Averages, Usage};
use minerva_model::{Finding, FindingKind, Nanos, Signals, Tenant, TenantHistory, TenantId, UsageAverage};

/// A history is stored at most once in this many slices, however fast it changes: what a crash may cost is bounded by
/// what fits in them, and a store of 1,200 active tenants is not rewritten every second.
const SLICES_BETWEEN_STORES: u64 = 10;
/// No disk moves more than this; a stored average beyond it is damaged.
const BYTES_PER_SECOND_MAX: f64 = 1e15;
/// All of a disk's time at an operator's weight of 1 %; a stored part beyond it is damaged.
const DISK_PART_MAX: f64 = 100.0;

impl Decider {
    /// Histories that changed by what would matter and were not stored lately. A slice in which nobody used a disk gives none.
    pub(crate) fn histories(&mut self) -> Vec<TenantHistory> {
        // In turns, so that histories that began together are not all stored in one slice for ever.
        let slice_number = self.slice_number;
        self.remember(|key, usage| {
            let its_turn = (slice_number + key as u64).is_multiple_of(SLICES_BETWEEN_STORES);
            (its_turn || !usage.was_stored()) && usage.needs_storing()
        })
    }

    /// Every history of which the store has not exactly what stands here; for the end.
    pub fn all_histories(&mut self, now: Nanos) -> Vec<TenantHistory> {
        self.advance(now);
        self.remember(|_, usage| usage.differs_from_stored())
    }

    fn remember(&mut self, due: impl Fn(Key, &Usage) -> bool) -> Vec<TenantHistory> {
        let mut rows = Vec::new();
        for (device, disk) in &mut self.disks {
            for (key, usage) in disk.usages_mut() {
                let (true, Some(group)) = (due(key, usage), usage.group) else { continue };
                usage.stored();
                rows.push(TenantHistory {
                    key: self.keys.name(key).to_owned(),
                    device: *device,
                    usage: self.fennel.rates(usage.averages, self.now),
                    disk_part: usage.held * self.fennel.held_scale(self.now),
                    group,
                    age: Nanos::ZERO,
                });
            }
        }
        rows
    }

    /// Adds what a slice shows. Rows of unknown tenants are passed over.
    pub(crate) fn learn(&mut self, signals: &Signals) {
        // Nearly all rows of a slice have the same length, and the gain of a length costs four transcendental functions.
        let mut gain = (Nanos::ZERO, Averages::default());
        let mut known: Option<(TenantId, TenantTerms)> = None;
        for row in &signals.io {
            if known.is_none_or(|(tenant, _)| tenant != row.tenant) {
                let index = self.tenants.binary_search_by_key(&row.tenant, |(id, _)| *id);
                known = index.ok().map(|index| self.tenants[index]);
            }
            let Some((tenant, terms)) = known else { continue };
            if gain.0 != row.elapsed {
                gain = (row.elapsed, self.fennel.gain(self.now, row.elapsed));
            }
            let disk = self.disks.entry(row.device).or_default();
            let used = self.fennel.used((row.bytes_per_second(), row.disk_part()), terms.weight());
            let active = row.active.then_some((self.slice_number, self.now));
            disk.learn(tenant, terms, active, used, gain.1);
        }
        self.charge_unseen(signals);
    }

    /// What groups did that no tenant accounts for counts in the history of whoever made them. It lasts while none of its groups is
    /// there, or else it would be clean again for each that comes after another.
    fn charge_unseen(&mut self, signals: &Signals) {
        for row in &signals.unseen {
            let key = self.keys.keep(&row.history_key);
            let weight = f64::from(row.weight_percent.max(1)) / 100.0;
            let seconds = row.elapsed.as_secs_f64().max(1e-9);
            let rates = (row.transferred.bytes() as f64 / seconds, row.disk_time.as_secs_f64() / seconds);
            let used = self.fennel.used(rates, weight);
            let gain = self.fennel.gain(self.now, row.elapsed);
            self.disks.entry(row.device).or_default().usage_mut(key).add(used, gain);
        }
    }

    pub(crate) fn restore(&mut self, tenant: TenantId, terms: TenantTerms, history: &TenantHistory) {
        let averages = self.fennel.averages(history.usage, history.age, self.now);
        let held = self.fennel.held(history.disk_part, history.age, self.now);
        let group = self.fennel.known_group(history.group);
        let disk = self.disks.entry(history.device).or_default();
        let usage = disk.usage_mut(terms.key);
        if usage.group.is_none() && usage.averages == Averages::default() {
            *usage = Usage::restored(averages, held, terms.weight(), group);
        }
        disk.claim(tenant, terms);
    }

    pub(crate) fn leave(&mut self, key: Key) {
        if self.keys.leave(key) {
            self.disks.values_mut().for_each(|disk| disk.drop_usage(key));
        }
    }

    pub(crate) fn rebase(&mut self) {
        let factors = self.fennel.rebase(self.now);
        for disk in self.disks.values_mut() {
            disk.usages_mut().for_each(|(_, usage)| usage.convert(factors));
        }
    }

    /// Groups without members whose use has decayed to less than a byte a second, so that names which come and go do not
    /// pile up.
    pub(crate) fn forget_orphans(&mut self) {
        for key in self.keys.orphans() {
            let faded = self.disks.values().all(|disk| {
                let rates = self.fennel.rates(disk.usage(key).averages, self.now);
                rates.recent_bytes_per_second.max(rates.long_term_bytes_per_second) < 1.0
            });
            if faded {
                self.keys.forget(key);
                self.disks.values_mut().for_each(|disk| disk.drop_usage(key));
            }
        }
    }

    /// Time does not go back here, whatever the driver's clock says, and a leap of days, as after a suspension, is no more
    /// than a new epoch.
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.fennel.needs_rebase(self.now) {
            self.rebase();
            self.forget_orphans();
        }
    }
}

/// Whether a stored row holds numbers that a disk can have caused.
pub(crate) fn is_sane(history: &TenantHistory) -> bool {
    let UsageAverage { recent_bytes_per_second, long_term_bytes_per_second } = history.usage;
    let rates = [recent_bytes_per_second, long_term_bytes_per_second];
    rates.iter().all(|rate| (0.0..=BYTES_PER_SECOND_MAX).contains(rate))
        && (0.0..=DISK_PART_MAX).contains(&history.disk_part)
}

/// Tells the operator of rows that were ignored.
pub(crate) fn dropped(tenant: &Tenant, rows: usize) -> Finding {
    Finding {
        kind: FindingKind::HistoryDropped,
        device: None,
        tenant: Some(tenant.id),
        message: format!(
            "{rows} remembered rows of {} belong to another tenant or hold no sane number. They are ignored, and its use \
             is learned afresh. If this comes again, the store is damaged: move it away and restart.",
            tenant.name
        ),
    }
}
