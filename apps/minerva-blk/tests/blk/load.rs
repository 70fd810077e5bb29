//! A load over all blocks of a disk that knows what each must hold: what was acknowledged, and nothing else.

use crate::server_folder::{IMAGE_BYTES, ServerFolder};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use vm_memory::Bytes;

const BLOCK: u32 = 4096;
/// Of 256 requests so many are flushes and reads; all others are writes.
const FLUSHES: u8 = 8;
const READS: u8 = 64;
/// For what a busy machine does slowly.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a block holds, as far as the guest can know.
#[derive(Clone, Copy, Default)]
struct Block {
    /// Acknowledged.
    version: u64,
    /// Being written, with the slot that does.
    writing: Option<(u16, u64)>,
    /// Being read, with the slot that does.
    reading: Option<u16>,
}

/// A load over all blocks, one write or read a block at a time. What it reads it compares.
pub(crate) struct Load {
    pub(crate) client: Client,
    blocks: Vec<Block>,
    pub(crate) random: fastrand::Rng,
    next_version: u64,
    pub(crate) acknowledged: u64,
}

/// What a block holds once a version of it was written; zeroes before.
pub(crate) fn content(block: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; BLOCK as usize];
    }
    let word = |number: u64| (block << 40 | version << 9 | number).to_le_bytes();
    (0..u64::from(BLOCK) / 8).flat_map(word).collect()
}

impl Load {
    /// Connects to the server's disk `vm1`, which holds zeroes. Its seed can be given by `PROPTEST_RNG_SEED`.
    pub(crate) fn new(place: &ServerFolder) -> Self {
        let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        let options = ClientOptions { data_bytes: BLOCK, ..ClientOptions::default() };
        let client = Client::connect(&place.socket(), options);
        let blocks = vec![Block::default(); (IMAGE_BYTES / u64::from(BLOCK)) as usize];
        println!("seed {seed}");
        Self { client, blocks, random: fastrand::Rng::with_seed(seed), next_version: 0, acknowledged: 0 }
    }

    /// Asks for some more, and takes an answer if there is one; whether there was.
    pub(crate) fn step(&mut self) -> bool {
        for _ in 0..8 {
            self.submit();
        }
        self.client.rings[0].kick();
        self.poll()
    }

    /// Writes or reads a random block that nobody is writing or reading, or flushes.
    fn submit(&mut self) {
        let block = self.random.usize(..self.blocks.len());
        let Block { writing, reading, .. } = self.blocks[block];
        if writing.is_some() || reading.is_some() || self.client.rings[0].free_slots() == 0 {
            return;
        }
        let chance = self.random.u8(..);
        if chance < FLUSHES {
            self.client.rings[0].submit(&Request::new(kind::FLUSH, 0, 0));
            return;
        }
        let slot = self.client.rings[0].next_slot().unwrap();
        let is_read = chance < FLUSHES + READS;
        self.next_version += u64::from(!is_read);
        // What no block ever holds is there before a read: an answer without data does not pass for one.
        let bytes = if is_read { vec![0xff; BLOCK as usize] } else { content(block as u64, self.next_version) };
        self.client.memory().write_slice(&bytes, self.client.rings[0].data(slot)).unwrap();
        let kind = if is_read { kind::IN } else { kind::OUT };
        self.client.rings[0].submit(&Request::new(kind, block as u64 * 8, BLOCK));
        match is_read {
            true => self.blocks[block].reading = Some(slot),
            false => self.blocks[block].writing = Some((slot, self.next_version)),
        }
    }

    pub(crate) fn poll(&mut self) -> bool {
        let Some(answer) = self.client.rings[0].poll() else { return false };
        assert_eq!(answer.status, 0, "an error in the guest");
        let written = self.blocks.iter_mut().find(|block| block.writing.is_some_and(|(slot, _)| slot == answer.slot));
        if let Some(block) = written
            && let Some((_, version)) = block.writing.take()
        {
            block.version = version;
        }
        if let Some(number) = self.blocks.iter().position(|block| block.reading == Some(answer.slot)) {
            self.blocks[number].reading = None;
            let mut bytes = vec![0; BLOCK as usize];
            self.client.memory().read_slice(&mut bytes, self.client.rings[0].data(answer.slot)).unwrap();
            self.compare("read", number as u64, &bytes);
        }
        self.acknowledged += 1;
        true
    }

    fn compare(&self, place: &str, number: u64, bytes: &[u8]) {
        let version = self.blocks[number as usize].version;
        assert!(bytes == content(number, version), "{place}: block {number} does not hold version {version}");
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            for _ in 0..8 {
                self.submit();
            }
            self.client.rings[0].kick();
            while self.poll() {}
        }
    }

    pub(crate) fn settle(&mut self) {
        let begun = Instant::now();
        while self.client.rings[0].under_way() > 0 {
            assert!(begun.elapsed() < PATIENCE, "{} requests were never answered", self.client.rings[0].under_way());
            if !self.poll() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Compares the image with what was acknowledged, when nothing is under way. A later write would hide what was lost, so this is for
    /// each event, not for the end of all.
    pub(crate) fn judge(&self, place: &ServerFolder) {
        let file = std::fs::File::open(place.image()).unwrap();
        let mut bytes = vec![0; BLOCK as usize];
        for (number, block) in (0_u64..).zip(&self.blocks) {
            assert!(block.writing.is_none(), "block {number} is being written");
            file.read_exact_at(&mut bytes, number * u64::from(BLOCK)).unwrap();
            self.compare("image", number, &bytes);
        }
    }
}
