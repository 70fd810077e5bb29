//! What is asked of a running server: a disk that is refused, or whose image is locked, is in nobody's way, and a weight that would
//! have no effect is refused.

use crate::operator::{Operator, device_of_tests};
use crate::server_folder::{ServerFolder, emulated};
use minerva_blk::{Image, ImageOptions};
use minerva_linux_actuate::ask_server;
use minerva_model::{ControlRequest, DiskSettings, ServerAnswer};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_disk_is_added_on_a_device_after_another_was_refused_on_another_device() {
    let Some(device) = device_of_tests() else { return };
    let Some(first) = emulated("minerva-test-add-1") else { return };
    let Some(second) = emulated("minerva-test-add-2") else { return };
    let names = [first.info(), second.info()].map(|info| info.kernel_name.clone());
    assert!(!names.contains(&device));
    let rest = format!("[devices.{}]\nscheduler = \"htbs\"\nrotational = true\n", names[0]);
    let Some(operator) = Operator::new("direct = false", &rest) else { return };
    let (images, socket) = ([first.info(), second.info()].map(|info| info.device.display().to_string()), "vm2.sock");
    let socket = operator.path(socket);
    let add = |name: &'static str, image: &str, more: &[&'static str]| {
        let words = ["add", name, "--image", image, "--disk-socket", &socket, "--runtime"];
        operator.disk(&[&words, more].concat())
    };
    let refused = add("vm2", &images[0], &["--rate", "400MB"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("impossible under any scheduler"), "{said}");
    assert_eq!(operator.folder.report().devices.len(), 1, "nothing is served there");
    let added = add("vm3", &images[1], &[]);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let mut guest = Client::connect(socket.as_ref(), ClientOptions::default());
    assert_eq!(guest.rings[0].ask(&Request::new(kind::IN, 8, 4096)).status, 0);
    let devices = operator.folder.report().devices;
    assert_eq!(devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), [&*device, &*names[1]]);
}

/// `minervad` gives up after a quarter of a second, and leaves a silent server alone for five.
#[test]
fn others_are_answered_while_a_disk_that_is_added_waits_for_its_lock() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let serving = place.serve();
    let begun = Instant::now();
    let control = place.runtime_dir().join("servers/blk");
    while UnixStream::connect(&control).is_err() {
        assert!(begun.elapsed() < PATIENCE, "it does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (path, socket) = (place.folder.path().join("vm2.raw"), place.socket_of(2));
    File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let locked = Image::open(&path, ImageOptions { is_read_only: false, is_direct: false }).unwrap();
    let vm1 = place.report().disks.remove(0).settings;
    let (image, named) = (path.display().to_string(), socket.display().to_string());
    let disk = DiskSettings { name: "vm2".to_owned(), image, socket: named, ..vm1 };
    let opened = File::options().read(true).write(true).open(&path).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::scope(|scope| {
        let add = scope.spawn(|| {
            let request = ControlRequest::Add { disk };
            ask_server(&control, &request, &[opened.as_fd(), listener.as_fd()], PATIENCE).unwrap()
        });
        let has_image = || {
            let files = std::fs::read_dir(format!("/proc/{}/fd", serving.0.id())).unwrap();
            files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok()).any(|file| file == path)
        };
        while !has_image() {
            assert!(begun.elapsed() < PATIENCE && !add.is_finished(), "the server does not get the image");
            std::thread::sleep(Duration::from_millis(2));
        }
        for _ in 0..10 {
            assert_eq!(place.report().disks.len(), 1);
            assert!(!add.is_finished(), "the list was answered after the disk was");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(locked);
        assert!(matches!(add.join().unwrap(), ServerAnswer::Holds(_)));
    });
    assert_eq!(place.report().disks.len(), 2);
}

/// What has no effect is not taken, so that `minervad` tells of it; what undoes it is.
#[test]
fn a_weight_that_the_scheduler_ignores_is_refused_with_the_reason() {
    let Some(device) = device_of_tests() else { return };
    for (scheduler, heeds) in [("htbs", false), ("tag", false), ("noop", false), ("sfq", true), ("mclock", true)] {
        let rest = format!("[devices.{device}]\nscheduler = \"{scheduler}\"\n");
        let Some(operator) = Operator::new("direct = false", &rest) else { return };
        let control = operator.folder.runtime_dir().join("servers/blk");
        let say = |line: &str| -> ServerAnswer {
            let mut stream = UnixStream::connect(&control).unwrap();
            writeln!(stream, "{line}").unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            answer.trim_end().parse().unwrap()
        };
        let holds = |weight: &str| ServerAnswer::Holds(weight.to_owned());
        match say("set weight vm1 400") {
            ServerAnswer::Refused(why) if !heeds => {
                let reason = format!("the scheduler `{scheduler}` of {device} ignores weights");
                assert!(why.contains(&reason) && why.contains(&format!("`devices.{device}`")), "{why}");
                assert_eq!(say("get weight vm1"), holds("100"));
            }
            answer => assert_eq!((answer, heeds), (holds("400"), true), "{scheduler}"),
        }
        assert_eq!(say("set weight vm1 100"), holds("100"), "{scheduler}");
        let set = |weight: &str| operator.disk(&["set", "vm1", "--runtime", "--weight", weight]);
        let (output, reason) = (set("300"), format!("the scheduler `{scheduler}` of {device} ignores weights"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.success(), said.contains(&reason)), (heeds, !heeds), "{scheduler}: {said}");
        let weight = operator.folder.report().disks[0].settings.terms.weight;
        assert_eq!(weight, if heeds { 300 } else { 100 }, "{scheduler}");
        assert!(set("100").status.success(), "{scheduler}");
    }
}
