//! Processes that let whoever looks at them wait.

use crate::fake_host::{FakeHost, seen};
use crate::hanging::Victim;
use minerva_linux_observe::{Observer, Roots};
use minerva_model::{CgroupVersion, Event, Sample, TenantId, TenantRule};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Far above anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came and went, a sample, and the observer that took it, unless that waits for ever.
fn slice(mut observer: Observer) -> (Observer, Vec<Event>, Sample) {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let events = observer.discover();
        let sample = observer.sample();
        let _ = tell.send((observer, events, sample));
    });
    // Else a slice waits for a process that does not answer.
    told.recv_timeout(PATIENCE).unwrap()
}

fn who(sample: &Sample) -> Vec<TenantId> {
    sample.usage.iter().map(|row| row.tenant).collect()
}

#[test]
fn a_process_that_hangs_as_it_begins_another_program_costs_its_own_tenant_only() {
    let host = FakeHost::new(CgroupVersion::V1);
    let Some(mut victim) = Victim::begin(&host.path("hanging")) else { return };
    let own = std::process::id();
    host.group("before", &format!("{own}\n"));
    // Beside one that would answer.
    host.group("hangs", &format!("{}\n{own}\n", victim.pid));
    host.group("later", &format!("{own}\n"));
    let roots = Roots { proc: PathBuf::from("/proc"), ..host.roots() };
    let mut observer = Observer::new(roots, &[]).unwrap();
    observer.want_usage(true);
    let (mut observer, events, first) = slice(observer);
    let tenants = seen(&events);
    let id = |path: &str| tenants.iter().find(|tenant| tenant.cgroup.path == path).unwrap().id;
    let (hangs, others) = (id("hangs"), [id("before"), id("later")]);
    let mut samples = vec![first];
    for _ in 0..3 {
        let (back, _, sample) = slice(observer);
        observer = back;
        samples.push(sample);
    }
    let (mut told, mut met) = (Vec::new(), Vec::new());
    for sample in samples {
        assert!(!who(&sample).contains(&hangs));
        met.extend(who(&sample));
        told.extend(sample.skipped.into_iter().map(|row| (row.place, row.why)));
    }
    assert!(others.iter().all(|other| met.iter().filter(|id| *id == other).count() >= 3), "{met:?} of {others:?}");
    let [(place, why)] = &told[..] else { panic!("it is told once: {told:?}") };
    assert!(place == "what hangs uses" && why.starts_with(&format!("process {} of it", victim.pid)), "{place}: {why}");
    victim.release();
    let begin = Instant::now();
    loop {
        let (back, _, sample) = slice(observer);
        observer = back;
        if let Some(row) = sample.usage.iter().find(|row| row.tenant == hangs) {
            assert_eq!(row.processes, 2);
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "it answers, and is not looked at");
    }
}

/// Each with a process that answers to nobody: of others' processes what is known is told until there is no thread left to ask, and slices go on.
#[test]
fn however_many_processes_hang_slices_go_on() {
    let host = FakeHost::new(CgroupVersion::V1);
    let Some(mut victim) = Victim::begin(&host.path("hanging")) else { return };
    for index in 0..34 {
        host.group(&format!("g{index:02}"), &format!("{}\n", victim.pid));
    }
    host.group("z", &format!("{}\n", std::process::id()));
    let roots = Roots { proc: PathBuf::from("/proc"), ..host.roots() };
    let mut observer = Observer::new(roots, &[]).unwrap();
    observer.want_usage(true);
    let mut places = Vec::new();
    for _ in 0..40 {
        let (back, _, sample) = slice(observer);
        observer = back;
        places.extend(sample.skipped.into_iter().map(|row| row.place));
    }
    let one_each = places.iter().filter(|place| place.starts_with("what g")).count();
    assert_eq!((one_each, places.last().map(String::as_str)), (32, Some("what processes use")));
    victim.release();
    let begin = Instant::now();
    loop {
        let (back, _, sample) = slice(observer);
        observer = back;
        if sample.skipped.is_empty() && !sample.usage.is_empty() {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "they answer, and are not looked at");
    }
}

/// Of a user with many login sessions, and of an operator's group of which one hangs.
#[test]
fn who_hangs_is_left_out_with_all_its_sessions_and_without_the_others_of_its_group() {
    let host = FakeHost::new(CgroupVersion::V1);
    let Some(mut victim) = Victim::begin(&host.path("hanging")) else { return };
    for session in 0..4 {
        host.group(&format!("user.slice/user-1000.slice/session-{session}.scope"), &format!("{}\n", victim.pid));
    }
    host.group("vms/hangs", &format!("{}\n", victim.pid));
    host.group("vms/other", &format!("{}\n", std::process::id()));
    let roots = Roots { proc: PathBuf::from("/proc"), ..host.roots() };
    let group = Some("vms".to_owned());
    let rule = TenantRule { pattern: "vms/*".to_owned(), group, ..TenantRule::default() };
    let mut observer = Observer::new(roots, &[rule]).unwrap();
    observer.want_usage(true);
    let (mut tenants, mut told, mut met) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..12 {
        let (back, events, sample) = slice(observer);
        observer = back;
        tenants.extend(seen(&events));
        met.extend(who(&sample));
        told.extend(sample.skipped.into_iter().map(|row| row.place));
    }
    victim.release();
    let other = tenants.iter().find(|tenant| tenant.cgroup.path == "vms/other").unwrap();
    assert_eq!(other.group.as_deref(), Some("vms"));
    assert!(met.iter().filter(|id| **id == other.id).count() >= 6, "{met:?} of {}", other.id);
    // One of the user's, and one of the group.
    assert_eq!(told.len(), 2, "{told:?}");
}

#[test]
fn who_hangs_again_takes_nothing_from_the_others() {
    let host = FakeHost::new(CgroupVersion::V1);
    let Some(mut first) = Victim::begin(&host.path("first")) else { return };
    let Some(mut second) = Victim::begin(&host.path("second")) else { return };
    host.group("a", &format!("{}\n", first.pid));
    for other in ["b", "c"] {
        host.group(other, &format!("{}\n", std::process::id()));
    }
    let roots = Roots { proc: PathBuf::from("/proc"), ..host.roots() };
    let mut observer = Observer::new(roots, &[]).unwrap();
    observer.want_usage(true);
    let mut slice_told = || {
        let (events, sample) = (observer.discover(), observer.sample());
        (seen(&events), who(&sample), sample.skipped)
    };
    let (tenants, met, told) = slice_told();
    let id = |path: &str| tenants.iter().find(|tenant| tenant.cgroup.path == path).unwrap().id;
    assert!(told.len() == 1 && met.is_empty(), "it is the first that is asked: {met:?}");
    let (hangs, others) = (id("a"), [id("b"), id("c")]);
    first.release();
    let begin = Instant::now();
    while !slice_told().1.contains(&hangs) {
        assert!(begin.elapsed() < PATIENCE, "it answers, and is not looked at");
    }
    host.group("a", &format!("{}\n", second.pid));
    let (_, met, told) = slice_told();
    assert_eq!((met, told.len()), (others.to_vec(), 1), "{told:?}");
    second.release();
}
