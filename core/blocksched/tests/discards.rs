//! Discards: they move no bytes, so what they are charged is no matter of how long they are.

use minerva_blocksched::{Bfq, BfqOptions, Dispatch, FlowId, Kind, Request, RequestId, Scheduler};
use minerva_model::Nanos;

/// A flow of equal weight that trims, as `fstrim` does, and reads one by one meanwhile, and one that only reads.
#[test]
fn who_trims_under_bfq_keeps_its_part_of_the_reads_beside_who_is_greedy() {
    let mut bfq = Bfq::new(BfqOptions { rotational: false, queues_internally: true, ..BfqOptions::default() });
    let (mut now, mut number, mut places) = (Nanos::ZERO, 0, [0u64, 1 << 40, 1 << 41]);
    let mut ask = |bfq: &mut Bfq, now: Nanos, flow: u32, kind: Kind| {
        let length_bytes = if kind == Kind::Discard { 32 << 20 } else { 64 << 10 };
        let place = &mut places[if kind == Kind::Discard { 2 } else { flow as usize }];
        let (id, sync) = (RequestId(number), kind == Kind::Read);
        bfq.add(
            now,
            Request { id, flow: FlowId(flow), kind, sync, tag: None, offset_bytes: *place, length_bytes, arrived: now },
        );
        *place += u64::from(length_bytes);
        number += 1;
    };
    for (flow, kind) in [(0, Kind::Read), (0, Kind::Discard), (0, Kind::Discard), (1, Kind::Read), (1, Kind::Read)] {
        ask(&mut bfq, now, flow, kind);
    }
    let mut reads = [0u32; 2];
    while now < Nanos::from_secs(20) {
        match bfq.next(now) {
            Dispatch::Send(request) => {
                now += Nanos::from_micros(500);
                bfq.complete(now, &request);
                reads[request.flow.index()] += u32::from(request.kind == Kind::Read);
                ask(&mut bfq, now, request.flow.0, request.kind);
            }
            Dispatch::WaitUntil(until) => now = until,
            Dispatch::Idle => panic!("everybody has something queued"),
        }
    }
    // A discard is charged as 4 KiB, three times because nobody waits for it, and takes as long as a read.
    assert!(4 * reads[0] > reads[1], "{reads:?}");
}
