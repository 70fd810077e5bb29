//! What sessions of the same name, unit or image transferred.

use std::collections::BTreeMap;

/// A hash of what tenants of a kind have in common; 0 for those of which nothing is known.
pub type Family = u64;

/// Families that are remembered.
const FAMILIES_MAX: usize = 4096;
/// Weight of the newest session.
const WEIGHT: f64 = 0.2;

#[derive(Clone, Copy, Debug, Default)]
struct Past {
    mean_log: f64,
    sessions: u32,
    last: u64,
}

/// Moving means of log1p of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Families {
    past: BTreeMap<Family, Past>,
    host: Past,
    clock: u64,
}

impl Families {
    /// A session has ended.
    pub(super) fn learn(&mut self, family: Family, total_log: f64) {
        self.clock += 1;
        if !self.past.contains_key(&family) && self.past.len() >= FAMILIES_MAX {
            // The one that was quiet for longest makes room.
            let oldest = self.past.iter().min_by_key(|(_, past)| past.last).map(|(family, _)| *family);
            oldest.and_then(|oldest| self.past.remove(&oldest));
        }
        let past = self.past.entry(family).or_default();
        for past in [past, &mut self.host] {
            past.sessions = past.sessions.saturating_add(1);
            past.mean_log += (total_log - past.mean_log) * WEIGHT.max(1.0 / f64::from(past.sessions));
            past.last = self.clock;
        }
    }

    /// log1p of what a session of the family transfers; of any on the host if none of it was seen; 0 if none at all.
    pub(super) fn expected_log(&self, family: Family) -> f64 {
        self.past.get(&family).filter(|_| family != 0).unwrap_or(&self.host).mean_log
    }

    /// The same for any session on the host.
    pub(super) fn host_log(&self) -> f64 {
        self.host.mean_log
    }
}
