//! Runs of batch jobs, kept over starts.

use minerva_model::{DiskIntensity, JobPhase, JobPhaseKind, JobProfile, JobStep};
use minerva_store::{JobRunRow, Store};

fn row(name: &str, read_bytes: u64) -> JobRunRow {
    JobRunRow {
        name: name.to_owned(),
        tenant_name: "one".to_owned(),
        owner: "cgroup:one".to_owned(),
        device_name: "sda".to_owned(),
        ended_unix_ms: 7,
        declared_bytes: Some(1),
        profile: JobProfile {
            seconds: 1.0 / 3.0,
            read_bytes,
            write_bytes: 5,
            steps: vec![JobStep { seconds: 1.0, read_bytes, write_bytes: 5, cores: Some(0.1), memory_bytes: None }],
            phases: vec![JobPhase {
                kind: JobPhaseKind::Shuffle,
                seconds: 1.0,
                read_bytes_per_second: 0.1,
                write_bytes_per_second: 5.0,
            }],
            cpu_correlation: Some(-1.0 / 3.0),
            memory_correlation: None,
            disk_part: 0.9,
            intensity: DiskIntensity::Intensive,
        },
    }
}

#[test]
fn runs_of_jobs_outlive_the_daemon_and_the_oldest_of_a_name_go() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::open(&directory.path().join("db"), "boot", Box::new(|| 0)).unwrap().0;
    let store = open();
    assert_eq!((store.job_runs("sort").unwrap(), store.job_pasts().unwrap().len()), (Vec::new(), 0));
    store.keep_job_run(&row("count", 1)).unwrap();
    (0..25).for_each(|number| store.keep_job_run(&row("sort", number)).unwrap());
    store.keep_job_run(&row("count", 2)).unwrap();
    drop(store);
    let store = open();
    assert_eq!(store.job_runs("sort").unwrap(), (15..25).map(|number| row("sort", number)).collect::<Vec<_>>());
    let pasts = store.job_pasts().unwrap();
    assert!(pasts.iter().map(|(name, _)| name.as_str()).eq(["sort", "count"]), "who ran last is last");
    let pasts: std::collections::BTreeMap<_, _> = pasts.into_iter().collect();
    let bytes = |name: &str| pasts[name].iter().map(|past| past.bytes).collect::<Vec<_>>();
    assert_eq!((bytes("count"), bytes("sort")), (vec![6, 7], (20..30).collect::<Vec<u64>>()));
    assert!(pasts["sort"].iter().all(|past| past.phases == row("sort", 1).profile.phases));
}

#[test]
fn an_owner_that_calls_each_run_another_name_pushes_out_its_own_whatever_its_tenants_are_called() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("db"), "boot", Box::new(|| 0)).unwrap().0;
    (0..3).for_each(|number| store.keep_job_run(&row("nightly", number)).unwrap());
    let noisy = |number| JobRunRow {
        tenant_name: format!("noisy-{number}"),
        owner: "cgroup:noisy".to_owned(),
        ..row(&format!("z{number}"), 1)
    };
    store.together(|store| (0..2_100).try_for_each(|number| store.keep_job_run(&noisy(number)))).unwrap();
    let pasts = store.job_pasts().unwrap();
    assert_eq!((pasts[0].0.as_str(), pasts[0].1.len()), ("nightly", 3));
    assert_eq!((pasts.len(), pasts[1].0.as_str()), (1_998, "z103"), "two thousand runs in all");
}

#[test]
fn of_many_owners_with_a_run_each_the_oldest_goes_and_not_one_of_who_has_several() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("db"), "boot", Box::new(|| 0)).unwrap().0;
    let once = |number| JobRunRow { owner: format!("cgroup:vm-{number}"), ..row(&format!("z{number}"), 1) };
    store.together(|store| (0..1_000).try_for_each(|number| store.keep_job_run(&once(number)))).unwrap();
    (0..3).for_each(|number| store.keep_job_run(&row("nightly", number)).unwrap());
    store.together(|store| (1_000..2_500).try_for_each(|number| store.keep_job_run(&once(number)))).unwrap();
    assert_eq!(store.job_runs("nightly").unwrap().len(), 3);
    let pasts = store.job_pasts().unwrap();
    assert_eq!((pasts.len(), pasts[0].0.as_str()), (1_998, "z503"));
}

#[test]
fn a_run_is_kept_and_older_ones_go_in_one_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("db"), "boot", Box::new(|| 0)).unwrap().0;
    (0..12).for_each(|number| {
        store.keep_job_run(&row("sort", number)).unwrap();
        assert_eq!(store.take_commits(), 1);
    });
    assert_eq!(store.job_runs("sort").unwrap().len(), 10);
}
