//! `kill -9` under a load that knows what each block must hold: what was acknowledged is there, and what was under way is done by
//! the next server.

use crate::server_folder::{IMAGE_BYTES, ServerFolder, Serving};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use vm_memory::Bytes;

/// How often the server is killed; `cargo xtask figures blk-kill` asks for more.
const KILLS: &str = "MINERVA_KILLS";
const KILLS_DEFAULT: u32 = 10;
const BLOCK: u32 = 4096;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a block holds, as far as the guest can know.
#[derive(Clone, Copy, Default)]
struct Block {
    /// Acknowledged.
    version: u64,
    /// Being written, with the slot that does.
    writing: Option<(u16, u64)>,
}

/// A load over all blocks, one write a block at a time.
struct Load {
    client: Client,
    blocks: Vec<Block>,
    random: fastrand::Rng,
    next_version: u64,
    acknowledged: u64,
}

fn content(block: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; BLOCK as usize];
    }
    let word = |number: u64| (block << 40 | version << 9 | number).to_le_bytes();
    (0..u64::from(BLOCK) / 8).flat_map(word).collect()
}

impl Load {
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

    fn poll(&mut self) -> bool {
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

    fn run(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            for _ in 0..8 {
                self.submit();
            }
            self.client.rings[0].kick();
            while self.poll() {}
        }
    }

    fn settle(&mut self) {
        let begun = Instant::now();
        while self.client.rings[0].under_way() > 0 {
            assert!(begun.elapsed() < PATIENCE, "{} requests were never answered", self.client.rings[0].under_way());
            if !self.poll() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_server_is_killed() {
    let place = ServerFolder::new();
    place.write("", "");
    if !place.run(&["--check"]).status.success() {
        place.write("direct = false", "");
    }
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut serving = place.serve();
    let client = Client::connect(&place.socket(), ClientOptions { data_bytes: BLOCK, ..ClientOptions::default() });
    let blocks = vec![Block::default(); (IMAGE_BYTES / u64::from(BLOCK)) as usize];
    let random = fastrand::Rng::with_seed(seed);
    let mut load = Load { client, blocks, random, next_version: 0, acknowledged: 0 };
    let (mut repeated, mut longest) = (0, Duration::ZERO);
    for _ in 0..kills {
        let time = Duration::from_micros(load.random.u64(500..30_000));
        load.run(time);
        serving.0.kill().unwrap();
        serving.0.wait().unwrap();
        while load.poll() {}
        repeated += load.client.rings[0].under_way();
        let begun = Instant::now();
        serving = place.serve();
        load.client.reconnect(&place.socket());
        load.settle();
        longest = longest.max(begun.elapsed());
    }
    let file = std::fs::File::open(place.image()).unwrap();
    for (number, block) in load.blocks.iter().enumerate() {
        let mut bytes = vec![0; BLOCK as usize];
        file.read_exact_at(&mut bytes, number as u64 * u64::from(BLOCK)).unwrap();
        assert!(
            bytes == content(number as u64, block.version),
            "block {number} does not hold version {}",
            block.version
        );
    }
    assert!(repeated > 0 && load.acknowledged > 0, "a kill in a pause proves nothing");
    println!(
        "{kills} kills, seed {seed}: {} acknowledged, {repeated} were under way and done again, longest pause {longest:?}",
        load.acknowledged
    );
    drop::<Serving>(serving);
}
