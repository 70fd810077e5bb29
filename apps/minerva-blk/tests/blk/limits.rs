//! How many disks one server has descriptors for.

use crate::server_folder::{IMAGE_BYTES, ServerFolder, Serving, program};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DISKS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

/// Started with a limit below what its disks take, as systemd's 1,024 are for some forty.
#[test]
fn a_server_serves_more_disks_than_the_soft_limit_of_open_files_is_enough_for() {
    let place = ServerFolder::new();
    let mut text = String::new();
    for disk in 0..DISKS {
        let (image, socket) = (place.folder.path().join(format!("vm{disk}.raw")), place.socket_of(disk));
        std::fs::File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        writeln!(text, "[disks.vm{disk}]\nimage = {image:?}\nsocket = {socket:?}\ndirect = false").unwrap();
    }
    place.write_text(&text);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 64; exec \"$0\" \"$@\""]).arg(program()).arg("--config").arg(place.config());
    let serving = Serving(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let begun = Instant::now();
    while std::os::unix::net::UnixStream::connect(place.socket_of(DISKS - 1)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", serving.0.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("its limit");
    let words: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(words[3], words[4], "the soft limit is as high as the hard one: {files}");
    let mut clients: Vec<Client> =
        (0..DISKS).map(|disk| Client::connect(&place.socket_of(disk), ClientOptions::default())).collect();
    for client in &mut clients {
        assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status, 0);
    }
    let open = std::fs::read_dir(format!("/proc/{}/fd", serving.0.id())).unwrap().count();
    assert!(open > 64, "{open} descriptors would have been few enough");
}
