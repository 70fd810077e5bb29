//! The figure `trace-memory`: packed traces of 1, 10 and 100 million requests through a pipe, the reader, the simulator and its
//! metrics; the most memory that was resident.

use crate::experiment::memory::{SyntheticTrace, replay};
use crate::output::Line;
use anyhow::{Context as _, bail, ensure};
use minerva_model::Nanos;
use minerva_sim_device::Profile;

/// Virtual time from one request to the next is 500 µs, so this ends every one of these traces.
const UNTIL: Nanos = Nanos(u64::MAX);
const MILLIONS: [u64; 3] = [1, 10, 100];
/// What a hundred times as many requests may add: what the allocator keeps, and counters that get longer.
const GROWTH_MIB_MAX: f64 = 4.0;
const MIB: f64 = 1_048_576.0;

pub(crate) fn figure(profile: &Profile) -> anyhow::Result<Vec<Line>> {
    let mut peaks_mib = Vec::new();
    for millions in MILLIONS {
        forget_peak()?;
        stream(profile, millions * 1_000_000)?;
        peaks_mib.push(peak_bytes()? as f64 / MIB);
    }
    let growth_mib = peaks_mib[2] - peaks_mib[0];
    Ok(vec![Line {
        id: "trace-memory",
        value: peaks_mib[2],
        unit: "MiB",
        goal: format!("at 100 million requests at most {GROWTH_MIB_MAX} MiB more than at 1 million"),
        met: growth_mib <= GROWTH_MIB_MAX,
        detail: format!(
            "most resident at 1, 10 and 100 million requests: {:.1}, {:.1}, {:.1} MiB, with the generator and zstd; {} model",
            peaks_mib[0], peaks_mib[1], peaks_mib[2], profile.name
        ),
    }])
}

/// Packs a synthetic trace into a pipe on another thread, and replays what comes out of it.
fn stream(profile: &Profile, records: u64) -> anyhow::Result<()> {
    let (reader, writer) = std::io::pipe().context("failed to make a pipe")?;
    let generator = std::thread::spawn(move || {
        let mut packed = zstd::Encoder::new(writer, 1)?;
        std::io::copy(&mut SyntheticTrace::new(records), &mut packed)?;
        packed.finish().map(drop)
    });
    let mut world = replay(profile, reader)?;
    world.run(UNTIL);
    let served = world.requests();
    let Ok(packed) = generator.join() else { bail!("the generator of the trace failed") };
    packed.context("failed to pack the trace")?;
    ensure!(served == records, "{served} requests were served of a trace of {records}");
    Ok(())
}

/// The most of this process's memory that was resident at once.
fn peak_bytes() -> anyhow::Result<u64> {
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).with_context(|| format!("failed to read {path}"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|rest| rest.trim_end_matches("kB").trim());
    let kib: u64 = line.and_then(|kib| kib.parse().ok()).with_context(|| format!("{path} has no line VmHWM in kB"))?;
    Ok(kib * 1024)
}

/// From here on the peak counts anew.
fn forget_peak() -> anyhow::Result<()> {
    let path = "/proc/self/clear_refs";
    std::fs::write(path, "5").with_context(|| format!("failed to write to {path}"))
}
