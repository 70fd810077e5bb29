//! What the program says, and what it needs root for.

use crate::server_folder::{IMAGE_BYTES, ServerFolder};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_good_file_is_judged_with_all_that_it_names() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let output = place.run(&["--check"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains(&format!("vm1: {IMAGE_BYTES} bytes on ")) && said.contains(", ordered by bfq"), "{said}");
    assert!(said.contains("1 disks can be served"), "{said}");
}

/// The server has the images locked; an edited file can be judged all the same.
#[test]
fn a_file_is_judged_beside_the_server_that_serves_what_it_names() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let _serving = place.serve();
    place.until_listening();
    let output = place.run(&["--check"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("vm1: served now"), "{said}");
}

#[test]
fn a_weight_that_the_scheduler_ignores_is_told_and_the_disk_served() {
    let place = ServerFolder::new();
    for (scheduler, is_told) in [("htbs", true), ("tag", true), ("bfq", false)] {
        place.write("direct = false", "");
        let output = place.run(&["--check"]);
        let device = text(&output.stdout);
        let device =
            device.split(" bytes on ").nth(1).and_then(|rest| rest.split(',').next()).expect("a device").to_owned();
        place.write("weight = 300\ndirect = false", &format!("[devices.{device}]\nscheduler = \"{scheduler}\""));
        let output = place.run(&["--check"]);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(
            said.contains("disk `vm1`: its weight has no effect, as the scheduler"),
            is_told,
            "{scheduler}: {said}"
        );
    }
}

#[test]
fn what_cannot_be_served_is_told_with_the_file_the_line_and_what_to_do() {
    let place = ServerFolder::new();
    let refused = |disk: &str, rest: &str| {
        place.write(disk, rest);
        let output = place.run(&["--check"]);
        assert!(!output.status.success());
        text(&output.stderr)
    };
    let said = refused("rate = \"1MB\"\ndirect = false", "");
    assert!(said.contains("blk.toml:1: disk `vm1`: `rate` is set, but the scheduler `bfq`"), "{said}");
    assert!(said.contains("set its `scheduler` to one of `pclock`, `htbs`"), "{said}");
    let said = refused("limit = \"1MB\"\ndirect = false", "");
    assert!(said.contains("set `scheduler = \"mclock\"`"), "{said}");
    let said = refused("direct = false", "[server]\nuser = \"minerva-nobody-has-this\"");
    assert!(said.contains("there is no user `minerva-nobody-has-this`; make it"), "{said}");
    let said = refused("wait = 3", "");
    assert!(said.contains("unknown key `wait`") && said.contains("blk.toml:4:1"), "{said}");
    std::fs::File::options().write(true).open(place.image()).unwrap().set_len(1000).unwrap();
    let said = refused("direct = false", "");
    assert!(said.contains("vm1.raw: 1000 bytes long, which is not a whole number of sectors; make it"), "{said}");
}

#[test]
fn the_lines_to_attach_a_disk_name_its_socket() {
    let place = ServerFolder::new();
    place.write("queues = 3", "");
    let output = place.run(&["attach-line", "vm1"]);
    let (said, socket) = (text(&output.stdout), place.socket());
    assert!(said.contains(&format!("-chardev socket,id=disk-vm1,path={},reconnect=1", socket.display())), "{said}");
    assert!(said.contains("-device vhost-user-blk-pci,chardev=disk-vm1,num-queues=3"), "{said}");
    assert!(said.contains(&format!("<source type='unix' path='{}'>", socket.display())), "{said}");
    let output = place.run(&["attach-line", "vm2"]);
    assert!(text(&output.stderr).contains("has no disk `vm2`; it has: vm1"), "{}", text(&output.stderr));
}

#[test]
fn it_serves_without_root_and_ends_when_told() {
    let place = ServerFolder::new();
    let is_root = rustix::process::geteuid().is_root();
    let rest = if is_root { "[server]\nuser = \"nobody\"" } else { "" };
    place.write("direct = false", rest);
    let serving = place.serve();
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status, 0);
    if is_root {
        let status = std::fs::read_to_string(format!("/proc/{}/status", serving.0.id())).unwrap();
        for thread in std::fs::read_dir(format!("/proc/{}/task", serving.0.id())).unwrap() {
            let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let ids = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
            assert!(!ids.split_whitespace().skip(1).any(|id| id == "0"), "{ids}: {status}");
            assert!(status.contains("CapEff:\t0000000000000000"), "no thread has capabilities left");
        }
        assert!(status.contains("NoNewPrivs:\t1"));
    } else {
        println!("skipped: without root nothing can be given up");
    }
    let second = place.run(&[]);
    assert!(text(&second.stderr).contains("locked by another process"), "{}", text(&second.stderr));
    let (is_content, said) = serving.terminate();
    assert!(is_content, "{said}");
    assert!(said.contains("vm1: 1 requests, 4096 bytes, 0 tagged, 0 failed, 0 refused"), "{said}");
    assert!(!said.contains("stays root"), "{said}");
}

#[test]
fn started_by_root_without_a_user_it_says_that_it_stays_root() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root");
    }
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let serving = place.serve();
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status, 0);
    let (is_content, said) = serving.terminate();
    assert!(is_content && said.contains("the server stays root, as `server.user` is not set"), "{said}");
}
