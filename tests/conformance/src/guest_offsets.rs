//! A scheduler as it is in `minerva-blk`: where a request lies it is told as the guest sees it, from the start of the guest's own disk.

use minerva_blocksched::{Dispatch, FlowId, FlowParameters, GroupId, Request, Scheduler};
use minerva_model::Nanos;

/// A scheduler of flows each of which has a part of the disk.
pub(crate) struct GuestOffsets {
    scheduler: Box<dyn Scheduler>,
    /// Where each flow's part begins.
    starts: Vec<u64>,
}

impl GuestOffsets {
    /// By flow, where its part begins.
    pub(crate) fn new(scheduler: Box<dyn Scheduler>, starts: Vec<u64>) -> Self {
        Self { scheduler, starts }
    }

    fn start(&self, flow: FlowId) -> u64 {
        self.starts.get(flow.index()).copied().unwrap_or_default()
    }

    fn on_guest(&self, request: &Request) -> Request {
        Request { offset_bytes: request.offset_bytes.saturating_sub(self.start(request.flow)), ..*request }
    }

    fn on_disk(&self, request: &Request) -> Request {
        Request { offset_bytes: request.offset_bytes + self.start(request.flow), ..*request }
    }
}

impl Scheduler for GuestOffsets {
    fn name(&self) -> &'static str {
        self.scheduler.name()
    }

    fn set_flow(&mut self, now: Nanos, flow: FlowId, parameters: FlowParameters) {
        self.scheduler.set_flow(now, flow, parameters);
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        self.scheduler.remove_flow(now, flow);
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        let before = cancelled.len();
        self.scheduler.cancel(now, flow, cancelled);
        for request in cancelled.iter_mut().skip(before) {
            *request = self.on_disk(request);
        }
    }

    fn charge(&mut self, now: Nanos, request: &Request) {
        let request = self.on_guest(request);
        self.scheduler.charge(now, &request);
    }

    fn set_group_weight(&mut self, now: Nanos, group: GroupId, weight: u32) {
        self.scheduler.set_group_weight(now, group, weight);
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let request = self.on_guest(&request);
        self.scheduler.add(now, request);
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        match self.scheduler.next(now) {
            Dispatch::Send(request) => Dispatch::Send(self.on_disk(&request)),
            other @ (Dispatch::WaitUntil(_) | Dispatch::Idle) => other,
        }
    }

    fn complete(&mut self, now: Nanos, request: &Request) {
        let request = self.on_guest(request);
        self.scheduler.complete(now, &request);
    }

    fn queued(&self) -> usize {
        self.scheduler.queued()
    }
}

#[cfg(test)]
mod tests {
    use super::GuestOffsets;
    use minerva_blocksched::{BuildOptions, Dispatch, FlowId, Kind, Request, RequestId, Scheduler, SchedulerName};
    use minerva_model::Nanos;

    fn request(id: u64, flow: u32, offset_bytes: u64) -> Request {
        Request {
            id: RequestId(id),
            flow: FlowId(flow),
            kind: Kind::Read,
            sync: true,
            tag: None,
            offset_bytes,
            length_bytes: 4096,
            arrived: Nanos::ZERO,
        }
    }

    /// mq-deadline goes upwards from the oldest: what the second guest asks for lies between both of the first, and on the disk behind them.
    #[test]
    fn requests_are_ordered_by_places_on_guests_disks_and_sent_to_places_on_the_hosts() {
        let build = BuildOptions::for_disk(true, 32);
        let mut scheduler = GuestOffsets::new(SchedulerName::MqDeadline.build(build), vec![0, 1 << 30]);
        let requests = [request(0, 0, 8192), request(1, 0, 16_384), request(2, 1, (1 << 30) + 12_288)];
        requests.iter().for_each(|request| scheduler.add(Nanos::ZERO, *request));
        let sent = [0, 2, 1].map(|index: usize| Dispatch::Send(requests[index]));
        assert_eq!(sent.map(|_| scheduler.next(Nanos::ZERO)), sent);
        requests.iter().for_each(|request| scheduler.complete(Nanos::ZERO, request));
        scheduler.add(Nanos::ZERO, requests[2]);
        let mut cancelled = Vec::new();
        scheduler.cancel(Nanos::ZERO, FlowId(1), &mut cancelled);
        assert_eq!((cancelled, scheduler.queued()), (vec![requests[2]], 0));
    }
}
