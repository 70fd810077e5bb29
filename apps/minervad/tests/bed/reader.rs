//! A process that reads a disk without a pause: this program once more.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The disk that the process reads.
const DISK: &str = "MINERVA_TEST_READER_OF";
const REQUEST_BYTES: usize = 64 << 10;
/// What unbuffered requests begin at a multiple of, in memory.
const ALIGNMENT_BYTES: usize = 4096;

/// Starts it in a group, before other tests: one that waits for a processor looks like one that pauses.
pub(super) fn start(device: &str, group: &Path) -> Child {
    let group = group.join("cgroup.procs");
    let script = format!("renice -n -10 -p $$; echo $$ > {} && exec \"$0\" \"$@\"", group.display());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(std::env::current_exe().expect("this program"));
    command.args(["--exact", "bed::reader::reader", "--nocapture"]).env(DISK, format!("/dev/{device}"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell")
}

/// The process itself; nothing in a run of the tests.
#[test]
fn reader() {
    let Some(disk) = std::env::var_os(DISK) else { return };
    let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("a flag");
    let disk = File::options().read(true).custom_flags(direct).open(disk).expect("a disk");
    let mut room = vec![0; REQUEST_BYTES + ALIGNMENT_BYTES];
    let begin = room.as_ptr().align_offset(ALIGNMENT_BYTES);
    let request = &mut room[begin..begin + REQUEST_BYTES];
    let mut offset = 0;
    loop {
        let read = disk.read_at(request, offset).expect("the disk is there") as u64;
        offset = if read == 0 { 0 } else { offset + read };
    }
}
