//! What a scrape learns of each disk of a guest. There are as many as the operator names in the servers' files.

use minerva_model::{DiskReport, ServerReport};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;

/// Labels `server` and `disk`: the names of both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct DiskLabels {
    server: String,
    disk: String,
}

/// The numbers themselves.
#[derive(Clone, Debug, Default)]
pub struct ServedMetrics {
    operations: Family<DiskLabels, Counter>,
    bytes: Family<DiskLabels, Counter>,
    wait_ns: Family<DiskLabels, Counter>,
    failures: Family<DiskLabels, Counter>,
    under_way: Family<DiskLabels, Gauge>,
    share: Family<DiskLabels, Gauge>,
    /// What each disk had told last, in the order of the counters.
    last: BTreeMap<DiskLabels, [u64; 4]>,
}

impl ServedMetrics {
    /// Has the scrape show them.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Reads, writes, flushes and discards of a guest's disk that were done";
        registry.register("served_disk_operations", text, self.operations.clone());
        registry.register("served_disk_bytes", "Bytes that they moved", self.bytes.clone());
        let text = "Nanoseconds that reads and writes took from the guest's ring to their answer, all together";
        registry.register("served_disk_wait_nanoseconds", text, self.wait_ns.clone());
        let text = "Requests that failed, or that no disk could serve";
        registry.register("served_disk_failures", text, self.failures.clone());
        registry.register("served_disk_queued", "Requests of the guest under way now", self.under_way.clone());
        let text = "What the disk's weight is multiplied by, in percent";
        registry.register("served_disk_share_percent", text, self.share.clone());
    }

    /// Takes what the servers told in this slice.
    pub(crate) fn note<'a>(&mut self, servers: impl Iterator<Item = (&'a str, &'a ServerReport)>) {
        let mut gone = std::mem::take(&mut self.last);
        for (server, report) in servers {
            for disk in &report.disks {
                let labels = DiskLabels { server: server.to_owned(), disk: disk.settings.name.clone() };
                let before = gone.remove(&labels).unwrap_or_default();
                self.note_disk(labels, disk, before);
            }
        }
        for labels in gone.keys() {
            for family in [&self.operations, &self.bytes, &self.wait_ns, &self.failures] {
                family.remove(labels);
            }
            self.under_way.remove(labels);
            self.share.remove(labels);
        }
    }

    fn note_disk(&mut self, labels: DiskLabels, disk: &DiskReport, before: [u64; 4]) {
        let now = [
            disk.io.read_ops + disk.io.write_ops + disk.other_ops,
            disk.io.read_bytes + disk.io.write_bytes,
            disk.wait.read_ns + disk.wait.write_ns,
            disk.failed_ops + disk.refused_ops,
        ];
        let families = [&self.operations, &self.bytes, &self.wait_ns, &self.failures];
        for ((family, now), before) in families.into_iter().zip(now).zip(before) {
            // A server that started anew counts from zero.
            family.get_or_create(&labels).inc_by(now.checked_sub(before).unwrap_or(now));
        }
        self.under_way.get_or_create(&labels).set(i64::try_from(disk.under_way).unwrap_or(i64::MAX));
        self.share.get_or_create(&labels).set(i64::from(disk.share));
        self.last.insert(labels, now);
    }
}

#[cfg(test)]
mod tests {
    use super::ServedMetrics;
    use crate::account::tests::{disk, server};
    use minerva_model::{Nanos, ServerReport};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    #[test]
    fn each_disk_is_told_with_totals_that_never_go_back_and_is_in_the_operators_handbook() {
        let mut registry = Registry::with_prefix("minerva");
        let mut metrics = ServedMetrics::default();
        metrics.register(&mut registry);
        let mut told = |ops: &[u64]| {
            let disks = ops.iter().map(|ops| disk(*ops)).collect();
            let report = ServerReport { disks, ..server(Nanos(1)) };
            metrics.note([("blk", &report)].into_iter());
            let mut text = String::new();
            encode(&mut text, &registry).expect("a string takes everything");
            text
        };
        assert!(told(&[100]).contains("minerva_served_disk_operations_total{server=\"blk\",disk=\"vm1\"} 100"));
        assert!(told(&[150]).contains("minerva_served_disk_operations_total{server=\"blk\",disk=\"vm1\"} 150"));
        let text = told(&[7]);
        assert!(text.contains("minerva_served_disk_operations_total{server=\"blk\",disk=\"vm1\"} 157"), "{text}");
        let handbook = include_str!("../../../docs/operator.md");
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        for name in names {
            assert!(handbook.contains(&format!("`{name}")), "docs/operator.md does not have {name}");
        }
        assert!(!told(&[]).contains("disk=\"vm1\""), "it is gone");
    }
}
