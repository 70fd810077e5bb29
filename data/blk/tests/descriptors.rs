//! A server that has no descriptor left. The limit is that of the whole process, so that nothing else is tested beside it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, PATIENCE};
use minerva_blk::HangUp;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

#[test]
fn a_front_end_for_which_no_descriptor_is_left_waits_and_the_operator_is_told() {
    let bench = Bench::one(1);
    let why = || bench.server.as_ref().unwrap().hang_up("disk0");
    let wait_until = |is_so: fn(&Option<HangUp>) -> bool| {
        let begun = Instant::now();
        while !is_so(&why()) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        why()
    };
    let waiting = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let address = SocketAddrUnix::new(bench.socket(0)).unwrap();
    let first_free = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(first_free), ..before }).unwrap();
    connect(&waiting, &address).unwrap();
    let told = wait_until(Option::is_some);
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(told, Some(HangUp::NoDescriptor));
    drop(waiting);
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0);
    // A request may be answered before the server has noted that the front end is served.
    assert_eq!(wait_until(Option::is_none), None);
}
