//! What a VM does.

use minerva_sim_world::Counters;
use std::collections::VecDeque;

/// A step of a VM of the job. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing, until an instant.
    Wait(f64),
    /// Nothing, for so long.
    Rest(f64),
    /// A map task of the experiment begins.
    TaskBegins,
    Read(f64),
    /// Bytes to count, as many as take the time.
    Count(f64),
    Write(f64),
    /// A map task of the experiment is done.
    TaskEnds,
    /// Nothing, until all map tasks of the cluster are done.
    Barrier,
    /// The reduce is done.
    JobEnds,
}

/// A VM of the job.
#[derive(Clone, Debug, Default)]
pub(super) struct Worker {
    pub(super) steps: VecDeque<Step>,
    pub(super) task_began_s: f64,
    /// Map tasks that are done, and their seconds.
    pub(super) tasks: (u32, f64),
    pub(super) ended_s: Option<f64>,
}

impl Worker {
    /// The step that is over is no more; what it marks is noted.
    fn pass(&mut self, now_s: f64) {
        match self.steps.pop_front() {
            Some(Step::TaskBegins) => self.task_began_s = now_s,
            Some(Step::TaskEnds) => self.tasks = (self.tasks.0 + 1, self.tasks.1 + now_s - self.task_began_s),
            Some(Step::JobEnds) => self.ended_s = Some(now_s),
            _ => {}
        }
    }
}

/// A VM of the ingest.
#[derive(Clone, Debug, Default)]
pub(super) struct Ingest {
    /// When data begin to come and how many, in order; the last is the experiment's.
    pub(super) sessions: VecDeque<(f64, f64)>,
    /// Bytes of the session under way that the source still has.
    pub(super) at_source: f64,
    /// Bytes that came and are not on the disk.
    pub(super) buffered: f64,
    /// When it first wrote of the experiment's data.
    pub(super) wrote_s: Option<f64>,
    pub(super) ended_s: Option<f64>,
}

/// What runs in it.
#[derive(Clone, Debug)]
pub(super) enum Role {
    Worker(Worker),
    Ingest(Ingest),
}

/// A VM as its host sees it.
#[derive(Clone, Debug)]
pub(super) struct Vm {
    pub(super) disk: usize,
    pub(super) role: Role,
    pub(super) weight: f64,
    pub(super) read_bytes: f64,
    pub(super) write_bytes: f64,
    pub(super) cpu_s: f64,
}

impl Vm {
    /// Bytes that it would transfer in this step, if the disk gave them.
    pub(super) fn wants(&self, step_bytes_max: f64) -> f64 {
        match &self.role {
            Role::Worker(worker) => match worker.steps.front() {
                Some(Step::Read(_) | Step::Write(_)) => step_bytes_max,
                _ => 0.0,
            },
            Role::Ingest(ingest) => ingest.buffered.min(step_bytes_max),
        }
    }

    pub(super) fn is_counting(&self) -> bool {
        matches!(&self.role, Role::Worker(worker) if matches!(worker.steps.front(), Some(Step::Count(_))))
    }

    pub(super) fn is_ingesting(&self) -> bool {
        matches!(&self.role, Role::Ingest(ingest) if ingest.buffered > 0.0 || ingest.at_source > 0.0)
    }

    /// The counters of its cgroup.
    pub(super) fn counters(&self) -> Counters {
        /// The largest request of a disk's queue.
        const REQUEST_BYTES: u64 = 128 * 1024;
        let mut counters = Counters { seen: self.read_bytes + self.write_bytes > 0.0, ..Counters::default() };
        (counters.io.read_bytes, counters.io.write_bytes) = (self.read_bytes as u64, self.write_bytes as u64);
        counters.io.read_ops = counters.io.read_bytes / REQUEST_BYTES;
        counters.io.write_ops = counters.io.write_bytes / REQUEST_BYTES;
        counters
    }

    /// A worker's time from `from_s` on, with so much of its disk and of a core.
    pub(super) fn work(&mut self, from_s: f64, step_s: f64, disk_rate: f64, core: (f64, f64), barrier_s: Option<f64>) {
        let (counting_rate, core_rate) = core;
        let Role::Worker(worker) = &mut self.role else { return };
        let mut left_s = step_s;
        while left_s > 1e-9 {
            let now_s = from_s + step_s - left_s;
            let Some(step) = worker.steps.front_mut() else { return };
            let (bytes, rate) = match step {
                Step::Wait(until_s) if now_s < *until_s => {
                    left_s -= (*until_s - now_s).min(left_s);
                    continue;
                }
                Step::Rest(seconds) if *seconds > 0.0 => {
                    let rested = seconds.min(left_s);
                    (*seconds, left_s) = (*seconds - rested, left_s - rested);
                    continue;
                }
                Step::Barrier if barrier_s.is_none_or(|barrier_s| now_s < barrier_s) => return,
                Step::Read(bytes) | Step::Write(bytes) => (bytes, disk_rate),
                Step::Count(bytes) => (bytes, counting_rate),
                Step::Wait(_) | Step::Rest(_) | Step::Barrier | Step::TaskBegins | Step::TaskEnds | Step::JobEnds => {
                    worker.pass(now_s);
                    continue;
                }
            };
            // Whoever comes to need the disk within a step gets it with the next.
            if rate <= 0.0 {
                return;
            }
            let moved = bytes.min(rate * left_s);
            left_s -= moved / rate;
            *bytes -= moved;
            let is_over = *bytes <= 0.0;
            match step {
                Step::Read(_) => self.read_bytes += moved,
                Step::Write(_) => self.write_bytes += moved,
                _ => self.cpu_s += moved / core_rate,
            }
            if is_over {
                worker.steps.pop_front();
            }
        }
    }

    /// What comes in and goes to the disk in a step.
    pub(super) fn ingest(&mut self, from_s: f64, step_s: f64, came: f64, disk_rate: f64, cores: f64) {
        if self.is_ingesting() {
            self.cpu_s += cores * step_s;
        }
        let Role::Ingest(ingest) = &mut self.role else { return };
        let moved = ingest.buffered.min(disk_rate * step_s);
        self.write_bytes += moved;
        ingest.at_source -= came;
        ingest.buffered += came - moved;
        let is_last = ingest.sessions.is_empty();
        if is_last && moved > 0.0 {
            ingest.wrote_s.get_or_insert(from_s);
        }
        if is_last && ingest.wrote_s.is_some() && ingest.at_source <= 0.0 && ingest.buffered <= 0.0 {
            ingest.ended_s.get_or_insert(from_s + step_s);
        }
        if let Some((begins_s, bytes)) = ingest.sessions.front().copied()
            && begins_s <= from_s
        {
            ingest.sessions.pop_front();
            ingest.at_source += bytes;
        }
    }
}
