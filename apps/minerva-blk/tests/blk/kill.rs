//! `kill -9` under a load that knows what each block must hold: after each kill what was acknowledged is there, and what was under way
//! is done by the next server.

use crate::load::Load;
use crate::server_folder::{ServerFolder, Serving};
use std::time::{Duration, Instant};

/// How often the server is killed; `cargo xtask figures blk-kill` asks for more.
const KILLS: &str = "MINERVA_KILLS";
const KILLS_DEFAULT: u32 = 10;

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_server_is_killed() {
    let place = ServerFolder::new();
    place.write("", "");
    if !place.run(&["--check"]).status.success() {
        place.write("direct = false", "");
    }
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let mut serving = place.serve();
    let mut load = Load::new(&place);
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
        load.judge(&place);
    }
    assert!(repeated > 0 && load.acknowledged > 0, "a kill in a pause proves nothing");
    println!(
        "{kills} kills: {} acknowledged, {repeated} were under way and done again, longest pause {longest:?}",
        load.acknowledged
    );
    drop::<Serving>(serving);
}
