//! Front ends that do not keep to the protocol: each costs its own guest only, holds up no hand-over, and is told with what to do.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, IMAGE_BYTES, PATIENCE, disk, wait_for_reason};
use minerva_blk::{ServerError, TransferKind};
use minerva_blocksched::SchedulerName;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::{Duration, Instant};
use vhost::vhost_user::message::{VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo};
use vm_memory::{GuestMemoryBackend, GuestMemoryRegion};

/// `VHOST_USER_GET_FEATURES` of version 1, without anything behind it.
const GET_FEATURES: [u8; 12] = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

/// The next front end is served.
fn judge(bench: &Bench) {
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0);
}

#[test]
fn a_message_that_is_not_ended_holds_up_no_hand_over_and_the_next_server_hears_it_whole() {
    let mut bench = Bench::one(3);
    let mut stream = UnixStream::connect(bench.socket(0)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (first, rest) = GET_FEATURES.split_at(5);
    stream.write_all(first).unwrap();
    while bench.server.as_ref().unwrap().front_end("disk0").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        bench.hand_over(SchedulerName::Noop);
        let _ = done.send(bench);
    });
    let bench = is_done.recv_timeout(PATIENCE).expect("the front end holds up the hand-over");
    stream.write_all(rest).unwrap();
    let mut answer = [0; 20];
    stream.read_exact(&mut answer).expect("the next server answers");
    assert_eq!(answer[..4], GET_FEATURES[..4]);
    drop(stream);
    judge(&bench);
}

/// Lets a guest that may have one request a day ask for many and stop its disk, and meanwhile front ends are to be parked, in which another
/// guest is served; what came of that.
fn park_beside_a_stop(bench: &Bench, stopping: &mut Client, neighbour: &mut Client) -> Result<(), ServerError> {
    while stopping.rings[0].free_slots() > 0 {
        stopping.rings[0].submit(&Request::new(kind::IN, 0, 4096));
    }
    stopping.rings[0].kick();
    let server = bench.server.as_ref().unwrap();
    let (parked, base) = std::thread::scope(|scope| {
        let stop = scope.spawn(|| stopping.stop_ring(0));
        // The message has come by then, and the stop has not ended: it waits for its turn for a second.
        std::thread::sleep(Duration::from_millis(200));
        let parked = server.park(Duration::from_millis(100));
        assert_eq!(neighbour.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0);
        server.unpark();
        (parked, stop.join().unwrap())
    });
    while stopping.rings[0].poll().is_some() {}
    stopping.start_ring(0, base);
    parked
}

/// Otherwise all guests would be without their disks until it is done.
#[test]
fn a_guest_that_stops_its_disk_freezes_nobody_in_a_hand_over() {
    let folder = Bench::folder();
    let mut disks: Vec<_> = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    // One request a day: the second stop waits for its turn, for a second.
    disks[0].parameters.limit_per_second = 1.0 / 86_400.0;
    let mut bench = Bench::start(folder, SchedulerName::Mclock, 4, TransferKind::Uring, disks);
    let options = ClientOptions { data_bytes: 4096, ..ClientOptions::default() };
    let [mut stopping, mut neighbour] = [0, 1].map(|number| Client::connect(&bench.socket(number), options));
    // Where it has not begun to stop when it is looked at, again.
    let refused = (0..20).find_map(|_| park_beside_a_stop(&bench, &mut stopping, &mut neighbour).err());
    let refused = refused.expect("it cannot be left in the middle of a stop").to_string();
    assert!(refused.contains("disk `disk0`: its guest is stopping it"), "{refused}");
    // Its front end is heard as before, and not while all are parked.
    assert_eq!(neighbour.config(8), (IMAGE_BYTES / 512).to_le_bytes());
    bench.server.as_ref().unwrap().park(PATIENCE).unwrap();
    let heard = std::thread::scope(|scope| {
        let heard = scope.spawn(|| neighbour.config(8));
        bench.hand_over(SchedulerName::Noop);
        heard.join().unwrap()
    });
    assert_eq!(heard, (IMAGE_BYTES / 512).to_le_bytes(), "by the next server");
    for client in [&mut stopping, &mut neighbour] {
        let ring = &mut client.rings[0];
        while ring.under_way() > 0 {
            assert_eq!(ring.wait(PATIENCE).expect("each is answered once").status, 0);
        }
        assert_eq!(ring.ask(&Request::new(kind::IN, 0, 4096)).status, 0, "and what comes later");
    }
}

#[test]
fn a_front_end_that_ends_no_message_or_reads_no_answer_makes_room_for_the_next() {
    for count in [0, 1000] {
        let bench = Bench::one(1);
        let mut stream = UnixStream::connect(bench.socket(0)).unwrap();
        stream.set_nonblocking(true).unwrap();
        // As many as there is room for, none of which is read the answer of.
        (0..count).take_while(|_| stream.write_all(&GET_FEATURES).is_ok()).for_each(drop);
        let _ = stream.write_all(&GET_FEATURES[..1]);
        wait_for_reason(&bench, "began a message and did not end it, or reads no answers; look at its process");
        judge(&bench);
    }
}

/// As the protocol allows: the kernel shows what was sent with descriptors and what was sent behind it one after the other.
#[test]
fn a_message_whose_descriptors_come_with_its_header_alone_is_heard() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let bench = Bench::one(1);
    let mut stream = UnixStream::connect(bench.socket(0)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let counter = eventfd(0, EventfdFlags::empty()).unwrap();
    // `VHOST_USER_SET_VRING_CALL` of version 1: 8 bytes, the number of the ring.
    let header = [13u32, 1, 8].map(u32::to_ne_bytes).concat();
    let descriptors = [counter.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(&stream, &[IoSlice::new(&header)], &mut ancillary, SendFlags::empty()).unwrap();
    stream.write_all(&0u64.to_ne_bytes()).unwrap();
    stream.write_all(&GET_FEATURES).unwrap();
    let mut answer = [0; 20];
    stream.read_exact(&mut answer).expect("it is heard, and what comes behind it");
    assert_eq!(answer[..4], GET_FEATURES[..4]);
}

#[test]
fn features_that_are_not_offered_are_told_with_what_to_do() {
    let bench = Bench::one(1);
    let agreed = || {
        let mut frontend = Frontend::connect(bench.socket(0), 1).unwrap();
        frontend.set_owner().unwrap();
        let features = frontend.get_features().unwrap();
        frontend.get_protocol_features().unwrap();
        frontend.set_protocol_features(VhostUserProtocolFeatures::REPLY_ACK).unwrap();
        frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        (frontend, features)
    };
    for unknown in [1 << 63, 1 << 4 | 1 << 40] {
        let (frontend, features) = agreed();
        assert!(frontend.set_features(features | unknown).is_err(), "{unknown:#x}");
        wait_for_reason(&bench, &format!("not offered (bits {unknown:#x})"));
        wait_for_reason(&bench, "start the guest again");
    }
    judge(&bench);
}

/// A write to a file of somebody's own file system could wait for ever, and with it the thread of the host's disk.
#[test]
fn a_signal_that_is_no_event_counter_is_refused() {
    for is_kick in [false, true] {
        let bench = Bench::one(1);
        let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
        client.stop_ring(0);
        let file = tempfile::tempfile().unwrap().into_raw_fd();
        // SAFETY: nobody else has it.
        let counter = unsafe { FromRawFd::from_raw_fd(file) };
        let frontend = client.frontend();
        let set = if is_kick { frontend.set_vring_kick(0, &counter) } else { frontend.set_vring_call(0, &counter) };
        assert!(set.is_err(), "kick: {is_kick}");
        wait_for_reason(&bench, "something else than an event counter");
        drop(client);
        judge(&bench);
    }
}

/// Whether a write to a counter waits is for everybody to set who shares it, at any moment.
#[test]
fn a_guest_that_fills_its_counter_and_lets_it_wait_holds_up_nobody() {
    let folder = Bench::folder();
    let disks = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    let bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, disks);
    let [mut client, mut honest] =
        [0, 1].map(|number| Client::connect(&bench.socket(number), ClientOptions::default()));
    let call = client.rings[0].call.try_clone().unwrap();
    // What was signalled at the start.
    let _ = call.read();
    // SAFETY: the counter is open as long as `call` is.
    let shared = unsafe { BorrowedFd::borrow_raw(call.as_raw_fd()) };
    rustix::io::ioctl_fionbio(shared, false).unwrap();
    call.write(u64::MAX - 1).unwrap();
    let ring = &mut client.rings[0];
    ring.submit(&Request::new(kind::IN, 0, 4096));
    ring.kick();
    let begun = Instant::now();
    while ring.poll().is_none() {
        assert!(begun.elapsed() < PATIENCE, "no answer");
    }
    honest.rings[0].submit(&Request::new(kind::IN, 64, 4096));
    honest.rings[0].kick();
    let answer = honest.rings[0].wait(PATIENCE);
    // Lets the server end, whatever comes of this.
    call.read().unwrap();
    assert_eq!(answer.expect("the neighbour is served").status, 0);
}

/// It could be of a file system that hangs, and whoever closes it waits then.
#[test]
fn a_channel_that_is_no_unix_stream_socket_is_refused() {
    let network = TcpListener::bind("127.0.0.1:0").unwrap();
    for (what, channel) in [
        ("a file", OwnedFd::from(tempfile::tempfile().unwrap())),
        ("a counter", eventfd(0, EventfdFlags::empty()).unwrap()),
        ("datagrams", UnixDatagram::unbound().unwrap().into()),
        ("a network", TcpStream::connect(network.local_addr().unwrap()).unwrap().into()),
    ] {
        let bench = Bench::one(1);
        let mut client = Client::connect(&bench.socket(0), ClientOptions { has_channel: true, ..Default::default() });
        // Nobody waits for an answer of one that is hung up on.
        let _ = client.frontend().set_backend_request_fd(&channel.as_raw_fd());
        wait_for_reason(&bench, "no Unix stream socket");
        drop(client);
        judge(&bench);
        println!("{what}: refused");
    }
}

/// Where the region of what is under way has the size of a queue (vhost-user protocol).
const AT_QUEUE_SIZE: u64 = 10;

/// Otherwise a guest's front end would end the server of all guests, or keep it from being replaced.
#[test]
fn a_front_end_that_cannot_be_served_any_more_costs_a_hand_over_its_own_connection_only() {
    for (has_sealed, why) in [(true, "the guest's memory cannot be mapped"), (false, "wrote to the region")] {
        let folder = Bench::folder();
        let disks = (0..2).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
        let mut bench = Bench::start(folder, SchedulerName::Noop, 8, TransferKind::Uring, disks);
        let options = ClientOptions { has_inflight: false, ..ClientOptions::default() };
        let [mut hostile, mut honest] = [0, 1].map(|number| Client::connect(&bench.socket(number), options));
        if has_sealed {
            let region = hostile.memory().iter().next().unwrap();
            fcntl_add_seals(region.file_offset().unwrap().file(), SealFlags::FUTURE_WRITE).unwrap();
        } else {
            let region = VhostUserInflight::new(0, 0, 1, 128);
            let (about, file) = hostile.frontend().get_inflight_fd(&region).unwrap();
            hostile.frontend().set_inflight_fd(&about, file.as_raw_fd()).unwrap();
            file.write_all_at(&64u16.to_le_bytes(), AT_QUEUE_SIZE).unwrap();
        }
        bench.hand_over(SchedulerName::Noop);
        wait_for_reason(&bench, why);
        assert_eq!(honest.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0, "over the same connection");
        drop(hostile);
        judge(&bench);
    }
}

/// It would wait for answers for ever, at a socket that takes nobody else.
#[test]
fn a_front_end_whose_rings_are_not_in_its_memory_any_more_is_hung_up_on_in_a_hand_over_and_told_why() {
    let mut bench = Bench::one(3);
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0);
    let memory = memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, 4096).unwrap();
    fcntl_add_seals(&memory, SealFlags::SHRINK).unwrap();
    let region = VhostUserMemoryRegionInfo {
        guest_phys_addr: 1 << 40,
        memory_size: 4096,
        userspace_addr: 1 << 40,
        mmap_offset: 0,
        mmap_handle: memory.as_raw_fd(),
    };
    client.frontend().set_mem_table(&[region]).unwrap();
    // The server has heard it.
    assert_eq!(client.config(8), (IMAGE_BYTES / 512).to_le_bytes());
    // SAFETY: the connection is open as long as `client` is.
    let connection = unsafe { BorrowedFd::borrow_raw(client.frontend().as_raw_fd()) };
    let mut connection = UnixStream::from(connection.try_clone_to_owned().unwrap());
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    bench.hand_over(SchedulerName::Noop);
    assert_eq!(connection.read_to_end(&mut Vec::new()).expect("it is hung up on"), 0);
    wait_for_reason(&bench, "the vhost-user protocol does not allow");
    drop(client);
    judge(&bench);
}
