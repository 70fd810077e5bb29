//! Requests: headers, lengths and directions (virtio-villain's cases B).

use crate::Outcome::{Done, Open, Refused, Returned};
use crate::{Case, Guest, OWN, SECTORS, WRITE, is_untouched, judge, neighbours, play};
use minerva_vhost_client::kind::{DISCARD, FLUSH, GET_ID, IN, OUT, WRITE_ZEROES};

/// A request with its header, data pieces (length and flags), and a status of one byte.
fn request(guest: &mut Guest, kind: u32, sector: u64, data: &[(u32, u16)]) {
    with_status(guest, kind, sector, data, Some((1, WRITE)));
}

fn with_status(guest: &mut Guest, kind: u32, sector: u64, data: &[(u32, u16)], status: Option<(u32, u16)>) {
    guest.put_header(kind, 0, sector);
    let mut parts = vec![(guest.header(), 16, 0)];
    parts.extend(data.iter().map(|(length, flags)| (guest.data(), *length, *flags)));
    parts.extend(status.map(|(length, flags)| (guest.status(), length, flags)));
    guest.send(&parts);
}

/// A range to discard or to zero.
fn range(guest: &mut Guest, kind: u32, sector: u64, sectors: u32, flags: u32, length: u32) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&sector.to_le_bytes());
    bytes[8..12].copy_from_slice(&sectors.to_le_bytes());
    bytes[12..16].copy_from_slice(&flags.to_le_bytes());
    let first = bytes;
    bytes[16..].copy_from_slice(&first[..16]);
    guest.write(guest.data(), &bytes);
    request(guest, kind, 0, &[(length, 0)]);
}

#[test]
fn reads_and_writes_outside_the_disk_or_the_rules_are_refused() {
    let cases: &[Case] = &[
        ("b0001 a read beyond the disk", |guest| request(guest, IN, SECTORS + 8, &[(512, WRITE)]), Refused),
        ("b0002 sector and length overflow", |guest| request(guest, IN, u64::MAX, &[(4096, WRITE)]), Refused),
        ("b0006 not a multiple of 512", |guest| request(guest, IN, 0, &[(700, WRITE)]), Refused),
        ("b0010 a read into what may only be read", |guest| request(guest, IN, 0, &[(512, 0)]), Refused),
        ("b0027 a read of nothing", |guest| request(guest, IN, 0, &[]), Refused),
        ("b0028 a write across the end", |guest| request(guest, OUT, SECTORS - 1, &[(1024, 0)]), Refused),
        ("b0034 a write of nothing", |guest| request(guest, OUT, 0, &[]), Refused),
        ("b0035 a write from what may only be written", |guest| request(guest, OUT, 0, &[(512, WRITE)]), Refused),
        ("b0046 b0106 a read across the end", |guest| request(guest, IN, SECTORS - 1, &[(1024, WRITE)]), Refused),
        ("b0078 a read of one byte", |guest| request(guest, IN, 0, &[(1, WRITE)]), Refused),
        ("b0079 a write behind the last sector", |guest| request(guest, OUT, SECTORS, &[(512, 0)]), Refused),
        ("b0081 a write to the last number", |guest| request(guest, OUT, u64::MAX, &[(512, 0)]), Refused),
        ("b0091 a read of the last number", |guest| request(guest, IN, u64::MAX / 512, &[(512, WRITE)]), Refused),
        ("b0099 a write of 513 bytes", |guest| request(guest, OUT, 0, &[(513, 0)]), Refused),
        (
            "b0146 a piece of no length before the data",
            |guest| request(guest, IN, 0, &[(0, WRITE), (512, WRITE)]),
            Returned,
        ),
        ("a piece of no length", |guest| request(guest, IN, 0, &[(0, WRITE)]), Returned),
    ];
    play(cases);
}

#[test]
fn what_is_not_known_is_not_done() {
    let cases: &[Case] = &[
        ("b0003 a type that there is not", |guest| request(guest, 0x7F, 0, &[(512, WRITE)]), Refused),
        ("b0004 a SCSI command", |guest| request(guest, 2, 0, &[(512, WRITE)]), Refused),
        ("b0005 the barrier of old drivers", |guest| request(guest, 1 << 31, 0, &[(512, 0)]), Refused),
        ("b0021 b0052 secure erase", |guest| range(guest, 14, 0, 8, 0, 16), Refused),
        ("b0062 lifetime", |guest| request(guest, 10, 0, &[(512, WRITE)]), Refused),
        ("b0065 secure erase of odd length", |guest| range(guest, 14, 0, 8, 0, 15), Refused),
        ("b0089 a write with the highest bit", |guest| request(guest, OUT | 1 << 31, 0, &[(512, 0)]), Refused),
        ("z zone report", |guest| request(guest, 16, 0, &[(512, WRITE)]), Refused),
        ("z zone append", |guest| request(guest, 15, 0, &[(512, 0)]), Refused),
        ("z zone reset all", |guest| request(guest, 26, 0, &[]), Refused),
    ];
    play(cases);
}

#[test]
fn a_header_or_a_status_that_is_none_gets_no_data() {
    let cases: &[Case] = &[
        (
            "b0011 a short header",
            |guest| {
                let parts = [(guest.header(), 8, 0), (guest.data(), 512, WRITE), (guest.status(), 1, WRITE)];
                guest.put_header(IN, 0, 0);
                guest.send(&parts);
            },
            Refused,
        ),
        (
            "b0012 b0097 a status of no length",
            |guest| {
                with_status(guest, IN, 0, &[(512, WRITE)], Some((0, WRITE)));
            },
            Returned,
        ),
        (
            "b0029 a header in two pieces",
            |guest| {
                let header = guest.header();
                let parts =
                    [(header, 8, 0), (header + 8, 8, 0), (guest.data(), 512, WRITE), (guest.status(), 1, WRITE)];
                guest.put_header(IN, 0, 0);
                guest.send(&parts);
            },
            Done,
        ),
        (
            "b0030 a serial number without a status",
            |guest| {
                with_status(guest, GET_ID, 0, &[(20, WRITE)], None);
            },
            Open,
        ),
        (
            "b0037 a status of sixteen bytes",
            |guest| {
                with_status(guest, IN, 0, &[(512, WRITE)], Some((16, WRITE)));
            },
            Open,
        ),
        (
            "b0070 a header that the device writes",
            |guest| {
                guest.put_header(IN, 0, 0);
                let parts = [(guest.header(), 16, WRITE), (guest.data(), 512, WRITE), (guest.status(), 1, WRITE)];
                guest.send(&parts);
            },
            Refused,
        ),
        (
            "b0071 data to be written before what is read",
            |guest| {
                request(guest, OUT, 0, &[(512, WRITE), (512, 0)]);
            },
            Returned,
        ),
        ("b0072 a status that is read", |guest| with_status(guest, IN, 0, &[(512, WRITE)], Some((1, 0))), Returned),
        ("b0167 a write with two statuses", |guest| request(guest, OUT, 0, &[(512, 0), (1, WRITE)]), Refused),
        ("b0073 a read with a piece to be read", |guest| request(guest, IN, 0, &[(512, 0), (512, WRITE)]), Refused),
        (
            "b0096 a header of thirty-two bytes",
            |guest| {
                guest.put_header(IN, 0, 0);
                let parts = [(guest.header(), 32, 0), (guest.data(), 512, WRITE), (guest.status(), 1, WRITE)];
                guest.send(&parts);
            },
            Refused,
        ),
    ];
    play(cases);
}

#[test]
fn ranges_that_cannot_be_are_refused() {
    let cases: &[Case] = &[
        ("b0013 two ranges to discard", |guest| range(guest, DISCARD, 0, 8, 0, 32), Refused),
        ("b0014 b0075 a discard that unmaps", |guest| range(guest, DISCARD, 0, 8, 1, 16), Refused),
        ("b0015 b0063 a discard of odd length", |guest| range(guest, DISCARD, 0, 8, 0, 15), Refused),
        ("b0016 two ranges to zero", |guest| range(guest, WRITE_ZEROES, 0, 8, 0, 32), Refused),
        ("b0017 zeroes with an unknown flag", |guest| range(guest, WRITE_ZEROES, 0, 8, 2, 16), Refused),
        ("b0018 b0066 a discard that wraps", |guest| range(guest, DISCARD, u64::MAX, 8, 0, 16), Refused),
        ("b0018 zeroes that wrap", |guest| range(guest, WRITE_ZEROES, u64::MAX / 512, u32::MAX, 0, 16), Refused),
        ("b0047 b0084 no sectors to zero", |guest| range(guest, WRITE_ZEROES, 0, 0, 0, 16), Refused),
        ("b0064 zeroes of odd length", |guest| range(guest, WRITE_ZEROES, 0, 8, 0, 17), Refused),
        ("b0067 zeroes with all flags", |guest| range(guest, WRITE_ZEROES, 0, 8, u32::MAX, 16), Refused),
        ("b0068 a discard without a range", |guest| request(guest, DISCARD, 0, &[]), Refused),
        ("b0069 zeroes across the end", |guest| range(guest, WRITE_ZEROES, SECTORS - 4, 8, 0, 16), Refused),
        ("b0122 b0158 a discard across the end", |guest| range(guest, DISCARD, SECTORS - 4, 8, 0, 16), Refused),
        ("b0160 zeroes behind the end", |guest| range(guest, WRITE_ZEROES, SECTORS, 8, 0, 16), Refused),
        ("b0088 a discard behind the end", |guest| range(guest, DISCARD, SECTORS, 8, 0, 16), Refused),
        ("a range that the device is to write", |guest| request(guest, DISCARD, 0, &[(16, WRITE)]), Refused),
    ];
    play(cases);
}

#[test]
fn what_is_unusual_and_allowed_is_done() {
    let cases: &[Case] = &[
        ("b0007 b0094 a flush with data", |guest| request(guest, FLUSH, 0, &[(512, 0)]), Open),
        ("b0008 a flush of a sector", |guest| request(guest, FLUSH, 7, &[]), Done),
        ("b0009 b0024 room for half a serial number", |guest| request(guest, GET_ID, 0, &[(10, WRITE)]), Refused),
        ("b0033 b0055 b0085 the last sector", |guest| request(guest, IN, SECTORS - 1, &[(512, WRITE)]), Done),
        ("b0045 b0098 scattered data", |guest| request(guest, IN, 0, &[(512, WRITE); 8]), Done),
        ("b0049 a scattered serial number", |guest| request(guest, GET_ID, 0, &[(10, WRITE), (10, WRITE)]), Done),
        ("b0051 the longest chain", |guest| request(guest, IN, 0, &[(512, WRITE); 14]), Done),
        (
            "b0077 b0092 any priority",
            |guest| {
                request(guest, IN, 0, &[(512, WRITE)]);
                guest.put_header(IN, u32::MAX, 0);
            },
            Done,
        ),
        ("b0107 a header of zeroes", |guest| request(guest, 0, 0, &[(512, WRITE)]), Done),
        (
            "b0156 b0165 a flush of any priority",
            |guest| {
                guest.put_header(FLUSH, u32::MAX, 0);
                guest.send(&[(guest.header(), 16, 0), (guest.status(), 1, WRITE)]);
            },
            Done,
        ),
        (
            "b0093 b0161 a serial number into what may only be read",
            |guest| request(guest, GET_ID, 0, &[(20, 0)]),
            Refused,
        ),
    ];
    play(cases);
}

/// b0031: only the status byte, and not what lies beside it.
#[test]
fn beside_the_status_nothing_is_written() {
    let (bench, _honest) = neighbours();
    let mut guest = Guest::connect(&bench);
    guest.write(guest.status() - 8, &[0xEE; 17]);
    request(&mut guest, IN, 0, &[(512, WRITE)]);
    assert_eq!(guest.outcome(), Done);
    let mut around = [0; 17];
    vm_memory::Bytes::read_slice(guest.client.memory(), &mut around, vm_memory::GuestAddress(guest.status() - 8))
        .unwrap();
    let mut expected = [0xEE; 17];
    expected[8] = 0;
    assert_eq!(around, expected);
}

/// b0036, b0040, b0074, b0086: as many as the ring has, at once.
#[test]
fn a_full_ring_is_answered_whole() {
    let (bench, mut honest) = neighbours();
    let mut guest = Guest::connect(&bench);
    guest.put_header(FLUSH, 0, 0);
    let (header, status) = (guest.header(), guest.status());
    for head in (0..16).step_by(2) {
        guest.put_chain(head, &[(header, 16, 0), (status, 1, WRITE)]);
        guest.ring().make_available(head);
    }
    assert_eq!(guest.outcome(), Done);
    assert_eq!(guest.ring().used_index(), 8);
    drop(guest);
    judge("a full ring", &bench, &mut honest);
    assert!(is_untouched(&bench));
}

/// b0038, b0042, b0048: what is asked for by the rules changes what it names, and no more.
#[test]
fn a_range_by_the_rules_is_zeroed_and_no_more() {
    let (bench, mut honest) = neighbours();
    let mut guest = Guest::connect(&bench);
    range(&mut guest, WRITE_ZEROES, 3, 5, 0, 16);
    assert_eq!(guest.outcome(), Done);
    drop(guest);
    let bytes = std::fs::read(bench.image()).unwrap();
    let is_zeroed = |(at, byte): (usize, &u8)| *byte == if (3 * 512..8 * 512).contains(&at) { 0 } else { OWN };
    assert!(bytes.iter().enumerate().all(is_zeroed));
    judge("a range by the rules", &bench, &mut honest);
}

/// Puts chains on the ring that share a header of this kind and have a status each, behind each other's data.
fn batch(guest: &mut Guest, kinds: &[(u32, u32, u16)]) {
    for (number, (kind, length, flags)) in (0u64..).zip(kinds) {
        let (header, data) = (guest.header() + 16 * number, guest.data() + 512 * number);
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        guest.write(header, &bytes);
        // The first status is where the outcome is looked for.
        let parts = [(header, 16, 0), (data, *length, *flags), (guest.status() + number, 1, WRITE)];
        let head = 3 * number as u16;
        guest.put_chain(head, &parts);
        guest.ring().make_available(head);
    }
}

/// b0103, b0104, b0129, b0163: several requests with one kick are all answered, and those that conflict leave what one of them would.
#[test]
fn a_batch_with_one_kick_is_answered_whole() {
    let (bench, mut honest) = neighbours();
    let batches: [&[(u32, u32, u16)]; 4] = [
        &[(IN, 512, WRITE), (IN, 512, WRITE)],
        &[(GET_ID, 20, WRITE), (GET_ID, 20, WRITE), (GET_ID, 20, WRITE), (GET_ID, 20, WRITE)],
        &[(OUT, 512, 0), (IN, 512, WRITE)],
        &[(OUT, 512, 0), (OUT, 512, 0), (IN, 512, WRITE)],
    ];
    for kinds in batches {
        std::fs::write(bench.image(), vec![OWN; crate::IMAGE_BYTES as usize]).unwrap();
        let mut guest = Guest::connect(&bench);
        for (number, byte) in (0u64..).zip([0x11, 0x22, 0x44, 0x88].into_iter().take(kinds.len())) {
            guest.write(guest.data() + 512 * number, &[byte; 512]);
        }
        batch(&mut guest, kinds);
        assert_eq!(guest.outcome(), Done, "{kinds:?}");
        assert_eq!(usize::from(guest.ring().used_index()), kinds.len(), "{kinds:?}");
        let bytes = std::fs::read(bench.image()).unwrap();
        let (first, rest) = bytes.split_at(512);
        assert!(rest.iter().all(|byte| *byte == OWN), "{kinds:?}: another sector was written");
        let is_written = kinds.iter().any(|(kind, ..)| *kind == OUT);
        let may_hold: &[u8] = if is_written { &[0x11, 0x22] } else { &[OWN] };
        assert!(
            may_hold.contains(&first[0]) && first.iter().all(|byte| *byte == first[0]),
            "{kinds:?}: {:x}",
            first[0]
        );
        drop(guest);
        judge("a batch", &bench, &mut honest);
    }
}

/// b0138, b0157: the last sectors are zeroed, also by one that may unmap them, and nothing grows.
#[test]
fn zeroes_up_to_the_end_are_written_and_the_image_stays_as_long() {
    for flags in [0, 1] {
        let (bench, mut honest) = neighbours();
        let mut guest = Guest::connect(&bench);
        range(&mut guest, WRITE_ZEROES, SECTORS - 1, 1, flags, 16);
        assert_eq!(guest.outcome(), Done);
        drop(guest);
        let bytes = std::fs::read(bench.image()).unwrap();
        let (before, last) = bytes.split_at(bytes.len() - 512);
        assert_eq!(bytes.len() as u64, SECTORS * 512);
        assert!(before.iter().all(|byte| *byte == OWN) && last.iter().all(|byte| *byte == 0), "flags {flags}");
        judge("zeroes up to the end", &bench, &mut honest);
    }
}
