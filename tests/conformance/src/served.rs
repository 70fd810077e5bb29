//! A job at a real `minerva-blk`: its scheduler, the emulated disk under it, and front ends in place of guests.

use crate::Arm;
use crate::calibration;
use crate::front_end::{Asked, asked, connect, play};
use crate::host::{ABOVE_SERVER, Host};
use crate::job::{Elevator, Job, TenantJob, region};
use crate::log::{Entry, Window, arm};
use crate::plan::{plan, seed_of};
use crate::server::{GuestDisk, Server, name_of};
use crate::simulated::SERVED_DEPTH;
use crate::way::{Duration, WINDOW_MS, disk, with_profile};
use anyhow::{Context as _, ensure};
use minerva_blocksched::SchedulerName;
use minerva_model::{DiskReport, Nanos, ServerReport};
use minerva_sim_workload::{Generator, Plan};
use minerva_vhost_client::Client;
use std::path::PathBuf;
use std::time::Instant;

/// As fio's processes have it, and for the same reason: it keeps out whoever else uses this machine.
const NICE: i32 = -19;
/// Of the tenants' requests.
const SEED: u64 = 1;

/// What it takes to play jobs at a server.
pub struct ServedRun {
    /// Prefix of everything made for it: the disk.
    pub prefix: String,
    /// How long to measure, in seconds, after a warm-up.
    pub seconds: u64,
    /// The program `minerva-blk`.
    pub program: PathBuf,
}

/// What came of a job.
pub struct Served {
    /// What the front ends saw.
    pub arm: Arm,
    /// What the server says of their disks; it agrees with what they asked for.
    pub disks: Vec<DiskReport>,
}

/// Tenants of one disk.
struct Scene<'a> {
    profile: &'a str,
    tenants: &'a [TenantJob],
    scheduler: SchedulerName,
    duration: Duration,
}

/// What came of them.
struct Played {
    /// By tenant.
    logs: Vec<Vec<Entry>>,
    /// What is to be counted of the logs.
    window: Window,
    /// By tenant, what the server says.
    disks: Vec<DiskReport>,
}

impl ServedRun {
    /// Plays `job` under a scheduler of the server, in place of the kernel's elevator.
    pub fn job(&self, job: &Job, scheduler: SchedulerName) -> anyhow::Result<Served> {
        let duration = Duration::of_job(self.seconds);
        let scene = Scene { profile: job.profile, tenants: &job.tenants, scheduler, duration };
        let Played { logs, window, disks } = self.play(&scene)?;
        Ok(Served { arm: arm(&logs, window, WINDOW_MS), disks })
    }

    /// Measures what this host adds to a request on its way through the server.
    pub fn host(&self) -> anyhow::Result<Host> {
        calibration::measure(ABOVE_SERVER, |profile, tenant| {
            with_profile(profile, |path| {
                let scheduler = SchedulerName::Noop;
                let tenants = std::slice::from_ref(tenant);
                let scene = Scene { profile: path, tenants, scheduler, duration: calibration::TIME };
                let Played { logs, window, .. } = self.play(&scene)?;
                logs.first().map(|log| window.count(log)).context("nobody played")
            })
        })
    }

    fn play(&self, scene: &Scene<'_>) -> anyhow::Result<Played> {
        // In a thread of its own, as its priority goes over to all that it starts.
        std::thread::scope(|scope| {
            let player = scope.spawn(|| {
                // Where it is not allowed, whoever else uses this machine shows.
                let _ = rustix::process::setpriority_process(None, NICE);
                self.play_hurried(scene)
            });
            // A panic of a front end says where it is.
            player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn play_hurried(&self, scene: &Scene<'_>) -> anyhow::Result<Played> {
        let Scene { profile, tenants, scheduler, duration } = *scene;
        let disk = disk(&self.prefix, profile, Elevator::None.as_str(), true)?;
        let regions: Vec<(u64, u64)> =
            (0..tenants.len()).map(|tenant| region(tenants.len(), tenant, disk.info().size_bytes)).collect();
        let mut guests = Vec::new();
        for ((number, tenant), (start, length)) in (1..).zip(tenants).zip(&regions) {
            guests.push(GuestDisk { image: disk.partition(number, *start, *length)?, weight: tenant.weight });
        }
        let server = Server::start(&self.program, disk.info(), (scheduler, SERVED_DEPTH), &guests)?;
        let mut clients = Vec::new();
        for (index, tenant) in tenants.iter().enumerate() {
            clients.push(connect(&server.socket(index), tenant.block_bytes, tenant.depth)?);
        }
        let lengths: Vec<u64> = regions.iter().map(|(_, length)| *length).collect();
        let logs = play_all(&mut clients, tenants, &lengths, duration)?;
        let report = server.report()?;
        let asked: Vec<Asked> = logs.iter().map(|log| asked(log)).collect();
        check(&report, scheduler, &guests, &asked)?;
        drop(clients);
        server.end()?;
        let first_ms = logs.iter().flatten().map(|entry| entry.at_ms).min().context("no request was answered")?;
        Ok(Played { logs, window: duration.window(first_ms), disks: report.disks })
    }
}

/// All tenants at once, each in a thread of its own.
fn play_all(
    clients: &mut [Client],
    tenants: &[TenantJob],
    lengths: &[u64],
    duration: Duration,
) -> anyhow::Result<Vec<Vec<Entry>>> {
    let begun = Instant::now();
    let ends_at = Some(Nanos::from_millis(duration.whole_ms()));
    std::thread::scope(|scope| {
        let players: Vec<_> = clients
            .iter_mut()
            .zip(tenants.iter().zip(lengths).enumerate())
            .map(|(client, (index, (tenant, length)))| {
                // Where a guest's disk begins on the host's it does not know.
                let plan = Plan { ends_at, ..plan(tenant, (0, *length)) };
                let ring = &mut client.rings[0];
                scope.spawn(move || play(ring, Generator::new(plan, seed_of(SEED, index)), begun))
            })
            .collect();
        players
            .into_iter()
            .map(|player| player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Whether the server did what the front ends asked for, all of it and nothing else, under this scheduler and with these weights: else
/// something was measured that is not the server.
fn check(report: &ServerReport, scheduler: SchedulerName, guests: &[GuestDisk], asked: &[Asked]) -> anyhow::Result<()> {
    let schedulers: Vec<&str> = report.devices.iter().map(|device| device.scheduler.as_str()).collect();
    ensure!(schedulers == [scheduler.as_str()], "minerva-blk orders by {schedulers:?} and not by {scheduler}");
    for (tenant, (guest, asked)) in guests.iter().zip(asked).enumerate() {
        let name = name_of(tenant);
        let disk = report.disks.iter().find(|disk| disk.settings.name == name);
        let disk = disk.with_context(|| format!("minerva-blk has no disk {name}"))?;
        let weight = disk.settings.terms.weight;
        ensure!(weight == guest.weight, "{name} has the weight {weight} at minerva-blk, not {}", guest.weight);
        let io = disk.io;
        let done = Asked { requests: io.read_ops + io.write_ops, bytes: io.read_bytes + io.write_bytes };
        ensure!(done == *asked, "minerva-blk did {done:?} for {name}, whose front end had {asked:?} answered");
        let others = [disk.other_ops, disk.failed_ops, disk.refused_ops];
        ensure!(others == [0; 3], "of {name}, other, failed and refused requests are {others:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Asked, GuestDisk, check};
    use minerva_blocksched::SchedulerName;
    use minerva_model::ServerReport;
    use serde_json::json;
    use std::path::PathBuf;

    /// Of a server that did three reads of 4 KiB for a tenant with this weight, under BFQ.
    fn report() -> ServerReport {
        let terms = json!({
            "weight": 300, "rate_bytes_per_second": null, "burst_bytes": 4096, "delay": 0, "limit_bytes_per_second": null,
            "tag_default": 64, "tag_max": 128, "is_random": false, "request_bytes": 4096, "force": false,
        });
        let settings = json!({
            "name": "tenant0", "image": "", "socket": "", "read_only": false, "direct": true, "queues": 1, "terms": terms,
        });
        let disk = json!({
            "settings": settings, "device": "loop0", "length_bytes": 0, "share": 100, "front_end": null, "under_way": 0,
            "io": { "read_bytes": 12288, "write_bytes": 0, "read_ops": 3, "write_ops": 0 },
            "wait": { "read_ns": 0, "write_ns": 0 }, "other_ops": 0, "tagged_ops": 0, "failed_ops": 0, "refused_ops": 0,
        });
        let report = json!({
            "program": "", "process": 1, "began": 0, "config": "", "user": 0, "socket_group": null,
            "devices": [{ "name": "loop0", "device": null, "scheduler": "bfq" }], "disks": [disk],
        });
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn what_the_server_did_not_do_is_not_taken_for_its_work() {
        let told = |report: &ServerReport, scheduler, weight, requests, bytes| {
            let guests = [GuestDisk { image: PathBuf::new(), weight }];
            check(report, scheduler, &guests, &[Asked { requests, bytes }]).map_err(|error| error.to_string())
        };
        let good = |report: &ServerReport| told(report, SchedulerName::Bfq, 300, 3, 12_288);
        assert_eq!(good(&report()), Ok(()));
        let [mut failing, mut none] = [report(), report()];
        failing.disks[0].failed_ops = 1;
        none.disks.clear();
        for (result, why) in [
            (told(&report(), SchedulerName::Sfq, 300, 3, 12_288), "orders by [\"bfq\"] and not by sfq"),
            (told(&report(), SchedulerName::Bfq, 100, 3, 12_288), "the weight 300 at minerva-blk, not 100"),
            (told(&report(), SchedulerName::Bfq, 300, 4, 12_288), "requests: 3, bytes: 12288 } for tenant0"),
            (told(&report(), SchedulerName::Bfq, 300, 3, 12_289), "requests: 3, bytes: 12288 } for tenant0"),
            (good(&failing), "are [0, 1, 0]"),
            (good(&none), "has no disk tenant0"),
        ] {
            let said = result.unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
