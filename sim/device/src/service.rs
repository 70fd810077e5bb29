//! How long a disk takes where it is used, as an admission test of contracts wants to know it: what a unit costs in a row, and what a
//! jump from one place to another adds.

use crate::device::{DeviceModel, Kind, Request};
use crate::profile::Profile;
use crate::random::Random;
use minerva_model::Nanos;

/// Requests in a row of which the time of a unit is measured, at each end of each site.
pub const ROW: u64 = 256;
/// Jumps that are measured, for each site.
pub const JUMPS: u64 = 256;

/// Where and how one flow uses the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The length of its requests.
    pub block_bytes: u32,
    /// [`ROW`] + 1 requests, each where the one before ended: at the start of its region, and at its end, as zones differ in speed.
    pub rows: [Vec<Request>; 2],
    /// [`JUMPS`] requests here and there.
    pub jumps: Vec<Request>,
    /// A write that is made durable, where the flow asks for that.
    pub durable: Option<Request>,
}

/// What was measured. A unit is as many bytes as [`measure`] was told.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceTimesMeasured {
    /// Nanoseconds a unit in a row, on average.
    pub unit_ns_mean: f64,
    /// The same, where it is slowest.
    pub unit_ns_max: f64,
    /// What a jump adds, on average.
    pub seek_mean: Nanos,
    /// The longest.
    pub seek_max: Nanos,
    /// What a unit of each site takes at least, in nanoseconds: in a row, where the disk is fastest.
    pub unit_ns_least: Vec<f64>,
    /// How long it takes to make a write of each site durable; zero for those that never ask for it.
    pub flushes: Vec<Nanos>,
}

impl Site {
    /// A flow that may use the whole disk, as one whose place is not known.
    pub fn anywhere(capacity_bytes: u64, block_bytes: u32, kind: Kind, seed: u64) -> Self {
        let request = |offset_bytes| Request { tag: 0, kind, offset_bytes, length_bytes: block_bytes };
        let block = u64::from(block_bytes.max(1));
        let last_row = capacity_bytes.saturating_sub((ROW + 1) * block);
        let row = |start| (0..=ROW).map(|number| request(start + number * block)).collect();
        let mut random = Random::new(seed);
        let blocks = (capacity_bytes / block).max(1);
        let jumps = (0..JUMPS).map(|_| request((random.unit() * blocks as f64) as u64 * block)).collect();
        Self { block_bytes, rows: [row(0), row(last_row)], jumps, durable: None }
    }

    fn units(&self, unit_bytes: u32) -> u64 {
        u64::from(self.block_bytes.div_ceil(unit_bytes).max(1))
    }
}

/// Measures a disk where these flows use it, in units of `unit_bytes`.
pub fn measure(profile: &Profile, sites: &[Site], unit_bytes: u32, seed: u64) -> ServiceTimesMeasured {
    let mut disk = Clocked { device: profile.build(None, seed), now: Nanos::ZERO };
    let [starts, ends] = [0, 1].map(|end| {
        let row_ns = |site: &Site| {
            let mut took = site.rows[end].iter().map(|request| disk.serve(*request).0);
            // The first is where the arm has to go.
            took.next();
            took.sum::<u64>() as f64 / (ROW * site.units(unit_bytes)) as f64
        };
        sites.iter().map(row_ns).collect::<Vec<f64>>()
    });
    let rows: Vec<f64> = starts.iter().zip(&ends).map(|(start, end)| f64::midpoint(*start, *end)).collect();
    let flushes = sites.iter().map(|site| site.durable.map_or(Nanos::ZERO, |write| disk.flush_after(write))).collect();
    let mut took = Vec::new();
    for jump in 0..JUMPS as usize {
        // From each site to each other one, and within it.
        for step in 0..sites.len() {
            let at = (jump + step) % sites.len();
            let in_row = (rows[at] * sites[at].units(unit_bytes) as f64) as u64;
            let Some(request) = sites[at].jumps.get(jump) else { continue };
            took.push(disk.serve(*request).0.saturating_sub(in_row));
        }
    }
    ServiceTimesMeasured {
        unit_ns_mean: rows.iter().sum::<f64>() / rows.len().max(1) as f64,
        unit_ns_max: starts.iter().chain(&ends).copied().fold(0.0, f64::max),
        seek_mean: Nanos(took.iter().sum::<u64>() / took.len().max(1) as u64),
        seek_max: Nanos(took.iter().copied().max().unwrap_or(0)),
        unit_ns_least: starts.iter().zip(&ends).map(|(start, end)| start.min(*end)).collect(),
        flushes,
    }
}

/// A disk model and its clock.
struct Clocked {
    device: Box<dyn DeviceModel>,
    now: Nanos,
}

impl Clocked {
    /// Serves a request; how long that took.
    fn serve(&mut self, request: Request) -> Nanos {
        self.device.submit(self.now, request);
        let began = self.now;
        while let Some(at) = self.device.next_completion() {
            self.now = self.now.max(at);
            if self.device.complete(self.now).is_some() {
                break;
            }
        }
        self.now.since(began)
    }

    /// Writes, then makes that durable; how long the second took.
    fn flush_after(&mut self, write: Request) -> Nanos {
        self.serve(write);
        self.serve(Request { tag: 0, kind: Kind::Flush, offset_bytes: 0, length_bytes: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::{Site, measure};
    use crate::{Kind, profile};

    #[test]
    fn a_jump_costs_a_disk_that_seeks_more_than_a_row_and_the_longest_is_no_shorter() {
        let disk = profile("sata7200-80g").unwrap();
        let sites: Vec<Site> =
            (0..4).map(|seed| Site::anywhere(disk.capacity_bytes, 65_536, Kind::Read, seed)).collect();
        let measured = measure(&disk, &sites, 4096, 1);
        assert!(measured.seek_mean.0 as f64 > 10.0 * measured.unit_ns_mean, "{measured:?}");
        assert!(measured.seek_max >= measured.seek_mean && measured.unit_ns_max >= measured.unit_ns_mean);
        assert!(measured.unit_ns_least.iter().all(|least| *least <= measured.unit_ns_mean));
        assert_eq!(measured, measure(&disk, &sites, 4096, 1), "the same again");
    }
}
