//! The guests of one run: each a stock kernel in QEMU with readers that are told nothing but which priority to have.

use super::part::GuestPart;
use super::{VmArm, VmGuest, VmPlan, busybox};
use crate::error::{LabError, Result};
use crate::guest::{Architecture, Guest, GuestBuilder, GuestOutput, HostDisk};
use crate::priority::hurry;
use crate::workload::{Appearance, Compute, Progress, Report, TenantCgroup, WorkloadSpec};
use minerva_model::Nanos;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(600);
/// Room for the reader and its libraries, twice while the archive is unpacked.
const MEMORY_MIB: u32 = 384;
/// The disk of a guest, as it sees it.
const DEVICE: &str = "/dev/vda";
const IONICE: &str = "/usr/bin/ionice";

/// What the threads of the guests and the one that conducts tell each other.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Every reader of the guest has read something.
    pub(super) has_begun: AtomicBool,
    /// The instant of the guest's clock at which a reader reported last, in nanoseconds.
    pub(super) latest: AtomicU64,
}

/// Runs one guest until `is_over`, and returns what its readers reported.
pub(super) fn run(
    plan: &VmPlan<'_>,
    (guest, part): (&VmGuest, &GuestPart),
    socket: &Path,
    group: &TenantCgroup,
    (signs, is_over): (&Signs, &AtomicBool),
) -> Result<Vec<Vec<Progress>>> {
    // QEMU inherits it: a guest that waits for a processor asks for less than it wants.
    hurry();
    let readers = guest.readers.len();
    let is_time = |stdout: &str| {
        if let Some(at) = latest(stdout) {
            signs.latest.store(at.0, Ordering::Relaxed);
        }
        if !signs.has_begun.load(Ordering::Relaxed) {
            let begun = reports(stdout, readers).iter().filter(|progress| has_read(progress)).count();
            signs.has_begun.store(begun == readers, Ordering::Relaxed);
        }
        is_over.load(Ordering::Relaxed)
    };
    let builder = builder(plan, (guest, part), socket, group);
    let output = builder.run_until_cut(&script(guest, part), PATIENCE, is_time);
    let GuestOutput { stdout, .. } =
        output.map_err(|source| LabError::Guest { name: guest.name.clone(), source: Box::new(source) })?;
    Ok(reports(&stdout, readers))
}

fn builder<'a>(
    plan: &VmPlan<'_>,
    (guest, part): (&VmGuest, &GuestPart),
    socket: &Path,
    group: &TenantCgroup,
) -> GuestBuilder<'a> {
    let mut builder = Guest::builder().architecture(guest.architecture).memory_mib(MEMORY_MIB);
    if guest.architecture == Architecture::HOST {
        builder = builder.with_binary(plan.reader).with_binary(IONICE);
    }
    let builder = builder.cgroup(group.path()).name(guest.name.clone());
    let host_disk = |limit_bytes_per_second| HostDisk {
        device: part.device.clone(),
        limit_bytes_per_second,
        is_read_only: !part.is_writable,
    };
    match &plan.arm {
        VmArm::Served(_) => builder.vhost_user_disk(socket),
        VmArm::KernelBfq => builder.host_disk(host_disk(None)),
        VmArm::QemuThrottle => builder.host_disk(host_disk(Some(guest.limit_bytes_per_second))),
    }
}

/// Starts every reader, with its number before each of its reports, and waits for ever.
fn script(guest: &VmGuest, part: &GuestPart) -> String {
    let mut script = format!("echo {} > /sys/block/vda/queue/scheduler\n", guest.elevator);
    for (number, reader) in guest.readers.iter().enumerate() {
        if guest.architecture != Architecture::HOST {
            script.push_str(&busybox::reader(number, reader, part.start, DEVICE));
            continue;
        }
        let spec = WorkloadSpec {
            tenant: format!("{number}"),
            path: DEVICE.into(),
            access: reader.access,
            bytes: None,
            block_bytes: reader.block_bytes,
            region_start: reader.region_start - part.start,
            region_bytes: reader.region_bytes,
            depth: reader.depth,
            compute: Compute::Nothing,
            think: reader.think,
            rests: None,
            appearance: Appearance::default(),
            part: None,
            seed: number as u64 + 1,
        };
        let spec = serde_json::to_string(&spec).unwrap_or_default();
        // The class is best effort; what else the priority holds is its level to `ionice`.
        let priority = reader.ioprio.map_or_else(String::new, |ioprio| format!("ionice -c 2 -n {} ", ioprio & 0x1fff));
        // Writing into a string cannot fail.
        let _ = writeln!(
            script,
            "(echo go; sleep 100000) | {priority}minerva-lab worker --spec '{spec}' | while read -r line; do echo \"{number} $line\"; done &"
        );
    }
    script.push_str("wait\necho 'a reader ended' >&2\nexit 1\n");
    script
}

/// What each reader reported so far; a line that is cut at the end is none.
fn reports(stdout: &str, readers: usize) -> Vec<Vec<Progress>> {
    let mut all = vec![Vec::new(); readers];
    for line in stdout.lines() {
        let Some((number, report)) = line.split_once(' ') else { continue };
        let reader = number.parse().ok().and_then(|number: usize| all.get_mut(number));
        if let (Some(reader), Ok(Report::Progress(progress))) = (reader, serde_json::from_str(report)) {
            reader.push(progress);
        }
    }
    all
}

fn has_read(progress: &[Progress]) -> bool {
    progress.last().is_some_and(|last| last.bytes > 0)
}

/// The instant of the last whole report.
fn latest(stdout: &str) -> Option<Nanos> {
    let (whole, _) = stdout.rsplit_once('\n')?;
    let (_, report) = whole.lines().next_back()?.split_once(' ')?;
    match serde_json::from_str(report) {
        Ok(Report::Progress(progress)) => Some(progress.at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{has_read, latest, reports};
    use minerva_model::Nanos;

    #[test]
    fn reports_are_told_apart_by_the_number_before_them() {
        let text = "0 \"ready\"\n1 {\"progress\":{\"at\":5,\"bytes\":0}}\n0 {\"progress\":{\"at\":7,\"bytes\":4096}}\n0 {\"prog";
        let all = reports(text, 2);
        assert!(has_read(&all[0]) && !has_read(&all[1]), "{all:?}");
        assert_eq!(latest(text), Some(Nanos(7)));
    }
}
