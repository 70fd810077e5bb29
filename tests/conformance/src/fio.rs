//! fio: a job file in, a log of every request out.
//!
//! Its own summary is of no use here: each process begins to count at its first completion after the ramp, and goes on
//! until its last, so that one that waits for its turn counts time in which the others have ended. The log has the instant of
//! every completion, from which all are counted over one and the same window.

use crate::job::TenantJob;
use crate::log::{Entry, Window};
use crate::way::Duration;
use anyhow::{Context as _, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// One process of fio.
pub(crate) struct Process<'a> {
    pub(crate) tenant: &'a TenantJob,
    pub(crate) offset_bytes: u64,
    pub(crate) region_bytes: u64,
    /// Its cgroup below the controller's mount, if it has one.
    pub(crate) cgroup: Option<String>,
}

/// The text of a job file. Everyone starts at once.
fn job_file(device: &Path, processes: &[Process<'_>], runtime_ms: u64) -> String {
    // `nice` keeps out whoever else uses this machine: a disk does not wait for a processor. fio 3.33 refuses -20.
    let mut text = format!(
        "[global]\nfilename={}\ndirect=1\nioengine=libaio\ntime_based=1\nruntime={runtime_ms}ms\nnice=-19\n\
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

/// Runs fio. The log of each process, and the window to count.
pub(crate) fn run(
    device: &Path,
    processes: &[Process<'_>],
    duration: Duration,
) -> anyhow::Result<(Vec<Vec<Entry>>, Window)> {
    let folder = tempfile::tempdir().context("make a folder for fio's job file")?;
    let path = folder.path().join("job.fio");
    std::fs::write(&path, job_file(device, processes, duration.whole_ms()))
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
    Ok((logs, duration.window(first_ms)))
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

#[cfg(test)]
mod tests {
    use super::{Entry, Process, job_file, parse_line};
    use crate::draw::{COUNT, draw};
    use crate::job::region;
    use std::path::Path;
    use std::process::Command;

    /// fio itself reads the files; it opens no disk for that.
    #[test]
    fn fio_accepts_every_job_drawn() {
        if Command::new("fio").arg("--version").output().is_err() {
            println!("skipped: needs fio");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.fio");
        for job in (0..2).flat_map(|seed| draw(seed, COUNT)) {
            let processes: Vec<Process<'_>> = job
                .tenants
                .iter()
                .enumerate()
                .map(|(index, tenant)| {
                    let (offset_bytes, region_bytes) = region(job.tenants.len(), index, 64 << 30);
                    Process { tenant, offset_bytes, region_bytes, cgroup: Some(format!("drawn/{index}")) }
                })
                .collect();
            std::fs::write(&path, job_file(Path::new("/dev/drawn"), &processes, 1000)).unwrap();
            let output = Command::new("fio").arg("--parse-only").arg(&path).current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{job}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    #[test]
    fn a_line_of_the_log_is_understood_or_shown() {
        let entry = parse_line("1763690000123, 99, 0, 4096, 0, 0").unwrap();
        assert_eq!(entry, Entry { at_ms: 1_763_690_000_123, time_ns: 99, bytes: 4096 });
        assert!(parse_line("12, x, 0, 1").unwrap_err().to_string().contains("12, x"));
    }
}
