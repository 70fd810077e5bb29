//! Batch jobs on a real disk: tenants say what they are or a rule does, the shortest goes first, and what a name did outlives the daemon.

use crate::ENFORCE;
use crate::bed::{Bed, Daemon, until};
use crate::listeners::{Relay, at};
use minerva_api::v1;
use std::process::{Child, Command, Stdio};

/// Readers that never pause, so that the disk is short; ended when they are dropped.
struct Scans(Vec<Child>);

impl Scans {
    fn start(bed: &Bed) -> Self {
        let scan = |tenant: &str| {
            let procs = bed.cgroup(tenant).join("cgroup.procs");
            let read = format!("dd if=/dev/{} of=/dev/null bs=64k iflag=direct status=none", bed.device);
            let script = format!("echo $$ > {} && while {read}; do :; done", procs.display());
            Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().expect("a shell")
        };
        // Two each: one alone leaves the disk idle between two of its requests.
        Self(["heavy", "heavy", "sparing", "sparing"].map(scan).into())
    }
}

impl Drop for Scans {
    fn drop(&mut self) {
        for scan in &mut self.0 {
            let _ = scan.kill();
            let _ = scan.wait();
        }
    }
}

fn jobs(daemon: &Daemon) -> v1::JobsResponse {
    let answer = daemon.ask(async |mut client| client.jobs(v1::JobsRequest {}).await.ok());
    answer.flatten().map(tonic::Response::into_inner).unwrap_or_default()
}

fn job(daemon: &Daemon, name: &str) -> v1::Job {
    jobs(daemon).jobs.into_iter().find(|job| job.name == name).unwrap_or_default()
}

fn place(daemon: &Daemon, name: &str) -> u32 {
    job(daemon, name).disks.first().map_or(0, |disk| disk.place)
}

fn profile(daemon: &Daemon, name: &str) -> Vec<v1::JobRun> {
    let request = v1::JobProfileRequest { name: name.to_owned() };
    let answer = daemon.ask(async |mut client| client.job_profile(request).await.ok());
    answer.flatten().map(|answer| answer.into_inner().runs).unwrap_or_default()
}

fn known(daemon: &Daemon, name: &str) -> Option<v1::KnownJob> {
    jobs(daemon).known.into_iter().find(|known| known.name == name)
}

#[test]
fn the_shortest_job_goes_first_hears_it_and_its_run_outlives_the_daemon() {
    let Some(bed) = Bed::new() else { return };
    // One by a rule, the other by its own word.
    let extra = format!("{ENFORCE}\n[[jobs]]\npattern = \"{}/heavy\"\nname = \"sort\"\nbytes = \"900TB\"\n", bed.name);
    bed.write_config(&extra);
    let mut daemon = bed.start();
    let relay = Relay::start(&bed, &bed.directory.path().join("run/tenant.sock"), &bed.cgroup("sparing"));
    until("the tenant is seen", || crate::listeners::describe(&relay.socket).is_ok());
    let scans = Scans::start(&bed);
    at(&relay.socket, async |mut client| {
        let request = v1::HoldJobRequest { name: "count".to_owned(), size_bytes: Some(1 << 40) };
        let mut places = client.hold_job(request).await.expect("held").into_inner();
        let begun = std::time::Instant::now();
        let mut heard = v1::HoldJobResponse::default();
        while (heard.place, heard.jobs) != (1, 2) {
            assert!(begun.elapsed().as_secs() < 60, "never first: {heard:?} {:?}", daemon.log());
            let next = tokio::time::timeout(std::time::Duration::from_secs(5), places.message()).await;
            // Where nothing changes nothing is said.
            let Ok(answer) = next else { continue };
            heard = answer.expect("a server").expect("a place");
        }
        // On another thread, as a client speaks on this one.
        std::thread::scope(|scope| {
            let waited = scope.spawn(|| {
                daemon.until("the longer one waits", || {
                    place(&daemon, "sort") == 2 && bed.weight("heavy") < bed.weight("sparing")
                });
            });
            waited.join().expect("it waits");
        });
    });
    daemon.until("its run is kept", || !profile(&daemon, "count").is_empty());
    drop(scans);
    let run = profile(&daemon, "count").remove(0);
    assert_eq!((run.tenant.ends_with("sparing"), run.write_bytes, run.declared_bytes), (true, 0, Some(1 << 40)));
    assert!(run.read_bytes > 0 && run.phases.iter().any(|phase| phase.kind == "read"), "{run:?}");
    let before = known(&daemon, "count").expect("known");
    daemon.signal("-KILL");
    daemon.child.wait().expect("an end");
    let daemon = bed.start();
    daemon.until("it is known again", || known(&daemon, "count").as_ref() == Some(&before));
    assert_eq!(profile(&daemon, "count"), [run]);
    assert_eq!(profile(&daemon, "nothing"), []);
}

#[test]
fn where_no_weight_acts_the_job_that_waits_is_capped_and_a_kill_leaves_no_cap() {
    the_job_that_waits_is_capped_and_a_kill_leaves_no_cap("none");
}

#[test]
fn beside_weights_a_job_whose_turn_is_known_is_capped_and_a_kill_leaves_no_cap() {
    the_job_that_waits_is_capped_and_a_kill_leaves_no_cap("bfq");
}

fn the_job_that_waits_is_capped_and_a_kill_leaves_no_cap(elevator: &str) {
    let Some(bed) = Bed::new() else { return };
    let job = |tenant: &str, bytes: &str| {
        format!("\n[[jobs]]\npattern = \"{}/{tenant}\"\nname = \"{tenant}\"\nbytes = \"{bytes}\"\n", bed.name)
    };
    bed.write_config(&format!("{ENFORCE}{}{}", job("heavy", "900TB"), job("sparing", "1TB")));
    std::fs::write(format!("/sys/block/{}/queue/scheduler", bed.device), elevator).expect("the kernel has it");
    // Without BFQ the kernel has to be told to count.
    bed.arm_throttle();
    let mut daemon = bed.start();
    let _scans = Scans::start(&bed);
    let is_free = |tenant: &str| ["read", "write"].iter().all(|way| bed.cap(tenant, way).is_none());
    daemon.until("the longer one is capped", || !is_free("heavy") && is_free("sparing"));
    daemon.signal("-KILL");
    daemon.child.wait().expect("an end");
    until("the guard has put it back", || is_free("heavy"));
}

#[test]
fn an_excluded_tenant_is_refused_as_a_job() {
    let Some(bed) = Bed::new() else { return };
    bed.write_config(&format!("{ENFORCE}\n[[rules]]\npattern = \"{}/sparing\"\nexclude = true\n", bed.name));
    let daemon = bed.start();
    let relay = Relay::start(&bed, &bed.directory.path().join("run/tenant.sock"), &bed.cgroup("sparing"));
    until("the tenant is seen", || crate::listeners::describe(&relay.socket).is_ok());
    at(&relay.socket, async |mut client| {
        let request = v1::HoldJobRequest { name: "count".to_owned(), size_bytes: Some(1 << 40) };
        let refused = match client.hold_job(request).await {
            Ok(places) => places.into_inner().message().await.expect_err("refused"),
            Err(refused) => refused,
        };
        assert!(refused.message().contains("excludes this tenant"), "{refused:?}");
    });
    assert_eq!(job(&daemon, "count"), v1::Job::default());
}

#[test]
fn who_declares_one_byte_is_found_out_and_loses_what_the_lie_gained() {
    let Some(bed) = Bed::new() else { return };
    let extra =
        format!("{ENFORCE}\n[[jobs]]\npattern = \"{}/heavy\"\nname = \"honest\"\nbytes = \"500GB\"\n", bed.name);
    bed.write_config(&extra);
    let daemon = bed.start();
    let relay = Relay::start(&bed, &bed.directory.path().join("run/tenant.sock"), &bed.cgroup("sparing"));
    until("the tenant is seen", || crate::listeners::describe(&relay.socket).is_ok());
    let _scans = Scans::start(&bed);
    at(&relay.socket, async |mut client| {
        let request = |name: &str, size_bytes| v1::HoldJobRequest { name: name.to_owned(), size_bytes };
        for bad in [request("", None), request("a b", None), request("tiny", Some(0)), request("tiny", Some(1 << 61))] {
            assert_eq!(client.hold_job(bad).await.expect_err("refused").code(), tonic::Code::InvalidArgument);
        }
        let _held = client.hold_job(request("tiny", Some(1))).await.expect("held");
        std::thread::scope(|scope| {
            let found_out = || {
                daemon.until("the lie is found out", || job(&daemon, "tiny").overrun);
                let shown = job(&daemon, "tiny");
                assert_eq!((shown.declared_bytes, shown.declared_by.as_str()), (Some(1), "itself"));
                daemon.until("people are told", || {
                    let disks = job(&daemon, "tiny").disks;
                    disks.first().is_some_and(|disk| disk.reason.contains("declared were 1 bytes"))
                });
                // Declared again it is not believed either.
                assert_eq!(job(&daemon, "tiny").disks[0].basis, "what it has had so far");
            };
            scope.spawn(found_out).join().expect("found out");
        });
    });
    daemon.until("it is no job any more", || job(&daemon, "tiny") == v1::Job::default());
    assert_eq!(known(&daemon, "tiny").map(|known| known.runs), Some(1));
}
