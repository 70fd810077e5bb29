//! What the kernel prints.

use minerva_linux_observe::parse;

/// cgroup v1 `blkio` counters.
pub fn blkio(text: &[u8]) {
    assert!(parse::parse_blkio(text).rows.len() <= text.len());
}

/// `/proc/<pid>/cgroup` and `cgroup.procs`.
pub fn cgroup(text: &[u8]) {
    parse::parse_cgroup_membership(text);
    parse::parse_pids(text);
}

/// `queue/scheduler` and `io.cost.qos`.
pub fn disk_facts(text: &[u8]) {
    assert!(parse::parse_elevators(text).available.len() <= text.len());
    parse::parse_io_cost_qos(text);
    parse::parse_io_cost_model(text);
}

/// `/proc/diskstats`.
pub fn diskstats(text: &[u8]) {
    let parsed = parse::parse_diskstats(text);
    assert!(parsed.rows.len() + parsed.malformed.count as usize <= text.len());
}

/// cgroup v2 `io.stat`.
pub fn io_stat(text: &[u8]) {
    let parsed = parse::parse_io_stat(text);
    assert!(parsed.rows.len() + parsed.malformed.count as usize <= text.len());
}

/// `/proc/<pid>/mountinfo`.
pub fn mountinfo(text: &[u8]) {
    let parsed = parse::parse_mountinfo(text);
    assert!(parsed.rows.len() + parsed.malformed.count as usize <= text.len());
}

/// `/proc/<pid>/net/dev`.
pub fn network(text: &[u8]) {
    parse::parse_network_bytes(text);
}

/// Pressure files.
pub fn pressure(text: &[u8]) {
    parse::parse_pressure(text);
}

/// `/proc/<pid>/stat`, `/proc/<pid>/io` and a QEMU command line.
pub fn process(text: &[u8]) {
    parse::parse_process_stat(text);
    parse::parse_process_io(text);
    parse::parse_guest_cids(text);
    parse::parse_file_of_serial(text, "root");
}
