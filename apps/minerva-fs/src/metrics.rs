//! What Prometheus reads: of every tenant of the operator's file and each of its pools. Values are taken when they are asked for.

use crate::deferred::{Deferred, MoveCounts};
use crate::mount::Mount;
use crate::second_account::SecondTold;
use crate::tenant::Tenants;
use crate::user::User;
use anyhow::Context;
use minerva_api::cache::Pool;
use minerva_cachefs::{LATENCY_BOUNDS_NS, Operation, RequestFigures, Usage};
use minerva_config::Metrics as MetricsAddress;
use minerva_linux_observe::socket_path::remove_left_behind;
use minerva_metrics_server::MetricsListener;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;

const UNIX_MODE: u32 = 0o660;
const NS_PER_SECOND: f64 = 1e9;

/// Opens where metrics are read, before anything is mounted.
pub(crate) fn listen(address: &MetricsAddress) -> anyhow::Result<Option<MetricsListener>> {
    Ok(match address {
        MetricsAddress::None => None,
        MetricsAddress::Unix(path) => {
            let open = || {
                // The lock on the runtime directory says that nobody else serves it.
                remove_left_behind(path)?;
                let listener = UnixListener::bind(path)?;
                fs::set_permissions(path, Permissions::from_mode(UNIX_MODE))?;
                listener.set_nonblocking(true)?;
                std::io::Result::Ok(listener)
            };
            let failed = || format!("failed to listen at {} for metrics; set another server.metrics", path.display());
            Some(MetricsListener::Unix(open().with_context(failed)?, path.clone()))
        }
        MetricsAddress::Loopback(port) => {
            let open = || {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port))?;
                listener.set_nonblocking(true)?;
                std::io::Result::Ok(listener)
            };
            let failed = || format!("failed to listen on 127.0.0.1:{port} for metrics; set another server.metrics");
            Some(MetricsListener::Loopback(open().with_context(failed)?))
        }
    })
}

/// Answers scrapes on a thread of its own until the process ends.
pub(crate) fn serve(listener: MetricsListener, tenants: Tenants, deferred: Arc<Deferred>) -> anyhow::Result<()> {
    let mut registry = Registry::with_prefix("minerva_cache");
    registry.register_collector(Box::new(Trees { tenants, deferred }));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to serve metrics")?;
    let work = move || {
        if let Err(error) = runtime.block_on(minerva_metrics_server::serve(listener, registry)) {
            eprintln!("minerva-fs: metrics are not served: {error:#}");
        }
    };
    thread::Builder::new().name("metrics".to_owned()).spawn(work).map(drop).context("failed to start a thread")
}

/// Labels `tenant` and `pool`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TreeLabels {
    tenant: String,
    pool: &'static str,
}

/// The same, and `operation`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    tenant: String,
    pool: &'static str,
    operation: &'static str,
}

/// Where all of it is found.
struct Trees {
    tenants: Tenants,
    deferred: Arc<Deferred>,
}

impl fmt::Debug for Trees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trees").finish_non_exhaustive()
    }
}

/// What is known of one tree at this moment.
struct Seen {
    labels: TreeLabels,
    usage: Usage,
    /// Served, open files, descriptors, what somebody else counts, and whether that differs.
    now: [u64; 5],
    /// Bytes read and written, refusals by quota and for want of descriptors, files and bytes that went from memory to the disk, waits for
    /// the disk.
    totals: [u64; 7],
    requests: [RequestFigures; Operation::ALL.len()],
    waiting: Waiting,
    moved: MoveCounts,
}

/// Deferred files of one tree.
#[derive(Clone, Copy, Default)]
struct Waiting {
    files: u64,
    bytes: u64,
    left: u64,
}

/// Name, description, and which value of a tree it is.
type Row = (&'static str, &'static str, fn(&Seen) -> u64);

const GAUGES: &[Row] = &[
    ("served", "Whether the tree is mounted and served", |seen| seen.now[0]),
    ("used_bytes", "Bytes that the tree's files occupy", |seen| seen.usage.bytes),
    ("quota_bytes", "Bytes that they may occupy", |seen| seen.usage.bytes_max),
    ("used_files", "Files, directories and links", |seen| seen.usage.files),
    ("quota_files", "How many there may be", |seen| seen.usage.files_max),
    ("open_files", "Files and directories that programs have open", |seen| seen.now[1]),
    ("descriptors", "Descriptors of the service that the tree's files have", |seen| seen.now[2]),
    (
        "second_account_bytes",
        "Bytes by the kernel's or a walk's count; 0 before the first, and where nobody else counts",
        |seen| seen.now[3],
    ),
    ("account_differs", "Whether that count and the service's own differ", |seen| seen.now[4]),
    ("waiting_files", "Deferred files that wait for migration", |seen| seen.waiting.files),
    ("waiting_bytes", "Bytes that these occupy", |seen| seen.waiting.bytes),
    ("left_files", "Deferred files to which no link leads any more", |seen| seen.waiting.left),
];

const COUNTERS: &[Row] = &[
    ("read_bytes", "Bytes read through the service; what the kernel reads by itself is not known", |seen| {
        seen.totals[0]
    }),
    ("written_bytes", "Bytes written", |seen| seen.totals[1]),
    ("refused", "Writes, files and directories that the quota refused", |seen| seen.totals[2]),
    ("refused_descriptors", "Files that were refused for want of descriptors", |seen| seen.totals[3]),
    ("spilled_files", "Files that went from memory to the disk", |seen| seen.totals[4]),
    ("spilled_bytes", "Their bytes", |seen| seen.totals[5]),
    ("disk_waits", "Requests of the tenant that waited for the pool's disk because others used it", |seen| {
        seen.totals[6]
    }),
    ("moved_files", "Deferred files that were moved to their place", |seen| seen.moved.moved_files),
    ("moved_bytes", "Their bytes", |seen| seen.moved.moved_bytes),
    ("move_failures", "Attempts to move a file that ended without it", |seen| seen.moved.failed),
];

impl Collector for Trees {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let trees = self.look();
        for (name, help, value) in GAUGES {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for seen in &trees {
                let value = i64::try_from(value(seen)).unwrap_or(i64::MAX);
                ConstGauge::new(value).encode(family.encode_family(&seen.labels)?)?;
            }
        }
        for (name, help, value) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for seen in &trees {
                ConstCounter::new(value(seen)).encode(family.encode_family(&seen.labels)?)?;
            }
        }
        let help = "Requests that failed because the disk or memory did";
        let mut family = encoder.encode_descriptor("request_failures", help, None, MetricType::Counter)?;
        for (labels, figures) in trees.iter().flat_map(requests) {
            ConstCounter::new(figures.failures).encode(family.encode_family(&labels)?)?;
        }
        let help = "Seconds that requests took which passed the service";
        let mut family = encoder.encode_descriptor("request_seconds", help, None, MetricType::Histogram)?;
        for (labels, figures) in trees.iter().flat_map(requests) {
            let sum = figures.total_ns as f64 / NS_PER_SECOND;
            let count = figures.counts.iter().sum();
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets(figures), None)?;
        }
        Ok(())
    }
}

fn requests(seen: &Seen) -> impl Iterator<Item = (OperationLabels, &RequestFigures)> {
    let TreeLabels { tenant, pool } = &seen.labels;
    Operation::ALL.into_iter().zip(&seen.requests).map(move |(operation, figures)| {
        (OperationLabels { tenant: tenant.clone(), pool, operation: operation.as_str() }, figures)
    })
}

/// Upper bounds in seconds, each with how many took longer than the one before.
fn buckets(figures: &RequestFigures) -> Vec<(f64, u64)> {
    let bounds = LATENCY_BOUNDS_NS.iter().map(|bound| *bound as f64 / NS_PER_SECOND).chain([f64::INFINITY]);
    bounds.zip(figures.counts).collect()
}

impl Trees {
    fn look(&self) -> Vec<Seen> {
        let mut waiting: BTreeMap<(String, String), Waiting> = BTreeMap::new();
        for file in self.deferred.list(&User::root(), None) {
            let sums = waiting.entry((file.tenant, file.pool)).or_default();
            if file.step == "left" {
                sums.left += 1;
            } else {
                sums.files += 1;
                sums.bytes += file.bytes;
            }
        }
        let moved = self.deferred.moves();
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let trees = tenants.iter().flat_map(|tenant| {
            [(Pool::Temporary, &tenant.second.temporary), (Pool::Stable, &tenant.second.stable)]
                .map(|(pool, second)| (tenant.name.clone(), pool, tenant.mount(pool), second))
        });
        trees
            .map(|(tenant, pool, mount, second)| {
                let key = (tenant, pool.as_str().to_owned());
                let (waiting, moved) = (waiting.get(&key).copied(), moved.get(&key).copied());
                let labels = TreeLabels { tenant: key.0, pool: pool.as_str() };
                let second = second.as_ref().map(|second| second.told()).unwrap_or_default();
                seen(labels, (mount, &second), waiting.unwrap_or_default(), moved.unwrap_or_default())
            })
            .collect()
    }
}

fn seen(labels: TreeLabels, (mount, second): (&Mount, &SecondTold), waiting: Waiting, moved: MoveCounts) -> Seen {
    let counters = mount.tree.counters();
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Seen {
        labels,
        usage: mount.tree.usage(),
        now: [
            u64::from(mount.is_served()),
            mount.tree.known().1 as u64,
            mount.tree.descriptors(),
            second.bytes,
            u64::from(!second.difference.is_empty()),
        ],
        totals: [
            of(&counters.bytes_read),
            of(&counters.bytes_written),
            of(&counters.refused),
            of(&counters.refused_descriptors),
            of(&counters.spilled_files),
            of(&counters.spilled_bytes),
            mount.tree.disk_figures().waited,
        ],
        requests: Operation::ALL.map(|operation| counters.requests.figures(operation)),
        waiting,
        moved,
    }
}
