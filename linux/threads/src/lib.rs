//! Threads that serve others should not wait until programs that compute have used up their time slices: the kernel gives a thread
//! that wakes up the processor sooner, the shorter the slice that it asks for (sched_setattr(2), `sched_runtime`; for ordinary
//! threads since Linux 6.12). It has no more of the processor than before, in shorter pieces.

use std::io;
use std::mem::size_of;

/// The shortest slice that the kernel gives.
const SLICE_NS_MIN: u64 = 100_000;
/// The calling thread.
const SELF: libc::pid_t = 0;
const NO_FLAGS: libc::c_uint = 0;

/// Asks for the shortest slice for the calling thread; threads that it starts from here on have it too. A thread with another policy than
/// the usual one stays as it is, as whoever chose that knows better, and earlier kernels pass over what is asked.
///
/// # Errors
///
/// What the kernel says where it refuses, such as `EPERM` under a filter of system calls.
pub fn shorten_time_slice() -> io::Result<()> {
    let mut attributes = attributes()?;
    if attributes.sched_policy == libc::SCHED_OTHER as u32 {
        attributes.sched_runtime = SLICE_NS_MIN;
        // SAFETY: the kernel reads as many bytes as `size` says, which `attributes` has set to no more than the structure has.
        check(unsafe { libc::syscall(libc::SYS_sched_setattr, SELF, &raw const attributes, NO_FLAGS) })?;
    }
    Ok(())
}

/// How the calling thread is scheduled.
fn attributes() -> io::Result<libc::sched_attr> {
    // SAFETY: the structure consists of numbers, all of which may be zero.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let length = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes `length` bytes at most, which is how long the structure is.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, SELF, &raw mut attributes, length, NO_FLAGS) })?;
    Ok(attributes)
}

fn check(answer: libc::c_long) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::{SLICE_NS_MIN, attributes, shorten_time_slice};

    #[test]
    fn threads_that_a_thread_with_a_short_slice_starts_have_one_too_and_niceness_stays() {
        let asked = std::thread::spawn(|| {
            let before = attributes().unwrap();
            shorten_time_slice().unwrap();
            (before, std::thread::spawn(|| attributes().unwrap()).join().unwrap())
        });
        let (before, after) = asked.join().unwrap();
        assert_eq!((before.sched_policy, before.sched_nice), (after.sched_policy, after.sched_nice));
        if before.sched_runtime == 0 {
            println!("skipped: needs Linux 6.12, which gives ordinary threads slices of their own");
        } else {
            assert_eq!(after.sched_runtime, SLICE_NS_MIN);
        }
    }
}
