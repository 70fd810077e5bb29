//! What a client may say to the listener for tenants, HTTP/2 and all: the server is the one that `minervad` runs, over pipes in
//! memory and with a clock that jumps to the next thing that is due, so that no patience takes any time.

mod calls;
mod frames;
mod script;

pub use calls::calls;
pub use frames::frames;

use crate::memory;
use minerva_tenant_server::test_server::{TestServer, Who};
use script::Script;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::io::DuplexStream;

/// What one client's few thousand bytes may make the server hold: with 32 calls under way, each of which may claim the longest
/// message there is (256 KiB) before it has said it.
const HELD_BYTES_MAX: isize = 12 << 20;
/// What may stay of an input when all are gone: what libraries keep for the next one.
const LEFT_BYTES_MAX: isize = 64 << 10;
/// Longer than any client has patience for.
const LONG: Duration = Duration::from_secs(100);

/// Plays a client's script, and then judges the server.
fn play(input: &[u8], client: impl AsyncFnOnce(&mut Stage, Script<'_>)) {
    static WARM: LazyLock<()> = LazyLock::new(|| stage(async |_| {}));
    LazyLock::force(&WARM);
    let before = memory::held();
    let most = memory::most_held_in(|| stage(async |stage| client(stage, Script(input)).await));
    assert!(most <= HELD_BYTES_MAX, "the server held {most} bytes");
    let left = memory::held() - before;
    assert!(left <= LEFT_BYTES_MAX, "{left} bytes are left");
}

/// A server in a world of its own; when the client has gone, it serves the next, and has forgotten both in the end.
fn stage(client: impl AsyncFnOnce(&mut Stage)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut stage = Stage { trial: TestServer::new(), manner: 0 };
        client(&mut stage).await;
        stage.manner = 0;
        calls::assert_served(&mut stage).await;
        stage.trial.hang_up_streams();
        // Whoever waits for an answer that never comes has gone after that.
        stage.settle(LONG).await;
        assert!(stage.trial.is_empty(), "nobody is connected, and somebody is counted: {:?}", stage.trial);
    });
}

struct Stage {
    trial: TestServer,
    /// How the slice loop answers: 0 by rote.
    manner: u8,
}

impl Stage {
    /// Somebody comes in.
    fn connect(&mut self, who: u8) -> DuplexStream {
        let who = match who % 4 {
            0 | 1 => Who::A,
            2 => Who::ByToken,
            _ => Who::Nobody,
        };
        self.trial.connect(who)
    }

    /// Lets everyone do what they can do, and this time pass.
    async fn settle(&mut self, time: Duration) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        while self.trial.answer(self.manner) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(time).await;
    }
}
