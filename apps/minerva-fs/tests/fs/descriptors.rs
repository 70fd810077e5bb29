//! A file that the kernel knows is a descriptor of the service, which has only so many: a tenant that takes all it can get keeps no other
//! from its part.

use crate::pool_folder::{PoolFolder, Service};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Few enough to be used up by this test, whose own files they are not.
const DESCRIPTORS_MAX: u64 = 1000;
/// What every tree can have of it, and far more than that.
const PART: usize = 30;
const MANY: usize = 600;

/// Makes files until one is refused, and holds them.
fn open_all(tree: &Path) -> (Vec<File>, Option<Errno>) {
    let mut held = Vec::new();
    for number in 0..MANY {
        match File::create(tree.join(number.to_string())) {
            Ok(file) => held.push(file),
            Err(error) => return (held, Errno::from_io_error(&error)),
        }
    }
    (held, None)
}

fn use_files(tree: &Path) -> io::Result<()> {
    for number in 0..PART {
        fs::write(tree.join(number.to_string()), "text")?;
    }
    for number in 0..PART {
        let file = tree.join(number.to_string());
        assert_eq!(fs::read(&file)?, b"text");
        fs::remove_file(file)?;
    }
    fs::read_dir(tree).map(drop)
}

#[test]
fn a_tenant_that_opens_all_it_can_is_refused_and_keeps_no_other_from_its_files() {
    let place = PoolFolder::with("", "[tenants.other]");
    let _service = place.serve_with_descriptors(DESCRIPTORS_MAX);
    let other = place.folder.path().join("mount/other/temporary");
    for tree in [place.temporary(), place.stable()] {
        let (held, refused) = open_all(&tree);
        assert_eq!(refused, Some(Errno::NFILE), "of {}", held.len());
        assert!(held.len() > PART, "{}", held.len());
        use_files(&other).unwrap();
        let status = place.status();
        assert!(status.temporary.refused_descriptors + status.stable.refused_descriptors > 0);
        let made = held.len();
        drop(held);
        (0..made).for_each(|number| fs::remove_file(tree.join(number.to_string())).unwrap());
        place.until("what was held is free", |status| status.temporary.descriptors + status.stable.descriptors < 10);
        use_files(&tree).unwrap();
    }
    let shown = place.run(&["status"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("refused files for want of descriptors"));
}

/// Descriptors that the process has.
fn open_now(service: &Service) -> u64 {
    fs::read_dir(format!("/proc/{}/fd", service.0.id())).unwrap().count() as u64
}

#[test]
fn files_that_go_to_the_disk_while_programs_know_them_have_no_descriptor_that_nobody_counts() {
    const FILES: u64 = 200;
    /// Far fewer than there are files: who asks for the status, a file that is being copied.
    const BESIDE: u64 = 20;
    let place = PoolFolder::with("temporary = \"10MiB\"", "[pools.temporary]\nwatermark = 5\nspill_to = 1");
    let service = place.serve_with_descriptors(DESCRIPTORS_MAX);
    let before = open_now(&service) - place.status().temporary.descriptors;
    let known: Vec<File> = (0..FILES)
        .map(|number| {
            let path = place.temporary().join(number.to_string());
            fs::write(&path, [1; 4096]).unwrap();
            // By its name only, so that it is closed and known.
            File::options().read(true).custom_flags(libc::O_PATH).open(path).unwrap()
        })
        .collect();
    place.until("most go to the disk", |status| status.temporary.spilled_files > FILES / 2);
    // While a pass is under way it has one for each file that it is still to move.
    place.until("those that are open are counted", |status| {
        open_now(&service) <= before + status.temporary.descriptors + BESIDE
    });
    drop(known);
    place.until("all are forgotten", |status| status.temporary.descriptors < FILES);
}

#[test]
fn the_kernel_forgets_files_that_nobody_has_open_before_any_is_refused() {
    let place = PoolFolder::new("");
    let _service = place.serve_with_descriptors(DESCRIPTORS_MAX);
    for tree in [place.temporary(), place.stable()] {
        for number in 0..5 * MANY {
            let file = tree.join(number.to_string());
            fs::write(&file, number.to_string()).unwrap_or_else(|error| panic!("{number}: {error}"));
        }
        for number in 0..5 * MANY {
            let file = tree.join(number.to_string());
            let read = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{number}: {error}"));
            assert_eq!(read, number.to_string());
        }
    }
    let status = place.status();
    assert_eq!(status.temporary.refused_descriptors + status.stable.refused_descriptors, 0);
    assert!(status.temporary.descriptors + status.stable.descriptors < DESCRIPTORS_MAX);
}
