//! An image on a file system that answers nothing when the server starts, as after a failure of power whose file server comes back later.

use crate::server_folder::{IMAGE_BYTES, ServerFolder};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(90);

/// A file system over a file, of which no request is ever read. Dropped, it ends, and whoever waits for it gets an error.
struct Silent {
    place: CString,
    _device: File,
}

impl Silent {
    fn mount(place: &Path) -> Self {
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let place = CString::new(place.as_os_str().as_bytes()).unwrap();
        let options = format!("fd={},rootmode=100600,user_id=0,group_id=0", device.as_raw_fd());
        let (name, kind, options) = (c"minerva-test-silent", c"fuse", CString::new(options).unwrap());
        // SAFETY: all of them are texts that end, and are there during the call.
        let result = unsafe {
            libc::mount(name.as_ptr(), place.as_ptr(), kind.as_ptr(), libc::MS_NOSUID, options.as_ptr().cast())
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        Self { place, _device: device }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // SAFETY: the path is a text that ends, and is there during the call.
        unsafe { libc::umount2(self.place.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
    }
}

#[test]
fn an_image_whose_storage_does_not_answer_keeps_no_other_disk_from_being_served() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        println!("skipped: needs root and /dev/fuse for a file system that hangs");
        return;
    }
    let place = ServerFolder::new();
    let (image, socket) = (place.folder.path().join("vm0.raw"), place.folder.path().join("vm0.sock"));
    File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
    let silent = Silent::mount(&image);
    place.write("direct = false", &format!("[disks.vm0]\nimage = {image:?}\nsocket = {socket:?}\ndirect = false\n"));
    let serving = place.serve();
    let begun = Instant::now();
    while !place.socket().exists() {
        assert!(begun.elapsed() < PATIENCE, "nobody listens for the good one");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status, 0, "the good one is served");
    let (is_content, said) = serving.terminate();
    assert!(is_content && said.contains("1 disks are served, 1 are refused"), "{said}");
    let line = said.lines().find(|line| line.contains("disk `vm0`: ")).unwrap_or_default();
    assert!(line.contains("its storage does not answer") && line.contains("minerva-ctl disk add vm0"), "{said}");
    drop(silent);
}
