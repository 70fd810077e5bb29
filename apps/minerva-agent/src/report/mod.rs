//! What the host cannot see from outside: processes, the files that they have open, connections, memory, network.
//!
//! Processes come and go while they are looked at, and of other users' processes an agent without privileges sees little: what
//! cannot be read is left out. All of it is bounded by what one report may hold.

mod connections;
mod files;
mod processes;

use connections::Connections;
use minerva_api::v1;
use processes::Processes;
use procfs::{Current, Meminfo};
use prost::Message;
use std::time::{Duration, Instant};

/// Processes that a report may name.
const PROCESSES_MAX: usize = 256;
/// Files of one process that a report may name.
const FILES_MAX: usize = 32;
/// What a report may measure; the server takes a third more.
const BYTES_MAX: usize = 192 << 10;

/// Makes reports, each of what has passed since the one before.
#[derive(Debug)]
pub(crate) struct Watcher {
    at: Instant,
    processes: Processes,
    network: Network,
}

/// Bytes through all devices but the loopback, since they are there.
#[derive(Clone, Copy, Debug, Default)]
struct Network {
    received_bytes: u64,
    sent_bytes: u64,
}

impl Watcher {
    /// The first report will be of what passes from now on.
    pub(crate) fn begin() -> Self {
        Self { at: Instant::now(), processes: Processes::look(), network: Network::look() }
    }

    /// Looks again.
    pub(crate) fn report(&mut self) -> v1::ReportRequest {
        let before = std::mem::replace(self, Self::begin());
        let mut connections = Connections::default();
        let processes = self.processes.since(&before.processes, &mut connections);
        let memory = Meminfo::current().ok();
        let mut report = v1::ReportRequest {
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_ns: processes::uptime_ns(),
            elapsed_ns: nanos(self.at - before.at),
            processes,
            memory_available_bytes: memory.as_ref().map_or(0, |memory| memory.mem_available.unwrap_or(memory.mem_free)),
            memory_total_bytes: memory.as_ref().map_or(0, |memory| memory.mem_total),
            connections: connections.count(),
            // A device that was removed took its count along.
            network_received_bytes: self.network.received_bytes.saturating_sub(before.network.received_bytes),
            network_sent_bytes: self.network.sent_bytes.saturating_sub(before.network.sent_bytes),
        };
        shorten(&mut report);
        report
    }
}

impl Network {
    fn look() -> Self {
        let devices = procfs::net::dev_status().unwrap_or_default();
        devices.values().filter(|device| device.name != "lo").fold(Self::default(), |sum, device| Self {
            received_bytes: sum.received_bytes.saturating_add(device.recv_bytes),
            sent_bytes: sum.sent_bytes.saturating_add(device.sent_bytes),
        })
    }
}

/// Leaves out the smallest files, then the least busy processes, until the report is no longer than one may be.
fn shorten(report: &mut v1::ReportRequest) {
    let mut files_max = FILES_MAX;
    while report.encoded_len() > BYTES_MAX && files_max > 0 {
        files_max /= 2;
        for process in &mut report.processes {
            process.files.truncate(files_max);
        }
    }
    while report.encoded_len() > BYTES_MAX {
        report.processes.truncate(report.processes.len() / 2);
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, FILES_MAX, PROCESSES_MAX, Watcher, shorten};
    use minerva_api::v1;
    use prost::Message;
    use std::io::{Seek, SeekFrom};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_report_names_this_process_its_file_and_its_connection() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(3 << 20).expect("a size");
        file.seek(SeekFrom::Start(1 << 20)).expect("a position");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let _connection = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let mut watcher = Watcher::begin();
        let report = watcher.report();
        let own = report.processes.iter().find(|process| process.pid == std::process::id()).expect("this process");
        assert!(own.resident_bytes > 0 && own.connections >= 1 && report.connections >= own.connections);
        let path = file.path().to_string_lossy();
        let found = own.files.iter().find(|found| found.path == path).expect("its file");
        assert_eq!((found.size_bytes, found.position_bytes, found.writable), (3 << 20, 1 << 20, true));
        assert!(report.memory_total_bytes > report.memory_available_bytes && report.uptime_ns > 0);
        assert_eq!(report.agent, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn work_since_the_report_before_counts_and_earlier_work_does_not() {
        let mut watcher = Watcher::begin();
        let cpu = |report: &v1::ReportRequest| {
            let own = report.processes.iter().find(|process| process.pid == std::process::id());
            own.map_or(0, |process| process.cpu_ns)
        };
        // The kernel counts in ticks of 10 ms; this goes on until it has counted some.
        let mut sum = 0;
        while sum < 20_000_000 {
            std::hint::black_box((0..100_000_u64).sum::<u64>());
            let report = watcher.report();
            assert!(cpu(&report) <= report.elapsed_ns.saturating_mul(256) + 20_000_000);
            sum += cpu(&report);
        }
    }

    #[test]
    fn the_longest_report_is_shortened_to_what_is_taken() {
        let file = v1::OpenFile { path: "x".repeat(4000), size_bytes: 1, position_bytes: 1, writable: true };
        let process = v1::ProcessReport { pid: 1, files: vec![file; FILES_MAX], ..v1::ProcessReport::default() };
        let mut report = v1::ReportRequest { processes: vec![process; PROCESSES_MAX], ..v1::ReportRequest::default() };
        shorten(&mut report);
        assert!(report.encoded_len() <= BYTES_MAX);
        assert!(!report.processes.is_empty());
    }
}
