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
/// As a file: since the second with the last session.
const VERSION: u16 = 2;
const VERSION_WITHOUT_LAST: u16 = 1;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Past {
    mean_log: f64,
    #[serde(default)]
    last_log: f64,
    sessions: u32,
    last: u64,
}

impl Past {
    fn write(&self, writer: &mut Writer) {
        writer.f32(self.mean_log as f32);
        writer.u32(self.sessions);
        writer.f32(self.last_log as f32);
    }

    fn read(reader: &mut Reader<'_>, last: u64, has_last: bool) -> Result<Self, Damaged> {
        let mean_log = Self::read_log(reader)?;
        let sessions = reader.u32()?;
        let last_log = if has_last { Self::read_log(reader)? } else { mean_log };
        Ok(Self { mean_log, last_log, sessions, last })
    }

    fn read_log(reader: &mut Reader<'_>) -> Result<f64, Damaged> {
        let log = reader.finite_f32()?;
        if (0.0..=LOG_MAX).contains(&log) { Ok(f64::from(log)) } else { Err(Damaged::Value) }
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
            (past.last, past.last_log) = (self.clock, total_log);
        }
    }

    /// log1p of what a session of the family transfers; of any on the host if none of it was seen; 0 if none at all.
    pub(super) fn expected_log(&self, family: Family) -> f64 {
        self.past.get(&family).filter(|_| family != 0).unwrap_or(&self.host).mean_log
    }

    /// log1p of what the last session of the family transferred; `None` of one of which none was seen.
    pub(super) fn last_log(&self, family: Family) -> Option<f64> {
        self.past.get(&family).filter(|_| family != 0).map(|past| past.last_log)
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
        let opened = Reader::open(bytes, kind, VERSION);
        let has_last = opened.is_ok();
        let mut reader = opened.or_else(|_| Reader::open(bytes, kind, VERSION_WITHOUT_LAST))?;
        let host = Past::read(&mut reader, 0, has_last)?;
        let count = reader.count(FAMILIES_MAX)?;
        let mut families = Self { past: BTreeMap::new(), host, clock: count as u64 };
        for last in 1..=count as u64 {
            let family = reader.u64()?;
            families.past.insert(family, Past::read(&mut reader, last, has_last)?);
        }
        reader.end()?;
        Ok(families)
    }

    /// The same for any session on the host.
    pub(super) fn host_log(&self) -> f64 {
        self.host.mean_log
    }
}
