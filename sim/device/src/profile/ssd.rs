//! Parameters of an SSD.

use crate::limits::TIME_MS_MAX;
use serde::{Deserialize, Serialize};

/// Parameters of an SSD. Times in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdProfile {
    /// Stripes served at the same time.
    pub channels: u32,
    /// Unit in which flash is read and written.
    pub page_bytes: u32,
    /// Neighbouring bytes on one channel.
    pub stripe_bytes: u32,
    /// Electronics before every request, one request at a time.
    pub command_us: f64,
    /// Reads.
    pub read: PageTime,
    /// Writes, as the host sees them (usually into a buffer).
    pub write: PageTime,
    /// Discards; the pages of one request count as one.
    pub discard: PageTime,
    /// Flushes; they wait for every write under way.
    pub flush: PageTime,
    /// Collection of free blocks; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<Collection>,
}

/// How long a channel is busy with a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTime {
    /// With its first page.
    pub first_page_us: f64,
    /// With each further page.
    pub next_page_us: f64,
}

/// When and for how long the device stops to collect free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Bytes written between two stops, on average; exponentially distributed.
    pub written_bytes_mean: u64,
    /// Shortest stop.
    pub stall_us_min: f64,
    /// Longest stop; uniformly distributed between the two.
    pub stall_us_max: f64,
}

impl SsdProfile {
    pub(super) fn problem(&self) -> Option<String> {
        if !(1..=4096).contains(&self.channels) {
            return Some(format!("channels: {} is not within 1 and 4096", self.channels));
        }
        if self.page_bytes == 0 || self.stripe_bytes < self.page_bytes {
            return Some(format!(
                "stripe_bytes: {} must be at least page_bytes, {}, and that positive",
                self.stripe_bytes, self.page_bytes
            ));
        }
        let tables = [("read", self.read), ("write", self.write), ("discard", self.discard), ("flush", self.flush)];
        let is_time = |us: f64| (0.0..=TIME_MS_MAX * 1e3).contains(&us);
        for (key, time) in tables {
            if !is_time(time.first_page_us) || !is_time(time.next_page_us) {
                return Some(format!("{key}: {} and {} us are not times", time.first_page_us, time.next_page_us));
            }
        }
        match self.collection {
            Some(c)
                if !(is_time(c.stall_us_min)
                    && is_time(c.stall_us_max)
                    && c.stall_us_max >= c.stall_us_min
                    && c.written_bytes_mean > 0) =>
            {
                Some("collection: needs written_bytes_mean > 0 and 0 <= stall_us_min <= stall_us_max".to_owned())
            }
            _ => (!is_time(self.command_us)).then(|| format!("command_us: {} us is not a time", self.command_us)),
        }
    }
}
