//! Scripts in `testdata/`: commands above `----`, what the decider told below. `UPDATE_EXPECT=1 cargo test` writes them
//! anew; read the difference.
//!
//! | command | meaning |
//! |---|---|
//! | `config KEY=VALUE …` | settings that differ from the defaults |
//! | `tenant N [group=G] [weight=PERCENT] [excluded]` | tenant N appears, or its rule changes |
//! | `gone N` | tenant N is gone |
//! | `run SECONDS [N[/MINOR]=RATE …]` | so many slices of a second with these rates, in MB/s, on disk 8:MINOR |
//! | `show` | what stands decided for everyone |
//! | `restart` | a new decider that knows what the store was told |

#![expect(clippy::unwrap_used, reason = "a script that does not parse is a failed test")]

use expect_test::{ExpectFile, expect_file};
use minerva_decide::Decider;
use minerva_model::{
    CgroupRef, DeviceId, EngineConfig, IoCounters, IoSignals, Nanos, Signals, Tenant, TenantHistory, TenantId,
    TenantKind,
};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Default)]
struct Script {
    config: EngineConfig,
    decider: Decider,
    tenants: BTreeMap<u64, Tenant>,
    now: Nanos,
}

impl Script {
    fn command(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut out = String::new();
        match words[0] {
            "config" => self.configure(&words[1..]),
            "tenant" => self.tenant(&words[1..]),
            "gone" => {
                self.tenants.remove(&words[1].parse().unwrap());
                self.decider.tenant_gone(TenantId(words[1].parse().unwrap()));
            }
            "run" => self.run(&words[1..], &mut out),
            "show" => self.decider.decisions().for_each(|decision| writeln!(out, "{decision}").unwrap()),
            "restart" => self.restart(&mut out),
            other => panic!("unknown command {other}"),
        }
        out
    }

    fn configure(&mut self, settings: &[&str]) {
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            match key {
                "floor" => self.config.fennel.floor_permille = value.parse().unwrap(),
                "groups" => self.config.fennel.groups = value.parse().unwrap(),
                "half-life" => self.config.fennel.recent_half_life = Nanos::from_secs(value.parse().unwrap()),
                other => panic!("unknown setting {other}"),
            }
        }
        self.decider.configure(self.now, &self.config);
    }

    fn tenant(&mut self, words: &[&str]) {
        let number: u64 = words[0].parse().unwrap();
        let mut tenant = Tenant {
            id: TenantId(number),
            name: format!("tenant-{number}"),
            kind: TenantKind::Cgroup,
            cgroup: CgroupRef { path: format!("t/{number}"), inode: number },
            group: None,
            weight_percent: 100,
            excluded: false,
        };
        for word in &words[1..] {
            match word.split_once('=') {
                Some(("group", group)) => tenant.group = Some(group.to_owned()),
                Some(("weight", percent)) => tenant.weight_percent = percent.parse().unwrap(),
                None if *word == "excluded" => tenant.excluded = true,
                _ => panic!("unknown word {word}"),
            }
        }
        assert!(self.decider.tenant_seen(self.now, &tenant, &[]).is_empty());
        self.tenants.insert(number, tenant);
    }

    fn run(&mut self, words: &[&str], out: &mut String) {
        let mut rows = Vec::new();
        for word in &words[1..] {
            let (pair, rate) = word.split_once('=').unwrap();
            let (tenant, minor) = pair.split_once('/').unwrap_or((pair, "0"));
            let read_bytes = (rate.parse::<f64>().unwrap() * 1e6) as u64;
            rows.push(IoSignals {
                tenant: TenantId(tenant.parse().unwrap()),
                device: DeviceId { major: 8, minor: minor.parse().unwrap() },
                elapsed: Nanos::SECOND,
                transferred: IoCounters { read_bytes, read_ops: 1, ..IoCounters::default() },
                latency: None,
                active: read_bytes > 0,
            });
        }
        let signals = Signals { devices: Vec::new(), io: rows };
        for _ in 0..words[0].parse().unwrap() {
            self.now += Nanos::SECOND;
            for decision in self.decider.decide(self.now, &signals) {
                writeln!(out, "{:>4.0} s  {decision}", self.now.as_secs_f64()).unwrap();
            }
        }
    }

    fn restart(&mut self, out: &mut String) {
        let stored: Vec<TenantHistory> = self.decider.all_histories(self.now);
        writeln!(out, "{} histories", stored.len()).unwrap();
        self.decider = Decider::default();
        self.decider.configure(self.now, &self.config);
        for tenant in self.tenants.values() {
            let own: Vec<_> = stored.iter().filter(|row| row.key == tenant.history_key()).cloned().collect();
            assert!(self.decider.tenant_seen(self.now, tenant, &own).is_empty());
        }
    }
}

/// Runs every case of a script and gives it back with the answers that were given.
fn answer(text: &str) -> String {
    let mut script = Script::default();
    script.decider.configure(Nanos::ZERO, &script.config);
    let mut out = String::new();
    for (index, case) in text.trim_end().split("\n\n").enumerate() {
        let commands = case.split("\n----").next().unwrap();
        let answers: String =
            commands.lines().filter(|line| !line.starts_with('#')).map(|line| script.command(line)).collect();
        let gap = if index == 0 { "" } else { "\n" };
        write!(out, "{gap}{commands}\n----\n{answers}").unwrap();
    }
    out
}

fn check(expected: ExpectFile, text: &str) {
    let answers = answer(text);
    assert_eq!(answer(&answers), answers, "an answered script is a script with the same answers");
    expected.assert_eq(&answers);
}

#[test]
fn noisy_neighbour() {
    check(expect_file!["../testdata/noisy-neighbour.txt"], include_str!("../testdata/noisy-neighbour.txt"));
}

#[test]
fn rules_and_floor() {
    check(expect_file!["../testdata/rules-and-floor.txt"], include_str!("../testdata/rules-and-floor.txt"));
}

#[test]
fn long_term() {
    check(expect_file!["../testdata/long-term.txt"], include_str!("../testdata/long-term.txt"));
}
