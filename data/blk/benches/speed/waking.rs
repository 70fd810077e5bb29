//! What it takes to wake a sleeping thread on another processor, with no server at all: whoever answers looks at memory all the time, and
//! whoever asks sleeps until it is told, as a guest does. No server can add less to the median of a guest that sleeps.

use crate::server::{CLIENT_PROCESSOR, SERVER_PROCESSOR, pin};
use hdrhistogram::Histogram;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tells the one who answers to end.
const END: u64 = u64::MAX;

/// Notes for so long how long it takes from a question in memory until who asked was woken and saw the answer, in nanoseconds.
pub(crate) fn note(nanos: &mut Histogram<u64>, time: Duration) {
    let call = eventfd(0, EventfdFlags::NONBLOCK).expect("an event counter");
    let (asked, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(SERVER_PROCESSOR);
            let mut seen = 0;
            while seen != END {
                let now = asked.load(Ordering::Acquire);
                if now == seen {
                    std::hint::spin_loop();
                    continue;
                }
                seen = now;
                answered.store(seen, Ordering::Release);
                rustix::io::write(&call, &1u64.to_ne_bytes()).expect("a signal");
            }
        });
        pin(CLIENT_PROCESSOR);
        let begun = Instant::now();
        for number in 1.. {
            let before = Instant::now();
            if before - begun > time {
                break;
            }
            asked.store(number, Ordering::Release);
            while answered.load(Ordering::Acquire) != number {
                let _ = poll(&mut [PollFd::new(&call, PollFlags::IN)], None);
                let _ = rustix::io::read(&call, &mut [0u8; 8]);
            }
            nanos.saturating_record(before.elapsed().as_nanos() as u64);
        }
        asked.store(END, Ordering::Release);
    });
}
