//! What sessions of the same name, unit or image transferred.

use crate::codec::{Damaged, Reader, Writer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A hash of what tenants of a kind have in common; 0 for those of which nothing is known.
pub type Family = u64;

/// Families that are remembered.
const FAMILIES_MAX: usize = 4096;
/// Weight of the newest session.
const WEIGHT: f64 = 0.2;
/// No session transfers more, as log1p of bytes.
const LOG_MAX: f32 = 64.0;
/// As a file.
const VERSION: u16 = 1;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Past {
    mean_log: f64,
    sessions: u32,
    last: u64,
}

impl Past {
    fn write(&self, writer: &mut Writer) {
        writer.f32(self.mean_log as f32);
        writer.u32(self.sessions);
    }

    fn read(reader: &mut Reader<'_>, last: u64) -> Result<Self, Damaged> {
        let mean_log = reader.finite_f32()?;
        if !(0.0..=LOG_MAX).contains(&mean_log) {
            return Err(Damaged::Value);
        }
        Ok(Self { mean_log: f64::from(mean_log), sessions: reader.u32()?, last })
    }
}

/// Moving means of log1p of bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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

    /// As bytes, versioned and checksummed; `None` before the first session ended.
    pub(super) fn encode(&self, kind: u16) -> Option<Vec<u8>> {
        let mut writer = Writer::default();
        self.host.write(&mut writer);
        let mut oldest_first: Vec<_> = self.past.iter().collect();
        oldest_first.sort_by_key(|(_, past)| past.last);
        writer.count(oldest_first.len());
        for (family, past) in oldest_first {
            writer.u64(*family);
            past.write(&mut writer);
        }
        (self.host.sessions > 0).then(|| writer.seal(kind, VERSION))
    }

    /// From bytes.
    pub(super) fn decode(bytes: &[u8], kind: u16) -> Result<Self, Damaged> {
        let mut reader = Reader::open(bytes, kind, VERSION)?;
        let host = Past::read(&mut reader, 0)?;
        let count = reader.count(FAMILIES_MAX)?;
        let mut families = Self { past: BTreeMap::new(), host, clock: count as u64 };
        for last in 1..=count as u64 {
            let family = reader.u64()?;
            families.past.insert(family, Past::read(&mut reader, last)?);
        }
        reader.end()?;
        Ok(families)
    }

    /// The same for any session on the host.
    pub(super) fn host_log(&self) -> f64 {
        self.host.mean_log
    }
}
