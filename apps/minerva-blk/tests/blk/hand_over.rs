//! Servers hand over to the next under a load that knows what each block must hold: no error, nothing lost, nobody hung up on.

use crate::load::{Load, PATIENCE};
use crate::pause::print_longest;
use crate::server_folder::{IMAGE_BYTES, ServerFolder, Serving, program};
use minerva_blk::frame;
use minerva_linux_actuate::ask_server;
use minerva_model::{ControlRequest, DiskSettings, ServerAnswer};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often servers hand over; `cargo xtask figures blk-handover` asks for more.
const HAND_OVERS: &str = "MINERVA_HANDOVERS";
const HAND_OVERS_DEFAULT: u32 = 8;

pub(crate) fn take_over(place: &ServerFolder) -> Serving {
    let mut command = Command::new(program());
    command.arg("--config").arg(place.config()).arg("--take-over").stderr(Stdio::piped()).stdin(Stdio::null());
    command.stdout(Stdio::null());
    Serving(command.spawn().unwrap())
}

/// Waits for its end; what it said.
pub(crate) fn ended(mut serving: Serving) -> (bool, String) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = serving.0.try_wait().unwrap() {
            let mut said = String::new();
            serving.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            return (status.success(), said);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("it does not end");
}

#[test]
fn servers_hand_over_under_load_without_an_error_and_lose_nothing() {
    let place = ServerFolder::new();
    place.write("", "");
    if !place.run(&["--check"]).status.success() {
        place.write("direct = false", "");
    }
    let count = std::env::var(HAND_OVERS).ok().and_then(|text| text.parse().ok()).unwrap_or(HAND_OVERS_DEFAULT);
    let mut serving = place.serve();
    let mut load = Load::new(&place);
    let mut pauses = Vec::new();
    for _ in 0..count {
        load.run(Duration::from_millis(30));
        let next = take_over(&place);
        // The load goes on meanwhile, over the same connection: the longest time without an answer is what guests see.
        let mut longest = Duration::ZERO;
        let mut answered = Instant::now();
        let has_ended = |serving: &mut Serving| serving.0.try_wait().unwrap().is_some();
        let mut since_end = None;
        loop {
            if load.step() {
                longest = longest.max(answered.elapsed());
                answered = Instant::now();
            }
            assert!(answered.elapsed() < PATIENCE, "guests wait for ever");
            if since_end.is_none() && has_ended(&mut serving) {
                since_end = Some(Instant::now());
            }
            if since_end.is_some_and(|since| answered > since + Duration::from_millis(20)) {
                break;
            }
        }
        let (is_content, said) = ended(std::mem::replace(&mut serving, next));
        assert!(is_content, "{said}");
        assert!(said.contains("serves the disks now"), "{said}");
        pauses.push(longest);
        load.settle();
        load.judge(&place);
    }
    let (is_content, said) = serving.terminate();
    assert!(is_content && said.contains("took over from process"), "{said}");
    pauses.sort_unstable();
    println!(
        "{count} hand-overs, {} requests answered over one connection, none failed, none lost; longest time without an answer {:?}, median {:?}",
        load.acknowledged,
        pauses[pauses.len() - 1],
        pauses[pauses.len() / 2]
    );
    let longest = pauses.last().copied().unwrap_or_default();
    print_longest("blk-handover", longest, &format!("without an answer at one of {count} hand-overs"));
    assert!(load.acknowledged > u64::from(count) * 10, "a hand-over in a pause proves nothing");
}

/// What the next server cannot take leaves the old one where it was.
#[test]
fn a_hand_over_that_comes_to_nothing_leaves_the_guests_where_they_were() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let mut serving = place.serve();
    let mut load = Load::new(&place);
    load.run(Duration::from_millis(20));
    // Whoever greets and then says nothing, or hangs up, is no next server.
    let mut stream = UnixStream::connect(place.runtime_dir().join("servers/blk")).unwrap();
    stream.write_all(b"take-over 1\n").unwrap();
    drop(stream);
    load.run(Duration::from_millis(20));
    let text = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(place.config(), text.replace("direct = false", "direct = false\nnonsense = 1")).unwrap();
    let (is_content, said) = ended(take_over(&place));
    assert!(!is_content && said.contains("unknown key `nonsense`"), "{said}");
    std::fs::write(place.config(), text).unwrap();
    load.run(Duration::from_millis(20));
    load.settle();
    assert!(serving.0.try_wait().unwrap().is_none(), "the old server goes on");
    assert_eq!(load.client.rings[0].ask(&Request::new(kind::FLUSH, 0, 0)).status, 0);
    load.judge(&place);
    let (is_content, said) = serving.terminate();
    assert!(is_content && said.contains("nothing was handed over, and this server goes on"), "{said}");
    let nobody = ended(take_over(&place)).1;
    assert!(nobody.contains("start `minerva-blk` without `--take-over`"), "{nobody}");
}

/// Whoever is offered one disk, and has not said yet that it is prepared.
fn next_of_one(place: &ServerFolder) -> UnixStream {
    let mut next = UnixStream::connect(place.control()).unwrap();
    next.set_read_timeout(Some(PATIENCE)).unwrap();
    next.write_all(b"take-over 1\n").unwrap();
    let (_hello, _) = frame::receive(&next).unwrap();
    let (_offer, _) = frame::receive(&next).unwrap();
    next
}

/// A hand-over that comes to nothing when nobody is served any more.
fn fail_late(place: &ServerFolder) {
    let next = next_of_one(place);
    frame::send(&next, b"\"Prepared\"", &[]).unwrap();
    let (_left, _) = frame::receive(&next).unwrap();
}

/// What `minervad` says to the server, and its answer.
fn say(place: &ServerFolder, line: &str) -> ServerAnswer {
    let mut stream = UnixStream::connect(place.control()).unwrap();
    writeln!(stream, "{line}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer.trim_end().parse().unwrap()
}

/// To `minervad` whoever goes on is another server, which holds nothing of what the one before was told: it would never undo that.
#[test]
fn what_minervad_set_ends_with_a_hand_over_whatever_comes_of_it() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let first = place.serve();
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    let holds = |weight: &str| ServerAnswer::Holds(weight.to_owned());
    assert_eq!(say(&place, "set weight vm1 400"), holds("400"));
    let before = place.report();
    fail_late(&place);
    assert_eq!(say(&place, "get weight vm1"), holds("100"), "the same process");
    assert_ne!(place.report().began, before.began, "which `minervad` takes for another");
    assert_eq!(say(&place, "set weight vm1 400"), holds("400"));
    let next = take_over(&place);
    assert!(ended(first).0);
    assert_eq!(say(&place, "get weight vm1"), holds("100"), "the next");
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0);
    drop(next);
}

/// A guest could otherwise keep the server of all guests from being replaced, by four bytes.
#[test]
fn a_guest_whose_disk_looks_like_another_format_or_became_shorter_is_handed_over() {
    for (bytes, length) in [(&b"QFI\xfb"[..], IMAGE_BYTES), (b"KDMV", IMAGE_BYTES), (b"", 1000), (b"", 0)] {
        let place = ServerFolder::new();
        place.write("direct = false", "");
        let first = place.serve();
        let mut client = Client::connect(&place.socket(), ClientOptions::default());
        let image = File::options().write(true).open(place.image()).unwrap();
        image.write_all_at(bytes, 0).unwrap();
        image.set_len(length).unwrap();
        let next = take_over(&place);
        let (is_content, said) = ended(first);
        assert!(is_content && said.contains("serves the disks now"), "{said}");
        assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 64, 4096)).status, 0);
        assert_eq!(client.config(8), (IMAGE_BYTES / 512).to_le_bytes(), "as long as its guest knows it");
        drop(next);
    }
}

/// What serves can make no files.
#[test]
fn a_server_that_logs_requests_goes_on_after_a_hand_over_that_failed_and_takes_disks_on_other_devices() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let logs = place.folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let serving = place.serve_with(&["--log-requests", &logs.display().to_string()]);
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0);
    fail_late(&place);
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 64, 4096)).status, 0);
    let elsewhere = tempfile::Builder::new().prefix("minerva-test-blk-").tempfile_in("/dev/shm").unwrap();
    elsewhere.as_file().set_len(IMAGE_BYTES).unwrap();
    let vm1 = place.report().disks.remove(0).settings;
    let (image, socket) = (elsewhere.path().display().to_string(), place.socket_of(2));
    let disk = DiskSettings { name: "vm2".to_owned(), image, socket: socket.display().to_string(), ..vm1 };
    let listener = UnixListener::bind(&socket).unwrap();
    let opened = [elsewhere.as_file().as_fd(), listener.as_fd()];
    let added = ask_server(&place.control(), &ControlRequest::Add { disk }, &opened, PATIENCE).unwrap();
    assert!(matches!(added, ServerAnswer::Holds(_)), "{added}");
    let devices: Vec<String> = place.report().devices.into_iter().map(|device| device.name).collect();
    let (is_content, said) = serving.terminate();
    assert!(is_content, "{said}");
    let log = std::fs::read_to_string(logs.join(format!("{}.csv", devices[0]))).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() == 3 && lines.iter().filter(|line| line.starts_with("disk,")).count() == 1, "{log}");
    if let [_, other] = &devices[..] {
        assert!(said.contains(&format!("requests on {other} are not logged")), "{said}");
    }
}

/// It would serve nobody, and the service manager would start no other.
#[test]
fn a_server_that_can_neither_hand_over_nor_go_on_ends() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let mut serving = place.serve();
    let load = Load::new(&place);
    let next = next_of_one(&place);
    // From here on it can open nothing, as it would to go on.
    let none = Rlimit { current: Some(3), maximum: Some(3) };
    prlimit(Some(Pid::from_child(&serving.0)), Resource::Nofile, none).unwrap();
    frame::send(&next, b"\"Prepared\"", &[]).unwrap();
    let (_left, _) = frame::receive(&next).unwrap();
    drop(next);
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = serving.0.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE, "it lives on, and serves nobody");
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut said = String::new();
    serving.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("this server cannot go on, so it ends"), "{said}");
    drop(load);
}

/// A server that is nobody's child of this test, ended with it.
struct Orphan(Pid);

impl Orphan {
    /// Whose child it is.
    fn parent(&self) -> u32 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.as_raw_nonzero())).unwrap();
        status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok()).expect("its parent")
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// systemd would take a main process for an alien that is another process's child when it hears of it, and kill it at a stop.
#[test]
fn a_server_in_the_background_is_the_service_managers_child_when_that_hears_of_it() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let manager = place.folder.path().join("notify");
    let hears = UnixDatagram::bind(&manager).unwrap();
    hears.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = |wanted: &str| loop {
        let mut bytes = [0; 4096];
        let length = hears.recv(&mut bytes).expect("a word in time");
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if let Some(rest) = text.lines().find_map(|line| line.strip_prefix(wanted)) {
            return rest.to_owned();
        }
    };
    let start = |arguments: &[&str]| {
        let mut command = Command::new(program());
        command.arg("--config").arg(place.config()).args(arguments).env("NOTIFY_SOCKET", &manager);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let first = Serving(start(&[]).stderr(Stdio::piped()).spawn().unwrap());
    hear("READY=1");
    let mut command = Serving(start(&["--take-over", "--detach"]).spawn().unwrap());
    let next = Orphan(Pid::from_raw(hear("MAINPID=").parse().expect("a process")).expect("not 0"));
    let (parent, starter) = (next.parent(), command.0.id());
    assert_ne!(parent, starter, "the command's own child");
    assert!(std::fs::read_to_string(format!("/proc/{parent}/cmdline")).is_ok_and(|line| !line.contains("--detach")));
    assert!(ended(first).0, "the server before");
    assert!(command.0.wait().unwrap().success());
}
