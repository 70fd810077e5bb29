//! A file system that answers until it hangs, as one of a network whose server goes.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests of `include/uapi/linux/fuse.h`.
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const REGULAR_FILE: u32 = 0o100_600;

/// A file system of one file in place of another, which answers until it hangs. Dropped, it ends, and whoever waits for it gets an error.
pub(crate) struct Hanging {
    place: CString,
    hangs: Arc<AtomicBool>,
}

impl Hanging {
    /// Over a file, as one of so many bytes.
    pub(crate) fn mount(place: &Path, length: u64) -> Self {
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let place = CString::new(place.as_os_str().as_bytes()).unwrap();
        let options = format!("fd={},rootmode={REGULAR_FILE:o},user_id=0,group_id=0", device.as_raw_fd());
        let (name, kind, options) = (c"minerva-test-hanging", c"fuse", CString::new(options).unwrap());
        // SAFETY: all of them are texts that end, and are there during the call.
        let result = unsafe {
            libc::mount(name.as_ptr(), place.as_ptr(), kind.as_ptr(), libc::MS_NOSUID, options.as_ptr().cast())
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        let hangs = Arc::new(AtomicBool::new(false));
        let answers = Arc::clone(&hangs);
        std::thread::spawn(move || answer_all(device, &answers, length));
        Self { place, hangs }
    }

    /// From now on.
    pub(crate) fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        // SAFETY: the path is a text that ends, and is there during the call.
        unsafe { libc::umount2(self.place.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
    }
}

/// Until it is unmounted.
fn answer_all(mut device: File, hangs: &AtomicBool, length: u64) {
    let mut request = vec![0; 1 << 20];
    while let Ok(asked @ 40..) = device.read(&mut request) {
        let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let kind = number(4);
        if hangs.load(Ordering::Relaxed) || matches!(kind, FORGET | INTERRUPT) {
            continue;
        }
        let answer = match kind {
            INIT => Ok(numbers(&[7, 31, 0, 0, 0, 4096, 1], 64)),
            GETATTR => Ok(attributes(length)),
            OPEN => Ok(vec![0; 16]),
            READ if asked >= 60 => Ok(vec![0; number(56) as usize]),
            RELEASE => Ok(Vec::new()),
            _ => Err(-libc::ENOSYS),
        };
        let (error, bytes) = answer.map_or_else(|error| (error, Vec::new()), |bytes| (0, bytes));
        let head = [&(16 + bytes.len() as u32).to_ne_bytes()[..], &error.to_ne_bytes(), &request[8..16]].concat();
        let _ = device.write_all(&[head, bytes].concat());
    }
}

/// So many bytes, which begin with these.
fn numbers(numbers: &[u32], length: usize) -> Vec<u8> {
    let mut bytes = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
    bytes.resize(length, 0);
    bytes
}

/// Valid for no time: who wants to know asks again.
fn attributes(length: u64) -> Vec<u8> {
    let mut bytes = numbers(&[0, 0, 0, 0, 1], 104);
    bytes[24..32].copy_from_slice(&length.to_ne_bytes());
    bytes[76..80].copy_from_slice(&REGULAR_FILE.to_ne_bytes());
    bytes[80..84].copy_from_slice(&1u32.to_ne_bytes());
    bytes
}

pub(crate) fn can_hang() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        println!("skipped: needs root and /dev/fuse for a file system that hangs");
    }
    can
}
