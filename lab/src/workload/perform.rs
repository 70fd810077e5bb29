//! The work itself, done in the worker process.

use super::buffer::{ALIGNMENT, AlignedBuffer};
use super::latency::Recorder;
use super::offsets::Offsets;
use super::rests::{Resting, rest};
use super::{Access, Begin, Cancel, Compute, Finished, PROGRESS_EVERY, Progress, Report, WorkloadSpec, deep};
use crate::clock::boottime;
use crate::error::{At, LabError, Result};
use crate::priority::hurry;
use minerva_model::Nanos;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What `minerva-lab worker` does: move into the cgroup, say ready, wait for a line, work, report.
///
/// It is killed when its parent ends, as `Worker::spawn` has it, and a closed standard input ends the work too.
pub fn worker_main(spec: &WorkloadSpec, cgroup_processes: Option<&Path>, begin: Begin<'_>) -> Result<()> {
    if let Some(path) = cgroup_processes {
        std::fs::write(path, "0").at("move into the cgroup through", path)?;
    }
    hurry();
    let file = open_for(spec)?;
    let mut output = std::io::stdout().lock();
    let mut report = |report: &Report| {
        let line = serde_json::to_string(report).unwrap_or_default();
        writeln!(output, "{line}").and_then(|()| output.flush()).at("report to", "the parent")
    };
    report(&Report::Ready)?;
    let mut line = String::new();
    let said = std::io::stdin().lock().read_line(&mut line).at("read from", "the parent")?;
    if said == 0 {
        return Ok(());
    }
    let cancel = Cancel::default();
    let end = Arc::clone(&cancel);
    // Any further line, or the end of input, means stop.
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        end.store(true, Ordering::Relaxed);
    });
    let started = boottime();
    let _shown = spec.appearance.show()?;
    report(&Report::Progress(Progress { at: started, bytes: 0 }))?;
    let done = spec.part.as_ref().map(|part| begin(spec, part)).transpose()?;
    let finished = perform_on(spec, &file, &cancel, &mut |progress| report(&Report::Progress(progress)))?;
    if let Some(done) = done {
        done();
    }
    let finished = Finished { started, ..finished };
    report(&Report::Finished(finished))
}

/// Does the work in this process.
pub fn perform(spec: &WorkloadSpec, cancel: &Cancel) -> Result<Finished> {
    perform_on(spec, &open_for(spec)?, cancel, &mut |_| Ok(()))
}

fn open_for(spec: &WorkloadSpec) -> Result<OwnedFd> {
    if spec.depth == 0 || (spec.depth > 1 && (spec.compute != Compute::Nothing || spec.access.is_buffered())) {
        let message = format!(
            "{}: a depth of {} is for what goes past the page cache, without compute, from 1",
            spec.tenant, spec.depth
        );
        return Err(LabError::BadPlan(message));
    }
    if spec.access.is_buffered() {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        return rustix::fs::open(&spec.path, flags, Mode::RUSR | Mode::WUSR).at("create", &spec.path);
    }
    open_direct(spec)
}

fn open_direct(spec: &WorkloadSpec) -> Result<OwnedFd> {
    let block = u64::from(spec.block_bytes);
    if block == 0 || !block.is_multiple_of(ALIGNMENT as u64) || !spec.region_start.is_multiple_of(ALIGNMENT as u64) {
        return Err(LabError::BadPlan(format!(
            "{}: block {block} and region start {} must be multiples of {ALIGNMENT} bytes, for direct I/O",
            spec.tenant, spec.region_start
        )));
    }
    if spec.region_bytes < block {
        return Err(LabError::BadPlan(format!(
            "{}: a region of {} bytes is smaller than one block of {block}",
            spec.tenant, spec.region_bytes
        )));
    }
    let direction = if spec.access.is_write() { OFlags::WRONLY } else { OFlags::RDONLY };
    rustix::fs::open(&spec.path, direction | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()).at("open", &spec.path)
}

fn perform_on(
    spec: &WorkloadSpec,
    file: &OwnedFd,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Finished> {
    if spec.depth > 1 {
        return deep::perform(spec, file, cancel, progress);
    }
    let mut buffer = AlignedBuffer::new(spec.block_bytes as usize);
    let mut recorder = Recorder::new();
    let mut checksum = (spec.compute == Compute::Checksum).then(Sha256::new);
    let mut places = Offsets::new(spec);
    let mut resting = spec.rests.map(|rests| Resting::new(rests, spec.seed));
    let started = boottime();
    let (mut ended, mut reported, mut done) = (started, started, 0);
    progress(Progress { at: started, bytes: 0 })?;
    while spec.bytes.is_none_or(|bytes| done < bytes) && !cancel.load(Ordering::Relaxed) {
        let left = spec.bytes.map_or(u64::MAX, |bytes| bytes - done);
        // The last request is cut to whole blocks of direct I/O; it may move a little more than was asked for.
        let length = left.min(u64::from(spec.block_bytes)).next_multiple_of(ALIGNMENT as u64) as usize;
        let before = boottime();
        match spec.access {
            Access::Commit => commit(spec, file, &buffer.bytes()[..length], done)?,
            _ => transfer(spec, file, &mut buffer.bytes()[..length], places.next())?,
        }
        recorder.record(boottime().since(before));
        done += (length as u64).min(left);
        if let Some(sum) = &mut checksum {
            sum.update(&buffer.bytes()[..length]);
        }
        if spec.think > Nanos::ZERO {
            std::thread::sleep(Duration::from_nanos(spec.think.0));
        }
        ended = boottime();
        let pause = resting.as_mut().and_then(|resting| resting.after(length as u64));
        // Before a pause too: what was done would be spread over it.
        if pause.is_some() || ended.since(reported) >= PROGRESS_EVERY {
            reported = ended;
            progress(Progress { at: ended, bytes: done })?;
        }
        if let Some(pause) = pause {
            rest(pause, cancel);
        }
    }
    ended = synced(spec, file, ended)?;
    progress(Progress { at: ended, bytes: done })?;
    let checksum = checksum.map(|sum| sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
    Ok(Finished { started, ended, bytes: done, latency: recorder.finish(), checksum })
}

/// When all is done that is asked for at the end.
fn synced(spec: &WorkloadSpec, file: &OwnedFd, ended: Nanos) -> Result<Nanos> {
    if spec.access != Access::WriteAndSync {
        return Ok(ended);
    }
    rustix::fs::fsync(file).at("sync", &spec.path)?;
    Ok(boottime())
}

/// One whole request; a device that moves only part of it is asked again for the rest.
fn transfer(spec: &WorkloadSpec, file: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        let at = offset + done as u64;
        let moved = match spec.access {
            Access::SequentialWrite | Access::RandomWrite | Access::BufferedWrite | Access::WriteAndSync => {
                rustix::io::pwrite(file, &buffer[done..], at).at("write to", &spec.path)?
            }
            _ => rustix::io::pread(file, &mut buffer[done..], at).at("read from", &spec.path)?,
        };
        if moved == 0 {
            return Err(LabError::BadPlan(format!("{}: {} ends at byte {at}", spec.tenant, spec.path.display())));
        }
        done += moved;
    }
    Ok(())
}

/// One transaction: a block at the end of the file, and the file with its new length on the disk. A database's log ends like this
/// too, and makes the file system's journal write.
fn commit(spec: &WorkloadSpec, file: &OwnedFd, block: &[u8], end: u64) -> Result<()> {
    let mut done = 0;
    while done < block.len() {
        done += rustix::io::pwrite(file, &block[done..], end + done as u64).at("write to", &spec.path)?;
    }
    rustix::fs::fsync(file).at("sync", &spec.path)
}

#[cfg(test)]
mod tests {
    use super::{open_for, perform, perform_on};
    use crate::workload::{Access, Appearance, Cancel, Compute, Rests, WorkloadSpec};
    use minerva_model::Nanos;
    use sha2::{Digest, Sha256};

    fn spec(path: &std::path::Path) -> WorkloadSpec {
        WorkloadSpec {
            tenant: "t".to_owned(),
            path: path.to_owned(),
            access: Access::SequentialRead,
            bytes: Some(1 << 20),
            block_bytes: 64 << 10,
            region_start: 4096,
            region_bytes: 128 << 10,
            depth: 1,
            compute: Compute::Checksum,
            think: Nanos::ZERO,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed: 7,
        }
    }

    #[test]
    fn every_byte_is_accounted_and_hashed() {
        let path = std::env::temp_dir().join(format!("minerva-test-perform-{}", std::process::id()));
        let contents: Vec<u8> = (0..(256 << 10)).map(|i| (i / 4096) as u8).collect();
        std::fs::write(&path, &contents).unwrap();
        let finished = perform(&spec(&path), &Cancel::default());
        std::fs::remove_file(&path).unwrap();
        let Ok(finished) = finished else {
            println!("skipped: needs direct I/O in {}", path.display());
            return;
        };
        assert_eq!((finished.bytes, finished.latency.count()), (1 << 20, 16));
        let region = &contents[4096..4096 + (128 << 10)];
        let mut expected = Sha256::new();
        (0..8).for_each(|_| expected.update(region));
        let expected: String = expected.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(finished.checksum, Some(expected));
    }

    #[test]
    fn what_was_done_before_a_pause_is_reported_before_it() {
        let path = std::env::temp_dir().join(format!("minerva-test-perform-rest-{}", std::process::id()));
        std::fs::write(&path, vec![0; 256 << 10]).unwrap();
        let rests = Rests { burst_bytes: 192 << 10, pause: Nanos::from_millis(150), jitter_permille: 0 };
        let spec = WorkloadSpec { rests: Some(rests), bytes: Some(512 << 10), ..spec(&path) };
        let mut reports = Vec::new();
        let opened = open_for(&spec);
        std::fs::remove_file(&path).unwrap();
        let Ok(file) = opened else { return println!("skipped: needs direct I/O in {}", path.display()) };
        perform_on(&spec, &file, &Cancel::default(), &mut |progress| {
            reports.push(progress.bytes >> 10);
            Ok(())
        })
        .unwrap();
        assert!(reports.contains(&192) && reports.contains(&384), "{reports:?}");
    }

    #[test]
    fn a_plan_that_direct_io_cannot_do_is_refused_in_words() {
        let bad = WorkloadSpec { block_bytes: 1000, ..spec("/dev/zero".as_ref()) };
        let message = perform(&bad, &Cancel::default()).unwrap_err().to_string();
        assert!(message.contains("multiples of 4096"), "{message}");
    }
}
