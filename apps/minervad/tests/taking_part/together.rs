//! What waits at once costs one sync.

use super::endowed;
use crate::ENFORCE;
use crate::bed::until;
use crate::listeners::{Relay, at};
use minerva_api::v1;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;

const WAITING: usize = 16;

/// The loop is held up where it writes a knob, as by a restore; meanwhile others ask.
#[test]
fn changes_that_wait_are_committed_with_one_sync() {
    let Some((mut bed, socket)) = endowed(0) else { return };
    bed.write_config(&format!("{ENFORCE}\n[participation]\nrequests_per_second = 1000000\nburst = 1000000"));
    bed.start_readers();
    let daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    until("the heavy one is steered", || bed.weight("heavy") < 100);
    let commits = || bed.metric("minerva_store_commits_total{of=\"requests\"}");
    let taken = || bed.metric_or_zero("minerva_tenant_requests_total{request=\"set-level\",outcome=\"granted\"}");
    let undo_lock = File::open(bed.directory.path().join("run/undo.lock")).expect("the undo lock");
    let before = commits();
    at(&relay.socket, async |client| {
        flock(&undo_lock, FlockOperation::LockExclusive).expect("no restore runs");
        let mut asking = tokio::task::JoinSet::new();
        for number in 0..=WAITING {
            let mut client = client.clone();
            let level = if number.is_multiple_of(2) { v1::Level::Idle } else { v1::Level::Normal };
            asking.spawn(async move {
                let request = v1::SetLevelRequest { level: level.into(), lifetime: None };
                client.set_level(request).await.expect("a level");
            });
        }
        let others = async {
            // On a thread of its own: the clients speak on this one.
            let all = || taken() as usize + bed.metric("minerva_commands_waiting") as usize > WAITING;
            while !std::thread::scope(|scope| scope.spawn(all).join().expect("a thread")) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            flock(&undo_lock, FlockOperation::Unlock).expect("let go");
        };
        tokio::join!(others, async { while asking.join_next().await.is_some() {} });
    });
    // Those that were taken before the loop was held up, and all that waited then.
    let syncs = commits() - before;
    assert!((1.0..=2.0).contains(&syncs), "{syncs} for {} changes", WAITING + 1);
    drop(daemon);
}
