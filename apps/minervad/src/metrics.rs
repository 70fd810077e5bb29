//! Every metric that the daemon exports: name, unit and description stand here and nowhere else.
//!
//! Cardinality is bounded: labels are disks, the operator's groups, kinds of findings and outcomes, never tenants. What a single tenant does is
//! in `minerva-ctl top` and `explain`.

use minerva_model::{FindingKind, LoadSum};
use minerva_store_thread::StoreMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

/// Label `device`: the kernel name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DeviceLabel {
    pub(crate) device: String,
}

/// Label `horizon`: how far ahead.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct HorizonLabel {
    pub(crate) horizon: &'static str,
}

/// Label `kind`: a [`FindingKind`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct KindLabel {
    pub(crate) kind: &'static str,
}

/// Labels `kind`: `device` or `group`, `name`: the kernel's or the operator's, and `horizon`: `day` or `week`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LoadLabels {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) horizon: &'static str,
}

/// Labels of one end of an interval: those of [`LoadLabels`], `direction`: `read` or `write`, and `end`: `lower` or `upper`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LoadEndLabels {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) horizon: &'static str,
    pub(crate) direction: &'static str,
    pub(crate) end: &'static str,
}

/// Label `outcome`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OutcomeLabel {
    pub(crate) outcome: &'static str,
}

/// Labels `request`: what was asked, and `outcome`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) request: &'static str,
    pub(crate) outcome: &'static str,
}

/// A gauge that holds a fraction.
type Ratio = Gauge<f64, AtomicU64>;

/// The numbers themselves. Cheap to update: an atomic each, or a map of a few labels.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) slices: Counter,
    pub(crate) slices_late: Counter,
    pub(crate) slice_duration: Histogram,
    pub(crate) writes: Family<OutcomeLabel, Counter>,
    pub(crate) inspections: Counter,
    pub(crate) rows_read: Counter,
    pub(crate) rows_skipped: Counter,
    pub(crate) decisions: Counter,
    pub(crate) findings: Family<KindLabel, Counter>,
    pub(crate) tenants: Gauge,
    pub(crate) devices: Gauge,
    pub(crate) contention: Family<DeviceLabel, Gauge>,
    pub(crate) busy: Family<DeviceLabel, Ratio>,
    pub(crate) reloads: Family<OutcomeLabel, Counter>,
    pub(crate) commands_waiting: Gauge,
    pub(crate) journal_syncs: Counter,
    pub(crate) store: StoreMetrics,
    pub(crate) client_slices_dropped: Counter,
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) refusals_dropped: Counter,
    pub(crate) credits_held: Ratio,
    pub(crate) level_claims: Gauge,
    pub(crate) forecasts: Family<HorizonLabel, Gauge>,
    pub(crate) forecasts_skilled: Family<HorizonLabel, Gauge>,
    pub(crate) forecasts_naive: Family<HorizonLabel, Gauge>,
    pub(crate) forecast_skill: Family<HorizonLabel, Ratio>,
    pub(crate) forecast_intervals: Family<OutcomeLabel, Counter>,
    pub(crate) device_forecast: Family<DeviceLabel, Ratio>,
    pub(crate) load_forecast: Family<LoadLabels, Ratio>,
    pub(crate) load_forecast_interval: Family<LoadEndLabels, Ratio>,
    pub(crate) load_forecast_skill: Family<LoadLabels, Ratio>,
    pub(crate) loads_without_room: Gauge,
    pub(crate) pairs_without_room: Gauge,
}

impl Metrics {
    /// Empty metrics, each registered in the registry that the scrape reads.
    pub(crate) fn new(mode: &str) -> (Self, Registry) {
        let metrics = Self {
            slices: Counter::default(),
            slices_late: Counter::default(),
            // From 0.1 ms to 3.3 s: a host without tenants up to one that has lost its budget.
            slice_duration: Histogram::new(exponential_buckets(1e-4, 2.0, 16)),
            writes: Family::default(),
            inspections: Counter::default(),
            rows_read: Counter::default(),
            rows_skipped: Counter::default(),
            decisions: Counter::default(),
            findings: Family::default(),
            tenants: Gauge::default(),
            devices: Gauge::default(),
            contention: Family::default(),
            busy: Family::default(),
            reloads: Family::default(),
            commands_waiting: Gauge::default(),
            journal_syncs: Counter::default(),
            store: StoreMetrics::default(),
            client_slices_dropped: Counter::default(),
            requests: Family::default(),
            refusals_dropped: Counter::default(),
            credits_held: Ratio::default(),
            level_claims: Gauge::default(),
            forecasts: Family::default(),
            forecasts_skilled: Family::default(),
            forecasts_naive: Family::default(),
            forecast_skill: Family::default(),
            forecast_intervals: Family::default(),
            device_forecast: Family::default(),
            load_forecast: Family::default(),
            load_forecast_interval: Family::default(),
            load_forecast_skill: Family::default(),
            loads_without_room: Gauge::default(),
            pairs_without_room: Gauge::default(),
        };
        // A counter that appears only with its first failure cannot be alerted on: show the zeros from the start.
        for outcome in ["done", "refused", "vanished"] {
            drop(metrics.writes.get_or_create(&OutcomeLabel { outcome }));
        }
        for outcome in ["accepted", "refused"] {
            drop(metrics.reloads.get_or_create(&OutcomeLabel { outcome }));
        }
        for kind in FindingKind::ALL {
            drop(metrics.findings.get_or_create(&KindLabel { kind: kind.as_str() }));
        }
        let registry = metrics.register(mode);
        (metrics, registry)
    }

    fn register(&self, mode: &str) -> Registry {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let mut registry = Registry::with_prefix("minerva");
        let build = prometheus_client::metrics::info::Info::new(vec![("version", version), ("mode", mode.to_owned())]);
        registry.register("daemon", "The daemon's version and the mode it started in", build);
        registry.register("slices", "Slices ended", self.slices.clone());
        registry.register("slices_late", "Slices that began after their time", self.slices_late.clone());
        let text = "What the daemon itself spent on a slice, its reads and writes included";
        registry.register_with_unit("slice_duration", text, Unit::Seconds, self.slice_duration.clone());
        registry.register("knob_writes", "Knobs written, by outcome", self.writes.clone());
        registry.register("knob_inspections", "Knobs read to learn what they hold", self.inspections.clone());
        registry.register("sample_rows", "Counter rows read from the kernel", self.rows_read.clone());
        registry.register("sample_skipped", "Counter places that could not be read", self.rows_skipped.clone());
        registry.register("decisions", "Decisions that changed a share or its reasons", self.decisions.clone());
        registry.register("findings", "Findings, by kind", self.findings.clone());
        registry.register("tenants", "Tenants watched now", self.tenants.clone());
        registry.register("devices", "Disks watched now", self.devices.clone());
        let text = "Tenants that actively used the disk in the latest slice";
        registry.register("device_contention", text, self.contention.clone());
        let text = "Part of the latest slice in which the disk had a request in flight, 0 to 1";
        registry.register("device_busy_ratio", text, self.busy.clone());
        registry.register("config_reloads", "The operator's file read again, by outcome", self.reloads.clone());
        let text = "Requests of tenants and operators that wait for the slice loop";
        registry.register("commands_waiting", text, self.commands_waiting.clone());
        let text = "Times that the journal of knobs was synced: once for all that are written together";
        registry.register("journal_syncs", text, self.journal_syncs.clone());
        self.store.register(&mut registry);
        let text = "Slices that a watching client was too slow for";
        registry.register("client_slices_dropped", text, self.client_slices_dropped.clone());
        let text = "Requests of tenants that reached the slice loop, by what was asked and how it was answered";
        registry.register("tenant_requests", text, self.requests.clone());
        let text = "Refusals at the listeners that are missing in the audit, because there were too many in one slice";
        registry.register("tenant_refusals_dropped", text, self.refusals_dropped.clone());
        registry.register("credits_held", "Credits that all accounts hold together", self.credits_held.clone());
        let text = "Levels that tenants set, hold or have a schedule for";
        registry.register("level_claims", text, self.level_claims.clone());
        self.register_forecasts(&mut registry);
        registry
    }

    fn register_forecasts(&self, registry: &mut Registry) {
        registry.register("forecasts", "Forecasts that stand, by horizon", self.forecasts.clone());
        let text = "Forecasts that stand and are surely better than every naive one, by horizon";
        registry.register("forecasts_skilled", text, self.forecasts_skilled.clone());
        let text = "Forecasts that stand and are naive ones, as there is no model yet or models did worse, by horizon";
        registry.register("forecasts_naive", text, self.forecasts_naive.clone());
        let text = "Mean skill of the forecasts that stand, by horizon: 1 is perfect, 0 no better than naive";
        registry.register("forecast_skill_ratio", text, self.forecast_skill.clone());
        let text = "Intervals around forecasts of a slice, by whether what came was within: 80 of 100 are to hold";
        registry.register("forecast_intervals", text, self.forecast_intervals.clone());
        let text = "Bytes that all tenants together are expected to transfer on the disk in the next 15 s";
        registry.register("device_forecast_bytes", text, self.device_forecast.clone());
        let text = "Bytes that a disk or a group is expected to transfer in the next day or week";
        registry.register("load_forecast_bytes", text, self.load_forecast.clone());
        let text =
            "Ends of the intervals of those forecasts, once enough days or weeks came: 80 of 100 are to be within";
        registry.register("load_forecast_interval_bytes", text, self.load_forecast_interval.clone());
        let text = "Skill of those forecasts: 1 is perfect, 0 no better than naive ones";
        registry.register("load_forecast_skill_ratio", text, self.load_forecast_skill.clone());
        let text = "Disks and groups that did I/O in the last slice and have no such forecast, as there are too many";
        registry.register("loads_without_room", text, self.loads_without_room.clone());
        let text = "Tenants on disks that did I/O in the last slice and are not forecast, as there are too many";
        registry.register("pairs_without_room", text, self.pairs_without_room.clone());
    }

    /// Sets the gauges of the day or the week ahead of a disk or a group.
    pub(crate) fn load_foreseen(&self, labels: &LoadLabels, sum: LoadSum, skill: f64) {
        self.load_forecast.get_or_create(labels).set(f64::from(sum.read.value) + f64::from(sum.written.value));
        self.load_forecast_skill.get_or_create(labels).set(skill);
        for (direction, of) in [("read", sum.read), ("write", sum.written)] {
            for (end, value) in [("lower", of.lower), ("upper", of.upper)] {
                let LoadLabels { kind, name, horizon } = labels.clone();
                let labels = LoadEndLabels { kind, name, horizon, direction, end };
                if of.lower < of.upper {
                    self.load_forecast_interval.get_or_create(&labels).set(value.into());
                } else {
                    self.load_forecast_interval.remove(&labels);
                }
            }
        }
    }

    /// A disk or a group whose days ahead were foreseen is gone, and its gauges with it.
    pub(crate) fn load_gone(&self, kind: &'static str, name: &str) {
        for horizon in ["day", "week"] {
            let labels = LoadLabels { kind, name: name.to_owned(), horizon };
            self.load_forecast.remove(&labels);
            self.load_forecast_skill.remove(&labels);
            for (direction, end) in [("read", "lower"), ("read", "upper"), ("write", "lower"), ("write", "upper")] {
                let name = name.to_owned();
                self.load_forecast_interval.remove(&LoadEndLabels { kind, name, horizon, direction, end });
            }
        }
    }

    /// Counts one interval.
    pub(crate) fn interval_held(&self, held: bool) {
        let outcome = if held { "held" } else { "missed" };
        self.forecast_intervals.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Intervals of one outcome.
    #[cfg(test)]
    pub(crate) fn intervals_of(&self, outcome: &'static str) -> u64 {
        self.forecast_intervals.get_or_create(&OutcomeLabel { outcome }).get()
    }

    /// Counts one request of a tenant. A purchase that waits for the store counts as granted.
    pub(crate) fn requested(&self, request: &'static str, granted: bool) {
        let outcome = if granted { "granted" } else { "refused" };
        self.requests.get_or_create(&RequestLabels { request, outcome }).inc();
    }

    /// Counts one finding.
    pub(crate) fn found(&self, kind: FindingKind) {
        self.findings.get_or_create(&KindLabel { kind: kind.as_str() }).inc();
    }

    /// Counts one write.
    pub(crate) fn wrote(&self, outcome: &'static str) {
        self.writes.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Writes of every outcome.
    pub(crate) fn writes_total(&self) -> u64 {
        ["done", "refused", "vanished"].iter().map(|outcome| self.writes_of(outcome)).sum()
    }

    /// Writes of one outcome.
    pub(crate) fn writes_of(&self, outcome: &'static str) -> u64 {
        self.writes.get_or_create(&OutcomeLabel { outcome }).get()
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceLabel, HorizonLabel, LoadLabels, Metrics};
    use minerva_metrics_server::render;
    use minerva_model::{Expectation, FindingKind, LoadSum};

    #[test]
    fn zeros_are_shown_before_anything_happened() {
        let (metrics, registry) = Metrics::new("shadow");
        metrics.wrote("done");
        let text = render(&registry).expect("a string takes everything");
        assert!(text.contains("minerva_knob_writes_total{outcome=\"done\"} 1"), "{text}");
        assert!(text.contains("minerva_knob_writes_total{outcome=\"refused\"} 0"), "{text}");
        // Of each kind that the handbook has, the first one raises what counts by kind.
        let handbook = include_str!("../../../docs/operator.md");
        let (_, table) = handbook.split_once("\n## Findings\n").expect("a table of findings");
        let rows = table.split("\n## ").next().unwrap_or_default().lines();
        let kinds: Vec<&str> = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(kinds.len(), FindingKind::ALL.len());
        for kind in kinds {
            assert!(text.contains(&format!("minerva_findings_total{{kind=\"{kind}\"}} 0")), "{kind}: {text}");
        }
        assert!(text.contains("# UNIT minerva_slice_duration_seconds seconds"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        assert_eq!(metrics.writes_total(), 1);
    }

    /// A day whose bytes read have an interval, and those written not yet.
    fn sum() -> LoadSum {
        let of = |value, lower, upper| Expectation { value, lower, upper };
        LoadSum { read: of(7e9, 5e9, 8e9), written: of(1e9, 1e9, 1e9), ..LoadSum::default() }
    }

    #[test]
    fn the_bytes_of_a_day_are_its_sum_with_its_interval_and_go_with_the_disk() {
        let (metrics, registry) = Metrics::new("shadow");
        let label = |name: &str| LoadLabels { kind: "device", name: name.to_owned(), horizon: "day" };
        metrics.load_foreseen(&label("sda"), sum(), 0.5);
        metrics.load_foreseen(&label("sdb"), sum(), 0.5);
        let shown = || render(&registry).expect("a string takes everything");
        let text = shown();
        let day = r#"kind="device",name="sda",horizon="day""#;
        assert!(text.contains(&format!("minerva_load_forecast_bytes{{{day}}} 8000000000.0")), "{text}");
        let end = |end: &str| format!("minerva_load_forecast_interval_bytes{{{day},{end}}}");
        assert!(text.contains(&format!("{} 8000000000.0", end(r#"direction="read",end="upper""#))), "{text}");
        assert!(!text.contains(r#"direction="write""#), "what has no interval yet shows none: {text}");
        metrics.load_gone("device", "sda");
        let text = shown();
        assert!(!text.contains("sda") && text.contains("sdb"), "{text}");
    }

    #[test]
    fn each_is_in_the_operators_handbook() {
        let (metrics, registry) = Metrics::new("shadow");
        // Those with labels are shown only with a value.
        let label = DeviceLabel { device: "sda".to_owned() };
        metrics.contention.get_or_create(&label).set(1);
        metrics.requested("boost", true);
        metrics.busy.get_or_create(&label).set(1.0);
        metrics.device_forecast.get_or_create(&label).set(1.0);
        metrics.interval_held(true);
        let label = HorizonLabel { horizon: "pattern" };
        metrics.forecasts.get_or_create(&label).set(1);
        metrics.forecasts_skilled.get_or_create(&label).set(1);
        metrics.forecasts_naive.get_or_create(&label).set(1);
        metrics.forecast_skill.get_or_create(&label).set(1.0);
        let label = LoadLabels { kind: "device", name: "sda".to_owned(), horizon: "day" };
        metrics.load_foreseen(&label, sum(), 0.5);
        let text = render(&registry).expect("a string takes everything");
        let handbook = include_str!("../../../docs/operator.md");
        let names = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next());
        let names: Vec<&str> = names.collect();
        assert!(names.len() == 36, "{names:?}");
        for name in names {
            assert!(handbook.contains(&format!("`{name}")), "docs/operator.md does not have {name}");
        }
    }
}
