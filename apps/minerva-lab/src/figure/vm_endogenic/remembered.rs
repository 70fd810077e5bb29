//! What the daemon of a run remembered of the guests, which tells whether they were its tenants.

use anyhow::Context as _;
use minerva_lab::scene::{Scene, TenantPlan};
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the daemon remembers of the tenants of a run, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Remembered {
    /// Bytes a second in the long term, of those that it has seen moving some.
    pub(super) rates: BTreeMap<String, f64>,
    /// Those that asked for something.
    pub(super) asked: BTreeSet<String>,
    /// Those that were granted what they asked for.
    pub(super) granted: BTreeSet<String>,
    /// Seconds from when an operation was asked for to when it was told done, by the daemon's clock.
    pub(super) operations_s: BTreeMap<String, f64>,
}

impl Remembered {
    /// Of the store that the daemon left.
    pub(super) fn read(store: &Path, scene: &Scene) -> anyhow::Result<Self> {
        let read = || -> rusqlite::Result<Self> {
            let store = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let mut remembered = Self::default();
            for tenant in &scene.tenants {
                // The key of a history is the cgroup's path, and what tells it from later ones of that path.
                let rate = "SELECT total(long_term_bytes_per_second) FROM history WHERE key LIKE '%/' || ?1 || '#%'";
                let rate: f64 = store.query_row(rate, [&tenant.name], |row| row.get(0))?;
                // What changes nothing is asked before the scene begins.
                let asked = "SELECT count(*), count(*) FILTER (WHERE kind != 'refused'), \
                     max(at_unix_ms) FILTER (WHERE kind != 'refused' AND text LIKE 'finish %') - min(at_unix_ms) \
                     FROM participation WHERE tenant = ?1 AND text NOT LIKE 'level normal %'";
                let asked =
                    store.query_row(asked, [&tenant.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
                let (asked, granted, took_ms): (u32, u32, Option<u32>) = asked;
                let name = |is_so: bool| is_so.then(|| tenant.name.clone());
                remembered.rates.extend(name(rate > 0.0).map(|name| (name, rate)));
                remembered.asked.extend(name(asked > 0));
                remembered.granted.extend(name(granted > 0));
                remembered.operations_s.extend(name(true).zip(took_ms.map(|took_ms| f64::from(took_ms) / 1e3)));
            }
            Ok(remembered)
        };
        read().with_context(|| format!("failed to read what the daemon remembers in {}", store.display()))
    }

    /// It knew every guest by what that moved, and granted what was asked from within guests to all that take part, and to nobody else.
    pub(super) fn is_whole(&self, scene: &Scene) -> bool {
        let takes_part = scene.tenants.iter().filter(|tenant| tenant.part.is_some()).map(|tenant| &tenant.name);
        let is_in_order = |pair: &[TenantPlan]| {
            let [one, other] = [&pair[0], &pair[1]].map(|tenant| self.rates.get(&tenant.name));
            one.partial_cmp(&other) == Some(pair[0].bytes.cmp(&pair[1].bytes))
        };
        self.rates.len() == scene.tenants.len()
            && scene.tenants.windows(2).all(is_in_order)
            && self.granted.iter().eq(takes_part)
    }

    /// What it saw of each tenant, as a part of all, beside what that was to read.
    pub(super) fn parts(&self, scene: &Scene) -> String {
        let percent = |of: f64, all: f64| of / all.max(f64::MIN_POSITIVE) * 100.0;
        let (rates, bytes) = (self.rates.values().sum(), scene.tenants.iter().map(|tenant| tenant.bytes).sum::<u64>());
        let part = |tenant: &TenantPlan| {
            let rate = self.rates.get(&tenant.name).copied().unwrap_or_default();
            let (seen, read) = (percent(rate, rates), percent(tenant.bytes as f64, bytes as f64));
            format!("{} {seen:.1} % ({read:.1})", tenant.name)
        };
        scene.tenants.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::Remembered;
    use minerva_lab::scene::EndogenicPlan;

    /// Of a daemon that knew these, and granted these something.
    fn remembered(known: &[&str], granted: &[&str]) -> Remembered {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let rates = names(known).into_iter().zip((1..).map(f64::from)).collect();
        let [asked, granted] = [&ASKING[..], granted].map(|some| names(some).into_iter().collect());
        Remembered { rates, asked, granted, ..Remembered::default() }
    }

    const ALL: [&str; 4] = ["tenant-1", "tenant-2", "tenant-3", "tenant-4"];
    const ASKING: [&str; 2] = ["tenant-2", "tenant-4"];

    #[test]
    fn a_run_whose_guests_the_daemon_did_not_know_or_hear_is_told() {
        let scene = EndogenicPlan::paper(0.1).scene();
        assert!(remembered(&ALL, &ASKING).is_whole(&scene));
        let mut swapped = ALL;
        swapped.swap(1, 2);
        let others = [remembered(&ALL[..3], &ASKING), remembered(&ALL, &ASKING[..1]), remembered(&ALL, &ALL)];
        for bad in others.into_iter().chain([remembered(&swapped, &ASKING)]) {
            assert!(!bad.is_whole(&scene), "{bad:?}");
        }
    }
}
