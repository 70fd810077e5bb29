//! A tenant of a job as the guest whose disk `minerva-blk` serves: its requests go through a ring, as a driver's do.

use crate::log::Entry;
use anyhow::{Context as _, ensure};
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use minerva_sim_workload::{Generator, IoRequest, Source as _, Step};
use minerva_vhost_client::{Answer, Client, ClientOptions, ClientRing, Request, kind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Offsets of requests are in units of this.
const SECTOR_BYTES: u64 = 512;
/// A Linux guest's pieces of a request are no longer than the server says that they may be.
const PIECE_BYTES_MAX: u32 = 64 << 10;
/// A server that has not answered by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a front end asked for and was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
}

/// Connects to a disk, with room for `depth` requests of `block_bytes` at once.
pub(crate) fn connect(socket: &Path, block_bytes: u32, depth: u32) -> anyhow::Result<Client> {
    let queue_size =
        u16::try_from(depth.next_power_of_two().max(2)).context("a ring has no room for so many requests")?;
    // One ring, as all requests are of one thread.
    Ok(Client::connect(socket, ClientOptions { queue_size, data_bytes: block_bytes, ..ClientOptions::default() }))
}

/// Makes the requests of `source` until it ends, and waits for all answers. What came of each, by the time since `begun`.
pub(crate) fn play(ring: &mut ClientRing, source: Generator, begun: Instant) -> anyhow::Result<Vec<Entry>> {
    let mut playing = Playing { source, begun, under_way: Vec::new(), log: Vec::new() };
    loop {
        if playing.submit(ring) && ring.under_way() == 0 {
            return Ok(playing.log);
        }
        ring.kick();
        let answer = ring.wait(PATIENCE).context("the server does not answer a request")?;
        playing.take(answer)?;
        while let Some(answer) = ring.poll() {
            playing.take(answer)?;
        }
    }
}

/// What all entries of a log are together.
pub(crate) fn asked(log: &[Entry]) -> Asked {
    Asked { requests: log.len() as u64, bytes: log.iter().map(|entry| entry.bytes).sum() }
}

struct Playing {
    source: Generator,
    begun: Instant,
    /// By slot of the ring: what is under way, and since when.
    under_way: Vec<Option<(IoRequest, Nanos)>>,
    log: Vec<Entry>,
}

impl Playing {
    fn now(&self) -> Nanos {
        Nanos(self.begun.elapsed().as_nanos() as u64)
    }

    /// Makes as many requests as the tenant has at once; whether it has ended.
    fn submit(&mut self, ring: &mut ClientRing) -> bool {
        loop {
            let now = self.now();
            match self.source.next(now) {
                Step::Issue(io) => {
                    let slot = usize::from(ring.submit(&request(&io)));
                    self.under_way.resize(self.under_way.len().max(slot + 1), None);
                    self.under_way[slot] = Some((io, now));
                }
                // No tenant of a job pauses.
                Step::Blocked | Step::At(_) => return false,
                Step::Finished => return true,
            }
        }
    }

    fn take(&mut self, answer: Answer) -> anyhow::Result<()> {
        let now = self.now();
        let under_way = self.under_way.get_mut(usize::from(answer.slot)).and_then(Option::take);
        let (io, issued) = under_way.context("the server answers what was not asked")?;
        ensure!(answer.status == 0, "the server fails a request at {} with {}", io.offset_bytes, answer.status);
        let bytes = u64::from(io.length_bytes);
        self.log.push(Entry { at_ms: now.0 / 1_000_000, time_ns: now.since(issued).0, bytes });
        self.source.completed(now, &io);
        Ok(())
    }
}

fn request(io: &IoRequest) -> Request {
    let kind = match io.kind {
        Kind::Read => kind::IN,
        Kind::Write => kind::OUT,
        Kind::Flush => kind::FLUSH,
        Kind::Discard => kind::DISCARD,
    };
    let pieces = io.length_bytes.div_ceil(PIECE_BYTES_MAX);
    Request { pieces, ..Request::new(kind, io.offset_bytes / SECTOR_BYTES, io.length_bytes) }
}
