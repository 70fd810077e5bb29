//! A process that begins another program and never gets there: it closes a file whose server does not answer that (FLUSH of FUSE).

#![allow(clippy::expect_used, reason = "what a test builds its case with fails the test when it fails")]

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Requests of `include/uapi/linux/fuse.h`.
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const REGULAR_FILE: u32 = 0o100_600;
/// Far above anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The process. Dropped, its file system goes, and then the process.
pub(crate) struct Victim {
    pub(crate) pid: u32,
    place: CString,
    released: bool,
}

impl Victim {
    /// One with a file system at the file `place`; nothing where there can be none.
    pub(crate) fn begin(place: &Path) -> Option<Self> {
        let Ok(device) = File::options().read(true).write(true).open("/dev/fuse") else {
            println!("skipped: needs root and /dev/fuse for a file system that hangs");
            return None;
        };
        std::fs::write(place, "").expect("a file");
        let place = CString::new(place.as_os_str().as_bytes()).expect("a path");
        let number = device.as_raw_fd();
        let options = format!("fd={number},rootmode={REGULAR_FILE:o},user_id=0,group_id=0");
        let (name, kind, options) = (c"minerva-test-hanging", c"fuse", CString::new(options).expect("a text"));
        // SAFETY: all of them are texts that end, and are there during the call.
        let mounted = unsafe {
            libc::mount(name.as_ptr(), place.as_ptr(), kind.as_ptr(), libc::MS_NOSUID, options.as_ptr().cast())
        };
        if mounted != 0 {
            println!("skipped: needs root and /dev/fuse for a file system that hangs");
            return None;
        }
        let (tell, hangs) = channel();
        std::thread::spawn(move || answer_all(device, &tell));
        let (program, argument) = (c"/bin/sleep", c"600");
        let arguments = [program.as_ptr(), argument.as_ptr(), std::ptr::null()];
        // SAFETY: the child makes system calls only, with texts that were made before, and ends.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                // It must not keep the file system that holds it up.
                libc::close(number);
                libc::open(place.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
                libc::execv(program.as_ptr(), arguments.as_ptr());
                libc::_exit(1);
            }
            pid
        };
        let victim = Self { pid: u32::try_from(pid).expect("a process"), place, released: false };
        hangs.recv_timeout(PATIENCE).expect("it closes the file");
        Some(victim)
    }

    /// Its file system goes, and it gets to its program.
    pub(crate) fn release(&mut self) {
        if !std::mem::replace(&mut self.released, true) {
            // SAFETY: the path is a text that ends, and is there during the call.
            unsafe { libc::umount2(self.place.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.release();
        let pid = self.pid.cast_signed();
        // SAFETY: the process is ours, and nobody else waits for it.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}

/// Until it is unmounted. Whoever closes the file waits, and that is told.
fn answer_all(mut device: File, hangs: &Sender<()>) {
    let mut request = vec![0; 1 << 20];
    while let Ok(40..) = device.read(&mut request) {
        let kind = u32::from_ne_bytes(request[4..8].try_into().expect("four bytes"));
        let answer = match kind {
            FORGET | INTERRUPT => continue,
            FLUSH => {
                let _ = hangs.send(());
                continue;
            }
            INIT => Ok(numbers(&[7, 31, 0, 0, 0, 4096, 1], 64)),
            GETATTR => {
                let mut bytes = numbers(&[100, 0, 0, 0, 1], 104);
                bytes[76..80].copy_from_slice(&REGULAR_FILE.to_ne_bytes());
                bytes[80..84].copy_from_slice(&1u32.to_ne_bytes());
                Ok(bytes)
            }
            OPEN => Ok(vec![0; 16]),
            _ => Err(-libc::ENOSYS),
        };
        let (error, bytes) = answer.map_or_else(|error| (error, Vec::new()), |bytes| (0, bytes));
        let length = u32::try_from(16 + bytes.len()).expect("a short answer");
        let head = [&length.to_ne_bytes()[..], &error.to_ne_bytes(), &request[8..16]].concat();
        let _ = device.write_all(&[head, bytes].concat());
    }
}

/// So many bytes, which begin with these.
fn numbers(numbers: &[u32], length: usize) -> Vec<u8> {
    let mut bytes = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
    bytes.resize(length, 0);
    bytes
}
