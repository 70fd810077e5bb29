//! Scripts of events above a line `----`, the effects that they cause below it. `UPDATE_EXPECT=1` rewrites the lower part.
//!
//! | line | event |
//! |---|---|
//! | `config MODE [verify=N] [fights=N] [ancestors=BOOL] [sda.elevator=NAME]` | the operator's settings |
//! | `disk NAME MAJ:MIN ELEVATOR LOW_LATENCY VERSION [BACK_END]` | a disk is seen |
//! | `disk-gone MAJ:MIN` | a disk is gone |
//! | `tenant N KIND PATH [excluded]`, `gone N` | a tenant is seen, or gone |
//! | `server NAME MAJ:MIN N:DISK...`, `server NAME gone` | a server of ours serves disks of tenants, or has ended |
//! | `background [N[@MAJ:MIN]] …` | of these tenants all is background work, which is stopped while others use a disk; on one that is said it takes time from them |
//! | `decide N MAJ:MIN SHARE [idle\|waits PART]` | a decision for the next slice, by level `idle`, or of a job that waits with that part of the disk |
//! | `reshare N MAJ:MIN SHARE [idle\|waits PART]` | a decision within a slice |
//! | `uses N MAJ:MIN MBPS [REQUESTS]` | a tenant reads that much in the next slice, in so many, and the disk is busy |
//! | `memory PERMILLE`, `memory absent` | in that part of each further slice all wait for memory |
//! | `slice` | plan, then perform and answer until nothing is left |
//! | `slices N` | so many |
//! | `somebody PLACE FILE MAJ:MIN TEXT` | somebody else writes |
//! | `refuse PATH`, `accept PATH`, `vanish PATH` | the kernel's mood |
//! | `busy`, `no-longer-busy` | somebody begins to put everything back, and is done: meanwhile nothing can be read |
//! | `restore` | the guard, or an operator, puts everything back beside the driver, which finds out |
//! | `stop` | everything back |

#![expect(clippy::unwrap_used, reason = "a script that cannot be read is a broken test")]

mod kernel;

use expect_test::expect_file;
use kernel::{Kernel, facts, place};
use minerva_actuate::Actuator;
use minerva_model::{
    BackEnd, CgroupRef, CgroupVersion, Decision, Device, DeviceId, DeviceSettings, DeviceSignals, Effect, EngineConfig,
    Factor, IoCounters, IoSignals, KnobFile, Level, Mode, Nanos, Outcome, PolicyName, Pressure, Reason,
    ServedContracts, ServedDisk, ServedDisks, Share, Signals, Tenant, TenantId, TenantKind,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct World {
    actuator: Actuator,
    kernel: Kernel,
    now: Nanos,
    decisions: Vec<Decision>,
    signals: Signals,
    /// Thousandths of each slice; absent as on a kernel without pressure accounting.
    memory: Option<u64>,
    waited: Pressure,
    log: String,
}

impl World {
    fn run(mut self, script: &str) -> String {
        self.memory = Some(0);
        for line in script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let before = self.log.len();
            self.obey(line);
            self.settle();
            if self.log.len() > before {
                self.log.insert_str(before, &format!("{line}\n"));
            }
        }
        self.log
    }

    fn obey(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["config", mode, ref rest @ ..] => self.actuator.configure(&config(mode, rest)),
            ["disk", name, id, elevator, low_latency, version, ref forced @ ..] => {
                let version = if version == "v1" { CgroupVersion::V1 } else { CgroupVersion::V2 };
                let forced = forced.first().map(|name| match *name {
                    "observe" => BackEnd::Observe,
                    "throttle-v1" => BackEnd::ThrottleV1,
                    _ => BackEnd::Max,
                });
                let id: DeviceId = id.parse().unwrap();
                let facts = facts(elevator, low_latency == "1", version, forced);
                self.kernel.elevators.insert(id, elevator.to_owned());
                self.kernel.low_latency.insert(id, low_latency == "1");
                self.actuator.device_seen(&Device { id, name: name.to_owned(), facts });
            }
            ["tenant", id, kind, path, ref excluded @ ..] => self.actuator.tenant_seen(&Tenant {
                id: TenantId(id.parse().unwrap()),
                name: path.to_owned(),
                kind: if kind == "service" { TenantKind::Service } else { TenantKind::Container },
                cgroup: CgroupRef { path: path.to_owned(), inode: 7 },
                group: None,
                weight_percent: 100,
                excluded: !excluded.is_empty(),
                job: None,
                terms: minerva_model::Terms::default(),
                origin: minerva_model::Origin::default(),
            }),
            ["disk-gone", id] => self.actuator.device_gone(id.parse().unwrap()),
            ["gone", id] => self.actuator.tenant_gone(TenantId(id.parse().unwrap())),
            ["server", name, "gone"] => {
                self.kernel.served.retain(|at, _| !at.starts_with(&format!("{name}:")));
                self.actuator.server_gone(name);
            }
            ["contracts", name, device, tenant, permille, ref guests @ ..] => {
                self.actuator.contracts_seen(&contracts(name, device, tenant, permille, guests));
            }
            ["background", ref work @ ..] => {
                let (takers, stopped) = background(work);
                self.actuator.background_takes(&takers, &stopped);
            }
            ["server", name, device, ref disks @ ..] => self.actuator.server_seen(&served(name, device, disks)),
            ["decide", tenant, device, share, ref held_back @ ..] => {
                self.decisions.push(decision(tenant, device, share, held_back));
            }
            ["reshare", tenant, device, share, ref held_back @ ..] => {
                self.actuator.reshare(self.now, &[decision(tenant, device, share, held_back)]);
            }
            ["uses", tenant, device, megabytes, ref requests @ ..] => {
                self.use_disk(tenant, device, megabytes, requests.first().copied().unwrap_or("1"));
            }
            ["memory", permille] => self.memory = permille.parse().ok(),
            ["slice"] => self.slice(),
            ["slices", count] => (0..count.parse().unwrap()).for_each(|_| {
                self.slice();
                self.settle();
            }),
            ["somebody", at, file, device, ref text @ ..] => {
                let file = KnobFile::ALL.into_iter().find(|one| one.file_name() == file).unwrap();
                self.kernel.write(at, file, device.parse().unwrap(), &text.join(" ")).unwrap();
            }
            ["refuse", path] => drop(self.kernel.refusing.insert(path.to_owned())),
            ["accept", path] => drop(self.kernel.refusing.remove(path)),
            ["vanish", path] => drop(self.kernel.vanished.insert(path.to_owned())),
            ["flushes", count] => self.signals.devices[0].flushes = count.parse().unwrap(),
            ["reads-take", ms] => {
                self.signals.devices[0].read_latency = Some(Nanos::from_millis(ms.parse().unwrap()));
            }
            ["busy"] => self.kernel.is_busy = true,
            ["no-longer-busy"] => self.kernel.is_busy = false,
            ["restore"] => {
                self.kernel.restore();
                self.actuator.restored();
            }
            ["stop"] => self.actuator.stop(),
            _ => panic!("not an event: {line}"),
        }
    }

    fn use_disk(&mut self, tenant: &str, device: &str, megabytes: &str, requests: &str) {
        let (tenant, device) = (TenantId(tenant.parse().unwrap()), device.parse().unwrap());
        let (read_bytes, read_ops) = (megabytes.parse::<u64>().unwrap() * 1_000_000, requests.parse().unwrap());
        let transferred = IoCounters { read_bytes, read_ops, ..Default::default() };
        let elapsed = Nanos::SECOND;
        let (served, disk_time) = (None, Nanos::ZERO);
        let (latency, active) = (None, true);
        self.signals.io.push(IoSignals { tenant, device, elapsed, transferred, latency, active, served, disk_time });
        self.signals.io.sort_by_key(|row| (row.tenant, row.device));
        if self.signals.devices.is_empty() {
            self.signals.devices.push(DeviceSignals {
                device,
                elapsed,
                transferred: IoCounters::default(),
                busy_permille: 1_000,
                read_latency: None,
                write_latency: None,
                contention: 0,
                unattributed_bytes: 0,
                flushes: 0,
            });
        }
        self.signals.devices[0].transferred.read_bytes += transferred.read_bytes;
    }

    fn slice(&mut self) {
        self.now += Nanos::SECOND;
        let waited = self.memory.map(|permille| {
            self.waited.full_ns += permille * 1_000_000;
            self.waited
        });
        self.actuator.waited_for_memory(self.now, waited);
        self.actuator.plan(self.now, &std::mem::take(&mut self.decisions), &std::mem::take(&mut self.signals));
    }

    fn settle(&mut self) {
        while let Some(effect) = self.actuator.poll_effect() {
            let answer = self.kernel.perform(&effect);
            self.log.push_str(&shown(&effect, answer.as_ref().map(|(_, outcome)| outcome)));
            if let Some((id, outcome)) = answer {
                self.actuator.answered(self.now, id, &outcome);
            }
        }
    }
}

fn served(server: &str, device: &str, disks: &[&str]) -> ServedDisks {
    let disk = |words: &&str| {
        let (tenant, name) = words.split_once(':').unwrap();
        ServedDisk { name: name.to_owned(), tenant: TenantId(tenant.parse().unwrap()) }
    };
    ServedDisks { server: server.to_owned(), device: device.parse().unwrap(), disks: disks.iter().map(disk).collect() }
}

fn contracts(server: &str, device: &str, tenant: &str, permille: &str, guests: &[&str]) -> ServedContracts {
    ServedContracts {
        server: server.to_owned(),
        device: device.parse().unwrap(),
        tenant: Some(TenantId(tenant.parse().unwrap())),
        guests: guests.iter().map(|guest| TenantId(guest.parse().unwrap())).collect(),
        reserved_permille: permille.parse().unwrap(),
        missed: 0,
    }
}

/// Who takes time from others on which disks, and everyone who works.
fn background(work: &[&str]) -> (BTreeMap<TenantId, Option<BTreeSet<DeviceId>>>, BTreeSet<TenantId>) {
    let (mut takers, mut stopped) = (BTreeMap::new(), BTreeSet::new());
    for word in work {
        let (tenant, device) = word.split_once('@').map_or((*word, None), |(tenant, device)| (tenant, Some(device)));
        let tenant = TenantId(tenant.parse().unwrap());
        stopped.insert(tenant);
        takers.extend(device.map(|device| (tenant, Some(BTreeSet::from([device.parse().unwrap()])))));
    }
    (takers, stopped)
}

fn decision(tenant: &str, device: &str, share: &str, held_back: &[&str]) -> Decision {
    let (tenant, device) = (TenantId(tenant.parse().unwrap()), device.parse().unwrap());
    let factor = |policy, reason| vec![Factor { policy, value: 0.01, reason }];
    let factors = match held_back {
        [] => Vec::new(),
        ["idle"] => factor(PolicyName::LEVELS, Reason::SteppedBack { level: Level::Idle, percent: 1, request: None }),
        ["waits", part, known @ ..] => {
            let (text, disk_part) = ("it waits".to_owned(), part.parse().unwrap());
            let reason = Reason::JobWaits { text, disk_part, turn_is_known: known == ["known"] };
            factor(PolicyName::new("makespan"), reason)
        }
        other => panic!("not a decision: {other:?}"),
    };
    Decision { tenant, device, share: Share::new(share.parse().unwrap()), factors }
}

fn config(mode: &str, rest: &[&str]) -> EngineConfig {
    let mode = match mode {
        "enforce" => Mode::Enforce,
        "shadow" => Mode::Shadow,
        _ => Mode::Observe,
    };
    let mut config = EngineConfig { mode, ..Default::default() };
    for word in rest {
        match word.split_once('=').unwrap() {
            ("verify", slices) => config.actuation.verify_every_slices = slices.parse().unwrap(),
            ("fights", count) => config.actuation.fights_before_giving_up = count.parse().unwrap(),
            ("ancestors", manage) => config.actuation.manage_ancestors = manage.parse().unwrap(),
            ("sda.elevator", name) => {
                let settings =
                    DeviceSettings { elevator: Some(name.to_owned()), strict_guarantees: true, ..Default::default() };
                config.devices.insert("sda".to_owned(), settings);
            }
            ("sda.strict-by-use", by_use) => {
                let strict_guarantees_by_use = Some(by_use.parse().unwrap());
                let settings = DeviceSettings { strict_guarantees_by_use, ..Default::default() };
                config.devices.insert("sda".to_owned(), settings);
            }
            ("sda.low-latency-by-use", by_use) => {
                let low_latency_by_use = by_use.parse().unwrap();
                let settings =
                    DeviceSettings { low_latency_by_use, strict_guarantees_by_use: Some(false), ..Default::default() };
                config.devices.insert("sda".to_owned(), settings);
            }
            _ => panic!("not a setting: {word}"),
        }
    }
    config
}

fn shown(effect: &Effect, answer: Option<&Outcome>) -> String {
    let answer = match answer {
        Some(Outcome::Text(text)) => format!(" -> {:?}", text.trim_end()),
        Some(Outcome::Vanished) => " -> vanished".to_owned(),
        Some(Outcome::Refused { detail, .. }) => format!(" -> refused, {detail}"),
        Some(Outcome::Busy) => " -> busy".to_owned(),
        None => String::new(),
    };
    match effect {
        Effect::Inspect(one) => format!("  inspect {} {}{answer}\n", place(&one.target), one.file.file_name()),
        Effect::Write(one) => {
            let (at, file) = (place(&one.target), one.file.file_name());
            format!("  write {at} {file} '{}' undo '{}'{answer}\n", one.text, one.undo)
        }
        Effect::Watch(one) => format!("  watch {} {}\n", place(&one.target), one.file.file_name()),
        Effect::LetGo(one) => format!("  let go {} {}\n", place(&one.target), one.file.file_name()),
        Effect::Found(finding) => format!("  found {finding}\n"),
        other => format!("  {other:?}\n"),
    }
}

macro_rules! scripts {
    ($(fn $name:ident();)*) => {$(
        #[test]
        fn $name() {
            let text = include_str!(concat!("scripts/", stringify!($name), ".txt"));
            let script = text.split("----\n").next().unwrap_or_default();
            let effects = World::default().run(script);
            expect_file![concat!("scripts/", stringify!($name), ".txt")].assert_eq(&format!("{script}----\n{effects}"));
        }
    )*};
}

scripts! {
    fn a_cap_stands_again_once_a_lower_limit_is_taken_away();
    fn a_disk_that_is_gone_is_put_back();
    fn a_group_whose_tenants_stop_keeps_its_weight();
    fn a_group_that_is_a_tenant_as_well_has_one_holder();
    fn a_limit_set_beside_a_cap_stays_in_force();
    fn a_limit_set_since_the_last_look_is_what_stays_in_the_end();
    fn of_a_limit_that_is_left_to_others_nothing_is_minervas();
    fn background_work_lifts_no_group_with_others_in_it();
    fn background_work_that_takes_time_has_no_cap();
    fn caps_are_dealt_and_lifted();
    fn caps_that_were_given_up_are_dealt_again_after_a_reload();
    fn elevator_is_switched_on_request();
    fn elevator_lost_and_back();
    fn excluding_all_below_a_group_puts_the_group_back();
    fn excluding_puts_back();
    fn fights_are_given_up();
    fn groups_of_one_maker_have_one_part_by_caps();
    fn groups_of_one_maker_weigh_as_one();
    fn idle_beside_dealt_caps();
    fn idle_waits_for_others();
    fn jobs_that_wait_are_capped_where_no_weight_acts();
    fn jobs_whose_turn_is_known_are_capped_beside_weights();
    fn leaving_enforce_puts_back();
    fn low_latency_follows_use();
    fn memory_pressure_lifts_caps();
    fn nested_groups();
    fn neutral_costs_nothing();
    fn refused_and_vanished();
    fn a_server_with_contracts_weighs_and_is_never_capped();
    fn served_disks_have_their_tenants_shares();
    fn sibling_sets_are_scaled();
    fn strict_guarantees_follow_use();
    fn that_caps_are_lifted_and_back_is_told_also_where_one_is_refused();
    fn what_a_restore_put_back_is_written_again_and_is_no_fight();
    fn what_cannot_be_read_during_a_restore_is_read_after_it_and_nobody_is_told();
    fn what_was_decided_before_a_change_of_mode_or_rule_does_not_come_back();
}
