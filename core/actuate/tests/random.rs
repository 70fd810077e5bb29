//! Random events, refusals and overwrites against a model of the kernel; what holds in every case.

mod kernel;

use kernel::{Kernel, facts, place};
use minerva_actuate::Actuator;
use minerva_model::{
    CgroupRef, CgroupVersion, Decision, Device, DeviceId, DeviceSettings, Effect, EngineConfig, Factor, FindingKind,
    IoCounters, IoSignals, KnobFile, KnobTarget, Level, Mode, Nanos, Outcome, PolicyName, Reason, Share, Signals,
    Tenant, TenantId, TenantKind, WriteId,
};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use std::collections::{BTreeMap, BTreeSet};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
/// Some beside and some beneath each other.
const PATHS: [&str; 5] = ["a", "b/one", "b/two", "c/d/one", "c/d/two"];

#[derive(Clone, Debug)]
enum Step {
    Decide {
        tenant: usize,
        share: u32,
        idle: bool,
    },
    Use(usize),
    Slice,
    /// Answers the request at this place in the queue, out of order.
    Answer(usize),
    AnswerAll,
    Exclude(usize, bool),
    /// All tenants gone and here again, as others at the same paths.
    Replace,
    Refuse(usize, bool),
    Overwrite(usize, u32),
    /// Everything is put back beside the driver, as the guard does.
    Restore,
    Mode(bool),
    LeaveBfq,
    EnterBfq,
}

fn step() -> impl Strategy<Value = Step> {
    let tenant = || 0..PATHS.len();
    prop_oneof![
        6 => (tenant(), prop_oneof![Just(100), 1..300_u32, 1..10_000_u32], proptest::bool::weighted(0.2))
            .prop_map(|(tenant, share, idle)| Step::Decide { tenant, share, idle }),
        2 => tenant().prop_map(Step::Use),
        6 => Just(Step::Slice),
        6 => any::<usize>().prop_map(Step::Answer),
        4 => Just(Step::AnswerAll),
        1 => (tenant(), any::<bool>()).prop_map(|(tenant, excluded)| Step::Exclude(tenant, excluded)),
        1 => Just(Step::Replace),
        1 => (tenant(), any::<bool>()).prop_map(|(tenant, refuse)| Step::Refuse(tenant, refuse)),
        1 => (tenant(), 1..1_000_u32).prop_map(|(tenant, weight)| Step::Overwrite(tenant, weight)),
        1 => Just(Step::Restore),
        1 => any::<bool>().prop_map(Step::Mode),
        1 => Just(Step::LeaveBfq),
        1 => Just(Step::EnterBfq),
    ]
}

/// A knob as the driver sees it. A replaced cgroup is another one.
type Knob = (String, u64, KnobFile);

fn knob(target: &KnobTarget, file: KnobFile) -> Knob {
    let inode = match target {
        KnobTarget::Cgroup { cgroup, .. } => cgroup.inode,
        KnobTarget::Disk { .. } | KnobTarget::Server { .. } => 0,
    };
    (place(target), inode, file)
}

#[derive(Default)]
struct World {
    actuator: Actuator,
    kernel: Kernel,
    now: Nanos,
    decisions: Vec<Decision>,
    signals: Signals,
    /// Performed in order, answered in any.
    answers: Vec<(WriteId, Knob, Outcome)>,
    inspected: BTreeSet<Knob>,
    last_written: BTreeMap<Knob, (String, String)>,
    /// Requests under way, by knob.
    under_way: BTreeMap<WriteId, Knob>,
    /// Somebody, a refusal or a lost elevator came between: a repeated write may be right.
    disturbed: bool,
    incarnation: u64,
    effects: Vec<Effect>,
}

impl World {
    fn new() -> Self {
        let mut world = Self::default();
        world.mode(true);
        world.disk("bfq", true);
        (0..PATHS.len()).for_each(|tenant| world.tenant(tenant, false));
        world.collect();
        world
    }

    fn mode(&mut self, enforce: bool) {
        let mut config =
            EngineConfig { mode: if enforce { Mode::Enforce } else { Mode::Shadow }, ..Default::default() };
        // Nobody gives up here, so that every knob must come back.
        config.actuation.fights_before_giving_up = u32::MAX;
        config.actuation.verify_every_slices = 2;
        let settings =
            DeviceSettings { elevator: Some("bfq".to_owned()), strict_guarantees: true, ..Default::default() };
        config.devices.insert("sda".to_owned(), settings);
        self.actuator.configure(&config);
    }

    fn disk(&mut self, elevator: &str, low_latency: bool) {
        let _ = self.kernel.write("disk:sda", KnobFile::Elevator, DISK, elevator);
        let facts = facts(elevator, low_latency, CgroupVersion::V2, None);
        self.actuator.device_seen(&Device { id: DISK, name: "sda".to_owned(), facts });
    }

    fn id(&self, tenant: usize) -> TenantId {
        TenantId(tenant as u64 + 10 * self.incarnation)
    }

    fn tenant(&mut self, tenant: usize, excluded: bool) {
        self.actuator.tenant_seen(&Tenant {
            id: self.id(tenant),
            name: String::new(),
            kind: TenantKind::Container,
            cgroup: CgroupRef { path: PATHS[tenant].to_owned(), inode: self.incarnation + 1 },
            group: None,
            weight_percent: 100,
            excluded,
            job: None,
            terms: minerva_model::Terms::default(),
            origin: minerva_model::Origin::default(),
        });
    }

    fn obey(&mut self, step: Step) {
        match step {
            Step::Decide { tenant, share, idle } => {
                let (tenant, share) = (self.id(tenant), Share::new(share));
                let reason = Reason::SteppedBack { level: Level::Idle, percent: 1, request: None };
                let factor = Factor { policy: PolicyName::LEVELS, value: 0.01, reason };
                let factors = if idle { vec![factor] } else { Vec::new() };
                self.decisions.push(Decision { tenant, device: DISK, share, factors });
            }
            Step::Use(tenant) => {
                let transferred = IoCounters { read_bytes: 1, read_ops: 1, ..Default::default() };
                let tenant = self.id(tenant);
                let row = IoSignals {
                    tenant,
                    device: DISK,
                    elapsed: Nanos::SECOND,
                    transferred,
                    latency: None,
                    active: true,
                    served: None,
                    disk_time: Nanos::ZERO,
                };
                self.signals.io.retain(|other| other.tenant != tenant);
                self.signals.io.push(row);
                self.signals.io.sort_by_key(|row| row.tenant);
            }
            Step::Slice => {
                self.now += Nanos::SECOND;
                let (decisions, signals) = (std::mem::take(&mut self.decisions), std::mem::take(&mut self.signals));
                self.actuator.plan(self.now, &decisions, &signals);
            }
            Step::Answer(index) if !self.answers.is_empty() => self.answer(index % self.answers.len()),
            Step::Answer(_) => {}
            Step::AnswerAll => self.answer_all(),
            Step::Exclude(tenant, excluded) => self.tenant(tenant, excluded),
            Step::Replace => {
                // All of them at once, as when a whole host is restarted; half of them announced by their successors only.
                let former: Vec<TenantId> = (0..PATHS.len()).map(|tenant| self.id(tenant)).collect();
                former.iter().skip(2).for_each(|tenant| self.actuator.tenant_gone(*tenant));
                self.kernel.lines.clear();
                self.kernel.journal.retain(|((at, _), _), _| at.starts_with("disk:"));
                self.disturbed = true;
                self.incarnation += 1;
                self.decisions.clear();
                self.signals.io.clear();
                (0..PATHS.len()).for_each(|tenant| self.tenant(tenant, false));
                self.under_way.retain(|_, (_, inode, _)| *inode == 0);
            }
            Step::Refuse(tenant, true) => drop(self.kernel.refusing.insert(PATHS[tenant].to_owned())),
            Step::Refuse(tenant, false) => drop(self.kernel.refusing.remove(PATHS[tenant])),
            Step::Overwrite(tenant, weight) => {
                self.disturbed = true;
                let _ = self.kernel.write(PATHS[tenant], KnobFile::BfqWeight, DISK, &format!("{DISK} {weight}"));
            }
            Step::Restore => {
                self.disturbed = true;
                self.kernel.restore();
                // What is under way is not waited for.
                self.under_way.clear();
                self.actuator.restored();
            }
            Step::Mode(enforce) => {
                if !enforce {
                    // Leaving `enforce` abandons what is under way.
                    self.under_way.clear();
                }
                self.mode(enforce);
            }
            Step::LeaveBfq => {
                self.disturbed = true;
                self.disk("none", false);
            }
            Step::EnterBfq => {
                let low_latency = self.kernel.low_latency.get(&DISK) == Some(&true);
                let was_bfq = self.kernel.elevators.get(&DISK).is_some_and(|name| name == "bfq");
                self.disk("bfq", low_latency || !was_bfq);
            }
        }
        self.collect();
    }

    /// Performs what is asked, in order, and checks it.
    fn collect(&mut self) {
        while let Some(effect) = self.actuator.poll_effect() {
            let answer = self.kernel.perform(&effect);
            match &effect {
                Effect::Inspect(one) => self.check_alone(one.id, knob(&one.target, one.file)),
                Effect::Write(one) => {
                    let at = knob(&one.target, one.file);
                    assert!(self.inspected.contains(&at), "written before it was read: {at:?}");
                    let repeated = self.last_written.get(&at).is_some_and(|(text, _)| *text == one.text);
                    let repeated = repeated && one.text != one.undo;
                    if matches!(answer, Some((_, Outcome::Text(_)))) {
                        self.last_written.insert(at.clone(), (one.text.clone(), one.undo.clone()));
                    }
                    assert!(!repeated || self.disturbed || !self.kernel.refusing.is_empty(), "written twice: {one:?}");
                    if one.text == one.undo {
                        // An undo does not wait for what is under way, and the late answer counts no more.
                        self.under_way.retain(|_, other| *other != at);
                    }
                    self.check_alone(one.id, at);
                }
                _ => {}
            }
            if let (Some((id, outcome)), Some(at)) = (answer, self.request(&effect)) {
                self.answers.push((id, at, outcome));
            }
            self.effects.push(effect);
        }
    }

    fn request(&self, effect: &Effect) -> Option<Knob> {
        match effect {
            Effect::Inspect(one) => Some(knob(&one.target, one.file)),
            Effect::Write(one) => Some(knob(&one.target, one.file)),
            _ => None,
        }
    }

    fn check_alone(&mut self, id: WriteId, at: Knob) {
        assert!(!self.under_way.values().any(|other| *other == at), "two requests under way: {at:?}");
        self.under_way.insert(id, at);
    }

    fn answer(&mut self, index: usize) {
        let (id, at, outcome) = self.answers.remove(index);
        self.under_way.remove(&id);
        if matches!(outcome, Outcome::Text(_)) {
            self.inspected.insert(at);
        }
        if matches!(outcome, Outcome::Refused { .. }) {
            self.disturbed = true;
        }
        self.actuator.answered(self.now, id, &outcome);
        self.collect();
    }

    fn answer_all(&mut self) {
        while !self.answers.is_empty() {
            self.answer(0);
        }
    }
}

fn run(steps: &[Step]) -> World {
    let mut world = World::new();
    for step in steps {
        world.obey(step.clone());
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_written_unread_and_everything_comes_back(steps in proptest::collection::vec(step(), 0..80)) {
        let mut world = run(&steps);
        world.kernel.refusing.clear();
        world.under_way.clear();
        world.actuator.stop();
        world.collect();
        world.answer_all();
        let inode = world.incarnation + 1;
        for ((at, of, file), (text, undo)) in &world.last_written {
            // Former incarnations took their knobs with them, and a weight that bfq lost needs no undoing.
            let stands = world.kernel.lines.get(&((at.clone(), *file), DISK)).map(|value| format!("{DISK} {value}"));
            let lost = *file == KnobFile::BfqWeight && stands.is_none();
            if (*of == 0 || *of == inode) && !lost {
                assert_eq!(text, undo, "{at} {file:?} was not put back");
            }
        }
        let effects = world.effects.len();
        world.obey(Step::Slice);
        assert_eq!(world.effects.len(), effects, "nothing follows a stop");
    }

    #[test]
    fn the_same_events_have_the_same_effects(steps in proptest::collection::vec(step(), 0..60)) {
        assert_eq!(run(&steps).effects, run(&steps).effects);
    }

    /// Told at any moment, also while answers are under way.
    #[test]
    fn what_a_restore_put_back_is_written_again_within_a_slice_and_nobody_has_overwritten_it(
        shares in proptest::collection::vec(1..10_000_u32, PATHS.len()),
        answered in proptest::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut world = World::new();
        for (tenant, share) in shares.iter().enumerate() {
            world.obey(Step::Decide { tenant, share: *share, idle: false });
        }
        world.obey(Step::Slice);
        answered.iter().for_each(|index| world.obey(Step::Answer(*index)));
        world.obey(Step::Restore);
        for _ in 0..2 {
            world.obey(Step::Slice);
            world.answer_all();
        }
        let before = world.kernel.lines.clone();
        world.obey(Step::Restore);
        assert!(before.is_empty() || world.kernel.lines != before);
        world.obey(Step::Slice);
        world.answer_all();
        assert_eq!(world.kernel.lines, before);
        (0..4).for_each(|_| {
            world.obey(Step::Slice);
            world.answer_all();
        });
        let fights = [FindingKind::Overwritten, FindingKind::FightGivenUp];
        let is_fight = |effect: &Effect| matches!(effect, Effect::Found(found) if fights.contains(&found.kind));
        assert!(!world.effects.iter().any(is_fight), "{:?}", world.effects);
    }

    #[test]
    fn a_quiet_slice_writes_nothing(shares in proptest::collection::vec(1..10_000_u32, PATHS.len())) {
        let mut world = World::new();
        for (tenant, share) in shares.iter().enumerate() {
            world.obey(Step::Decide { tenant, share: *share, idle: false });
            world.obey(Step::Use(tenant));
        }
        for _ in 0..4 {
            world.obey(Step::Slice);
            world.answer_all();
        }
        let before = world.effects.len();
        for _ in 0..4 {
            (0..PATHS.len()).for_each(|tenant| world.obey(Step::Use(tenant)));
            world.obey(Step::Slice);
            world.answer_all();
        }
        assert!(world.effects[before..].iter().all(|effect| matches!(effect, Effect::Inspect(_))));
    }
}
