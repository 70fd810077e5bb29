//! What makes a hard disk's numbers impossible.

use super::hdd::HddProfile;
use crate::geometry::Geometry;
use crate::limits::TIME_MS_MAX;

impl HddProfile {
    pub(super) fn problem(&self, capacity_sectors: u64) -> Option<String> {
        let times = [("head_switch_ms", self.head_switch_ms), ("age_ms_max", self.age_ms_max)];
        if !(self.rotation_rpm >= 100.0 && self.rotation_rpm <= 100_000.0) {
            return Some(format!("rotation_rpm: {} is not within 100 and 100000", self.rotation_rpm));
        }
        let overheads = self.overhead.all();
        let bounded = times.into_iter().chain(overheads);
        if let Some((key, ms)) = bounded.into_iter().find(|(_, ms)| !(0.0..=TIME_MS_MAX).contains(ms)) {
            return Some(format!("{key}: {ms} ms is not within 0 and {TIME_MS_MAX}"));
        }
        if !(-TIME_MS_MAX..=TIME_MS_MAX).contains(&self.write_settle_ms) {
            return Some(format!("write_settle_ms: {} ms is not within {TIME_MS_MAX} of 0", self.write_settle_ms));
        }
        if !(0.0..=1.0).contains(&self.cache.read_watermark) {
            return Some(format!("read_watermark: {} is not within 0 and 1", self.cache.read_watermark));
        }
        if !(1..=256).contains(&self.heads) {
            return Some(format!("heads: {} is not within 1 and 256", self.heads));
        }
        if self.cache.segments > 4096 {
            return Some(format!("segments: {} is more than 4096", self.cache.segments));
        }
        Geometry::problem(self, capacity_sectors)
            .or_else(|| self.seek.problem(Geometry::new(self, capacity_sectors).cylinders))
    }
}
