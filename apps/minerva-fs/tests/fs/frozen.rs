//! A destination that does not answer, as one whose server is gone: a file system that is frozen.

use crate::deferred::{
    PATIENCE, assert_tidy, defer, files, is_link, request, start, until, until_moved, until_told, write,
};
use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, Pool, ask_within};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A small file system of its own, and who thaws and unmounts it when the test is over.
struct FileSystem(PathBuf, Child);

/// Waits until its input ends, as it does however the test's program ends. A test's program that waits for the file system cannot end,
/// so there is a limit, far above what a test takes. In a group of processes of its own: whoever kills the test's does not kill it.
const THAW: &str = "timeout 600 cat > /dev/null; fsfreeze --unfreeze \"$0\"; umount --lazy \"$0\"";

fn succeeds(program: &str, arguments: &[&str], path: &Path) -> bool {
    Command::new(program).args(arguments).arg(path).status().is_ok_and(|status| status.success())
}

impl FileSystem {
    fn mount(folder: &Path) -> Self {
        let (image, at) = (folder.join("image"), folder.join("away"));
        fs::create_dir(&at).unwrap();
        File::create(&image).unwrap().set_len(32 << 20).unwrap();
        assert!(succeeds("mkfs.ext4", &["-q", "-F"], &image));
        assert!(succeeds("mount", &["-o", "loop", image.to_str().unwrap()], &at));
        let mut thawer = Command::new("sh");
        thawer.args(["-c", THAW]).arg(&at).process_group(0);
        let thawer = thawer.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self(at, thawer)
    }

    fn freeze(&self) {
        assert!(succeeds("fsfreeze", &["--freeze"], &self.0));
    }

    fn thaw(&self) {
        assert!(succeeds("fsfreeze", &["--unfreeze"], &self.0));
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        // Whoever waits for it could not be ended otherwise.
        drop(self.1.stdin.take());
        let _ = self.1.wait();
    }
}

/// Has the file read anew, which waits for no destination.
fn reload(place: &PoolFolder) {
    let mut reload = place.command().arg("reload").spawn().unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = reload.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = reload.kill();
            panic!("a reload waits for it");
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "{status}");
}

#[test]
fn a_destination_that_does_not_answer_holds_up_no_other_and_no_reload() {
    let (place, target) = start();
    let service = place.serve();
    let away = FileSystem::mount(place.folder.path());
    let path = away.0.join("there");
    let (_, data) = defer(&place, &path, Pool::Stable).unwrap();
    let mut open = File::create(&data).unwrap();
    open.write_all(b"later").unwrap();
    until_told(&place, "open");
    away.freeze();
    drop(open);
    until_told(&place, "has not answered for");
    write(&place, &target.join("here"), b"now");
    until(&place, "the other one has moved", |files| files.len() == 1);
    assert_eq!((fs::read(target.join("here")).unwrap(), is_link(&target.join("here"))), (b"now".to_vec(), false));
    reload(&place);
    assert_eq!(fs::read(&path).unwrap(), b"later", "it reads through the link");
    away.thaw();
    until_moved(&place);
    assert_eq!((fs::read(&path).unwrap(), is_link(&path)), (b"later".to_vec(), false));
    assert_tidy(&place, &away.0);
    assert!(files(&place).is_empty() && service.terminate());
}

#[test]
fn who_puts_a_file_to_a_destination_that_does_not_answer_holds_up_nobody_else() {
    let (place, target) = start();
    let service = place.serve();
    let away = FileSystem::mount(place.folder.path());
    let path = away.0.join("there");
    let (socket, request) = (place.socket(), request(&path, Pool::Stable));
    away.freeze();
    let asker = thread::spawn(move || ask_within(&socket, &request, None));
    let own = place.pool().join("tenants/web/.deferred");
    let begun = Instant::now();
    while fs::read_dir(&own).map_or(0, Iterator::count) == 0 {
        assert!(begun.elapsed() < PATIENCE, "it is not asked for");
        thread::sleep(Duration::from_millis(10));
    }
    // It is in the pool, and the link to it waits for the disk.
    reload(&place);
    write(&place, &target.join("here"), b"now");
    until_moved(&place);
    assert_eq!(fs::read(target.join("here")).unwrap(), b"now");
    // Its tenant does not leave meanwhile.
    place.write_tables("[tenants.other]");
    reload(&place);
    let waits = "1 files in it wait for migration";
    place.until_status("it stays", |tenants| tenants.iter().any(|tenant| tenant.leaving.contains(waits)));
    place.write("", "");
    reload(&place);
    away.thaw();
    let Answer::Deferring { data, .. } = asker.join().unwrap().unwrap() else { panic!("it is refused") };
    fs::write(data, "there too").unwrap();
    until_moved(&place);
    assert_eq!((fs::read(&path).unwrap(), is_link(&path)), (b"there too".to_vec(), false));
    assert_tidy(&place, &away.0);
    assert!(service.terminate());
}
