//! A process that does one piece of I/O after the other, each with a file open, and other work in between.

use crate::{Generator, IoRequest, Plan, ProcessUsage, Source, Step, UnderWay};
use minerva_model::Nanos;

/// When a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this instant, or when the one before it has ended if that is later.
    At(Nanos),
    /// So long after the one before it has ended.
    After(Nanos),
}

/// A piece of I/O, and what an observer sees of the process while it lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Session {
    /// When it begins.
    pub start: Start,
    /// What it does; `total_bytes` says when it ends.
    pub plan: Plan,
    /// It works through files of this size, one open at a time.
    pub file_bytes: u64,
    /// Processors in use.
    pub cpus: f64,
    /// Resident memory.
    pub memory_bytes: u64,
    /// Open connections.
    pub sockets: u64,
}

/// Sessions one after the other.
#[derive(Debug)]
pub struct Sessions {
    sessions: Vec<Session>,
    seed: u64,
    /// The one under way or next.
    current: usize,
    generator: Option<Generator>,
    done_bytes: u64,
    /// When the one before ended, and the one under way began.
    ended: Nanos,
    began: Nanos,
    /// Processor time of those that ended.
    cpu_ns: u64,
}

impl Sessions {
    /// A process with these sessions; equal seeds make equal requests.
    pub fn new(sessions: Vec<Session>, seed: u64) -> Self {
        Self {
            sessions,
            seed,
            current: 0,
            generator: None,
            done_bytes: 0,
            ended: Nanos::ZERO,
            began: Nanos::ZERO,
            cpu_ns: 0,
        }
    }

    fn cpu_ns(session: &Session, time: Nanos) -> u64 {
        (session.cpus * time.0 as f64) as u64
    }
}

impl Source for Sessions {
    fn next(&mut self, now: Nanos) -> Step {
        while let Some(session) = self.sessions.get(self.current) {
            let begins = match session.start {
                Start::At(at) => at.max(self.ended),
                Start::After(gap) => self.ended + gap,
            };
            if now < begins {
                return Step::At(begins);
            }
            let seed = self.seed << 20 | self.current as u64;
            let generator = self.generator.get_or_insert_with(|| {
                (self.began, self.done_bytes) = (now, 0);
                Generator::new(session.plan, seed)
            });
            match generator.next(now) {
                Step::Finished => {
                    self.cpu_ns += Self::cpu_ns(session, now.since(self.began));
                    self.generator = None;
                    self.ended = now;
                    self.current += 1;
                }
                step => return step,
            }
        }
        Step::Finished
    }

    fn completed(&mut self, now: Nanos, request: &IoRequest) {
        self.done_bytes += u64::from(request.length_bytes);
        if let Some(generator) = &mut self.generator {
            generator.completed(now, request);
        }
    }

    fn usage(&self, now: Nanos) -> Option<ProcessUsage> {
        let open = self.sessions.get(self.current).filter(|_| self.generator.is_some());
        let Some(session) = open else {
            return Some(ProcessUsage { cpu_ns: self.cpu_ns, ..ProcessUsage::default() });
        };
        let total_bytes = session.plan.total_bytes.unwrap_or(u64::MAX);
        let left_bytes = total_bytes.saturating_sub(self.done_bytes);
        Some(ProcessUsage {
            cpu_ns: self.cpu_ns + Self::cpu_ns(session, now.since(self.began)),
            memory_bytes: session.memory_bytes,
            open_files: 1 + session.sockets,
            open_sockets: session.sockets,
            open_file_bytes: session.file_bytes.min(total_bytes),
            under_way: Some(UnderWay { number: self.current as u64, total_bytes, left_bytes }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Session, Sessions, Start};
    use crate::{Plan, Source, Step};
    use minerva_model::Nanos;

    #[test]
    fn sessions_follow_each_other_and_show_what_they_have_open() {
        let session = |start, total: u64| Session {
            start,
            plan: Plan { total_bytes: Some(total), ..Plan::default() },
            file_bytes: 8192,
            cpus: 0.5,
            memory_bytes: 7,
            sockets: 2,
        };
        let second = Nanos::SECOND;
        let mut sessions =
            Sessions::new(vec![session(Start::At(second), 4096), session(Start::After(second), 12_288)], 1);
        assert_eq!(sessions.next(Nanos::ZERO), Step::At(second));
        assert_eq!(sessions.usage(Nanos::ZERO).map(|usage| (usage.open_files, usage.under_way)), Some((0, None)));
        let Step::Issue(io) = sessions.next(second) else { panic!("it begins") };
        let usage = sessions.usage(second).unwrap();
        assert_eq!(
            (usage.open_files, usage.open_file_bytes, usage.under_way.map(|own| own.left_bytes)),
            (3, 4096, Some(4096))
        );
        let end = Nanos::from_secs(3);
        sessions.completed(end, &io);
        assert_eq!(sessions.next(end), Step::At(Nanos::from_secs(4)));
        assert_eq!(sessions.usage(end).map(|usage| usage.cpu_ns), Some(1_000_000_000), "half of two seconds");
        let Step::Issue(io) = sessions.next(Nanos::from_secs(4)) else { panic!("the second begins") };
        sessions.completed(Nanos::from_secs(5), &io);
        let usage = sessions.usage(Nanos::from_secs(5)).unwrap();
        let own = usage.under_way.unwrap();
        assert_eq!((own.number, own.total_bytes, own.left_bytes, usage.open_file_bytes), (1, 12_288, 8192, 8192));
    }
}
