//! Being a batch job.

use crate::argument::{place, text};
use crate::client::{self, MinervaClient};
use crate::outcome::{Failure, MinervaStatus, guard};
use minerva_client::blocking;
use std::ffi::c_char;

/// A batch job that lasts until it is ended, or the process ends in whatever way.
pub struct MinervaJob {
    inner: blocking::HeldJob,
}

/// Is a batch job of this name until `minerva_job_end`: of jobs on one disk the shortest goes first, and runs of one name are taken to
/// be alike. `bytes` is what it will read and write in all; 0 where that is not known.
///
/// # Safety
///
/// `client` came from `minerva_connect`. `name` is a text that ends with a zero. `job` may be written to; it is null if this fails. The
/// caller ends what it gets with `minerva_job_end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_job_begin(
    client: *const MinervaClient,
    name: *const c_char,
    bytes: u64,
    job: *mut *mut MinervaJob,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let job = unsafe { place(job, "job")? };
        *job = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let client = unsafe { client::of(client)? };
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "name")? }.ok_or_else(|| Failure::Invalid("name is null".to_owned()))?;
        let inner = client.job(name, (bytes > 0).then_some(bytes))?;
        *job = Box::into_raw(Box::new(MinervaJob { inner }));
        Ok(())
    })
}

/// The job's number in the order of the jobs on its disk, from 1; 0 while none goes before another, and for a null pointer. `*jobs`,
/// unless null, is how many there are.
///
/// # Safety
///
/// `job` is null or came from `minerva_job_begin`. `jobs` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_job_place(job: *const MinervaJob, jobs: *mut u32) -> u32 {
    // SAFETY: as the caller promises.
    let (place, count) = unsafe { job.as_ref() }.and_then(|job| job.inner.place()).unwrap_or((0, 0));
    // SAFETY: as the caller promises.
    if let Some(jobs) = unsafe { jobs.as_mut() } {
        *jobs = count;
    }
    place
}

/// The job is over. A null pointer is nothing to do.
///
/// # Safety
///
/// `job` is null or came from `minerva_job_begin`, and nobody uses it any more. Any thread may end it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_job_end(job: *mut MinervaJob) {
    guard(|| {
        if !job.is_null() {
            // SAFETY: not null, made by `Box::into_raw`, and the caller's promise.
            drop(unsafe { Box::from_raw(job) });
        }
        Ok(())
    });
}
