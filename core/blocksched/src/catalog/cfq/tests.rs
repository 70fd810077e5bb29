use super::{Cfq, CfqOptions};
use crate::{Dispatch, FlowId, Kind, Request, RequestId, Scheduler};
use minerva_model::Nanos;

/// Writes that follow each other, each with another request behind it that is at the start of the disk.
fn writes_beside(kind: Kind, length_bytes: u32) -> Cfq {
    let mut cfq = Cfq::new(CfqOptions::default());
    for number in 0..40 {
        let now = Nanos::from_millis(number);
        let write = Request {
            id: RequestId(number),
            flow: FlowId(0),
            kind: Kind::Write,
            sync: true,
            tag: None,
            offset_bytes: 1 << 36 | number << 16,
            length_bytes: 1 << 16,
            arrived: now,
        };
        let other = Request { kind, offset_bytes: 0, length_bytes, ..write };
        for one in [write, other] {
            cfq.add(now, one);
            let Dispatch::Send(sent) = cfq.next(now) else { panic!("the disk is free") };
            cfq.complete(now, &sent);
        }
        assert_eq!(cfq.position_bytes, write.end_bytes());
    }
    cfq
}

#[test]
fn a_flush_is_no_seek() {
    assert_eq!(writes_beside(Kind::Flush, 0).flows.at(FlowId(0)).state.seeks, 0);
}

#[test]
fn a_discard_is_no_seek() {
    assert_eq!(writes_beside(Kind::Discard, 32 << 20).flows.at(FlowId(0)).state.seeks, 0);
}

#[test]
fn the_slices_of_all_with_work_fit_into_the_target_latency() {
    for (flows, slice) in [(3, 100), (4, 75), (6, 50)] {
        let mut cfq = Cfq::new(CfqOptions::default());
        for flow in 0..flows {
            let read = Request {
                id: RequestId(u64::from(flow)),
                flow: FlowId(flow),
                kind: Kind::Read,
                sync: true,
                tag: None,
                offset_bytes: u64::from(flow) << 32,
                length_bytes: 1 << 16,
                arrived: Nanos::ZERO,
            };
            cfq.add(Nanos::ZERO, read);
        }
        assert!(matches!(cfq.next(Nanos::ZERO), Dispatch::Send(_)));
        assert_eq!(cfq.service.map(|service| service.slice), Some(Nanos::from_millis(slice)), "{flows} flows");
    }
}
