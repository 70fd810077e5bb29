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
        assert_eq!(process.again("p", &roots, &threads).map(|bound| bound.process), Some(process));
    }
    assert!(process.again("other", &roots, &threads).is_none(), "it may be another one of that number");
    victim.release();
    // It started at another time.
    play(until("it says so", || process.again("p", &roots, &threads).is_none()));
}

/// Whatever groups the operator counts them to, and however many login sessions there are.
#[test]
fn processes_that_hang_count_for_the_user_and_for_nobody_else_of_the_operators_group() {
    let directory = crate::directory::Directory::default();
    let maker = |path: &str, group: Option<&str>| {
        let group = group.map(str::to_owned);
        directory.enter(&minerva_model::Tenant { group, ..tenant(7, path, Role::Participant) });
        directory.of_cgroup(path).expect("it is listed").maker
    };
    let user = "user.slice/user-1000.slice";
    for session in ["session-3.scope", "session-4.scope"] {
        assert_eq!(maker(&format!("{user}/{session}"), None), user);
    }
    assert_ne!(maker("machine.slice/a.scope", Some("vms")), maker("machine.slice/b.scope", Some("vms")));
}

async fn bind(mut client: Client) -> Result<tonic::Response<v1::SetLevelResponse>, tonic::Status> {
    let lifetime = Some(Lifetime::Process(0));
    client.set_level(v1::SetLevelRequest { level: v1::Level::Low as i32, lifetime }).await
}
