//! A load over all blocks of a disk that knows what each must hold: what was acknowledged, and nothing else.

use crate::server_folder::{IMAGE_BYTES, ServerFolder};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use vm_memory::Bytes;

const BLOCK: u32 = 4096;
/// For what a busy machine does slowly.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a block holds, as far as the guest can know.
#[derive(Clone, Copy, Default)]
struct Block {
    /// Acknowledged.
    version: u64,
    /// Being written, with the slot that does.
    writing: Option<(u16, u64)>,
}

/// A load over all blocks, one write a block at a time.
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

    /// Writes a random block that nobody is writing, or flushes.
    fn submit(&mut self) {
        let block = self.random.usize(..self.blocks.len());
        if self.blocks[block].writing.is_some() || self.client.rings[0].free_slots() == 0 {
            return;
        }
        if self.random.u8(..) < 8 {
            self.client.rings[0].submit(&Request::new(kind::FLUSH, 0, 0));
            return;
        }
        self.next_version += 1;
        let slot = self.client.rings[0].next_slot().unwrap();
        let bytes = content(block as u64, self.next_version);
        self.client.memory().write_slice(&bytes, self.client.rings[0].data(slot)).unwrap();
        self.client.rings[0].submit(&Request::new(kind::OUT, block as u64 * 8, BLOCK));
        self.blocks[block].writing = Some((slot, self.next_version));
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
        self.acknowledged += 1;
        true
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

    /// Compares the image with what was acknowledged.
    pub(crate) fn judge(&self, place: &ServerFolder) {
        let file = std::fs::File::open(place.image()).unwrap();
        for (number, block) in self.blocks.iter().enumerate() {
            let mut bytes = vec![0; BLOCK as usize];
            file.read_exact_at(&mut bytes, number as u64 * u64::from(BLOCK)).unwrap();
            assert!(
                bytes == content(number as u64, block.version),
                "block {number} does not hold version {}",
                block.version
            );
        }
    }
}
