//! Mappings of files, and what else reads the same file beside them.

use crate::operations::on_both;
use crate::pool_folder::PoolFolder;
use crate::surroundings::pool_on_overlayfs;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file of 8192 times the same byte, open for both.
fn of_x(path: &Path) -> File {
    fs::write(path, vec![b'x'; 8192]).unwrap();
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn mapped_memory_and_the_file_are_one() {
    on_both(|tree| {
        let path = tree.join("mapped");
        let file = of_x(&path);
        let flags = rustix::mm::MapFlags::SHARED;
        let both = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        // SAFETY: a new mapping of 8192 bytes of a file of that length; it is used below and unmapped once.
        let memory =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), 8192, both, flags, &file, 0) }.unwrap().cast::<u8>();
        // SAFETY: within the mapping.
        unsafe { memory.add(5000).write(b'm') };
        // SAFETY: the mapping.
        unsafe { rustix::mm::msync(memory.cast(), 8192, rustix::mm::MsyncFlags::SYNC) }.unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 5000).unwrap();
        assert_eq!(&byte, b"m");
        file.write_all_at(b"w", 100).unwrap();
        // SAFETY: within the mapping.
        assert_eq!(unsafe { memory.add(100).read_volatile() }, b'w');
        assert_eq!(fs::read(&path).unwrap()[5000], b'm');
        drop(file);
        // SAFETY: the mapping, and nobody uses it after this.
        unsafe { rustix::mm::munmap(memory.cast(), 8192) }.unwrap();
    });
}

#[test]
fn no_program_is_sent_what_a_mapping_has_replaced() {
    on_both(|tree| {
        let path = tree.join("sent");
        let file = of_x(&path);
        let sent = |from: &File| {
            let mut to = tempfile::tempfile().unwrap();
            rustix::fs::sendfile(&to, from, Some(&mut 4096), 4096).map(|_| {
                let mut data = Vec::new();
                to.rewind().unwrap();
                to.read_to_end(&mut data).unwrap();
                data
            })
        };
        // Whoever is refused reads and writes, as sendfile(2) says.
        let is_right = |data: Result<Vec<u8>, Errno>, byte| match data {
            Ok(data) => data == vec![byte; 4096],
            Err(error) => error == Errno::INVAL,
        };
        assert!(is_right(sent(&file), b'x'));
        let both = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        // SAFETY: a new mapping of 8192 bytes of a file of that length; it is used below and unmapped once.
        let memory = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), 8192, both, rustix::mm::MapFlags::SHARED, &file, 0).unwrap()
        };
        // SAFETY: within the mapping.
        unsafe { memory.cast::<u8>().add(4096).write_bytes(b'm', 4096) };
        // SAFETY: the mapping, and nobody uses it after this.
        unsafe { rustix::mm::munmap(memory, 8192) }.unwrap();
        assert!(is_right(sent(&file), b'm'), "what was there before");
        assert_eq!(sent(&File::open(&path).unwrap()).unwrap(), vec![b'm'; 4096], "a descriptor that only reads");
    });
}

/// Where the service reads and writes by itself, the kernel brings it what was stored when nobody is there to be refused.
#[test]
fn what_a_mapping_stores_beyond_the_quota_without_passthrough_is_written_and_counted() {
    const BYTES: usize = 4 << 20;
    let place = PoolFolder::new("stable = \"1MiB\"");
    let overlay = pool_on_overlayfs(&place);
    let service = place.wait_for(place.in_namespace(&overlay, &[]));
    let within = PathBuf::from(format!("/proc/{}/root", service.0.id()));
    let seen = |path: &Path| within.join(path.strip_prefix("/").unwrap());
    let path = seen(&place.stable()).join("mapped");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    assert!(!place.status().stable.has_passthrough);
    file.set_len(BYTES as u64).unwrap();
    let (both, flags) = (rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE, rustix::mm::MapFlags::SHARED);
    // SAFETY: a new mapping of a file of that length; it is used below and unmapped once.
    let memory = unsafe { rustix::mm::mmap(std::ptr::null_mut(), BYTES, both, flags, &file, 0) }.unwrap();
    // SAFETY: the mapping.
    unsafe { memory.cast::<u8>().write_bytes(b'm', BYTES) };
    // SAFETY: the mapping.
    let synced = unsafe { rustix::mm::msync(memory, BYTES, rustix::mm::MsyncFlags::SYNC) };
    assert_eq!(synced, Ok(()));
    // SAFETY: the mapping, and nobody uses it after this.
    unsafe { rustix::mm::munmap(memory, BYTES) }.unwrap();
    drop(file);
    let below = fs::read(seen(&place.pool()).join("tenants/web/mapped")).unwrap();
    assert!(below == vec![b'm'; BYTES], "{} bytes of it are there", below.iter().filter(|byte| **byte == b'm').count());
    assert_eq!(place.status().stable.bytes, BYTES as u64);
    let refused = fs::write(seen(&place.stable()).join("other"), "x").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull, "who writes is refused");
    assert!(service.terminate());
}

#[test]
fn what_a_mapping_stores_and_holds_is_counted_though_its_file_is_closed_and_removed() {
    const BYTES: usize = 1 << 20;
    let place = PoolFolder::new("");
    let _service = place.serve();
    let counted = || place.tenants().iter().map(|tenant| tenant.temporary.bytes + tenant.stable.bytes).sum::<u64>();
    let until = |what: &str, bytes: usize| {
        place.until_status(what, |tenants| {
            tenants.iter().all(|tenant| tenant.temporary.bytes + tenant.stable.bytes == bytes as u64)
        });
    };
    for tree in [place.temporary(), place.stable()] {
        let path = tree.join("mapped");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(BYTES as u64).unwrap();
        let (both, flags) = (rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE, rustix::mm::MapFlags::SHARED);
        // SAFETY: a new mapping of a file of that length; it is used below and unmapped once.
        let memory = unsafe { rustix::mm::mmap(std::ptr::null_mut(), BYTES, both, flags, &file, 0) }.unwrap();
        drop(file);
        until("nothing is stored", 0);
        // SAFETY: the mapping.
        unsafe { memory.cast::<u8>().write_bytes(b'm', BYTES) };
        // SAFETY: the mapping.
        unsafe { rustix::mm::msync(memory, BYTES, rustix::mm::MsyncFlags::SYNC) }.unwrap();
        until("it is counted", BYTES);
        fs::remove_file(&path).unwrap();
        assert_eq!(counted(), BYTES as u64, "it is not free yet");
        // SAFETY: the mapping, and nobody uses it after this.
        unsafe { rustix::mm::munmap(memory, BYTES) }.unwrap();
        until("it is free", 0);
    }
}
