//! What the kernel prints.

use minerva_linux_observe::parse;

/// cgroup v1 `blkio` counters.
pub fn blkio(text: &[u8]) {
    assert!(parse::parse_blkio(text).rows.len() <= text.len());
}

/// `/proc/<pid>/cgroup` and `cgroup.procs`.
pub fn cgroup(text: &[u8]) {
    let groups = parse::parse_cgroup_membership(text);
    assert!(groups.rows.len() + groups.malformed.count as usize <= text.len());
    assert!(groups.rows.iter().all(|group| group.path.starts_with('/') && !group.path.contains('\n')));
    let pids = parse::parse_pids(text);
    assert!(pids.rows.len() + pids.malformed.count as usize <= text.len());
    assert!(!pids.rows.contains(&0), "0 is no process: the kernel says it of one that is elsewhere");
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
    let (bytes, malformed) = parse::parse_network_bytes(text);
    assert!(malformed.count as usize <= text.len());
    assert!(bytes == 0 || text.contains(&b':'), "{bytes} bytes without an interface");
}

/// Pressure files.
pub fn pressure(text: &[u8]) {
    let (pressure, malformed) = parse::parse_pressure(text);
    assert!(malformed.count as usize <= text.len());
    assert!(pressure.is_none() || text.windows(4).any(|word| word == b"some"), "{pressure:?}");
}

/// `/proc/<pid>/stat`, `/proc/<pid>/io` and a QEMU command line.
pub fn process(text: &[u8]) {
    if let Some(stat) = parse::parse_process_stat(text) {
        // A byte that is no text becomes a character of three.
        assert!(stat.name.len() <= 3 * text.len());
    }
    if parse::parse_process_io(text).is_some() {
        assert!(text.windows(10).any(|word| word == b"read_bytes"));
    }
    assert!(parse::parse_guest_cids(text).len() <= text.len());
    if let Some(file) = parse::parse_file_of_serial(text, "root") {
        assert!(file.as_os_str().len() <= text.len(), "{}", file.display());
    }
}
