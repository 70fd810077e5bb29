//! What is told of batch jobs that wait, as whoever writes knobs hears it.

use minerva_decide::{DecideInput, Decider};
use minerva_model::{
    AccessKind, CgroupRef, Decision, DeviceId, EngineConfig, IoCounters, IoSignals, JobSettings, JobWait, Mode, Nanos,
    Operation, Origin, Outlook, RequestId, Signals, Tenant, TenantId, TenantKind, TenantRequest, Terms, Wish,
};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

/// Jobs 1, 2, ..., the longer the later where they have sizes.
fn jobs(count: u64, have_sizes: bool, caps_are_told: bool) -> Decider {
    let mut config = EngineConfig { mode: Mode::Enforce, ..EngineConfig::default() };
    config.makespan.caps_are_told = caps_are_told;
    // Whoever asks begins at once.
    config.coordination.contention_accepted = 10_000;
    let mut decider = Decider::default();
    decider.configure(Nanos::ZERO, &config);
    decider.device_seen(DISK);
    for number in 1..=count {
        let name = format!("job-{number}");
        let tenant = Tenant {
            id: TenantId(number),
            cgroup: CgroupRef { path: name.clone(), inode: number },
            kind: TenantKind::Cgroup,
            group: None,
            weight_percent: 100,
            excluded: false,
            job: Some(JobSettings { name: name.clone(), bytes: have_sizes.then_some(number << 40) }),
            terms: Terms::default(),
            origin: Origin::default(),
            name,
        };
        decider.tenant_seen(Nanos::ZERO, &tenant, &[]);
    }
    decider
}

/// What is told after a slice in which jobs up to this one read alike.
fn slice(decider: &mut Decider, second: u64, count: u64) -> Vec<Decision> {
    let row = |number| IoSignals {
        tenant: TenantId(number),
        device: DISK,
        elapsed: Nanos::SECOND,
        transferred: IoCounters { read_bytes: 1 << 24, read_ops: 16, ..IoCounters::default() },
        latency: None,
        active: true,
        served: None,
        disk_time: Nanos(Nanos::SECOND.0 / count),
    };
    let signals = Signals { io: (1..=count).map(row).collect(), ..Signals::default() };
    decider.slice(Nanos::from_secs(second), DecideInput { signals: &signals, outlook: Outlook::default() }).decisions
}

fn told(decisions: &[Decision], tenant: u64) -> Option<Option<JobWait>> {
    decisions.iter().rev().find(|decision| decision.tenant == TenantId(tenant)).map(Decision::job_waits)
}

#[test]
fn the_part_of_a_job_that_waits_is_told_when_those_behind_it_are_gone() {
    for caps_are_told in [true, false] {
        let mut decider = jobs(20, false, caps_are_told);
        // Until the groups by past use have settled.
        let mut decisions = Vec::new();
        (1..=10).for_each(|second| decisions.extend(slice(&mut decider, second, 20)));
        let part = |decisions: &[Decision]| Some((told(decisions, 2)??.disk_part * 1e4).round());
        assert_eq!(part(&decisions), Some(125.0), "a quarter of a twentieth");
        (3..=20).for_each(|tenant| drop(decider.tenant_gone(TenantId(tenant))));
        let later = part(&slice(&mut decider, 11, 2));
        assert_eq!(later, caps_are_told.then_some(1250.0), "a quarter of a half");
    }
}

#[test]
fn no_job_is_capped_whose_operation_was_granted() {
    for caps_are_told in [true, false] {
        let mut decider = jobs(2, true, caps_are_told);
        let decisions: Vec<Decision> = (1..=3).flat_map(|second| slice(&mut decider, second, 2)).collect();
        assert!(told(&decisions, 2).flatten().is_some());
        let mut ask = |id: &str, wish| {
            let request = TenantRequest { id: RequestId(id.to_owned()), tenant: TenantId(2), wish };
            decider.requested(Nanos::from_secs(3), &request, &Signals::default()).1
        };
        let operation = Operation { device: DISK, access: AccessKind::SequentialRead, bytes: 1 << 26, deadline: None };
        let begun = ask("begin", Wish::Coordinate(operation.into()));
        assert_eq!(told(&begun, 2).map(|wait| wait.is_none()), Some(caps_are_told), "{begun:?}");
        let over = ask("over", Wish::Finish(RequestId("begin".to_owned())));
        assert_eq!(told(&over, 2).map(|wait| wait.is_some()), Some(true), "{over:?}");
    }
}

/// A tenant in a group that whoever `maker` was delegated to made.
fn made_by(number: u64, maker: &str) -> Tenant {
    let cgroup = |path: &str| CgroupRef { path: path.to_owned(), inode: number };
    Tenant {
        id: TenantId(number),
        name: format!("group-{number}"),
        cgroup: cgroup(&format!("{maker}/{number}")),
        kind: TenantKind::Cgroup,
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin { delegated_from: Some(cgroup(maker)), ..Origin::default() },
    }
}

/// By what it is known how much a job has left.
fn basis(decider: &Decider, tenant: u64) -> &'static str {
    let job = decider.jobs().into_iter().find(|job| job.tenant == TenantId(tenant));
    job.and_then(|job| Some(job.disks.first()?.basis)).unwrap_or("no job on a disk")
}

#[test]
fn who_moved_more_than_it_declared_is_not_believed_in_another_group_either() {
    let [by_size, by_use] = ["its declared size", "what it has had so far"];
    for (makers_are_remembered, of_the_liar) in [(true, by_use), (false, by_size)] {
        let mut config = EngineConfig { mode: Mode::Enforce, ..EngineConfig::default() };
        config.makespan.makers_are_remembered = makers_are_remembered;
        let mut decider = Decider::default();
        decider.configure(Nanos::ZERO, &config);
        decider.device_seen(DISK);
        let declare = |decider: &mut Decider, number: u64, maker: &str, bytes| {
            decider.tenant_seen(Nanos::ZERO, &made_by(number, maker), &[]);
            let job = JobSettings { name: format!("job-{number}"), bytes };
            decider.job_declared(TenantId(number), Some(job));
        };
        declare(&mut decider, 1, "liar", Some(1));
        declare(&mut decider, 2, "honest", Some(1 << 40));
        slice(&mut decider, 1, 2);
        decider.tenant_gone(TenantId(1));
        declare(&mut decider, 3, "liar", Some(1 << 30));
        declare(&mut decider, 4, "other", Some(1 << 30));
        slice(&mut decider, 2, 4);
        assert_eq!([2, 3, 4].map(|tenant| basis(&decider, tenant)), [by_size, of_the_liar, by_size]);
        // An hour after the lie it is over.
        declare(&mut decider, 5, "liar", Some(1 << 30));
        slice(&mut decider, 3_602, 5);
        assert_eq!([3, 5].map(|tenant| basis(&decider, tenant)), [by_size; 2]);
    }
}

#[test]
fn a_new_group_goes_on_where_its_makers_jobs_left_off_and_jobs_side_by_side_do_not_lengthen_each_other() {
    for makers_are_remembered in [true, false] {
        let mut config = EngineConfig { mode: Mode::Enforce, ..EngineConfig::default() };
        config.makespan.makers_are_remembered = makers_are_remembered;
        let mut decider = Decider::default();
        decider.configure(Nanos::ZERO, &config);
        decider.device_seen(DISK);
        let declare = |decider: &mut Decider, number: u64, maker: &str| {
            decider.tenant_seen(Nanos::ZERO, &made_by(number, maker), &[]);
            let job = JobSettings { name: format!("job-{number}"), bytes: None };
            decider.job_declared(TenantId(number), Some(job));
        };
        (1..=3).for_each(|number| declare(&mut decider, number, "user"));
        declare(&mut decider, 4, "other");
        (1..=4).for_each(|second| drop(slice(&mut decider, second, 4)));
        let place = |decider: &Decider, tenant| decider.job_order(TenantId(tenant)).map_or(0, |(place, _)| place);
        [1, 2].into_iter().for_each(|tenant| drop(decider.tenant_gone(TenantId(tenant))));
        slice(&mut decider, 5, 4);
        assert_eq!([3, 4].map(|tenant| place(&decider, tenant)), [1, 2], "they have had as much as each other");
        // Four slices' worth, as one of those that are gone; the others have had six.
        declare(&mut decider, 5, "user");
        declare(&mut decider, 6, "newcomer");
        slice(&mut decider, 6, 6);
        let expected = if makers_are_remembered { [2, 1] } else { [1, 2] };
        assert_eq!([5, 6].map(|tenant| place(&decider, tenant)), expected, "{makers_are_remembered}");
        slice(&mut decider, 7, 6);
        let seven = [3, 4, 5, 6].map(|tenant| place(&decider, tenant));
        assert_eq!(seven[2..], expected, "{seven:?}");
    }
}
