//! Flushes: who asks for one after the other keeps nobody from the disk.

use minerva_blocksched::{BuildOptions, Dispatch, FlowId, Kind, Request, RequestId, Scheduler, SchedulerName};
use minerva_model::Nanos;

/// As many as a ring of a guest has room for.
const QUEUED: u64 = 1024;
/// A turn of each scheduler that has turns is over by then.
const PATIENCE: Nanos = Nanos::from_secs(2);
const FLUSH_TIME: Nanos = Nanos::from_millis(1);

fn request(id: u64, flow: u32, kind: Kind, now: Nanos) -> Request {
    let (offset_bytes, length_bytes) = if kind == Kind::Flush { (0, 0) } else { (id << 20, 4096) };
    Request {
        id: RequestId(id),
        flow: FlowId(flow),
        kind,
        sync: true,
        tag: None,
        offset_bytes,
        length_bytes,
        arrived: now,
    }
}

/// One flow has as many flushes queued at any time, another asks for one read or write after the other; served one by one. What the other
/// waited the longest, if it was served at all.
fn waited_beside_flushes(scheduler: &mut dyn Scheduler, kind: Kind) -> Option<Nanos> {
    let (mut now, mut id, mut longest) = (Nanos::ZERO, 0, Nanos::ZERO);
    let mut add = |scheduler: &mut dyn Scheduler, flow, kind, now| {
        scheduler.add(now, request(id, flow, kind, now));
        id += 1;
    };
    (0..QUEUED).for_each(|_| add(scheduler, 0, Kind::Flush, now));
    for _ in 0..20 {
        let asked = now;
        add(scheduler, 1, kind, asked);
        loop {
            match scheduler.next(now) {
                Dispatch::Send(sent) => {
                    now += FLUSH_TIME;
                    scheduler.complete(now, &sent);
                    if sent.flow == FlowId(1) {
                        break;
                    }
                    add(scheduler, 0, Kind::Flush, now);
                }
                Dispatch::WaitUntil(until) => now = until,
                Dispatch::Idle => return None,
            }
            if now.since(asked) > PATIENCE {
                return None;
            }
        }
        longest = longest.max(now.since(asked));
    }
    Some(longest)
}

#[test]
fn who_flushes_without_end_keeps_nobody_from_the_disk() {
    for name in SchedulerName::ALL {
        for (rotational, kind) in [(false, Kind::Read), (false, Kind::Write), (true, Kind::Read), (true, Kind::Write)] {
            let mut scheduler = name.build(BuildOptions::for_disk(rotational, 32));
            let waited = waited_beside_flushes(scheduler.as_mut(), kind);
            assert!(waited.is_some(), "{name}, rotational {rotational}: a {kind:?} is not served");
        }
    }
}

/// A flush waits for one request at most, not for a batch.
#[test]
fn a_flush_goes_before_what_is_sorted_and_every_other_time_only() {
    for name in [SchedulerName::MqDeadline, SchedulerName::Anticipatory] {
        let mut scheduler = name.build(BuildOptions::for_disk(false, 32));
        (0..3).for_each(|id| scheduler.add(Nanos::ZERO, request(id, 0, Kind::Write, Nanos::ZERO)));
        (3..6).for_each(|id| scheduler.add(Nanos::ZERO, request(id, 1, Kind::Flush, Nanos::ZERO)));
        let sent = std::iter::from_fn(|| match scheduler.next(Nanos::ZERO) {
            Dispatch::Send(sent) => Some(sent.id.0),
            Dispatch::WaitUntil(_) | Dispatch::Idle => None,
        });
        assert_eq!(sent.collect::<Vec<_>>(), [3, 0, 4, 1, 5, 2], "{name}");
    }
}
