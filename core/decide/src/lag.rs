//! Whether those who say nothing pay for those who coordinate (docs/adr/0023).
//!
//! Of each silent tenant its *lag* is kept: the service that it would have had if nobody took part, less what it had (Stoica and
//! Abdel-Wahab 1995). What others leave to it by waiting or stepping back makes the lag negative, and so far an operation under way may
//! be raised; where the lag of any silent tenant has come to nothing it is not, until that one is ahead again. So who says nothing is
//! never behind by more than the slice in which that is seen, and who coordinates gets back what it left to others.
//!
//! The service that a tenant would have is a part of what the disk did, by the shares of everybody's history and the operator's
//! weights: history goes before those who used much, also if they are silent, and that is not what coordination takes from them.
//! A tenant that asks for less than it may have is not behind.

use minerva_model::{DeviceId, IoSignals, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A tenant that got less than this part of what its share allows asked for no more.
const ASKS_FOR_MORE: f64 = 0.5;

/// Nobody counts as farther behind: history puts heavy tenants there, and not who coordinates.
const SLICES_BEHIND_MAX: f64 = 2.0;
/// Nor farther ahead, in seconds of the disk.
const SECONDS_AHEAD_MAX: f64 = 60.0;

/// A tenant that uses a disk, or waits to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) tenant: TenantId,
    /// What it would weigh if nobody took part.
    pub(crate) weight: f64,
    /// What it was dealt by; nothing while it waits.
    pub(crate) in_force: f64,
    /// It neither stepped back, nor bought, nor announced anything.
    pub(crate) is_silent: bool,
}

/// What a tenant would have had by now, less what it had.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Lag {
    /// Of the disk.
    seconds: f64,
    weight: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OnDisk {
    /// Also of who has gone early, until it would have gone without anybody's help.
    lags: BTreeMap<TenantId, Lag>,
    holds_back: bool,
}

/// The lags on all disks on which somebody takes part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lags(BTreeMap<DeviceId, OnDisk>);

impl Lags {
    /// Operations on the disk are not to go ahead now.
    pub(crate) fn hold_back(&self, device: DeviceId) -> bool {
        self.0.get(&device).is_some_and(|disk| disk.holds_back)
    }

    /// The disks on which they are not.
    pub(crate) fn held_back(&self) -> BTreeSet<DeviceId> {
        self.0.iter().filter(|(_, disk)| disk.holds_back).map(|(device, _)| *device).collect()
    }

    /// A slice of a disk.
    pub(crate) fn slice<'a>(
        &mut self,
        device: DeviceId,
        contenders: &[Contender],
        rows: impl Iterator<Item = &'a IoSignals>,
    ) {
        let served: BTreeMap<TenantId, f64> = service(rows);
        let disk = self.0.entry(device).or_default();
        let is_here = |tenant: TenantId| contenders.iter().any(|one| one.tenant == tenant);
        disk.lags.retain(|tenant, lag| is_here(*tenant) || lag.seconds < 0.0);
        let gone: f64 = disk.lags.iter().filter(|(tenant, _)| !is_here(**tenant)).map(|(_, lag)| lag.weight).sum();
        let weights: f64 = contenders.iter().map(|one| one.weight).sum::<f64>() + gone;
        let shares: f64 = contenders.iter().map(|one| one.in_force).sum();
        let total: f64 = served.values().sum();
        let meant = |weight: f64| total * weight / weights.max(f64::MIN_POSITIVE);
        for (_, lag) in disk.lags.iter_mut().filter(|(tenant, _)| !is_here(**tenant)) {
            lag.seconds += meant(lag.weight);
        }
        let mut is_behind = false;
        for Contender { tenant, weight, in_force, is_silent } in contenders.iter().copied() {
            let (had, meant) = (served.get(&tenant).copied().unwrap_or(0.0), meant(weight));
            let allowed = total * in_force / shares.max(f64::MIN_POSITIVE);
            // Within a short slice an elevator does not serve everybody: who had nothing is still to be served.
            let asks_for_more = had == 0.0 || had >= ASKS_FOR_MORE * allowed;
            let change = if asks_for_more { meant - had } else { (meant - had).min(0.0) };
            let lag = disk.lags.entry(tenant).or_default();
            lag.weight = weight;
            lag.seconds = (lag.seconds + change).clamp(-SECONDS_AHEAD_MAX, SLICES_BEHIND_MAX * meant);
            is_behind |= is_silent && lag.seconds > 0.0;
        }
        disk.holds_back = is_behind;
    }

    /// Disks on which nobody takes part any more need no lags.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(DeviceId) -> bool) {
        self.0.retain(|device, _| is_wanted(*device));
    }
}

/// Seconds of the disk for each, as far as disk time is known; else bytes, which compare as well.
fn service<'a>(rows: impl Iterator<Item = &'a IoSignals>) -> BTreeMap<TenantId, f64> {
    let rows: Vec<&IoSignals> = rows.collect();
    let has_time = rows.iter().any(|row| row.disk_time.0 > 0);
    let service = |row: &IoSignals| match has_time {
        true => row.disk_time.as_secs_f64(),
        false => row.transferred.bytes() as f64,
    };
    rows.into_iter().map(|row| (row.tenant, service(row))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Contender, Lags};
    use minerva_model::{DeviceId, IoCounters, IoSignals, Nanos, TenantId};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
    const SILENT: u64 = 1;
    const COORDINATES: u64 = 2;

    /// Slices of a second: who is there, and for how long each had the disk. Whether operations are held back after each.
    fn held_back(slices: &[&[(u64, f64)]]) -> Vec<bool> {
        let mut lags = Lags::default();
        let mut slice = |had: &[(u64, f64)]| {
            let row = |(tenant, seconds): &(u64, f64)| IoSignals {
                tenant: TenantId(*tenant),
                device: DISK,
                elapsed: Nanos::SECOND,
                transferred: IoCounters::default(),
                latency: None,
                active: true,
                served: None,
                disk_time: Nanos((seconds * 1e9) as u64),
            };
            let rows: Vec<IoSignals> = had.iter().map(row).collect();
            let one = |(tenant, _): &(u64, f64)| Contender {
                tenant: TenantId(*tenant),
                weight: 100.0,
                in_force: if *tenant == COORDINATES { 400.0 } else { 100.0 },
                is_silent: *tenant != COORDINATES,
            };
            lags.slice(DISK, &had.iter().map(one).collect::<Vec<_>>(), rows.iter());
            lags.hold_back(DISK)
        };
        slices.iter().map(|had| slice(had)).collect()
    }

    #[test]
    fn an_operation_goes_ahead_as_far_as_the_silent_are_ahead() {
        let waits = [(SILENT, 1.0), (COORDINATES, 0.0)];
        let ahead = [(SILENT, 0.25), (COORDINATES, 0.75)];
        let even = [(SILENT, 0.5), (COORDINATES, 0.5)];
        // Half a second that it waited for is two slices in which it has a quarter more than half.
        let slices: [&[(u64, f64)]; 6] = [&waits, &ahead, &ahead, &ahead, &even, &waits];
        assert_eq!(held_back(&slices), [false, false, false, true, true, false]);
        // One that did not wait is held back as soon as that is seen.
        assert_eq!(held_back(&[&[(SILENT, 0.2), (COORDINATES, 0.8)]]), [true]);
        // Who asks for less than it may have is not behind.
        assert_eq!(held_back(&[&[(SILENT, 0.05), (COORDINATES, 0.95)][..]; 4]), [false; 4]);
        // Who was not served in a short slice is.
        assert_eq!(held_back(&[&[(SILENT, 0.0), (COORDINATES, 1.0)]]), [true]);
    }

    #[test]
    fn who_went_early_counts_until_it_would_have_gone() {
        const OTHER: u64 = 3;
        // While one waits two have the disk. Then one of them goes, a sixth of a second ahead of its third: for one more slice equal
        // parts are thirds, and only then halves.
        let waits = [(OTHER, 0.5), (SILENT, 0.5), (COORDINATES, 0.0)];
        let after = [(SILENT, 0.34), (COORDINATES, 0.66)];
        assert_eq!(held_back(&[&waits, &after, &after, &after]), [false, false, false, true]);
    }
}
