//! What a trace holds, in numbers. Memory is constant: a bound on volumes, and counts in powers of two of sizes.

use super::record::Record;
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use std::collections::BTreeMap;

/// Volumes that are counted one by one.
const VOLUMES_MAX: usize = 100_000;

/// Counts of one volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeSummary {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// The greatest end of a request: how large a disk must be to hold it.
    pub end_bytes: u64,
}

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Requests.
    pub records: u64,
    /// From the first request to the last.
    pub span: Nanos,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests by size: the key is the greatest size of its class, a power of two.
    pub sizes: BTreeMap<u64, u64>,
    /// Per volume, the first 100,000 of them.
    pub volumes: BTreeMap<u32, VolumeSummary>,
    /// The greatest end of a request.
    pub end_bytes: u64,
    /// Requests in the busiest second.
    pub peak_per_second: u64,
    /// Requests with a latency.
    pub latencies: u64,
    /// Their mean.
    pub mean_latency: Option<Nanos>,
}

impl Summary {
    /// Requests a second over the whole span; nothing for a span of no time.
    pub fn mean_per_second(&self) -> Option<f64> {
        (self.span > Nanos::ZERO).then(|| self.records as f64 / self.span.as_secs_f64())
    }
}

/// Counts as requests come by, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct SummaryBuilder {
    summary: Summary,
    second: u64,
    in_second: u64,
    first: Option<Nanos>,
    latency_sum_ns: u128,
    /// The volume of the request before: runs of one are common, and a look-up is not free.
    recent: Option<(u32, VolumeSummary)>,
}

impl SummaryBuilder {
    /// Counts one request.
    pub fn note(&mut self, record: &Record) {
        let summary = &mut self.summary;
        summary.records += 1;
        summary.span = summary.span.max(record.at.since(*self.first.get_or_insert(record.at)));
        let bytes = u64::from(record.length_bytes);
        let end = record.offset_bytes.saturating_add(bytes);
        summary.end_bytes = summary.end_bytes.max(end);
        let second = record.at.0 / 1_000_000_000;
        self.in_second = if second == self.second { self.in_second + 1 } else { 1 };
        self.second = second;
        summary.peak_per_second = summary.peak_per_second.max(self.in_second);
        if let Some(latency) = record.latency {
            summary.latencies += 1;
            self.latency_sum_ns += u128::from(latency.0);
        }
        if self.recent.is_none_or(|(volume, _)| volume != record.volume) {
            self.change_volume(record.volume);
        }
        let mut unused = VolumeSummary::default();
        let volume = self.recent.as_mut().map_or(&mut unused, |(_, volume)| volume);
        let summary = &mut self.summary;
        volume.end_bytes = volume.end_bytes.max(end);
        match record.kind {
            Kind::Read => {
                summary.reads += 1;
                summary.read_bytes = summary.read_bytes.saturating_add(bytes);
                volume.reads += 1;
                volume.read_bytes = volume.read_bytes.saturating_add(bytes);
            }
            Kind::Write => {
                summary.writes += 1;
                summary.written_bytes = summary.written_bytes.saturating_add(bytes);
                volume.writes += 1;
                volume.written_bytes = volume.written_bytes.saturating_add(bytes);
            }
            Kind::Flush => summary.flushes += 1,
            Kind::Discard => summary.discards += 1,
        }
        if matches!(record.kind, Kind::Read | Kind::Write) {
            *summary.sizes.entry(1 << power_of_two(record.length_bytes)).or_default() += 1;
        }
    }

    fn change_volume(&mut self, volume: u32) {
        self.keep_recent();
        let known = self.summary.volumes.get(&volume).copied().unwrap_or_default();
        self.recent = Some((volume, known));
    }

    fn keep_recent(&mut self) {
        if let Some((volume, summary)) = self.recent.take()
            && (self.summary.volumes.len() < VOLUMES_MAX || self.summary.volumes.contains_key(&volume))
        {
            self.summary.volumes.insert(volume, summary);
        }
    }

    /// What was counted.
    pub fn finish(mut self) -> Summary {
        self.keep_recent();
        let mean = self.latency_sum_ns.checked_div(u128::from(self.summary.latencies));
        self.summary.mean_latency = mean.map(|mean| Nanos(u64::try_from(mean).unwrap_or(u64::MAX)));
        self.summary
    }
}

/// The exponent of the least power of two that is not below `bytes`.
const fn power_of_two(bytes: u32) -> u32 {
    u32::BITS - bytes.saturating_sub(1).leading_zeros()
}
