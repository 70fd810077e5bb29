//! A stock Debian guest in QEMU with a disk of the server's: what it writes is in the image, what it reads is what it wrote, also
//! across a `kill -9` of the server, and the tags that its programs give arrive.

use crate::server_folder::{ServerFolder, Serving};
use minerva_blk::tag::{Priority, TAG_MAX, TAG_MIN};
use minerva_lab::guest::{Architecture, Guest};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(150);
/// In the guest, the test reads this disk once with each tag.
const TAGGED: &str = "MINERVA_TEST_READ_TAGGED";

/// The server is killed once the first data is in the image; the guest writes on for six seconds at least.
const SCRIPT: &str = r#"
echo "size $(cat /sys/block/vda/size) serial $(cat /sys/block/vda/serial) cache $(cat /sys/block/vda/queue/write_cache)"
dd if=/dev/urandom of=/tmp/data bs=65536 count=32 2> /dev/null
dd if=/tmp/data of=/dev/vda bs=65536 conv=fsync 2> /dev/null
tries=0
while [ $tries -lt 12 ]; do
    dd if=/tmp/data of=/dev/vda bs=65536 conv=fsync 2> /dev/null || echo "a write failed"
    sleep 0.5
    tries=$((tries + 1))
done
echo 3 > /proc/sys/vm/drop_caches
dd if=/dev/vda of=/tmp/back bs=65536 count=32 2> /dev/null
cmp /tmp/data /tmp/back && echo same
echo "sum $(sha256sum < /tmp/data)"
"#;

/// Not a test by itself: in the guest it reads with each tag, by streams in turn.
#[test]
fn reads_with_every_tag() {
    let Some(disk) = std::env::var_os(TAGGED) else { return };
    let mut file = File::options().read(true).custom_flags(libc::O_DIRECT).open(disk).unwrap();
    let mut room = vec![0u8; 8192];
    let start = room.as_ptr().align_offset(4096);
    for tag in TAG_MIN..=TAG_MAX {
        let ioprio = Priority::encode(tag % 31 + 1, tag).unwrap();
        // Who: the calling thread, 1 being IOPRIO_WHO_PROCESS.
        // SAFETY: the call takes three numbers.
        let set = unsafe { libc::syscall(libc::SYS_ioprio_set, 1, 0, libc::c_long::from(ioprio)) };
        if set != 0 {
            println!("ioprio_set for {tag}: {}", std::io::Error::last_os_error());
            return;
        }
        file.read_exact(&mut room[start..start + 4096]).unwrap();
    }
    println!("ioprio_set: taken");
}

/// Kills the server in the midst of the guest's writing, wherever that is, and starts the next.
fn kill_while_writing(place: &ServerFolder, serving: Serving, has_ended: &AtomicBool) -> Serving {
    let has_data = || {
        let mut first = [0; 512];
        File::open(place.image()).unwrap().read_exact(&mut first).unwrap();
        first.iter().any(|byte| *byte != 0)
    };
    while !has_data() {
        if has_ended.load(Ordering::Relaxed) {
            return serving;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // The guest goes on writing meanwhile, so that the kill falls into the midst of it, not on its first request.
    std::thread::sleep(Duration::from_millis(1300));
    drop(serving);
    println!("the server was killed");
    place.serve()
}

#[test]
fn a_stock_guest_keeps_its_data_and_its_tags() {
    let place = ServerFolder::new();
    place.write("direct = false\ntag_max = 254", "");
    let serving = place.serve();
    let program = std::env::current_exe().unwrap();
    let name = program.file_name().unwrap().to_string_lossy().into_owned();
    let read_tagged = format!("{TAGGED}=/dev/vda {name} --exact guest::reads_with_every_tag --nocapture\n");
    let socket = place.socket();
    place.until_listening();
    let guest = Guest::builder().memory_mib(768).cpus(2).with_binary(&program).vhost_user_disk(&socket);
    let has_ended = AtomicBool::new(false);
    let (output, serving) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_while_writing(&place, serving, &has_ended));
        let output = guest.run(&format!("{SCRIPT}{read_tagged}"), TIMEOUT);
        has_ended.store(true, Ordering::Relaxed);
        (output, killer.join().unwrap())
    });
    let output = match output {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    println!("{}", output.stdout);
    assert!(output.stdout.contains("size 8192 serial vm1 cache write back"), "{output:?}");
    assert!(output.stdout.contains("\nsame\n") && !output.stdout.contains("a write failed"), "{output:?}");
    let sum = output.stdout.lines().find_map(|line| line.strip_prefix("sum ")).unwrap();
    assert_eq!(place.sum_of_first(2 << 20), sum.trim(), "what is in the image");
    assert!(output.stdout.contains("ioprio_set: taken"), "this guest's kernel has no tags: {output:?}");
    let every: Vec<u8> = (TAG_MIN..=TAG_MAX).collect();
    assert_eq!(place.report().disks[0].figures.tags_seen, every, "each of them came as it was given");
    let (_, counted) = serving.terminate();
    assert!(counted.contains(&format!(", {} tagged", every.len())), "{counted}");
}

/// Nothing in the guest is ours: Debian's kernel for arm64, and `ionice` and `dd` of its busybox, which reads past the page cache.
#[test]
fn a_stock_arm64_guest_keeps_its_data_and_gives_every_tag() {
    let place = ServerFolder::new();
    place.write("direct = false\ntag_max = 254", "");
    let serving = place.serve();
    let every: Vec<u8> = (TAG_MIN..=TAG_MAX).collect();
    let levels: Vec<String> =
        every.iter().map(|tag| (Priority::encode(tag % 31 + 1, *tag).unwrap() & 0x1fff).to_string()).collect();
    let script = format!(
        r#"uname -m
dd if=/dev/urandom of=/tmp/data bs=65536 count=32 2> /dev/null
dd if=/tmp/data of=/dev/vda bs=65536 conv=fsync 2> /dev/null
for level in {}; do
    ionice -c 2 -n $level dd if=/dev/vda of=/dev/null bs=4096 count=1 iflag=direct 2> /dev/null || echo "no read at $level"
done
dd if=/dev/vda of=/tmp/back bs=65536 count=32 iflag=direct 2> /dev/null
cmp /tmp/data /tmp/back && echo same
echo "sum $(sha256sum < /tmp/data)"
"#,
        levels.join(" ")
    );
    place.until_listening();
    let guest = Guest::builder().architecture(Architecture::Arm64).vhost_user_disk(place.socket());
    let output = match guest.run(&script, TIMEOUT) {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    println!("{}", output.stdout);
    assert!(output.stdout.starts_with("aarch64\n"), "{output:?}");
    assert!(output.stdout.contains("\nsame\n") && !output.stdout.contains("no read"), "{output:?}");
    let sum = output.stdout.lines().find_map(|line| line.strip_prefix("sum ")).unwrap();
    assert_eq!(place.sum_of_first(2 << 20), sum.trim(), "what is in the image");
    assert_eq!(place.report().disks[0].figures.tags_seen, every, "each of them came as it was given");
    drop(serving);
}

/// Whatever a program of a guest says by way of the clients, the server understands.
#[test]
fn the_clients_tags_are_the_servers() {
    for tag in 1..=254 {
        for stream in 1..32 {
            let client = minerva_client::Tag::new(tag).and_then(|tag| tag.in_stream(stream)).unwrap();
            assert_eq!(Some(client.ioprio()), Priority::encode(stream, tag));
        }
    }
}
