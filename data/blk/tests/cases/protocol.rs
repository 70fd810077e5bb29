//! Rings that are set up wrongly: sizes, addresses, and the order of the messages (virtio-villain's cases T30 to T49, T60, T62
//! and T95).

use crate::{Guest, OPTIONS, QUEUE_SIZE, SECTORS, SILENCE, WRITE, judge, neighbours};
use minerva_vhost_client::{Client, Request, kind};
use vhost::vhost_user::VhostUserFrontend;
use vhost::{VhostBackend, VringConfigData};

/// Addresses of a ring, at these offsets from where the memory begins in the front end, and of this size.
fn addresses(size: u16, start: u64, offsets: [u64; 3]) -> VringConfigData {
    VringConfigData {
        queue_max_size: size,
        queue_size: size,
        flags: 0,
        desc_table_addr: start.wrapping_add(offsets[0]),
        used_ring_addr: start.wrapping_add(offsets[1]),
        avail_ring_addr: start.wrapping_add(offsets[2]),
        log_addr: None,
    }
}

/// Where the front end has the memory that the guest has at its ring's table.
fn start(client: &Client) -> u64 {
    use vm_memory::GuestMemoryBackend;
    let host = client.memory().get_host_address(client.rings[0].descriptors).expect("it is mapped");
    host as u64
}

/// Whether the server takes these addresses, and the ring into service.
fn starts(client: &mut Client, offsets: [u64; 3]) -> bool {
    let data = addresses(QUEUE_SIZE, start(client), offsets);
    let ring = &client.rings[0];
    let (kick, call) = (ring.kick.try_clone().unwrap(), ring.call.try_clone().unwrap());
    let frontend = client.frontend();
    frontend.set_vring_num(0, QUEUE_SIZE).is_ok()
        && frontend.set_vring_addr(0, &data).is_ok()
        && frontend.set_vring_base(0, 0).is_ok()
        && frontend.set_vring_call(0, &call).is_ok()
        && frontend.set_vring_kick(0, &kick).is_ok()
        && frontend.set_vring_enable(0, true).is_ok()
}

#[test]
fn a_ring_that_cannot_be_is_refused_or_serves_nothing() {
    type Deed = (&'static str, fn(&mut Client) -> bool);
    // Each says whether the server may not agree.
    let deeds: [Deed; 9] = [
        ("t0041 a size that is no power of two", |client| client.frontend().set_vring_num(0, 15).is_err()),
        ("t0042 no size", |client| client.frontend().set_vring_num(0, 0).is_err()),
        ("t0043 a size that is too large", |client| client.frontend().set_vring_num(0, 32769).is_err()),
        ("t0044 a table that is not aligned", |client| !starts(client, [1, 8192, 4096])),
        ("t0045 an available ring that is not aligned", |client| !starts(client, [0, 8192, 4097])),
        ("t0046 a used ring that is not aligned", |client| !starts(client, [0, 8193, 4096])),
        ("t0048 addresses outside the memory", |client| !starts(client, [1 << 40, 1 << 40, 1 << 40])),
        ("a ring that there is not", |client| client.frontend().set_vring_num(7, 16).is_err()),
        ("a base beyond the index", |client| client.frontend().set_vring_base(7, u16::MAX).is_err()),
    ];
    let (bench, mut honest) = neighbours();
    for (name, deed) in deeds {
        let mut client = Client::connect(&bench.socket(0), OPTIONS);
        client.stop_ring(0);
        assert!(deed(&mut client), "{name}: the server agreed");
        drop(client);
        judge(name, &bench, &mut honest);
    }
}

/// t0047: tables that overlap are the guest's own loss.
#[test]
fn a_ring_whose_parts_lie_on_each_other_costs_its_own_guest_only() {
    let (bench, mut honest) = neighbours();
    let mut client = Client::connect(&bench.socket(0), OPTIONS);
    client.stop_ring(0);
    // Taken or not: the specification says nothing.
    if starts(&mut client, [0, 0, 0]) {
        client.rings[0].make_available(0);
        client.rings[0].force_kick();
        client.stop_ring(0);
    }
    drop(client);
    judge("t0047 overlapping parts", &bench, &mut honest);
}

/// t0031, t0062 and t0095: a ring that is stopped serves nothing, and goes on from any index.
#[test]
fn a_stopped_ring_serves_nothing_and_goes_on_from_any_index() {
    let (bench, mut honest) = neighbours();
    let mut guest = Guest::connect(&bench);
    let base = guest.client.stop_ring(0);
    guest.put_header(kind::OUT, 0, SECTORS - 1);
    let parts = [(guest.header(), 16, 0), (guest.data(), 512, 0), (guest.status(), 1, WRITE)];
    guest.send(&parts);
    guest.ring().force_kick();
    std::thread::sleep(SILENCE);
    assert_eq!(guest.ring().used_index(), 0, "t0031 a kick to a stopped ring");
    guest.ring().set_available_index(base);
    for toggle in 0..20 {
        guest.client.start_ring(0, base);
        assert_eq!(guest.client.stop_ring(0), base, "t0095 stopped and started, time {toggle}");
    }
    drop(guest);
    let mut client = Client::connect(&bench.socket(0), OPTIONS);
    client.stop_ring(0);
    client.rings[0].set_indices(u16::MAX - 2);
    client.start_ring(0, u16::MAX - 2);
    for round in 0..6 {
        assert_eq!(
            client.rings[0].ask(&Request::new(kind::IN, 0, 512)).status,
            0,
            "t0062 request {round} across the wrap"
        );
    }
    drop(client);
    judge("a ring across the wrap", &bench, &mut honest);
}
