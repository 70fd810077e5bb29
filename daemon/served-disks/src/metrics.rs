//! What a scrape learns of each disk of a guest. There are as many as the operator names in the servers' files.

use minerva_model::{ContractFigures, DiskReport, Nanos, RecentFigures, ServerReport};
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
    device_ns: Family<DiskLabels, Counter>,
    late: Family<DiskLabels, Counter>,
    seconds_missed: Family<DiskLabels, Counter>,
    kept: Family<DiskLabels, Gauge>,
    late_max_ns: Family<DiskLabels, Gauge>,
    took_ns: Family<TookLabels, Counter>,
    latency_ns: Family<QuantileLabels, Gauge>,
    tag_operations: Family<TagLabels, Counter>,
    tag_latency_ns: Family<TagLabels, Gauge>,
    tag_bytes: Family<TagLabels, Counter>,
    tag_under_way: Family<TagLabels, Gauge>,
    /// What each disk had told last.
    last: BTreeMap<DiskLabels, Last>,
}

/// Labels `server`, `disk` and `quantile`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuantileLabels {
    server: String,
    disk: String,
    quantile: &'static str,
}

/// Labels `server`, `disk` and `tag`: a guest can have 254 of them, and those with the most requests are told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TagLabels {
    server: String,
    disk: String,
    tag: u8,
}

/// Labels `server`, `disk`, and `by`: the disk that had the time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TookLabels {
    server: String,
    disk: String,
    by: String,
}

/// Counts of a disk, in the order of the counters, requests and bytes of each priority, and who had the time.
#[derive(Clone, Debug, Default)]
struct Last {
    counts: [u64; 7],
    tags: BTreeMap<u8, [u64; 2]>,
    took: BTreeMap<String, u64>,
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
        let text = "Nanoseconds of the host's disk that its requests had, shared with others that were there at once";
        registry.register("served_disk_device_nanoseconds", text, self.device_ns.clone());
        let text = "Reads and writes that were done, or are under way, later than the disk's contract promises";
        registry.register("served_disk_contract_late", text, self.late.clone());
        let text = "Seconds in which a request was late, or the guest had less than its contract's rate and delay give";
        registry.register("served_disk_contract_missed_seconds", text, self.seconds_missed.clone());
        let text =
            "1 where the disk's contract was kept since it stands, 0 where it was missed; none without a contract";
        registry.register("served_disk_contract_kept", text, self.kept.clone());
        let text =
            "By how much the latest of the disk's requests was later than its contract promises, since that stands";
        registry.register("served_disk_contract_late_max_nanoseconds", text, self.late_max_ns.clone());
        let text =
            "Nanoseconds that a disk had of the host's disk in seconds in which the contract of another was missed";
        registry.register("served_disk_contract_taken_nanoseconds", text, self.took_ns.clone());
        let text = "Time from the guest's ring to the answer in the last 5 to 10 s, by quantile";
        registry.register("served_disk_latency_nanoseconds", text, self.latency_ns.clone());
        let text = "Requests that were done of one priority; the 16 with the most are told";
        registry.register("served_tag_operations", text, self.tag_operations.clone());
        let text = "What 99 of 100 requests of one priority did not exceed in the last 5 to 10 s";
        registry.register("served_tag_latency_nanoseconds", text, self.tag_latency_ns.clone());
        registry.register("served_tag_bytes", "Bytes that they moved", self.tag_bytes.clone());
        let text = "Requests of one priority under way now";
        registry.register("served_tag_queued", text, self.tag_under_way.clone());
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
        for (labels, last) in &gone {
            self.counters().into_iter().for_each(|family| _ = family.remove(labels));
            self.under_way.remove(labels);
            self.share.remove(labels);
            self.forget_contract(labels, last);
            for (quantile, _) in quantiles(&RecentFigures::default()) {
                self.latency_ns.remove(&labels.quantile(quantile));
            }
            last.tags.keys().for_each(|tag| self.forget_tag(labels, *tag));
        }
    }

    fn counters(&self) -> [&Family<DiskLabels, Counter>; 7] {
        let (device, missed) = (&self.device_ns, &self.seconds_missed);
        [&self.operations, &self.bytes, &self.wait_ns, &self.failures, device, &self.late, missed]
    }

    fn note_disk(&mut self, labels: DiskLabels, disk: &DiskReport, before: Last) {
        let contract = disk.figures.contract.clone().unwrap_or_default();
        let counts = [
            disk.io.read_ops + disk.io.write_ops + disk.other_ops,
            disk.io.read_bytes + disk.io.write_bytes,
            disk.wait.read_ns + disk.wait.write_ns,
            disk.failed_ops + disk.refused_ops,
            disk.figures.device_time.0,
            contract.late,
            contract.seconds_late.max(contract.seconds_short),
        ];
        for ((family, now), before) in self.counters().into_iter().zip(counts).zip(before.counts) {
            family.get_or_create(&labels).inc_by(added(now, before));
        }
        self.under_way.get_or_create(&labels).set(i64::try_from(disk.under_way).unwrap_or(i64::MAX));
        self.share.get_or_create(&labels).set(i64::from(disk.share));
        for (quantile, time) in quantiles(&disk.figures.recent) {
            self.latency_ns.get_or_create(&labels.quantile(quantile)).set(nanoseconds(time));
        }
        let tags: BTreeMap<u8, [u64; 2]> =
            disk.figures.tags.iter().map(|tag| (tag.tag, [tag.ops, tag.bytes])).collect();
        for tag in &disk.figures.tags {
            let [ops, bytes] = before.tags.get(&tag.tag).copied().unwrap_or_default();
            let own = labels.tag(tag.tag);
            self.tag_operations.get_or_create(&own).inc_by(added(tag.ops, ops));
            self.tag_bytes.get_or_create(&own).inc_by(added(tag.bytes, bytes));
            self.tag_latency_ns.get_or_create(&own).set(nanoseconds(tag.recent.p99));
            self.tag_under_way.get_or_create(&own).set(i64::try_from(tag.under_way).unwrap_or(i64::MAX));
        }
        before.tags.keys().filter(|tag| !tags.contains_key(tag)).for_each(|tag| self.forget_tag(&labels, *tag));
        let took = self.note_contract(&labels, disk.figures.contract.as_ref(), &before);
        self.last.insert(labels, Last { counts, tags, took });
    }

    /// Whether the contract is kept, and who had the time while it was not; how much that was of each.
    fn note_contract(
        &self,
        labels: &DiskLabels,
        contract: Option<&ContractFigures>,
        before: &Last,
    ) -> BTreeMap<String, u64> {
        let Some(contract) = contract else {
            self.forget_contract(labels, before);
            return BTreeMap::new();
        };
        self.kept.get_or_create(labels).set(i64::from(contract.is_kept()));
        self.late_max_ns.get_or_create(labels).set(nanoseconds(contract.late_max));
        // Only those with the most are told: one that was told before keeps what it had.
        let mut all = before.took.clone();
        for took in &contract.took {
            let had = all.insert(took.disk.clone(), took.device_time.0).unwrap_or_default();
            self.took_ns.get_or_create(&labels.took(&took.disk)).inc_by(added(took.device_time.0, had));
        }
        all
    }

    fn forget_contract(&self, labels: &DiskLabels, last: &Last) {
        self.kept.remove(labels);
        self.late_max_ns.remove(labels);
        last.took.keys().for_each(|by| _ = self.took_ns.remove(&labels.took(by)));
    }

    fn forget_tag(&self, labels: &DiskLabels, tag: u8) {
        self.tag_operations.remove(&labels.tag(tag));
        self.tag_latency_ns.remove(&labels.tag(tag));
        self.tag_bytes.remove(&labels.tag(tag));
        self.tag_under_way.remove(&labels.tag(tag));
    }
}

impl DiskLabels {
    fn quantile(&self, quantile: &'static str) -> QuantileLabels {
        QuantileLabels { server: self.server.clone(), disk: self.disk.clone(), quantile }
    }

    fn took(&self, by: &str) -> TookLabels {
        TookLabels { server: self.server.clone(), disk: self.disk.clone(), by: by.to_owned() }
    }

    fn tag(&self, tag: u8) -> TagLabels {
        TagLabels { server: self.server.clone(), disk: self.disk.clone(), tag }
    }
}

/// A server that started anew counts from zero.
fn added(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

fn quantiles(recent: &RecentFigures) -> [(&'static str, Nanos); 4] {
    [("0.5", recent.median), ("0.95", recent.p95), ("0.99", recent.p99), ("0.999", recent.p999)]
}

fn nanoseconds(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::ServedMetrics;
    use crate::account::tests::{disk, server};
    use minerva_model::{ContractFigures, Nanos, RecentFigures, ServerReport, TagFigures, TookFigures};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    #[test]
    fn each_disk_is_told_with_totals_that_never_go_back_and_is_in_the_operators_handbook() {
        let mut registry = Registry::with_prefix("minerva");
        let mut metrics = ServedMetrics::default();
        metrics.register(&mut registry);
        let mut told = |ops: &[u64]| {
            let tagged = |ops: &u64| {
                let mut disk = disk(*ops);
                disk.figures.tags.push(TagFigures { tag: 200, ..TagFigures::default() });
                let took = vec![TookFigures { disk: "vm2".to_owned(), device_time: Nanos(5) }];
                disk.figures.contract = Some(ContractFigures { took, ..ContractFigures::default() });
                disk
            };
            let disks = ops.iter().map(tagged).collect();
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
        assert_eq!(names.len(), 17, "{names:?}");
        for name in names {
            assert!(handbook.contains(&format!("`{name}")), "docs/operator.md does not have {name}");
        }
        assert!(!told(&[]).contains("disk=\"vm1\""), "it is gone");
    }

    #[test]
    fn times_priorities_and_missed_contracts_are_told_and_go_with_the_disk() {
        let mut registry = Registry::with_prefix("minerva");
        let mut metrics = ServedMetrics::default();
        metrics.register(&mut registry);
        let mut told = |tags: &[(u8, u64)], late: u64| {
            let mut disk = disk(1);
            let recent = RecentFigures { p99: Nanos(77), ..RecentFigures::default() };
            let tag = |(tag, ops): &(u8, u64)| {
                let (tag, ops) = (*tag, *ops);
                TagFigures { tag, ops, bytes: 10 * ops, under_way: 3, recent, ..TagFigures::default() }
            };
            disk.figures.tags = tags.iter().map(tag).collect();
            disk.figures.recent = recent;
            let took = vec![TookFigures { disk: "vm2".to_owned(), device_time: Nanos(late * 100) }];
            let late_max = Nanos(late * 7);
            let contract = ContractFigures {
                late,
                late_max,
                seconds_late: 2,
                seconds_short: 3,
                took,
                ..ContractFigures::default()
            };
            disk.figures.contract = Some(contract);
            let report =
                ServerReport { disks: if tags.is_empty() { Vec::new() } else { vec![disk] }, ..server(Nanos(1)) };
            metrics.note([("blk", &report)].into_iter());
            let mut text = String::new();
            encode(&mut text, &registry).expect("a string takes everything");
            text
        };
        let text = told(&[(200, 5), (12, 1)], 4);
        for line in [
            "minerva_served_tag_operations_total{server=\"blk\",disk=\"vm1\",tag=\"200\"} 5",
            "minerva_served_tag_latency_nanoseconds{server=\"blk\",disk=\"vm1\",tag=\"12\"} 77",
            "minerva_served_disk_latency_nanoseconds{server=\"blk\",disk=\"vm1\",quantile=\"0.99\"} 77",
            "minerva_served_disk_contract_late_total{server=\"blk\",disk=\"vm1\"} 4",
            "minerva_served_disk_contract_missed_seconds_total{server=\"blk\",disk=\"vm1\"} 3",
            "minerva_served_disk_contract_kept{server=\"blk\",disk=\"vm1\"} 0",
            "minerva_served_disk_contract_late_max_nanoseconds{server=\"blk\",disk=\"vm1\"} 28",
            "minerva_served_disk_contract_taken_nanoseconds_total{server=\"blk\",disk=\"vm1\",by=\"vm2\"} 400",
            "minerva_served_tag_bytes_total{server=\"blk\",disk=\"vm1\",tag=\"200\"} 50",
            "minerva_served_tag_queued{server=\"blk\",disk=\"vm1\",tag=\"12\"} 3",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let text = told(&[(200, 9)], 6);
        assert!(text.contains("by=\"vm2\"} 600"), "{text}");
        assert!(text.contains("tag=\"200\"} 9") && !text.contains("tag=\"12\""), "{text}");
        assert!(!told(&[], 0).contains("disk=\"vm1\""), "it is gone");
    }
}
