//! fio: a job file in, a log of every request out.
//!
//! Its own summary is of no use here: each process begins to count at its first completion after the ramp, and goes on
//! until its last, so that one that waits for its turn counts time in which the others have ended. The log has the instant of
//! every completion, from which all are counted over one and the same window.

use crate::TenantOutcome;
use crate::job::TenantJob;
use anyhow::{Context as _, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// After the window, so that everybody still is at work when it ends.
const TAIL_S: u64 = 1;

/// One process of fio.
pub(crate) struct Process<'a> {
    pub(crate) tenant: &'a TenantJob,
    pub(crate) offset_bytes: u64,
    pub(crate) region_bytes: u64,
    /// Its cgroup below the controller's mount, if it has one.
    pub(crate) cgroup: Option<String>,
}

/// What a process did within the window.
pub(crate) struct Report {
    /// Time of each request, rising, in nanoseconds.
    times_ns: Vec<u64>,
    bytes: u64,
    seconds: u64,
}

impl Report {
    /// The time that `part` of all requests did not exceed; zero without requests.
    pub(crate) fn quantile_ns(&self, part: f64) -> f64 {
        let rank = (self.times_ns.len() as f64 * part).ceil() as usize;
        self.times_ns.get(rank.saturating_sub(1)).copied().unwrap_or_default() as f64
    }

    pub(crate) fn requests_per_second(&self) -> f64 {
        self.times_ns.len() as f64 / self.seconds as f64
    }

    pub(crate) fn outcome(&self) -> TenantOutcome {
        let sum: u64 = self.times_ns.iter().sum();
        TenantOutcome {
            bytes_per_second: self.bytes as f64 / self.seconds as f64,
            p99_ms: self.quantile_ns(0.99) / 1e6,
            mean_ms: sum as f64 / self.times_ns.len().max(1) as f64 / 1e6,
            requests: self.times_ns.len() as u64,
        }
    }
}

/// The text of a job file. Everyone starts at once.
fn job_file(device: &Path, processes: &[Process<'_>], runtime_s: u64) -> String {
    // `nice` keeps out whoever else uses this machine: a disk does not wait for a processor. fio 3.33 refuses -20.
    let mut text = format!(
        "[global]\nfilename={}\ndirect=1\nioengine=libaio\ntime_based=1\nruntime={runtime_s}s\nnice=-19\n\
         norandommap=1\nrandrepeat=1\nallow_mounted_write=1\nlog_unix_epoch=1\n",
        device.display()
    );
    for (index, process) in processes.iter().enumerate() {
        let tenant = process.tenant;
        let order = if tenant.random { "rand" } else { "" };
        let direction = if tenant.write { "write" } else { "read" };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "[{index}]\nrw={order}{direction}\nbs={}\niodepth={}\noffset={}\nsize={}\nrandseed={}\nwrite_lat_log={index}\n",
            tenant.block_bytes,
            tenant.depth,
            process.offset_bytes,
            process.region_bytes,
            index + 1
        );
        if let Some(cgroup) = &process.cgroup {
            let _ = writeln!(text, "cgroup={cgroup}\ncgroup_nodelete=1");
        }
    }
    text
}

/// Runs fio for `seconds` after a ramp of `ramp_s`, which is not counted.
pub(crate) fn run(device: &Path, processes: &[Process<'_>], ramp_s: u64, seconds: u64) -> anyhow::Result<Vec<Report>> {
    let folder = tempfile::tempdir().context("make a folder for fio's job file")?;
    let path = folder.path().join("job.fio");
    std::fs::write(&path, job_file(device, processes, ramp_s + seconds + TAIL_S))
        .with_context(|| format!("write {}", path.display()))?;
    let mut command = Command::new("fio");
    command.arg("--output=summary").arg(&path).current_dir(folder.path());
    let output = command.output().context("start `fio`; install it with `apt-get install fio`")?;
    if !output.status.success() {
        let summary = std::fs::read_to_string(folder.path().join("summary")).unwrap_or_default();
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("fio ended with {}: {}{}", output.status, complaint.trim(), summary.lines().next().unwrap_or_default());
    }
    let mut logs = Vec::new();
    for index in 0..processes.len() {
        // fio numbers its logs from 1.
        let path = folder.path().join(format!("{index}_lat.{}.log", index + 1));
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        logs.push(text.lines().map(parse_line).collect::<anyhow::Result<Vec<Entry>>>()?);
    }
    let first_ms = logs.iter().flatten().map(|entry| entry.at_ms).min().context("fio logged no request")?;
    let from_ms = first_ms + ramp_s * 1000;
    Ok(logs.iter().map(|log| count(log, from_ms, seconds)).collect())
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at_ms: u64,
    time_ns: u64,
    bytes: u64,
}

/// A line of the log: `milliseconds, nanoseconds, direction, bytes, offset, priority`.
fn parse_line(line: &str) -> anyhow::Result<Entry> {
    let mut fields = line.split(',').map(str::trim);
    let mut number = || fields.next()?.parse::<u64>().ok();
    let entry = (|| {
        let (at_ms, time_ns, _direction) = (number()?, number()?, number()?);
        Some(Entry { at_ms, time_ns, bytes: number()? })
    })();
    entry.with_context(|| format!("understand the line `{line}` of fio's log"))
}

fn count(log: &[Entry], from_ms: u64, seconds: u64) -> Report {
    let within = |entry: &&Entry| (from_ms..from_ms + seconds * 1000).contains(&entry.at_ms);
    let mut times_ns: Vec<u64> = log.iter().filter(within).map(|entry| entry.time_ns).collect();
    times_ns.sort_unstable();
    Report { times_ns, bytes: log.iter().filter(within).map(|entry| entry.bytes).sum(), seconds }
}

#[cfg(test)]
mod tests {
    use super::{Entry, count, parse_line};

    #[test]
    fn only_what_completed_within_the_window_counts() {
        let entry = parse_line("1763690000123, 99, 0, 4096, 0, 0").unwrap();
        assert_eq!(entry, Entry { at_ms: 1_763_690_000_123, time_ns: 99, bytes: 4096 });
        assert!(parse_line("12, x, 0, 1").unwrap_err().to_string().contains("12, x"));
        let log =
            [(999, 5), (1000, 7), (1500, 3), (2000, 9)].map(|(at_ms, time_ns)| Entry { at_ms, time_ns, bytes: 8 });
        let report = count(&log, 1000, 1);
        assert_eq!((report.bytes, report.outcome().requests, report.quantile_ns(0.99)), (16, 2, 7.0));
    }
}
