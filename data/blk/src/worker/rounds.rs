//! The worker's loop: what there is to do is done, then it looks for more for a while, asks guests to kick, and sleeps.
//!
//! While a worker is awake it looks at the rings whose guests kicked by itself, so that a guest that goes on kicks no more: what costs
//! most of a short request's time are kicks, signals, and falling asleep.

use super::slots::RingKey;
use super::{EVENT_COMMAND, EVENT_DONE, EVENT_RINGS, FEW, QUEUES_MAX, Worker, now};
use minerva_model::Nanos;
use rustix::event::{Timespec, epoll};
use rustix::thread::sched_yield;
use std::sync::atomic::{Ordering, fence};

/// After how long what the kernel refused for want of memory is tried again.
const RETRY: Nanos = Nanos::from_millis(1);
/// A busy worker asks the kernel so often for what it cannot see by itself: kicks of other rings, and what it is told to do.
const LOOK_EVERY: Nanos = Nanos(50_000);
/// And so often while it polls.
const LOOK_WHILE_POLLING: Nanos = Nanos(4_000);
/// A worker that has been busy for so long on end lets others have its processor. Where it has had more than its part, the kernel would stop it
/// at a tick only, up to 10 ms later, and others would then make up for all of that while guests wait. Where it has not, or nobody wants the
/// processor, it goes on at once.
const YIELD_AFTER: Nanos = Nanos::from_millis(1);

impl Worker {
    pub(super) fn run(&mut self) {
        let mut yield_at = now() + YIELD_AFTER;
        loop {
            let (is_busy, wake) = self.serve();
            if self.has_ended() {
                return;
            }
            if is_busy {
                self.look(Some(Nanos::ZERO));
                if now() >= yield_at {
                    sched_yield();
                    yield_at = now() + YIELD_AFTER;
                }
                continue;
            }
            let begun = now();
            if !self.poll(begun, wake) && !self.ask_for_kicks() {
                self.look(wake.map(|wake| wake.since(now())));
            }
            let end = now();
            self.polling.waited(end.since(begun));
            yield_at = end + YIELD_AFTER;
        }
    }

    /// Hears of kicks and commands, waiting for them so long, or for ever; whether there was anything.
    fn look(&mut self, wait: Option<Nanos>) -> bool {
        let wait = wait.map(|wait| Timespec {
            tv_sec: (wait.0 / Nanos::SECOND.0) as i64,
            tv_nsec: (wait.0 % Nanos::SECOND.0) as i64,
        });
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        // A signal only wakes it up early.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), wait.as_ref());
        for event in &events {
            match event.data.u64() {
                EVENT_COMMAND => self.obey(),
                EVENT_DONE => {}
                ring => {
                    let ring = (ring - EVENT_RINGS) as usize;
                    self.wake(RingKey { disk: ring / QUEUES_MAX, queue: ring % QUEUES_MAX });
                }
            }
        }
        self.events = events;
        !self.events.is_empty()
    }

    /// Looks for more for as long as that is worth it, and until `wake` at most; whether there is something to do.
    fn poll(&mut self, begun: Nanos, wake: Option<Nanos>) -> bool {
        let until = begun + self.polling.time();
        let until = wake.map_or(until, |wake| wake.min(until));
        let mut look_at = begun + LOOK_WHILE_POLLING;
        let mut time = begun;
        while time < until {
            if self.transfer.has_done() || self.awake.iter().any(|key| self.has_more(*key)) {
                return true;
            }
            if time >= look_at {
                look_at = time + LOOK_WHILE_POLLING;
                if self.look(Some(Nanos::ZERO)) {
                    return true;
                }
            }
            std::hint::spin_loop();
            time = now();
        }
        wake.is_some_and(|wake| wake <= time)
    }

    fn has_more(&self, key: RingKey) -> bool {
        let ring = self.disks.get(key.disk).and_then(|disk| disk.rings.get(key.queue)?.as_ref());
        ring.is_some_and(|served| served.stopping.is_none() && served.ring.has_more()) && !self.is_held(key.disk)
    }

    /// A ring is looked at from now on.
    pub(super) fn wake(&mut self, key: RingKey) {
        let Some(served) = self.served(key) else { return };
        if !std::mem::replace(&mut served.is_awake, true) {
            served.ring.forgo_kicks();
            self.awake.push(key);
        }
    }

    /// Before the worker sleeps: guests are asked to kick. Whether one of them made something available meanwhile.
    fn ask_for_kicks(&mut self) -> bool {
        let mut awake = std::mem::take(&mut self.awake);
        let mut has_more = false;
        awake.retain(|key| {
            // One that is held is looked at after each answer.
            let is_held = self.is_held(key.disk);
            let Some(served) = self.served(*key) else { return false };
            served.is_awake = served.stopping.is_none() && (is_held || served.ring.ask_for_kick());
            has_more |= served.is_awake && !is_held;
            served.is_awake
        });
        self.awake = awake;
        has_more
    }

    /// Does what there is to do, for a while; whether there may be more, and the instant at which the scheduler wants to be asked again.
    fn serve(&mut self) -> (bool, Option<Nanos>) {
        // One look at the clock for all of a round.
        let mut time = now();
        let until = time + LOOK_EVERY;
        loop {
            let has_taken = self.take_from_awake(time);
            let overdue = self.drain_overdue(time);
            let wake = self.dispatch(time);
            self.must_retry = self.transfer.submit().is_err();
            let done_at = self.complete_all();
            self.notify();
            self.end_stops();
            let is_busy = has_taken || done_at.is_some();
            time = done_at.unwrap_or_else(now);
            if !is_busy || time >= until {
                let retry = self.must_retry.then(|| time + RETRY);
                return (is_busy, [wake, retry, overdue].into_iter().flatten().min());
            }
        }
    }

    /// Answers what is done; when that was seen, if anything was.
    pub(super) fn complete_all(&mut self) -> Option<Nanos> {
        let mut done = std::mem::take(&mut self.done);
        self.transfer.collect(&mut done);
        let done_at = (!done.is_empty()).then(now);
        if let Some(now) = done_at {
            for (count, done) in done.drain(..).enumerate() {
                self.complete(done, now);
                if (count + 1).is_multiple_of(usize::from(FEW)) {
                    self.notify();
                }
            }
        }
        self.done = done;
        done_at
    }

    /// Publishes what was answered, and tells guests of it.
    pub(super) fn notify(&mut self) {
        if self.answered.is_empty() {
            return;
        }
        self.publish_answers();
        let mut answered = std::mem::take(&mut self.answered);
        for key in answered.drain(..) {
            self.served(key).into_iter().for_each(|served| served.ring.tell());
        }
        self.answered = answered;
    }

    /// Publishes what was answered. Guests are told with the next [`Worker::notify`].
    pub(super) fn publish_answers(&mut self) {
        for number in 0..self.answered.len() {
            self.served(self.answered[number]).into_iter().for_each(|served| served.ring.publish_all());
        }
        // Once for all of them: it waits until what was written has arrived at the guests' processors.
        fence(Ordering::SeqCst);
    }
}
