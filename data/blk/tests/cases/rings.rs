//! Rings: descriptors, indirect tables and indices (virtio-villain's cases T).

use crate::Outcome::{Done, Open, Refused, Returned, Silent};
use crate::{Case, Guest, INDIRECT, NEXT, QUEUE_SIZE, WRITE, play};
use minerva_vhost_client::kind::{IN, OUT};

/// The parts of a read of one sector.
fn read(guest: &Guest) -> [(u64, u32, u16); 3] {
    guest.put_header(IN, 0, 0);
    [(guest.header(), 16, 0), (guest.data(), 512, WRITE), (guest.status(), 1, WRITE)]
}

/// The same with another piece of data.
fn read_to(guest: &mut Guest, address: u64, length: u32) {
    let mut parts = read(guest);
    (parts[1].0, parts[1].1) = (address, length);
    guest.send(&parts);
}

/// A descriptor of the ring that names a table, with these flags and this length.
fn indirect(guest: &mut Guest, table: u64, length: u32, flags: u16) {
    let ring = guest.ring();
    ring.put_descriptor(ring.descriptors.0, 0, table, length, flags, 1);
    ring.make_available(0);
}

/// A table in the guest's memory that holds a read.
fn table(guest: &mut Guest) -> u64 {
    let parts = read(guest);
    let table = guest.client.rings[0].data(3).0;
    guest.put_table(table, 0, &parts);
    table
}

#[test]
fn descriptors_that_lead_nowhere_give_no_data() {
    let cases: &[Case] = &[
        (
            "t0001 a circle",
            |guest| {
                let parts = read(guest);
                guest.put_chain(0, &parts);
                let ring = guest.ring();
                ring.put_descriptor(ring.descriptors.0, 2, parts[2].0, 1, WRITE | NEXT, 1);
                ring.make_available(0);
            },
            Returned,
        ),
        (
            "t0003 a next that there is not",
            |guest| {
                let parts = read(guest);
                guest.put_chain(0, &parts);
                let ring = guest.ring();
                ring.put_descriptor(ring.descriptors.0, 1, parts[1].0, 512, WRITE | NEXT, 999);
                ring.make_available(0);
            },
            Returned,
        ),
        (
            "b0162 data across the end of memory",
            |guest| {
                let end = guest.memory_end();
                read_to(guest, end - 512, 4096);
            },
            Refused,
        ),
        (
            "b0168 a table that is the ring's own",
            |guest| {
                let table = guest.ring().descriptors.0;
                indirect(guest, table, 16, INDIRECT);
            },
            Returned,
        ),
        ("b0123 a kick and nothing there", |_| {}, Silent),
        ("t0004 address 0", |guest| read_to(guest, 0, 512), Refused),
        ("t0005 beyond the memory", |guest| read_to(guest, 1 << 40, 512), Refused),
        ("t0006 no length", |guest| read_to(guest, guest.data(), 0), Returned),
        ("t0007 four gibibytes", |guest| read_to(guest, guest.data(), u32::MAX), Refused),
        ("t0008 address and length overflow", |guest| read_to(guest, u64::MAX - 100, 512), Refused),
        (
            "t0013 t0014 a header alone",
            |guest| {
                let [header, ..] = read(guest);
                guest.send(&[header]);
            },
            Returned,
        ),
        (
            "t0053 directions that alternate",
            |guest| {
                let [header, data, status] = read(guest);
                guest.send(&[header, data, (data.0, 512, 0), status]);
            },
            Returned,
        ),
        ("t0061 neither address nor length", |guest| read_to(guest, 0, 0), Returned),
        ("t0063 where no memory is", |guest| read_to(guest, 0xFE00_0000, 512), Refused),
        ("t0073 across the end of the memory", |guest| read_to(guest, guest.memory_end() - 256, 512), Refused),
        (
            "t0077 lengths that overflow together",
            |guest| {
                let [header, data, status] = read(guest);
                guest.send(&[header, (data.0, 1 << 31, WRITE), (data.0, 1 << 31, WRITE), (data.0, 512, WRITE), status]);
            },
            Refused,
        ),
        (
            "t0082 everything at its greatest",
            |guest| {
                let ring = guest.ring();
                ring.put_descriptor(ring.descriptors.0, 0, u64::MAX, u32::MAX, u16::MAX, u16::MAX);
                ring.make_available(0);
            },
            Returned,
        ),
        (
            "a status outside the memory",
            |guest| {
                let [header, data, _] = read(guest);
                guest.send(&[header, data, (1 << 40, 1, WRITE)]);
            },
            Returned,
        ),
        (
            "a header outside the memory",
            |guest| {
                let [_, data, status] = read(guest);
                guest.send(&[(1 << 40, 16, 0), data, status]);
            },
            Returned,
        ),
    ];
    play(cases);
}

#[test]
fn indirect_tables_are_judged_like_the_ring() {
    let cases: &[Case] = &[
        (
            "a table by the rules",
            |guest| {
                let table = table(guest);
                indirect(guest, table, 48, INDIRECT);
            },
            Done,
        ),
        (
            "t0016 a table in a table",
            |guest| {
                let table = table(guest);
                guest.ring().put_descriptor(table, 1, table, 48, INDIRECT, 0);
                indirect(guest, table, 48, INDIRECT);
            },
            Open,
        ),
        (
            "t0017 a table, and more",
            |guest| {
                let table = table(guest);
                indirect(guest, table, 48, INDIRECT | NEXT);
            },
            Returned,
        ),
        (
            "t0018 not a multiple of 16",
            |guest| {
                let table = table(guest);
                indirect(guest, table, 47, INDIRECT);
            },
            Returned,
        ),
        (
            "t0019 t0072 no length",
            |guest| {
                let table = table(guest);
                indirect(guest, table, 0, INDIRECT);
            },
            Returned,
        ),
        ("t0020 outside the memory", |guest| indirect(guest, 1 << 40, 48, INDIRECT), Returned),
        (
            "t0021 a circle",
            |guest| {
                let table = table(guest);
                let data = guest.data();
                guest.ring().put_descriptor(table, 1, data, 512, WRITE | NEXT, 0);
                indirect(guest, table, 48, INDIRECT);
            },
            Returned,
        ),
        (
            "t0058 t0076 across the end of the memory",
            |guest| {
                let end = guest.memory_end();
                indirect(guest, end - 16, 48, INDIRECT);
            },
            Returned,
        ),
        (
            "t0059 t0100 a second table behind the first",
            |guest| {
                let table = table(guest);
                let ring = guest.ring();
                ring.put_descriptor(ring.descriptors.0, 1, table, 48, INDIRECT, 0);
                indirect(guest, table, 48, INDIRECT | NEXT);
            },
            Returned,
        ),
        (
            "t0064 more entries than memory",
            |guest| {
                let table = table(guest);
                indirect(guest, table, 16 << 16, INDIRECT);
            },
            Open,
        ),
        (
            "t0067 t0089 a table to be written",
            |guest| {
                let table = table(guest);
                indirect(guest, table, 48, INDIRECT | WRITE);
            },
            Open,
        ),
        (
            "t0099 four gibibytes of table",
            |guest| {
                let table = table(guest);
                indirect(guest, table, 0xFFFF_FFF0, INDIRECT);
            },
            Open,
        ),
        (
            "a table that is the ring's own",
            |guest| {
                let parts = read(guest);
                guest.put_chain(1, &parts);
                let table = guest.ring().descriptors.0 + 16;
                indirect(guest, table, 48, INDIRECT);
            },
            Open,
        ),
    ];
    play(cases);
}

#[test]
fn indices_that_jump_cost_nobody_anything() {
    let cases: &[Case] = &[
        (
            "t0022 t0074 one head many times",
            |guest| {
                let parts = read(guest);
                guest.put_chain(0, &parts);
                (0..QUEUE_SIZE).for_each(|_| guest.ring().make_available(0));
            },
            Open,
        ),
        ("t0023 an index far ahead", |guest| guest.ring().set_available_index(1000), Silent),
        ("t0024 t0057 an index behind", |guest| guest.ring().set_available_index(u16::MAX), Silent),
        ("t0025 a head that there is not", |guest| guest.ring().make_available(QUEUE_SIZE), Open),
        (
            "t0026 flags of the available ring",
            |guest| {
                let parts = read(guest);
                guest.send(&parts);
                guest.write(guest.client.rings[0].available.0, &[0xFF, 0xFF]);
            },
            Done,
        ),
        (
            "t0027 t0055 t0066 an event index of all ones",
            |guest| {
                let parts = read(guest);
                guest.send(&parts);
                guest.write(guest.client.rings[0].available.0 + 4 + 2 * u64::from(QUEUE_SIZE), &[0xFF, 0xFF]);
            },
            Done,
        ),
        (
            "t0028 t0087 the guest writes the used ring",
            |guest| {
                let parts = read(guest);
                guest.send(&parts);
                guest.write(guest.client.rings[0].used.0, &[0xFF; 64]);
            },
            Open,
        ),
        (
            "t0065 as many heads as descriptors",
            |guest| {
                (0..QUEUE_SIZE).for_each(|head| guest.ring().make_available(head));
            },
            Open,
        ),
        ("t0068 t0069 t0071 kicks for nothing", |guest| (0..100).for_each(|_| guest.ring().force_kick()), Silent),
        (
            "t0070 data where the ring lies",
            |guest| {
                let used = guest.ring().used.0;
                read_to(guest, used, 512);
            },
            Open,
        ),
        (
            "data where the descriptors lie",
            |guest| {
                let descriptors = guest.ring().descriptors.0;
                read_to(guest, descriptors, 512);
            },
            Open,
        ),
        (
            "t0084 heads that there are not, all of them",
            |guest| {
                (0..QUEUE_SIZE).for_each(|_| guest.ring().make_available(u16::MAX));
            },
            Open,
        ),
        (
            "t0051 t0056 a header that changes meanwhile",
            |guest| {
                let parts = read(guest);
                guest.send(&parts);
                guest.ring().force_kick();
                guest.put_header(OUT, 0, u64::MAX);
            },
            Open,
        ),
    ];
    play(cases);
}
