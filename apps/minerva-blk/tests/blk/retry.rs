//! Disks that cannot be served yet, and disks that are new when a server hands over.

use crate::hand_over::{ended, take_over};
use crate::hanging::{Hanging, can_hang};
use crate::server_folder::{IMAGE_BYTES, ServerFolder};
use minerva_blk::{Image, ImageOptions, frame};
use minerva_model::{CONTROL_VERSION, ControlRequest, RefusedDisk, ServerAnswer, ServerReport};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// What the server says of its disks; none while nobody answers.
fn report(place: &ServerFolder) -> Option<ServerReport> {
    let text = ask(place, &ControlRequest::List)?;
    Some(serde_json::from_str(&text).unwrap())
}

fn ask(place: &ServerFolder, request: &ControlRequest) -> Option<String> {
    let mut stream = UnixStream::connect(place.runtime_dir().join("servers/blk")).ok()?;
    let request = serde_json::to_string(request).unwrap();
    stream.write_all(format!("{CONTROL_VERSION} {request}\n").as_bytes()).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    match line.trim_end().parse().ok()? {
        ServerAnswer::Holds(text) => Some(text),
        other => panic!("{other}"),
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A table of the file, of a disk with a good image.
fn table(place: &ServerFolder, name: &str) -> (String, PathBuf, PathBuf) {
    let path = |kind: &str| place.folder.path().join(format!("{name}.{kind}"));
    let (image, socket) = (path("raw"), path("sock"));
    File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
    (format!("[disks.{name}]\nimage = {image:?}\nsocket = {socket:?}\ndirect = false\n"), image, socket)
}

fn lock(image: &Path) -> Image {
    Image::open(image, ImageOptions { is_read_only: false, is_direct: false }).unwrap()
}

fn is_served(socket: &Path) -> bool {
    let mut client = Client::connect(socket, ClientOptions::default());
    client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status == 0
}

/// The lock of a killed server whose disk hangs, say.
#[test]
fn a_disk_whose_image_is_locked_is_served_once_the_lock_is_free() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let locked = lock(&place.image());
    let serving = place.serve();
    // Nobody else is served, and the server stays: it has something to wait for.
    until("the server says what it waits for", || report(&place).is_some());
    let told = report(&place).unwrap();
    assert!(told.disks.is_empty());
    let [refused] = &told.refused[..] else { panic!("{told:?}") };
    assert!(refused.why.contains("locked by another process") && refused.retry_in.is_some(), "{refused:?}");
    let refusal = UnixStream::connect(place.socket()).map(drop).unwrap_err();
    assert_eq!(refusal.kind(), std::io::ErrorKind::ConnectionRefused, "a front end may come back and is not let wait");
    drop(locked);
    until("the disk is served", || report(&place).is_some_and(|told| told.refused.is_empty()));
    assert!(is_served(&place.socket()));
    let (is_content, said) = serving.terminate();
    assert!(is_content && said.contains("0 disks are served, 1 are refused"), "{said}");
    assert!(said.contains("its image is not locked any more, and it is served now"), "{said}");
}

#[test]
fn disks_that_are_new_in_the_file_are_served_by_the_server_that_takes_over() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let first = place.serve();
    until("the first server", || place.socket().exists() && report(&place).is_some());
    let mut guest = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(guest.rings[0].ask(&Request::new(kind::OUT, 0, 4096)).status, 0);
    let mut text = std::fs::read_to_string(place.config()).unwrap();
    let [new, locked, missing] = ["new", "locked", "missing"].map(|name| table(&place, name));
    let holder = lock(&locked.1);
    std::fs::remove_file(&missing.1).unwrap();
    for (lines, ..) in [&new, &locked, &missing] {
        write!(text, "\n{lines}").unwrap();
    }
    std::fs::write(place.config(), text).unwrap();
    let next = take_over(&place);
    let (is_content, said) = ended(first);
    assert!(is_content && said.contains("serves the disks now"), "{said}");
    assert_eq!(guest.rings[0].ask(&Request::new(kind::OUT, 0, 4096)).status, 0, "over the same connection");
    until("the next server", || report(&place).is_some_and(|told| told.disks.len() == 2));
    assert!(is_served(&new.2));
    let told = report(&place).unwrap();
    let refused: Vec<_> = told.refused.iter().map(|disk| (disk.name.as_str(), disk.retry_in.is_some())).collect();
    assert_eq!(refused, [("locked", true), ("missing", false)]);
    drop(holder);
    until("the locked one", || report(&place).is_some_and(|told| told.disks.len() == 3));
    assert!(is_served(&locked.2));
    let (is_content, said) = next.terminate();
    assert!(is_content && said.contains("and serves 1 more"), "{said}");
}

/// Hands on between the server of `place` and whoever takes over at `control`, until that is prepared, and then leaves both.
fn stand_between(place: &ServerFolder, control: &Path) {
    let listener = UnixListener::bind(control).unwrap();
    let server = UnixStream::connect(place.control()).unwrap();
    (&server).write_all(b"take-over 1\n").unwrap();
    let (next, _) = listener.accept().unwrap();
    let mut greeting = [0; 12];
    (&next).read_exact(&mut greeting).unwrap();
    // Its greeting, and the one disk that is served.
    for _ in 0..2 {
        let (text, descriptors) = frame::receive(&server).unwrap();
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        frame::send(&next, &text, &borrowed).unwrap();
    }
    let (prepared, _) = frame::receive(&next).unwrap();
    assert_eq!(prepared, b"\"Prepared\"");
}

/// The next server must not put sockets of its own where the one before needs those that it has, and finds them in either case.
#[test]
fn a_disk_that_waits_for_its_lock_is_reached_after_a_hand_over_and_after_one_that_failed() {
    for fails in [true, false] {
        let place = ServerFolder::new();
        place.write("direct = false", "");
        let (lines, image, socket) = table(&place, "locked");
        let text = std::fs::read_to_string(place.config()).unwrap() + "\n" + &lines;
        std::fs::write(place.config(), &text).unwrap();
        let holder = lock(&image);
        let mut serving = place.serve();
        until("the server says what it waits for", || report(&place).is_some_and(|told| told.refused.len() == 1));
        if fails {
            let control = place.folder.path().join("between");
            let other = text.replace(&format!("{:?}", place.control()), &format!("{control:?}"));
            std::thread::scope(|scope| {
                scope.spawn(|| stand_between(&place, &control));
                until("somebody stands between", || control.exists());
                std::fs::write(place.config(), other).unwrap();
                let (is_content, said) = ended(take_over(&place));
                assert!(!is_content, "{said}");
            });
        } else {
            let next = take_over(&place);
            assert!(ended(std::mem::replace(&mut serving, next)).0);
        }
        drop(holder);
        until("the locked one", || report(&place).is_some_and(|told| told.disks.len() == 2));
        assert!(is_served(&socket), "fails: {fails}");
        drop(serving);
    }
}

#[test]
fn a_locked_disk_that_is_removed_is_not_tried_any_more() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let locked = lock(&place.image());
    let serving = place.serve();
    until("the server says what it waits for", || report(&place).is_some_and(|told| told.refused.len() == 1));
    // A try may be under way; what it then finds is nobody's any more.
    let removed = ask(&place, &ControlRequest::Remove { name: "vm1".to_owned(), force: false });
    assert_eq!(removed.as_deref(), Some("null"));
    assert_eq!(report(&place).map(|told| told.refused), Some(Vec::new()));
    drop(locked);
    // The first tries are after 1 and 2 s.
    std::thread::sleep(Duration::from_secs(4));
    let told = report(&place).unwrap();
    assert!(told.disks.is_empty() && told.refused.is_empty(), "{told:?}");
    assert!(!place.socket().exists(), "its socket is gone");
    let (is_content, said) = serving.terminate();
    assert!(is_content && !said.contains("it is served now"), "{said}");
}

/// Its file server has gone meanwhile, say.
#[test]
fn an_image_whose_storage_hangs_keeps_no_other_waiting_for_its_lock() {
    if !can_hang() {
        return;
    }
    let place = ServerFolder::new();
    let [hanging, locked] = ["hanging", "locked"].map(|name| table(&place, name));
    // By the name it is tried first.
    place.write_text(&format!("{}{}", hanging.0, locked.0));
    let storage = Hanging::mount(&hanging.1, IMAGE_BYTES);
    let holders = [&hanging.1, &locked.1].map(|image| lock(image));
    let serving = place.serve();
    until("the server says what it waits for", || report(&place).is_some_and(|told| told.refused.len() == 2));
    storage.hang();
    // Its first try is after a second.
    let is_hanging = |told: ServerReport| {
        let is_tried = |disk: &RefusedDisk| disk.name == "hanging" && disk.retry_in.is_some_and(|time| time.0 == 0);
        told.refused.iter().any(is_tried)
    };
    until("it hangs", || report(&place).is_some_and(is_hanging));
    drop(holders);
    until("the other one is served", || report(&place).is_some_and(|told| told.disks.len() == 1));
    assert!(is_served(&locked.2));
    drop(storage);
    drop(serving);
}
