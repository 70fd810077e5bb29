//! What sessions of the same name, unit or image transferred.

use super::parts::first_to_go;
use crate::codec::{Damaged, Reader, Writer};
use crate::online::Account;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A hash of what tenants of a kind have in common; 0 for those of which nothing is known.
pub type Family = u64;

/// Families that are remembered.
const FAMILIES_MAX: usize = 4096;
/// Where they find no room, so many make it at once: who goes first is worked out seldom.
const ROOM: usize = FAMILIES_MAX / 16;
/// Weight of the newest session.
const WEIGHT: f64 = 0.2;
/// No session transfers more, as log1p of bytes.
const LOG_MAX: f32 = 64.0;
/// As a file: since the second with the last session, since the third with the account.
const VERSION: u16 = 3;
const VERSION_WITHOUT_ACCOUNT: u16 = 2;
const VERSION_WITHOUT_LAST: u16 = 1;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Past {
    mean_log: f64,
    #[serde(default)]
    last_log: f64,
    sessions: u32,
    last: u64,
    /// Whose all its sessions were; 0 where nobody says, or of several accounts.
    #[serde(default)]
    account: Account,
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
        Ok(Self { mean_log, last_log, sessions, last, account: 0 })
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
    /// See [`super::Forecaster::set_within_bounds`].
    #[serde(default)]
    pub(super) within_bounds: bool,
}

impl Families {
    /// A session of an account's has ended.
    pub(super) fn learn(&mut self, family: Family, account: Account, total_log: f64) {
        self.clock += 1;
        if !self.past.contains_key(&family) && self.past.len() >= FAMILIES_MAX {
            self.make_room();
        }
        let past = self.past.entry(family).or_default();
        // One that several accounts have is no single one's to lose.
        let is_its_own = past.sessions == 0 || past.account == account;
        past.account = if self.within_bounds && is_its_own { account } else { 0 };
        for past in [past, &mut self.host] {
            past.sessions = past.sessions.saturating_add(1);
            past.mean_log += (total_log - past.mean_log) * WEIGHT.max(1.0 / f64::from(past.sessions));
            (past.last, past.last_log) = (self.clock, total_log);
        }
    }

    fn make_room(&mut self) {
        if !self.within_bounds {
            // As in earlier versions the one that was quiet for longest.
            let oldest = self.past.iter().min_by_key(|(_, past)| past.last).map(|(family, _)| *family);
            oldest.and_then(|oldest| self.past.remove(&oldest));
            return;
        }
        let held = self.past.iter().map(|(family, past)| (past.account, past.last, *family)).collect();
        for (_, _, family) in first_to_go(held).into_iter().take(ROOM) {
            self.past.remove(&family);
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

    /// As bytes, versioned and checksummed, as earlier versions wrote them where accounts are not told apart; `None` before the first session
    /// ended.
    pub(super) fn encode(&self, kind: u16) -> Option<Vec<u8>> {
        let mut writer = Writer::default();
        self.host.write(&mut writer);
        let mut oldest_first: Vec<_> = self.past.iter().collect();
        oldest_first.sort_by_key(|(_, past)| past.last);
        writer.count(oldest_first.len());
        for (family, past) in oldest_first {
            writer.u64(*family);
            past.write(&mut writer);
            if self.within_bounds {
                writer.u64(past.account);
            }
        }
        let version = if self.within_bounds { VERSION } else { VERSION_WITHOUT_ACCOUNT };
        (self.host.sessions > 0).then(|| writer.seal(kind, version))
    }

    /// Takes over bytes; those that are damaged change nothing.
    pub(super) fn decode(&mut self, bytes: &[u8], kind: u16) -> Result<(), Damaged> {
        let open = |version| Reader::open(bytes, kind, version).map(|reader| (reader, version));
        let opened = open(VERSION).or_else(|_| open(VERSION_WITHOUT_ACCOUNT)).or_else(|_| open(VERSION_WITHOUT_LAST));
        let (mut reader, version) = opened?;
        let has_last = version != VERSION_WITHOUT_LAST;
        let host = Past::read(&mut reader, 0, has_last)?;
        let count = reader.count(FAMILIES_MAX)?;
        let mut families = Self { past: BTreeMap::new(), host, clock: count as u64, within_bounds: self.within_bounds };
        for last in 1..=count as u64 {
            let family = reader.u64()?;
            let mut past = Past::read(&mut reader, last, has_last)?;
            if version == VERSION {
                past.account = reader.u64()?;
            }
            families.past.insert(family, past);
        }
        reader.end()?;
        *self = families;
        Ok(())
    }

    /// The same for any session on the host.
    pub(super) fn host_log(&self) -> f64 {
        self.host.mean_log
    }
}
