//! Scripts in `testdata/`: commands above `----`, what the decider told below. `UPDATE_EXPECT=1 cargo test` writes them
//! anew; read the difference.
//!
//! | command | meaning |
//! |---|---|
//! | `config KEY=VALUE …` | settings that differ from the defaults |
//! | `tenant N [group=G] [weight=PERCENT] [price=PERCENT] [quota=PERCENT] [expiry=SECONDS] [excluded]` | tenant N appears, or its rule changes |
//! | `job N NAME [MEGABYTES]` | tenant N is a batch job, of this size |
//! | `gone N` | tenant N is gone |
//! | `run SECONDS [N[/MINOR]=RATE[@PERCENT] …]` | so many slices, of a second each if nothing else is said, with these rates, in MB/s, on disk 8:MINOR, and so much of its time; 42 MB/s is all of it where that is not said |
//! | `slice MILLISECONDS` | slices are so long from now on |
//! | `level N LEVEL [SECONDS]` | tenant N steps back, or comes back |
//! | `give N CREDITS` | what the store knows of tenant N: credits that last an hour |
//! | `boost N KEY SLICES` | tenant N buys slices; the store commits at once |
//! | `coordinate N KEY MEGABYTES [start=SECONDS] [done=SECONDS]` | tenant N asks when to begin, at the latest so far ahead |
//! | `finish N KEY` | it is done |
//! | `foresee [N=MEGABYTES@SKILL …]` | what is left of sessions from now on, as it is foreseen; nothing to forget it |
//! | `expect [N=MEGABYTES@SKILL …]` | the same of each next slice |
//! | `phases [N=PATTERN@SKILL …]` | the same of the next 15 slices, such as `111100000001111`: busy or dormant |
//! | `contracts N PERMILLE MISSED [GUEST …]` | the server in tenant N's group has contracts that reserve so much of the disk, and missed so many so far |
//! | `takes WEIGHTED [N[/MINOR\|/all] …]` | background work of tenants N takes time from others, on disk 8:MINOR or, as in recordings of earlier versions, on all; whether shares are weights |
//! | `show` | what stands decided for everyone |
//! | `restart` | a new decider that knows what the store was told |

#![expect(clippy::unwrap_used, reason = "a script that does not parse is a failed test")]

use expect_test::{ExpectFile, expect_file};
use minerva_decide::{DecideInput, Decided, Decider};
use minerva_model::{
    AccessKind, Burst, CgroupRef, CountedUse, CreditLot, Deadline, Decision, DeviceId, Effect, EngineConfig, Forecast,
    Granted, GroupScale, Horizon, Interval, IoCounters, IoSignals, JobSettings, LedgerEntry, Level, Lifetime,
    MicroCredits, Mode, Nanos, Operation, Outlook, PHASES, Phases, Recalled, RequestId, ServedContracts, Signals,
    Tenant, TenantHistory, TenantId, TenantKind, TenantRequest, Wish,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// So that bytes tell disk time.
const DISK_BYTES_PER_SECOND: f64 = 42e6;

struct Script {
    config: EngineConfig,
    slice: Nanos,
    decider: Decider,
    tenants: BTreeMap<u64, Tenant>,
    now: Nanos,
    signals: Signals,
    /// Of sessions, of next slices, and of phases.
    foreseen: [Vec<String>; 3],
    /// What the store was told last, and when.
    stored: BTreeMap<(String, DeviceId), (Nanos, TenantHistory)>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            config: EngineConfig::default(),
            slice: Nanos::SECOND,
            decider: Decider::default(),
            tenants: BTreeMap::new(),
            now: Nanos::ZERO,
            signals: Signals::default(),
            foreseen: [const { Vec::new() }; 3],
            stored: BTreeMap::new(),
        }
    }
}

impl Script {
    fn command(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut out = String::new();
        match words[0] {
            "config" => self.configure(&words[1..]),
            "slice" => self.slice = Nanos::from_millis(words[1].parse().unwrap()),
            "tenant" => self.tenant(&words[1..]),
            "gone" => {
                self.tenants.remove(&words[1].parse().unwrap());
                self.decider.tenant_gone(TenantId(words[1].parse().unwrap()));
            }
            "job" => {
                let bytes = words.get(3).map(|megabytes| 1_000_000 * megabytes.parse::<u64>().unwrap());
                let job = JobSettings { name: words[2].to_owned(), bytes };
                self.config.makespan.jobs.insert(format!("tenant-{}", words[1]), job);
                self.decider.configure(self.now, &self.config);
            }
            "run" => self.run(&words[1..], &mut out),
            "level" | "boost" | "coordinate" | "finish" => self.ask(&words, &mut out),
            "give" => {
                let amount = MicroCredits::credits(words[2].parse().unwrap());
                let lots = vec![CreditLot { amount, expires_in: Nanos::from_secs(3600) }];
                let tenant = TenantId(words[1].parse().unwrap());
                let recalled = Recalled { tenant, lots, purchases: Vec::new(), declaration: None };
                self.decider.recalled(self.now, &recalled);
            }
            "foresee" => self.foreseen[0] = words[1..].iter().map(|word| (*word).to_owned()).collect(),
            "expect" => self.foreseen[1] = words[1..].iter().map(|word| (*word).to_owned()).collect(),
            "phases" => self.foreseen[2] = words[1..].iter().map(|word| (*word).to_owned()).collect(),
            "contracts" => self.contracts(&words[1..]),
            "takes" => {
                let is_weighted: bool = words[1].parse().unwrap();
                let takers = words[2..].iter().map(|word| taker(word)).collect();
                self.decider.background_takes(&takers, |_| is_weighted);
            }
            "show" => self.decider.decisions().for_each(|decision| writeln!(out, "{decision}").unwrap()),
            "restart" => self.restart(&mut out),
            other => panic!("unknown command {other}"),
        }
        out
    }

    fn contracts(&mut self, words: &[&str]) {
        let numbers: Vec<u64> = words.iter().map(|word| word.parse().unwrap()).collect();
        self.decider.contracts_seen(&ServedContracts {
            server: "blk".to_owned(),
            device: DeviceId { major: 8, minor: 0 },
            tenant: Some(TenantId(numbers[0])),
            guests: numbers[3..].iter().map(|number| TenantId(*number)).collect(),
            reserved_permille: u32::try_from(numbers[1]).unwrap(),
            missed: numbers[2],
        });
    }

    fn configure(&mut self, settings: &[&str]) {
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            match key {
                "floor" => self.config.fennel.floor_permille = value.parse().unwrap(),
                "use" if value == "bytes" => self.config.fennel.counted = CountedUse::Bytes,
                "group_scale" if value == "decades" => self.config.fennel.group_scale = GroupScale::Decades,
                "groups" => self.config.fennel.groups = value.parse().unwrap(),
                "waiting" => self.config.forecast.waiting_take_part = value == "take-part",
                "sessions" => self.config.forecast.sessions_are_no_past = value == "no-past",
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
            job: None,
            terms: minerva_model::Terms::default(),
            origin: minerva_model::Origin::default(),
        };
        for word in &words[1..] {
            match word.split_once('=') {
                Some(("group", group)) => tenant.group = Some(group.to_owned()),
                Some(("weight", percent)) => tenant.weight_percent = percent.parse().unwrap(),
                Some(("price", percent)) => tenant.terms.price_percent = percent.parse().unwrap(),
                Some(("quota", percent)) => tenant.terms.quota_percent = percent.parse().unwrap(),
                Some(("expiry", seconds)) => {
                    tenant.terms.credits_expiry = Some(Nanos::from_secs(seconds.parse().unwrap()));
                }
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
            let (rate, percent) = rate.split_once('@').unwrap_or((rate, ""));
            let seconds = self.slice.as_secs_f64();
            let read_bytes = (rate.parse::<f64>().unwrap() * 1e6 * seconds) as u64;
            let part = percent
                .parse()
                .map_or(read_bytes as f64 / DISK_BYTES_PER_SECOND, |percent: f64| seconds * percent / 100.0);
            rows.push(IoSignals {
                tenant: TenantId(tenant.parse().unwrap()),
                device: DeviceId { major: 8, minor: minor.parse().unwrap() },
                elapsed: self.slice,
                transferred: IoCounters { read_bytes, read_ops: 1, ..IoCounters::default() },
                latency: None,
                active: read_bytes > 0,
                served: None,
                disk_time: Nanos((part * 1e9) as u64),
            });
        }
        self.signals = Signals { io: rows, ..Signals::default() };
        let signals = self.signals.clone();
        for _ in 0..words[0].parse().unwrap() {
            self.now += self.slice;
            let input = DecideInput { signals: &signals, outlook: self.outlook() };
            let Decided { effects, decisions, histories } = self.decider.slice(self.now, input);
            self.store(histories);
            self.tell(effects, Vec::new(), out);
            for decision in decisions {
                let decimals = if self.slice == Nanos::SECOND { 0 } else { 2 };
                writeln!(out, "{:>4.decimals$} s  {decision}", self.now.as_secs_f64()).unwrap();
            }
        }
    }

    fn outlook(&self) -> Outlook {
        let device = DeviceId { major: 8, minor: 0 };
        let parsed = |word: &String| {
            let (tenant, rest) = word.split_once('=').unwrap();
            let (what, skill) = rest.split_once('@').unwrap();
            (TenantId(tenant.parse().unwrap()), what.to_owned(), skill.parse::<f64>().unwrap())
        };
        let forecast = |(tenant, megabytes, skill): (TenantId, String, f64), horizon| {
            let value = megabytes.parse::<f64>().unwrap() * 1e6;
            let read_bytes = Interval { value, lower: value / 2.0, upper: value * 2.0, coverage_permille: 800 };
            let write_bytes = Interval::default();
            let (busy_permille, made_at) = (1_000, self.now);
            let is_naive = false;
            Forecast { tenant, device, horizon, read_bytes, write_bytes, busy_permille, skill, is_naive, made_at }
        };
        let [sessions, slices, phases] = &self.foreseen;
        let sessions = sessions.iter().map(|word| forecast(parsed(word), Horizon::Session));
        let slices = slices.iter().map(|word| forecast(parsed(word), Horizon::NextSlice));
        let phases = phases.iter().map(parsed).map(|(tenant, pattern, skill)| {
            let mut busy_permille = [0; PHASES];
            for (busy, mark) in busy_permille.iter_mut().zip(pattern.bytes()) {
                *busy = if mark == b'1' { 950 } else { 50 };
            }
            Phases { tenant, device, busy_permille, skill, burst: Burst::default(), made_at: self.now }
        });
        Outlook::new(sessions.chain(slices).collect()).with_phases(phases.collect())
    }

    fn ask(&mut self, words: &[&str], out: &mut String) {
        let ahead = |text: &str| self.now + Nanos::from_secs(text.parse().unwrap());
        let mut id = RequestId(words[2].to_owned());
        let wish = match words[0] {
            "level" => {
                id = RequestId(format!("level-{}", self.now));
                let level = *Level::ALL.iter().find(|level| level.as_str() == words[2]).unwrap();
                let lifetime = words.get(3).map_or(Lifetime::UntilReleased, |text| Lifetime::Until(ahead(text)));
                Wish::SetLevel { level, lifetime }
            }
            "boost" => Wish::Boost { slices: words[3].parse().unwrap(), device: None },
            "coordinate" => {
                let deadline = words.get(4).map(|word| match word.split_once('=').unwrap() {
                    ("start", text) => Deadline::StartBefore(ahead(text)),
                    (_, text) => Deadline::DoneBefore(ahead(text)),
                });
                let (device, bytes) = (DeviceId { major: 8, minor: 0 }, words[3].parse::<u64>().unwrap() * 1_000_000);
                Wish::Coordinate(Operation { device, access: AccessKind::SequentialRead, bytes, deadline }.into())
            }
            _ => {
                let own = words.get(3).map_or_else(|| format!("finish-{}", words[2]), |own| (*own).to_owned());
                let operation = std::mem::replace(&mut id, RequestId(own));
                Wish::Finish(operation)
            }
        };
        let request = TenantRequest { id, tenant: TenantId(words[1].parse().unwrap()), wish };
        let (effects, news) = self.decider.requested(self.now, &request, &self.signals);
        self.tell(effects, news, out);
    }

    fn tell(&mut self, effects: Vec<Effect>, news: Vec<Decision>, out: &mut String) {
        let second = self.now.as_secs_f64();
        for decision in news {
            writeln!(out, "{second:>4.0} s  {decision}").unwrap();
        }
        for effect in effects {
            match effect {
                Effect::Granted(Granted { id, grant, .. }) => {
                    writeln!(out, "{second:>4.0} s  {id}: {grant:?}").unwrap()
                }
                Effect::Refused(refused) => {
                    writeln!(out, "{second:>4.0} s  {}: {}: {}", refused.id, refused.kind.as_str(), refused.message)
                        .unwrap();
                }
                Effect::Ready { id, .. } => writeln!(out, "{second:>4.0} s  {id}: ready").unwrap(),
                Effect::Ledger(entry) => {
                    let LedgerEntry { number, account, kind, amount, .. } = entry;
                    writeln!(out, "{second:>4.0} s  ledger: {account} {} {amount}", kind.as_str()).unwrap();
                    let (effects, news) = self.decider.committed(self.now, number, true, None);
                    self.tell(effects, news, out);
                }
                _ => {}
            }
        }
    }

    fn store(&mut self, rows: Vec<TenantHistory>) {
        let now = self.now;
        self.stored.extend(rows.into_iter().map(|row| ((row.key.clone(), row.device), (now, row))));
    }

    fn restart(&mut self, out: &mut String) {
        let last = self.decider.all_histories(self.now);
        self.store(last);
        let aged = |(at, row): &(Nanos, TenantHistory)| TenantHistory { age: self.now - *at, ..row.clone() };
        let stored: Vec<TenantHistory> = self.stored.values().map(aged).collect();
        writeln!(out, "{} histories", stored.len()).unwrap();
        self.decider = Decider::default();
        self.decider.configure(self.now, &self.config);
        for tenant in self.tenants.values() {
            let own: Vec<_> = stored.iter().filter(|row| row.key == tenant.history_key()).cloned().collect();
            assert!(self.decider.tenant_seen(self.now, tenant, &own).is_empty());
        }
    }
}

fn taker(word: &str) -> (TenantId, Option<BTreeSet<DeviceId>>) {
    let (tenant, minor) = word.split_once('/').unwrap_or((word, "0"));
    let own = (minor != "all").then(|| BTreeSet::from([DeviceId { major: 8, minor: minor.parse().unwrap() }]));
    (TenantId(tenant.parse().unwrap()), own)
}

/// Runs every case of a script and gives it back with the answers that were given.
fn answer(text: &str) -> String {
    let mut script = Script::default();
    script.config.mode = Mode::Enforce;
    script.decider.device_seen(DeviceId { major: 8, minor: 0 });
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

macro_rules! scripts {
    ($(fn $name:ident($file:literal);)*) => {$(
        #[test]
        fn $name() {
            check(
                expect_file![concat!("../testdata/", $file, ".txt")],
                include_str!(concat!("../testdata/", $file, ".txt")),
            );
        }
    )*};
}

scripts! {
    fn noisy_neighbour("noisy-neighbour");
    fn rules_and_floor("rules-and-floor");
    fn long_term("long-term");
    fn disk_time("disk-time");
    fn abuse("abuse");
    fn taking_part("taking-part");
    fn makespan("makespan");
    fn terms("terms");
    fn foresight("foresight");
    fn waiting("waiting");
    fn interleave("interleave");
    fn background("background");
    fn background_stands_apart("background-apart");
    fn contracts("contracts");
}
