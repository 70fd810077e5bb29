//! How long a disk takes where it is used, as an admission test of contracts wants to know it: what a unit costs in a row, and what a
//! jump from one place to another adds. One request at a time tells how long somebody waits for one; as many as a scheduler gives the disk
//! tell how much it does in all.

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
    /// Requests that are under way while it is served in a row, where its scheduler then gives the disk nobody else's.
    pub row_depth: u32,
}

/// What was measured. A unit is as many bytes as [`measure`] was told.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceTimesMeasured {
    /// Nanoseconds a unit in a row, on average, with as many requests under way as were asked for.
    pub unit_ns_mean: f64,
    /// The same where it is slowest, one request at a time.
    pub unit_ns_max: f64,
    /// What a jump adds, on average, with as many requests under way as were asked for.
    pub seek_mean: Nanos,
    /// The longest, one request at a time.
    pub seek_max: Nanos,
    /// What a unit of each site takes at least, in nanoseconds, where the disk is fastest: in a row or, where that is faster, not.
    pub unit_ns_least: Vec<f64>,
    /// What a unit of each site takes in a row, in nanoseconds and on average, while only so many requests are under way as the site
    /// says; zero where that are all that were asked for.
    pub unit_ns_own: Vec<f64>,
    /// How long it takes to make a write of each site durable; zero for those that never ask for it.
    pub flushes: Vec<Nanos>,
}

impl Site {
    /// A flow that may use the whole disk, as one whose place is not known, beside others' requests.
    pub fn anywhere(capacity_bytes: u64, block_bytes: u32, kind: Kind, seed: u64) -> Self {
        let request = |offset_bytes| Request { tag: 0, kind, offset_bytes, length_bytes: block_bytes };
        let block = u64::from(block_bytes.max(1));
        let last_row = capacity_bytes.saturating_sub((ROW + 1) * block);
        let row = |start| (0..=ROW).map(|number| request(start + number * block)).collect();
        let mut random = Random::new(seed);
        let blocks = (capacity_bytes / block).max(1);
        let jumps = (0..JUMPS).map(|_| request((random.unit() * blocks as f64) as u64 * block)).collect();
        Self { block_bytes, rows: [row(0), row(last_row)], jumps, durable: None, row_depth: u32::MAX }
    }

    fn units(&self, unit_bytes: u32) -> u64 {
        u64::from(self.block_bytes.div_ceil(unit_bytes).max(1))
    }
}

/// Measures a disk where these flows use it, in units of `unit_bytes`, with up to `depth` requests under way.
pub fn measure(profile: &Profile, sites: &[Site], unit_bytes: u32, depth: u32, seed: u64) -> ServiceTimesMeasured {
    let one_by_one = measure_one_by_one(profile, sites, unit_bytes, seed);
    if depth <= 1 || sites.is_empty() {
        return one_by_one;
    }
    let depth = depth as usize;
    let mut disk = Clocked::new(profile, seed);
    let of_unit = |site: &Site, each_ns: f64| each_ns / site.units(unit_bytes) as f64;
    let in_rows = sites.iter().map(|site| site.rows.each_ref().map(|row| of_unit(site, disk.each_ns(row, depth))));
    let in_rows: Vec<[f64; 2]> = in_rows.collect();
    let jumping = sites.iter().map(|site| of_unit(site, disk.each_ns(&site.jumps, depth)));
    let jumping: Vec<f64> = jumping.collect();
    // From each site to each other one, as the scheduler changes between them.
    let jumps = (0..JUMPS as usize).flat_map(|jump| sites.iter().filter_map(move |site| site.jumps.get(jump)));
    let jumps: Vec<Request> = jumps.copied().collect();
    let count = sites.len() as f64;
    let row_ns = in_rows.iter().map(|[start, end]| f64::midpoint(*start, *end));
    let request_ns: f64 = row_ns.clone().zip(sites).map(|(ns, site)| ns * site.units(unit_bytes) as f64).sum();
    let seek_ns = (disk.each_ns(&jumps, depth) - request_ns / count).max(0.0);
    let own = sites.iter().map(|site| match (site.row_depth.max(1) as usize, &site.rows) {
        (own, _) if own >= depth => 0.0,
        (own, [start, end]) => of_unit(site, f64::midpoint(disk.each_ns(start, own), disk.each_ns(end, own))),
    });
    let own: Vec<f64> = own.collect();
    let fastest =
        |((least, [start, end]), jumping): ((&f64, &[f64; 2]), &f64)| least.min(*start).min(*end).min(*jumping);
    ServiceTimesMeasured {
        unit_ns_mean: row_ns.sum::<f64>() / count,
        seek_mean: Nanos(seek_ns as u64),
        unit_ns_least: one_by_one.unit_ns_least.iter().zip(&in_rows).zip(&jumping).map(fastest).collect(),
        unit_ns_own: own,
        ..one_by_one
    }
}

fn measure_one_by_one(profile: &Profile, sites: &[Site], unit_bytes: u32, seed: u64) -> ServiceTimesMeasured {
    let mut disk = Clocked::new(profile, seed);
    let [starts, ends] = [0, 1].map(|end| {
        let row_ns = |site: &Site| disk.each_ns(&site.rows[end], 1) / site.units(unit_bytes) as f64;
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
        unit_ns_own: vec![0.0; sites.len()],
        flushes,
    }
}

/// A disk model and its clock.
struct Clocked {
    device: Box<dyn DeviceModel>,
    now: Nanos,
}

impl Clocked {
    fn new(profile: &Profile, seed: u64) -> Self {
        Self { device: profile.build(None, seed), now: Nanos::ZERO }
    }

    /// How long each of these requests takes on average while `depth` of them are under way, which begins with the first that is done:
    /// until then the arm has to go there.
    fn each_ns(&mut self, requests: &[Request], depth: usize) -> f64 {
        // Over again until each was followed by another while there were so many.
        let mut waiting = requests.iter().cycle().take(requests.len() + depth - 1);
        waiting.by_ref().take(depth).for_each(|request| self.device.submit(self.now, *request));
        let (mut first, mut done) = (None, 0_u64);
        while let Some(at) = self.device.next_completion() {
            self.now = self.now.max(at);
            if self.device.complete(self.now).is_none() {
                continue;
            }
            match first {
                None => first = Some(self.now),
                Some(_) => done += 1,
            }
            let Some(request) = waiting.next() else { break };
            self.device.submit(self.now, *request);
        }
        let took = self.now.since(first.unwrap_or(self.now));
        // What is still under way belongs to nobody's time.
        while let Some(at) = self.device.next_completion() {
            self.now = self.now.max(at);
            self.device.complete(self.now);
        }
        took.0 as f64 / done.max(1) as f64
    }

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
        let measured = measure(&disk, &sites, 4096, 1, 1);
        assert!(measured.seek_mean.0 as f64 > 10.0 * measured.unit_ns_mean, "{measured:?}");
        assert!(measured.seek_max >= measured.seek_mean && measured.unit_ns_max >= measured.unit_ns_mean);
        assert!(measured.unit_ns_least.iter().all(|least| *least <= measured.unit_ns_mean));
        assert_eq!(measured, measure(&disk, &sites, 4096, 1, 1), "the same again");
    }

    #[test]
    fn a_disk_that_takes_several_requests_at_once_does_more_with_them_and_each_waits_no_less() {
        let disk = profile("sata-ssd").unwrap();
        let sites: Vec<Site> = (0..4).map(|seed| Site::anywhere(disk.capacity_bytes, 4096, Kind::Read, seed)).collect();
        let [alone, together] = [1, 32].map(|depth| measure(&disk, &sites, 4096, depth, 1));
        assert_eq!((together.unit_ns_max, together.seek_max), (alone.unit_ns_max, alone.seek_max));
        for (least, alone) in together.unit_ns_least.iter().zip(&alone.unit_ns_least) {
            assert!(8.0 * least < *alone, "{least} and {alone}");
        }
        let mean_ns = |measured: &super::ServiceTimesMeasured| measured.unit_ns_mean + measured.seek_mean.0 as f64;
        assert!(5.0 * mean_ns(&together) < mean_ns(&alone), "{together:?} and {alone:?}");
    }

    #[test]
    fn a_row_that_has_the_disk_alone_takes_as_long_as_with_its_own_requests_whatever_others_have() {
        let disk = profile("sata-ssd").unwrap();
        let site = |row_depth| Site { row_depth, ..Site::anywhere(disk.capacity_bytes, 65_536, Kind::Read, 1) };
        let measured = |row_depth, depth| measure(&disk, &[site(row_depth)], 4096, depth, 1);
        let (alone, kept, shared) = (measured(1, 1), measured(1, 32), measured(u32::MAX, 32));
        let close = |one: f64, other: f64| (one - other).abs() < 0.02 * other;
        assert!(close(kept.unit_ns_own[0], alone.unit_ns_mean), "{kept:?} and {alone:?}");
        assert!(close(measured(2, 32).unit_ns_own[0], measured(2, 2).unit_ns_mean));
        assert!(kept.unit_ns_own[0] > 1.5 * kept.unit_ns_mean, "{kept:?}");
        assert_eq!((kept.unit_ns_least, kept.unit_ns_mean), (shared.unit_ns_least, shared.unit_ns_mean));
        assert_eq!((alone.unit_ns_own, shared.unit_ns_own), (vec![0.0], vec![0.0]));
    }
}
