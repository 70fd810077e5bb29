//! io_uring: one system call begins many jobs.

use super::{Action, Done, Job, Pieces, Transfer};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const ENTRIES_MIN: u32 = 64;
const ENTRIES_MAX: u32 = 1024;
/// Of block devices, since Linux 6.12 (`include/uapi/linux/blkdev.h`); what is not known fails.
const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;

/// A ring of the kernel's.
pub(crate) struct Uring {
    ring: IoUring,
    /// What did not fit any more.
    waiting: VecDeque<Entry>,
}

impl Uring {
    /// Fails where the kernel, a container's filter or `kernel.io_uring_disabled` refuses it.
    pub(crate) fn open(jobs: u32) -> io::Result<Self> {
        let entries = jobs.clamp(ENTRIES_MIN, ENTRIES_MAX);
        let ring = IoUring::builder().setup_coop_taskrun().build(entries).or_else(|_| IoUring::new(entries))?;
        // Each flush that hangs (of kernels before 5.19 each job) keeps one of the kernel's threads, of which there are four a processor
        // otherwise, and whoever flushes waits for one. Kernels before 5.15 have no other number.
        let _ = ring.submitter().register_iowq_max_workers(&mut [jobs, 0]);
        Ok(Self { ring, waiting: VecDeque::new() })
    }

    fn push_waiting(&mut self) {
        while let Some(entry) = self.waiting.pop_front() {
            if !self.push(&entry) {
                self.waiting.push_front(entry);
                return;
            }
        }
    }

    /// Whether there was room for it.
    fn push(&mut self, entry: &Entry) -> bool {
        // SAFETY: whoever called `begin` keeps file and memory valid until the job is done.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }
}

/// One piece needs no list, which the kernel would copy and judge.
fn transfer_entry(file: Fd, action: Action) -> Entry {
    // SAFETY: whoever called `begin` keeps the list valid until the job is done.
    let piece = |pieces: Pieces| unsafe { *pieces.first };
    let one = |pieces: Pieces| pieces.count == 1 && u32::try_from(piece(pieces).iov_len).is_ok();
    match action {
        Action::Read(pieces) if one(pieces) => {
            let piece = piece(pieces);
            opcode::Read::new(file, piece.iov_base.cast(), piece.iov_len as u32).offset(pieces.offset).build()
        }
        Action::Read(pieces) => opcode::Readv::new(file, pieces.first, pieces.count).offset(pieces.offset).build(),
        Action::Write(pieces, durable) => {
            let flags = if durable { libc::RWF_DSYNC } else { 0 };
            if one(pieces) {
                let piece = piece(pieces);
                let write = opcode::Write::new(file, piece.iov_base.cast_const().cast(), piece.iov_len as u32);
                return write.offset(pieces.offset).rw_flags(flags).build();
            }
            opcode::Writev::new(file, pieces.first, pieces.count).offset(pieces.offset).rw_flags(flags).build()
        }
        Action::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        Action::Allocate { mode, offset, length } => {
            opcode::Fallocate::new(file, length).offset(offset).mode(mode).build()
        }
        Action::Discard { offset, length } => {
            let mut rest = [0; 16];
            rest[..8].copy_from_slice(&length.to_ne_bytes());
            opcode::UringCmd16::new(file, BLOCK_URING_CMD_DISCARD).addr(Some(offset)).cmd(rest).build()
        }
    }
}

impl Transfer for Uring {
    unsafe fn begin(&mut self, job: Job) {
        let entry = transfer_entry(Fd(job.file), job.action).user_data(u64::from(job.number));
        // The kernel would try at first whether it can be done at once. Of a FUSE file it then asks the other process whether something can
        // be read, and older kernels read a file of the network on the spot: whoever begins the job waits until it is answered.
        let entry = if job.may_hang { entry.flags(Flags::ASYNC) } else { entry };
        if !self.waiting.is_empty() || !self.push(&entry) {
            self.waiting.push_back(entry);
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        loop {
            self.push_waiting();
            // What is done and found no room in the ring for it the kernel keeps until it is asked.
            let submission = self.ring.submission();
            if submission.is_empty() && !submission.cq_overflow() {
                return Ok(());
            }
            drop(submission);
            match self.ring.submit() {
                Ok(_) if self.waiting.is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn collect(&mut self, done: &mut Vec<Done>) {
        let completions = self.ring.completion();
        done.extend(completions.map(|entry| Done { number: entry.user_data() as u32, result: entry.result() }));
    }

    fn has_done(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring is open as long as `self` is.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

#[cfg(test)]
mod tests {
    use super::Uring;
    use crate::transfer::{Action, Done, Job, Pieces, Transfer};
    use rustix::event::{PollFd, PollFlags, poll};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_found_no_room_among_what_is_done_is_collected_all_the_same() {
        let Ok(mut uring) = Uring::open(1) else {
            println!("skipped: this kernel refuses io_uring");
            return;
        };
        let (file, count) = (tempfile::tempfile().unwrap(), 1000);
        file.write_all_at(&[7], 0).unwrap();
        // From the page cache, so that each is done while it is begun.
        let mut byte = 0u8;
        let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        for number in 0..count {
            let action = Action::Read(Pieces { first: &raw const piece, count: 1, offset: 0 });
            // SAFETY: the file stays open, and the piece and its byte are there until the end.
            unsafe { uring.begin(Job { number, file: file.as_raw_fd(), may_hang: false, action }) };
        }
        let (mut done, mut rounds): (Vec<Done>, u32) = (Vec::new(), 0);
        // All of it is begun before anything is collected, which is four times what there is room for.
        uring.submit().unwrap();
        while done.len() < count as usize {
            rounds += 1;
            assert!(rounds < 100_000, "{} of {count} are done", done.len());
            poll(&mut [PollFd::new(&uring.descriptor(), PollFlags::IN)], None).unwrap();
            uring.submit().unwrap();
            uring.collect(&mut done);
        }
        done.sort_by_key(|done| done.number);
        assert!(done.iter().zip(0..).all(|(done, number)| (done.number, done.result) == (number, 1)), "each once");
    }
}
