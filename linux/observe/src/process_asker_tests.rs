//! Who does not answer, and who merely has much to answer.

use self::hanging::Victim;
use super::{Outcome, ProcessAsker, Request};
use crate::process_files::{Procfs, Question};
use crate::skips::Skips;
use minerva_model::{CgroupRef, Origin, Tenant, TenantId, TenantKind, Terms};
use std::path::Path;

#[path = "../tests/observe/hanging.rs"]
mod hanging;

fn questions(pid: u32, count: usize) -> Request {
    let question = Question { tenant: TenantId(1), pid, before: None, is_beginning: false };
    Request { questions: vec![question; count], ..Request::default() }
}

fn tenant(path: &str, group: Option<&str>) -> Tenant {
    Tenant {
        id: TenantId(1),
        name: path.to_owned(),
        kind: TenantKind::Cgroup,
        cgroup: CgroupRef { path: path.to_owned(), inode: 1 },
        group: group.map(str::to_owned),
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin::default(),
    }
}

#[test]
fn who_has_more_processes_than_a_round_has_time_for_is_not_taken_for_one_that_hangs() {
    let mut asker = ProcessAsker::new(Procfs::new(Path::new("/proc")));
    let (mut skips, own) = (Skips::default(), std::process::id());
    // A machine may let the thread itself wait for so long.
    let is_under_way = (0..5).any(|_| {
        asker.begin_round(&mut skips);
        let mut answers = Vec::new();
        asker.ask(&mut questions(own, 200_000), &mut answers) == Outcome::UnderWay && !answers.is_empty()
    });
    assert!(is_under_way);
    asker.suspect(&tenant("large", None), own);
    skips.take();
    asker.begin_round(&mut skips);
    assert!(asker.thread.is_some(), "the same thread looks on");
    assert!(skips.take().is_empty() && asker.left.is_empty() && !asker.is_left_out("large"));
    let mut answers = Vec::new();
    assert_eq!(asker.ask(&mut questions(own, 3), &mut answers), Outcome::Answered);
    assert_eq!(answers.iter().filter(|answer| answer.found.is_some()).count(), 3);
}

/// Also if the round it was asked in ended before that was certain.
#[test]
fn who_does_not_come_back_until_the_next_round_is_left_out_with_its_maker_alone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut victim) = Victim::begin(&folder.path().join("hanging")) else { return };
    let mut asker = ProcessAsker::new(Procfs::new(Path::new("/proc")));
    let mut skips = Skips::default();
    asker.begin_round(&mut skips);
    assert_eq!(asker.ask(&mut questions(victim.pid, 1), &mut Vec::new()), Outcome::Silent);
    let user = "user.slice/user-1000.slice";
    asker.suspect(&tenant(&format!("{user}/session-3.scope"), Some("people")), victim.pid);
    asker.begin_round(&mut skips);
    assert_eq!(skips.take().len(), 1);
    let is_left_out = |tenant: Tenant| asker.is_left_out(tenant.maker());
    assert!(is_left_out(tenant(&format!("{user}/session-4.scope"), None)), "another session of the user's");
    assert!(!is_left_out(tenant("user.slice/user-1001.slice/session-5.scope", Some("people"))));
    victim.release();
}
