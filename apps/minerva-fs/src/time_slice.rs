//! Who serves files should not wait until programs that compute have used up their time slices: the kernel gives a thread that
//! wakes up the processor sooner, the shorter the slice that it asks for (sched_setattr(2), `sched_runtime`; for ordinary threads
//! since Linux 6.12). It has no more of the processor than before, in shorter pieces.

use rustix::io::Errno;
use std::mem::size_of;

/// The shortest slice that the kernel gives.
const SLICE_NS: u64 = 100_000;
/// The calling thread.
const SELF: libc::pid_t = 0;
const NO_FLAGS: libc::c_uint = 0;

/// Asks for it; threads that start from here on have it too. An operator who runs the service by another policy knows better, and
/// earlier kernels pass over it.
pub(crate) fn shorten() {
    if let Err(error) = ask() {
        eprintln!(
            "minerva-fs: its threads have slices of the usual length, so programs that compute delay it longer: {error}"
        );
    }
}

fn ask() -> Result<(), Errno> {
    let mut attributes = get()?;
    if attributes.sched_policy == libc::SCHED_OTHER as u32 {
        attributes.sched_runtime = SLICE_NS;
        // SAFETY: the kernel reads as many bytes as `size` says, which `get` has set to no more than the structure has.
        check(unsafe { libc::syscall(libc::SYS_sched_setattr, SELF, &raw const attributes, NO_FLAGS) })?;
    }
    Ok(())
}

/// How the calling thread is scheduled.
fn get() -> Result<libc::sched_attr, Errno> {
    // SAFETY: the structure consists of numbers, all of which may be zero.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let length = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes `length` bytes at most, which is how long the structure is.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, SELF, &raw mut attributes, length, NO_FLAGS) })?;
    Ok(attributes)
}

fn check(answer: libc::c_long) -> Result<(), Errno> {
    if answer == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}

#[cfg(test)]
mod tests {
    use super::{SLICE_NS, ask, get};

    #[test]
    fn threads_that_a_thread_with_a_short_slice_starts_have_one_too_and_niceness_stays() {
        let asked = std::thread::spawn(|| {
            let before = get().unwrap();
            ask().unwrap();
            (before, std::thread::spawn(|| get().unwrap()).join().unwrap())
        });
        let (before, after) = asked.join().unwrap();
        assert_eq!((before.sched_policy, before.sched_nice), (after.sched_policy, after.sched_nice));
        if before.sched_runtime == 0 {
            println!("skipped: needs Linux 6.12, which gives ordinary threads slices of their own");
        } else {
            assert_eq!(after.sched_runtime, SLICE_NS);
        }
    }
}
