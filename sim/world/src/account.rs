//! What is measured, in memory that grows neither with the number of requests nor with virtual time.

use crate::promise::{Promise, ReportedPromise, Watch};
use hdrhistogram::Histogram;
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use minerva_sim_device::Statistics;
use minerva_sim_workload::IoRequest;
use serde::Serialize;

/// Three decimal digits of latency; values are microseconds up to ten minutes and saturate there.
const LATENCY_MAX_US: u64 = 600_000_000;
/// When a run needs more bins, neighbours are joined and all are twice as wide. A day has bins of 8 seconds then.
const BINS_MAX: u64 = 16_384;

/// How a process stands when it is reported.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// When it ended, if it did.
    pub finished: Option<Nanos>,
    /// The end of the run, or where it is.
    pub end: Nanos,
    /// Requests within what it was promised that are under way and late.
    pub overdue: u64,
}

/// One process's account.
#[derive(Debug)]
pub struct Account {
    latency_us: Histogram<u64>,
    bin: Nanos,
    bins_bytes: Vec<u64>,
    requests: u64,
    bytes: u64,
    discarded_bytes: u64,
    started: Nanos,
    watch: Option<Watch>,
}

impl Account {
    /// An empty account whose bins are `bin` wide, with a promise to watch over.
    #[expect(clippy::expect_used, reason = "the bounds are constants that the histogram accepts")]
    pub fn new(bin: Nanos, promise: Option<Promise>) -> Self {
        let latency_us = Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("1 < 600,000,000 and 3 digits");
        let bin = Nanos(bin.0.max(1));
        let watch = promise.map(Watch::new);
        let started = Nanos::ZERO;
        Self { latency_us, bin, bins_bytes: Vec::new(), requests: 0, bytes: 0, discarded_bytes: 0, started, watch }
    }

    /// The process starts.
    pub fn start(&mut self, now: Nanos) {
        self.started = now;
    }

    /// It makes a request; whether that is within what it was promised.
    #[inline]
    pub fn issued(&mut self, now: Nanos, request: &IoRequest) -> bool {
        self.watch.as_mut().is_some_and(|watch| watch.issued(now, request.length_bytes))
    }

    /// One of its requests completed, which was `within` what it was promised or not.
    #[inline]
    pub fn note(&mut self, now: Nanos, issued: Nanos, request: &IoRequest, within: bool) {
        if let Some(watch) = &mut self.watch {
            watch.completed(now, issued, request.length_bytes, within);
        }
        self.latency_us.saturating_record(now.since(issued).0 / 1_000);
        self.requests += 1;
        let length = u64::from(request.length_bytes);
        if request.kind == Kind::Discard {
            self.discarded_bytes += length;
            return;
        }
        let mut index = (now.0 / self.bin.0) as usize;
        if index >= self.bins_bytes.len() {
            index = self.open_bin(now);
        }
        self.bins_bytes[index] += length;
        self.bytes += length;
    }

    /// Whether a request that was made at `issued`, within what was promised, and is still under way, is late.
    pub(crate) fn is_overdue(&self, now: Nanos, issued: Nanos) -> bool {
        self.watch.is_some_and(|watch| watch.is_late(now, issued))
    }

    /// The bin of an instant later than all bins so far.
    #[cold]
    fn open_bin(&mut self, now: Nanos) -> usize {
        while now.0 / self.bin.0 >= BINS_MAX {
            self.bins_bytes = joined(&self.bins_bytes, 2);
            self.bin = Nanos(self.bin.0.saturating_mul(2));
        }
        let index = (now.0 / self.bin.0) as usize;
        self.bins_bytes.resize(index + 1, 0);
        index
    }

    /// Width of the bins: the one asked for, doubled until there are not too many.
    pub fn bin(&self) -> Nanos {
        self.bin
    }

    /// Bytes read and written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    fn percentile(&self, quantile: f64) -> f64 {
        if self.requests == 0 { 0.0 } else { self.latency_us.value_at_quantile(quantile) as f64 / 1e3 }
    }

    /// The report of it until `end`, when so many promised requests are `overdue`, in bins of `bin`, which is the account's
    /// own width or that doubled some times.
    pub fn report(&self, name: &str, tenant: &str, until: Until, bin: Nanos) -> ReportedProcess {
        let Until { finished, end, overdue } = until;
        let seconds = finished.unwrap_or(end).since(self.started).as_secs_f64();
        ReportedProcess {
            name: name.to_owned(),
            tenant: tenant.to_owned(),
            requests: self.requests,
            bytes: self.bytes,
            discarded_bytes: self.discarded_bytes,
            bytes_per_second: if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 },
            started_s: self.started.as_secs_f64(),
            finished_s: finished.map(Nanos::as_secs_f64),
            latency_mean_ms: if self.requests == 0 { 0.0 } else { self.latency_us.mean() / 1e3 },
            latency_p50_ms: self.percentile(0.50),
            latency_p95_ms: self.percentile(0.95),
            latency_p99_ms: self.percentile(0.99),
            latency_max_ms: self.latency_us.max() as f64 / 1e3,
            bins_bytes: joined(&self.bins_bytes, (bin.0 / self.bin.0).max(1) as usize),
            promise: self.watch.map(|watch| watch.reported(finished.unwrap_or(end), overdue)),
        }
    }
}

/// Each `count` neighbours as one.
fn joined(bins: &[u64], count: usize) -> Vec<u64> {
    bins.chunks(count).map(|bins| bins.iter().sum()).collect()
}

/// Jain's fairness index of what each got: 1 when all got the same, 1/n when one got all.
pub(crate) fn jain_index(parts: impl Iterator<Item = f64>) -> f64 {
    let (count, sum, squares) =
        parts.fold((0.0, 0.0, 0.0), |(count, sum, squares), part| (count + 1.0, sum + part, squares + part * part));
    if squares == 0.0 { 1.0 } else { sum * sum / (count * squares) }
}

/// What happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The host's scheduler.
    pub scheduler: String,
    /// Virtual seconds that the run took.
    pub seconds: f64,
    /// Everything that was transferred, by the second.
    pub bytes_per_second: f64,
    /// Requests that completed.
    pub requests: u64,
    /// Jain's index over the tenants' bytes: 1 when all got the same.
    pub jain_index: f64,
    /// Width of the bins, in seconds: what was asked for, doubled until there are not too many.
    pub bin_s: f64,
    /// Per tenant.
    pub tenants: Vec<ReportedTenant>,
    /// Per process.
    pub processes: Vec<ReportedProcess>,
    /// What the disk did.
    pub device: Statistics,
    /// Weights that Minerva set, as (second, tenant, weight).
    pub weights: Vec<(f64, String, u32)>,
}

/// A tenant's part of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedTenant {
    /// Who.
    pub name: String,
    /// Transferred.
    pub bytes: u64,
    /// Its part of everything transferred.
    pub share: f64,
}

/// A process's part of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedProcess {
    /// Who.
    pub name: String,
    /// Whose.
    pub tenant: String,
    /// Completed.
    pub requests: u64,
    /// Read and written.
    pub bytes: u64,
    /// Discarded; nothing of it is transferred, so it counts nowhere else.
    pub discarded_bytes: u64,
    /// From its start to its end, or to the end of the run.
    pub bytes_per_second: f64,
    /// When it started.
    pub started_s: f64,
    /// When it ended, if it did.
    pub finished_s: Option<f64>,
    /// From request to completion.
    pub latency_mean_ms: f64,
    /// Median.
    pub latency_p50_ms: f64,
    /// 95th percentile.
    pub latency_p95_ms: f64,
    /// 99th percentile.
    pub latency_p99_ms: f64,
    /// Greatest.
    pub latency_max_ms: f64,
    /// Throughput over time: bytes in each bin from the start of the world.
    pub bins_bytes: Vec<u64>,
    /// How what it was promised fared.
    pub promise: Option<ReportedPromise>,
}

#[cfg(test)]
mod tests {
    use super::{Account, BINS_MAX, Until};
    use minerva_blocksched::Kind;
    use minerva_model::Nanos;
    use minerva_sim_workload::IoRequest;

    #[test]
    fn bins_get_wider_instead_of_more() {
        let io = IoRequest { kind: Kind::Read, sync: true, tag: None, offset_bytes: 0, length_bytes: 512 };
        let mut account = Account::new(Nanos::SECOND, None);
        for second in (0..40_000).chain([1_000_000, 4_000_000_000]) {
            account.note(Nanos::from_secs(second), Nanos::from_secs(second), &io, true);
        }
        let until = Until { finished: None, end: Nanos::from_secs(4_000_000_000), overdue: 0 };
        let report = account.report("a", "a", until, account.bin());
        assert!(report.bins_bytes.len() as u64 <= BINS_MAX);
        assert_eq!(report.bins_bytes.iter().sum::<u64>(), 40_002 * 512);
        let last = 4_000_000_000 / (account.bin().0 / Nanos::SECOND.0);
        assert_eq!((report.bins_bytes.len() as u64, report.bins_bytes.last()), (last + 1, Some(&512)));
        let wider = Nanos(account.bin().0 * 2);
        assert_eq!(account.report("a", "a", until, wider).bins_bytes.len() as u64, last / 2 + 1);
    }

    #[test]
    fn discards_are_no_throughput() {
        let io = |kind| IoRequest { kind, sync: true, tag: None, offset_bytes: 0, length_bytes: 4096 };
        let mut account = Account::new(Nanos::SECOND, None);
        for kind in [Kind::Write, Kind::Discard, Kind::Discard] {
            account.note(Nanos::SECOND, Nanos::ZERO, &io(kind), false);
        }
        let until = Until { finished: None, end: Nanos::from_secs(4), overdue: 0 };
        let report = account.report("a", "a", until, account.bin());
        assert_eq!((report.requests, report.bytes, report.discarded_bytes), (3, 4096, 8192));
        assert_eq!(report.bytes_per_second, 1024.0, "until the end of the run, not to its last request");
        assert_eq!(report.bins_bytes, [0, 4096]);
    }
}
