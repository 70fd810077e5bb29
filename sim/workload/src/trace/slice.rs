//! A part of a trace: by time, by volume, by count.

use super::error::TraceError;
use super::record::Record;
use minerva_model::Nanos;
use std::collections::BTreeSet;

/// Which part. The default is all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// From this instant of the trace on.
    pub from: Nanos,
    /// Before this instant.
    pub until: Option<Nanos>,
    /// Only these volumes; empty for all.
    pub volumes: BTreeSet<u32>,
    /// Leave out so many of what the rest lets through.
    pub skip: u64,
    /// At most so many.
    pub count: Option<u64>,
}

impl Slice {
    /// The part of `records`. Its instants count from the slice's start, so that a slice is a trace like any other; after an
    /// error there is nothing more.
    pub fn of<I>(self, records: I) -> impl Iterator<Item = Result<Record, TraceError>>
    where
        I: Iterator<Item = Result<Record, TraceError>>,
    {
        let (mut to_skip, mut left, from) = (self.skip, self.count, self.from);
        records
            .take_while(move |record| match (record, self.until) {
                (Ok(record), Some(until)) => record.at < until,
                _ => true,
            })
            .filter(move |record| match record {
                Ok(record) => {
                    let wanted =
                        record.at >= from && (self.volumes.is_empty() || self.volumes.contains(&record.volume));
                    let skipped = wanted && to_skip > 0;
                    to_skip -= u64::from(skipped);
                    wanted && !skipped
                }
                Err(_) => true,
            })
            .map_while(move |record| {
                if let (Some(left), Ok(_)) = (&mut left, &record) {
                    *left = left.checked_sub(1)?;
                }
                Some(record.map(|record| Record { at: record.at.since(from), ..record }))
            })
    }
}
