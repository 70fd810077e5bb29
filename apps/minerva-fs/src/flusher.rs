//! Memory that the service asks for must not wait for pages that only the service can write: the kernel is told that it is an
//! `IO_FLUSHER` (prctl(2)). Without that a machine whose memory is full of such pages could stand still.

use minerva_config::FsConfig;
use std::fs;

/// What is said where the kernel was not told.
pub(crate) const WITHOUT: &str = "it is no IO_FLUSHER, which takes CAP_SYS_RESOURCE and Linux 5.6: where memory is short it may wait for \
                                  pages that only it can write; let the unit have that capability";

/// `PF_MEMALLOC_NOIO` of `include/linux/sched.h`, which the call sets.
const NO_IO: u64 = 0x0008_0000;
/// The flags are the ninth field of `/proc/PID/stat`; two come before the name's end, and the first after it is the state.
const FLAGS_AFTER_NAME: usize = 6;

/// Tells the kernel; threads that start from here on have it too. Where it is not allowed, the service does without and says so.
pub(crate) fn tell_kernel() {
    if let Err(error) = rustix::process::configure_io_flusher_behavior(true) {
        eprintln!("minerva-fs: {WITHOUT}: {error}");
    }
}

/// Whether the running service has it; none where none runs.
pub(crate) fn of_service(config: &FsConfig) -> Option<bool> {
    let holder = fs::read_to_string(config.stable.path.join("minerva-fs.lock")).ok()?;
    let process: u32 = holder.trim().parse().ok()?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    // The number of a process that ended may be another's.
    if name.trim() != "minerva-fs" {
        return None;
    }
    is_flusher(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn is_flusher(stat: &str) -> Option<bool> {
    // The name may have spaces and brackets in it.
    let (_, after) = stat.rsplit_once(')')?;
    let flags: u64 = after.split_whitespace().nth(FLAGS_AFTER_NAME)?.parse().ok()?;
    Some(flags & NO_IO != 0)
}

#[cfg(test)]
mod tests {
    use super::is_flusher;

    #[test]
    fn the_flags_of_a_process_are_found_behind_any_name() {
        assert_eq!(is_flusher("7 (a) b (c)) S 1 7 7 0 -1 4718848 100 0"), Some(true));
        assert_eq!(is_flusher("7 (minerva-fs) S 1 7 7 0 -1 4194560 100 0"), Some(false));
        for torn in ["", "7 (minerva-fs", "7 (minerva-fs) S 1 7", "7 (x) S 1 7 7 0 -1 flags"] {
            assert_eq!(is_flusher(torn), None, "{torn}");
        }
    }
}
