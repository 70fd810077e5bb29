//! Background work that takes time from others: on which disks it goes before them, and that it is not held back by a cap.

use super::background::{OTHER_DISK, queue_of, report_of};
use super::{DISK, device, drain, path, sample, seen};
use minerva_engine::Engine;
use minerva_model::{
    BackEnd, BackgroundHold, BackgroundPace, BackgroundQueue, BackgroundReport, BackgroundSettings, Device,
    DeviceFacts, DeviceId, DeviceSample, Effect, EngineConfig, Event, KnobTarget, Mode, Nanos, Outcome, TenantId,
    TenantIo,
};
use std::collections::{BTreeMap, BTreeSet};

/// As in recordings of earlier versions.
fn before() -> BackgroundSettings {
    BackgroundSettings { takers_stand_apart: false, ..BackgroundSettings::default() }
}

/// The second tenant's work, of which far more is left than there is time for.
fn queue() -> BackgroundQueue {
    let due = Some(Nanos::from_secs(300));
    BackgroundQueue { due, given: due, ..queue_of(BackgroundHold::Stop) }
}

/// A minute in which all tenants read so many megabytes a second from each disk, the second one in the first two seconds only unless it `works_on`;
/// `serve` is called after each slice.
fn engine_after(
    background: BackgroundSettings,
    disks: &[Device],
    megabytes: [u64; 3],
    works_on: bool,
    mut serve: impl FnMut(&mut Engine, Nanos),
) -> Engine {
    let mut engine = Engine::new();
    let configured = EngineConfig { mode: Mode::Enforce, background, ..EngineConfig::default() };
    let begin = [Event::Configured(Box::new(configured)), Event::BackgroundSet(Box::new(queue()))];
    let disks_seen = disks.iter().cloned().map(Event::DeviceSeen);
    let tenants_seen = (1..=3).map(|number| seen(number, Vec::new()));
    begin.into_iter().chain(disks_seen).chain(tenants_seen).for_each(|event| engine.handle(Nanos::SECOND, event));
    for second in 1..60 {
        let now = Nanos::from_secs(second);
        let report = BackgroundReport { done_items: 0.0, ran: Nanos::ZERO, ..report_of(1) };
        engine.handle(now, Event::BackgroundReported(report));
        let [one, work, three] = megabytes;
        let worked = if works_on { second } else { second.min(2) };
        let mut slice = sample(&[second * one, worked * work, second * three]);
        slice.devices[0].busy_ns = second * 1_000_000_000;
        for disk in disks.iter().skip(1) {
            let of_first = slice.devices[0];
            slice.devices.push(DeviceSample { device: disk.id, ..of_first });
            let rows = slice.io.iter().filter(|row| row.device == DISK);
            let rows: Vec<_> = rows.map(|row| TenantIo { device: disk.id, ..*row }).collect();
            slice.io.extend(rows);
        }
        slice.io.sort_by_key(|row| (row.tenant, row.device));
        engine.handle(now, Event::Sampled(Box::new(slice)));
        serve(&mut engine, now);
    }
    let pace = engine.background().next().map(|work| work.order.pace);
    assert!(matches!(pace, Some(BackgroundPace::Share(_))), "{pace:?}");
    engine
}

#[test]
fn work_goes_before_others_on_the_disk_that_it_was_planned_for_and_on_those_below_it_only() {
    let on = |id, below: &[DeviceId]| {
        let plain = device(id, true);
        Device { facts: DeviceFacts { stacked_on: below.to_vec(), ..plain.facts }, ..plain }
    };
    let current = BackgroundSettings::default();
    let goes_first = |background, disks: [Device; 2]| {
        let engine = engine_after(background, &disks, [50, 1, 0], false, |engine, _| drop(drain(engine)));
        [DISK, OTHER_DISK].map(|id| engine.decision(TenantId(2), id).expect("a decision").share.get() == 1_000)
    };
    assert_eq!(goes_first(current, [on(DISK, &[]), on(OTHER_DISK, &[])]), [true, false], "beside each other");
    assert_eq!(goes_first(current, [on(DISK, &[OTHER_DISK]), on(OTHER_DISK, &[])]), [true, true], "it lies on it");
    assert_eq!(goes_first(current, [on(DISK, &[]), on(OTHER_DISK, &[DISK])]), [true, false], "another lies on it");
    assert_eq!(goes_first(before(), [on(DISK, &[]), on(OTHER_DISK, &[])]), [true, true], "as in earlier versions");
}

/// Answers as a kernel whose groups had no limits; `files` are those by group.
fn serve_caps(engine: &mut Engine, now: Nanos, files: &mut BTreeMap<String, String>) {
    while let Some(effect) = engine.poll_effect() {
        let (id, target, written) = match effect {
            Effect::Inspect(inspection) => (inspection.id, inspection.target, None),
            Effect::Write(write) => (write.id, write.target, Some(write.text)),
            _ => continue,
        };
        let KnobTarget::Cgroup { cgroup, .. } = target else { continue };
        let file = files.entry(cgroup.path).or_default();
        if let Some(text) = written {
            *file = if text.ends_with("rbps=max wbps=max") { String::new() } else { text };
        }
        engine.handle(now, Event::Answered { id, outcome: Outcome::Text(file.clone()) });
    }
}

#[test]
fn work_has_no_cap_in_the_time_that_it_takes_and_others_have_theirs() {
    let plain = device(DISK, false);
    let disk = Device { facts: DeviceFacts { back_end_forced: Some(BackEnd::Max), ..plain.facts }, ..plain };
    let capped = |background| {
        let (mut files, mut capped) = (BTreeMap::new(), BTreeSet::new());
        engine_after(background, std::slice::from_ref(&disk), [50, 10, 5], true, |engine, now| {
            serve_caps(engine, now, &mut files);
            // By then the plan has been made anew for the first time, now that others are seen.
            if now >= Nanos::from_secs(30) {
                capped.extend(files.iter().filter(|(_, text)| !text.is_empty()).map(|(path, _)| path.clone()));
            }
        });
        capped
    };
    let set = |numbers: &[u64]| numbers.iter().map(|number| path(*number)).collect::<BTreeSet<String>>();
    assert_eq!(capped(BackgroundSettings::default()), set(&[1, 3]));
    assert_eq!(capped(before()), set(&[1, 2, 3]), "as in recordings of earlier versions");
}
