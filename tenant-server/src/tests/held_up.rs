//! Processes that let whoever looks at them wait.

use super::hanging::Victim;
use super::stage::{Client, PATIENCE, TestBed, play, until, word};
use crate::authenticate::process::Process;
use crate::test_server::tenant;
use minerva_api::v1;
use minerva_api::v1::set_level_request::Lifetime;
use minerva_linux_observe::{AsideThreads, Roots};
use minerva_model::{CgroupVersion, Role};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A host on which this process is in the group `p`.
pub(crate) struct OneGroup;

impl OneGroup {
    pub(crate) fn of_this_process(folder: &Path) -> Roots {
        Self::with_stat_of(folder, std::process::id())
    }

    /// Where its `stat` is that of another one.
    fn with_stat_of(folder: &Path, other: u32) -> Roots {
        let own = folder.join("proc").join(std::process::id().to_string());
        fs::create_dir_all(&own).expect("a folder");
        fs::write(own.join("cgroup"), "0::/p\n").expect("a file");
        symlink(format!("/proc/{other}/stat"), own.join("stat")).expect("a link");
        let (cgroup, sys) = (folder.join("cgroup"), folder.join("sys"));
        Roots { cgroup, version: CgroupVersion::V2, proc: folder.join("proc"), sys }
    }
}

/// As if it were this process that hangs, which can be asked something here.
#[test]
fn a_process_that_hangs_as_it_begins_another_program_is_known_and_holds_up_nobody() {
    let folder = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
    let Some(victim) = Victim::begin(&folder.path().join("hanging")) else { return };
    let bed = TestBed::on(OneGroup::with_stat_of(folder.path(), victim.pid), |_| ());
    // It goes first, so that a server that waits for it ends.
    let mut victim = victim;
    bed.directory.enter(&tenant(3, "p", Role::Participant));
    let scene = async {
        let mut client = bed.client("tenant.sock").await;
        let answer = client.describe(v1::DescribeRequest {}).await.expect("it is known");
        assert_eq!((answer.get_ref().tenant.as_str(), answer.get_ref().identified_by.as_str()), ("t3", "cgroup"));
        // More than may wait for it.
        let asking: Vec<_> = (0..6).map(|_| tokio::spawn(bind(client.clone()))).collect();
        bed.assert_b_is_served().await;
        for asked in asking {
            let refused = asked.await.expect("a task").expect_err("nobody knows when it started");
            assert_eq!((refused.code(), word(&refused)), (tonic::Code::Unavailable, "process-held-up"));
            assert!(refused.message().starts_with(&format!("Process {} does not answer", std::process::id())));
        }
        bed.assert_b_is_served().await;
        victim.release();
        let mut bound = false;
        let begin = std::time::Instant::now();
        while !bound {
            bound = bind(client.clone()).await.is_ok();
            assert!(begin.elapsed() < PATIENCE, "it answers, and no level is bound to it");
        }
    };
    play(async { tokio::time::timeout(2 * PATIENCE, scene).await.expect("the server waits for a process that hangs") });
}

#[test]
fn a_level_stays_bound_to_a_process_that_does_not_say_when_it_started() {
    let folder = tempfile::Builder::new().prefix("minerva-test-server-").tempdir().expect("a directory");
    let Some(mut victim) = Victim::begin(&folder.path().join("hanging")) else { return };
    let roots = OneGroup::with_stat_of(folder.path(), victim.pid);
    let process = Process { pid: std::process::id(), start_ticks: 0 };
    let threads = AsideThreads::new(2);
    for _ in 0..4 {
        assert_eq!(process.again(&roots, &threads).map(|bound| bound.process), Some(process));
    }
    victim.release();
    // It started at another time.
    play(until("it says so", || process.again(&roots, &threads).is_none()));
}

async fn bind(mut client: Client) -> Result<tonic::Response<v1::SetLevelResponse>, tonic::Status> {
    let lifetime = Some(Lifetime::Process(0));
    client.set_level(v1::SetLevelRequest { level: v1::Level::Low as i32, lifetime }).await
}
