//! The day and the week ahead of disks and groups: what is foreseen of a steady office, that noise earns nothing, that free space is
//! foreseen, and that all of it outlives a restart.

use minerva_forecast::Damaged;
use minerva_forecast::load::{LOADS_MAX, LoadReading, LoadTime, Loads};
use minerva_forecast::seasonal::Totals;
use minerva_model::{DeviceId, LOAD_BINS, LOAD_BINS_PER_DAY, LoadOf, Nanos, SharedLoad};

const MONDAY: u64 = 4 * 86_400 + 2_000 * 7 * 86_400;
const MIB: f64 = 1_048_576.0;
/// Slices are long here, as nothing depends on their length.
const SLICE: u64 = 300;

fn disk(minor: u32) -> LoadOf {
    LoadOf::Device(DeviceId { major: 8, minor })
}

/// A number from 0 to 1 that has nothing to do with the one before.
fn noise(seed: u64) -> f64 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Bytes a second of an office: by day on weekdays, with a backup at two every night that writes.
fn office(second: u64) -> Totals {
    let (day, hour) = (second / 86_400 % 7, second / 3_600 % 24);
    let level = if day < 5 && (8..18).contains(&hour) { 20.0 } else { 1.0 };
    let backup = if hour == 2 { 50.0 } else { 0.5 };
    let about = 0.8 + 0.4 * noise(second / 600);
    Totals { read_bytes: level * about * MIB, write_bytes: backup * about * MIB, discard_bytes: 0.0 }
}

/// Feeds days of `of`, from second `from` on.
fn run(loads: &mut Loads, of: &LoadOf, from: u64, days: u64, each: impl Fn(u64) -> LoadReading) {
    for slice in 1..=days * 86_400 / SLICE {
        let second = from + slice * SLICE;
        let time = LoadTime { now: Nanos::from_secs(second), wall_seconds: MONDAY + second };
        loads.observe(time, &[(of.clone(), each(second))]);
    }
}

fn reading(rates: Totals, free_bytes: Option<f64>) -> LoadReading {
    let seconds = SLICE as f64;
    let totals = Totals {
        read_bytes: rates.read_bytes * seconds,
        write_bytes: rates.write_bytes * seconds,
        discard_bytes: rates.discard_bytes * seconds,
    };
    LoadReading { seconds, totals, free_bytes }
}

fn forecast(loads: &Loads) -> SharedLoad {
    loads.forecasts().swap_remove(0)
}

#[test]
fn an_offices_week_is_foreseen_with_skill_and_intervals() {
    let mut loads = Loads::default();
    let of = disk(0);
    // What came a week ago is a good forecast of reads here: to be surely better than that takes some weeks.
    run(&mut loads, &of, 0, 70, |second| reading(office(second - 1), None));
    let foreseen = forecast(&loads);
    assert_eq!((foreseen.bins.len(), &foreseen.of), (LOAD_BINS, &of));
    // The last slice ended the last bin of a Sunday; what is under way is that bin, and Monday follows.
    let at = |hours: u64| foreseen.at(Nanos::from_secs(70 * 86_400 + hours * 3_600 + 1_500)).expect("within the week");
    for (hours, read, written) in [(10, 20.0, 0.5), (2, 1.0, 50.0), (24 + 12, 20.0, 0.5), (5 * 24 + 12, 1.0, 0.5)] {
        let bin = at(hours);
        let near = |value: f32, expected: f64| (f64::from(value) / MIB / expected - 1.0).abs() < 0.3;
        assert!(near(bin.read.value, read) && near(bin.written.value, written), "after {hours} h: {bin:?}");
        assert!(bin.read.lower <= bin.read.value && bin.read.value <= bin.read.upper);
    }
    assert!(
        at(2).read_share().is_some_and(|share| share < 0.1) && at(10).read_share().is_some_and(|share| share > 0.9)
    );
    assert!(foreseen.skill_day > 0.05 && foreseen.skill_day <= 1.0, "{}", foreseen.skill_day);
    assert!(foreseen.days_scored >= 67);
    let [written_day, written_week] = foreseen.skill_written.expect("told");
    assert!(written_day > 0.05 && written_day <= 1.0 && written_week > 0.0, "{:?}", foreseen.skill_written);
    // Of a Monday's bytes, which are told as a sum, with an interval of their own.
    let monday = |of: fn(&Totals) -> f64| {
        (0..LOAD_BINS_PER_DAY as u64).map(|bin| of(&office(70 * 86_400 + bin * 600 + 300))).sum::<f64>() * 600.0
    };
    for (sum, came) in
        [(foreseen.day.read, monday(|of| of.read_bytes)), (foreseen.day.written, monday(|of| of.write_bytes))]
    {
        assert!((f64::from(sum.value) / came - 1.0).abs() < 0.2, "{sum:?}: {came}");
        assert!(sum.lower < sum.value && sum.value < sum.upper, "{sum:?}");
    }
    // Of the day that comes about 80 of 100 bins are within.
    let mut held = 0;
    for bin in 0..LOAD_BINS_PER_DAY {
        let second = 70 * 86_400 + bin as u64 * 600 + 300;
        let came = office(second).read_bytes;
        let interval = foreseen.at(Nanos::from_secs(second)).expect("within").read;
        held += usize::from((f64::from(interval.lower)..=f64::from(interval.upper)).contains(&came));
    }
    assert!((95..=144).contains(&held), "{held} of 144");
}

#[test]
fn white_noise_earns_no_skill() {
    let mut told = Vec::new();
    for seed in 0..8 {
        let mut loads = Loads::default();
        let noisy = |second: u64| {
            let value = -(1.0 - noise((seed << 40) | ((second - 1) / 600))).ln();
            reading(Totals { read_bytes: value * MIB, ..Totals::default() }, None)
        };
        run(&mut loads, &disk(0), 0, 21, noisy);
        told.push(forecast(&loads).skill_day);
    }
    assert!(told.iter().all(|skill| *skill < 0.1), "{told:?}");
    assert!(told.iter().filter(|skill| **skill > 0.0).count() <= 2, "{told:?}");
}

#[test]
fn free_space_is_foreseen_where_it_is_known() {
    const GIB: f64 = 1_073_741_824.0;
    // A gibibyte an hour is used up, and 23 are freed at four every morning.
    let free = |second: u64| {
        let (days, seconds) = (second / 86_400, second % 86_400);
        let freed = if seconds >= 4 * 3_600 { 23.0 } else { 0.0 };
        (500.0 - days as f64 - seconds as f64 / 3_600.0 + freed) * GIB
    };
    let mut loads = Loads::default();
    run(&mut loads, &disk(0), 0, 14, |second| reading(office(second - 1), Some(free(second))));
    let foreseen = forecast(&loads);
    for hours in [3, 12, 3 * 24 + 12] {
        let second = 14 * 86_400 + hours * 3_600;
        let told = foreseen.at(Nanos::from_secs(second)).and_then(|bin| bin.free).expect("known");
        let error = (f64::from(told.value) - free(second)).abs() / GIB;
        assert!(error < 4.0, "after {hours} h {error} GiB beside {} GiB", free(second) / GIB);
        assert!(told.lower <= told.value && told.value <= told.upper);
    }
    let mut blind = Loads::default();
    run(&mut blind, &disk(0), 0, 3, |second| reading(office(second - 1), None));
    assert!(forecast(&blind).bins.iter().all(|bin| bin.free.is_none()), "nobody looked");
}

#[test]
fn histories_outlive_a_restart_and_a_gap() {
    let mut loads = Loads::default();
    assert_eq!(loads.encode(), None);
    let group = LoadOf::Group("web".to_owned());
    for of in [&disk(3), &group] {
        run(&mut loads, of, 0, 15, |second| reading(office(second - 1), Some(1e12 - second as f64 * 1e3)));
    }
    let bytes = loads.encode().expect("a history");
    let mut next = Loads::default();
    next.recall(&bytes).expect("whole");
    assert_eq!(next.encode().as_ref(), Some(&bytes), "what was taken over is what was kept");
    // Two and a half weeks later, on a Wednesday.
    let from = 15 * 86_400 + 17 * 86_400 + 43_200;
    for of in [&disk(3), &group] {
        run(&mut next, of, from, 1, |second| reading(office(second - 1), None));
    }
    for foreseen in next.forecasts() {
        let bin = foreseen.at(Nanos::from_secs(from + 86_400 + 3_600)).expect("within");
        let expected = office(from + 86_400 + 3_600).read_bytes;
        assert!((f64::from(bin.read.value) / expected - 1.0).abs() < 0.5, "{:?}: {bin:?} {expected}", foreseen.of);
    }
    for at in [0, 9, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let before = next.encode();
        assert!(matches!(next.recall(&damaged), Err(Damaged::Shape | Damaged::Checksum)), "byte {at}");
        assert_eq!(next.encode(), before, "a damaged one changes nothing");
    }
}

#[test]
fn clocks_and_numbers_of_any_kind_are_no_trouble() {
    let mut loads = Loads::default();
    let walls = [0, u64::MAX, MONDAY, 7, MONDAY + 600, MONDAY + 1_200, u64::MAX - 1, MONDAY + 900];
    let values = [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0];
    for (step, wall_seconds) in walls.iter().cycle().take(400).enumerate() {
        let value = values[step % values.len()];
        let totals = Totals { read_bytes: 1.0 + step as f64, write_bytes: value, discard_bytes: value };
        let reading = LoadReading { seconds: [600.0, value][step % 2], totals, free_bytes: Some(value) };
        let time = LoadTime { now: Nanos(step as u64), wall_seconds: *wall_seconds };
        loads.observe(time, &[(disk(0), reading)]);
        let rows = loads.forecasts();
        let bins = rows.iter().flat_map(|row| &row.bins);
        assert!(bins.flat_map(|bin| [bin.read, bin.written]).all(|row| row.value >= 0.0 && row.lower <= row.upper));
    }
    assert!(Loads::default().recall(&[]).is_err());
}

#[test]
fn ten_thousand_groups_cost_a_bounded_number_of_states() {
    let mut loads = Loads::default();
    let rows: Vec<(LoadOf, LoadReading)> =
        (0..10_000).map(|number| (LoadOf::Group(format!("group {number}")), reading(office(1), None))).collect();
    for slice in 1..30 {
        loads.observe(LoadTime { now: Nanos::from_secs(slice * 60), wall_seconds: MONDAY + slice * 60 }, &rows);
    }
    assert_eq!(loads.groups().count(), LOADS_MAX);
    assert_eq!(loads.refused(), 29 * (10_000 - LOADS_MAX as u64));
}

/// Feeds bins of `SLICE * 2` in each of which these read a little, from bin `from` on.
fn bins(loads: &mut Loads, from: u64, count: u64, named: &[LoadOf]) {
    let reading =
        LoadReading { seconds: 600.0, totals: Totals { read_bytes: 6e8, ..Totals::default() }, free_bytes: Some(1e12) };
    let slice: Vec<_> = named.iter().map(|of| (of.clone(), reading)).collect();
    for bin in from + 1..=from + count {
        loads.observe(LoadTime { now: Nanos::from_secs(600 * bin), wall_seconds: MONDAY + 600 * bin }, &slice);
    }
}

#[test]
fn a_disk_that_is_gone_for_six_weeks_is_forgotten_also_over_restarts() {
    const DAY: u64 = 144;
    let known = |loads: &Loads, of: &LoadOf| !loads.past(of).is_empty();
    let (gone, stays) = (disk(1), disk(2));
    let mut loads = Loads::default();
    bins(&mut loads, 0, 2 * DAY, &[gone.clone(), stays.clone()]);
    loads.device_gone(DeviceId { major: 8, minor: 1 });
    for weeks in 0..3 {
        bins(&mut loads, (2 + 14 * weeks) * DAY, 14 * DAY - 1, std::slice::from_ref(&stays));
        assert!(known(&loads, &gone) && known(&loads, &stays), "after {weeks} times two weeks");
        let bytes = loads.encode().expect("a history");
        loads = Loads::default();
        loads.recall(&bytes).expect("whole");
        assert_eq!(loads.encode(), Some(bytes), "what was taken over is what was kept");
    }
    // It is there again before that, and then gone for as long once more.
    let mut back = loads.clone();
    bins(&mut back, 44 * DAY - 3, 10, &[gone.clone(), stays.clone()]);
    bins(&mut loads, 44 * DAY - 1, 10, std::slice::from_ref(&stays));
    assert!(!known(&loads, &gone) && known(&loads, &stays));
    assert!(known(&back, &gone));
    // As by earlier versions nobody is forgotten.
    let mut earlier = Loads::default();
    earlier.set_only_its_own(false);
    bins(&mut earlier, 0, 2 * DAY, &[gone.clone(), stays.clone()]);
    bins(&mut earlier, 2 * DAY, 43 * DAY, std::slice::from_ref(&stays));
    assert!(known(&earlier, &gone));
}

#[test]
fn where_there_is_no_room_the_disk_that_was_silent_for_longest_goes() {
    let all: Vec<LoadOf> = (0..LOADS_MAX as u32).map(disk).collect();
    let new = disk(1_000);
    let mut loads = Loads::default();
    bins(&mut loads, 0, 3, &all);
    // All but the first two are there for another hour, and then all but the first.
    bins(&mut loads, 3, 6, &all[2..]);
    bins(&mut loads, 9, 150, &all[1..]);
    let with_new = |loads: &mut Loads, from| {
        let named: Vec<LoadOf> = all[2..].iter().chain([&new]).cloned().collect();
        bins(loads, from, 3, &named);
    };
    let known = |loads: &Loads| [&all[0], &all[1], &new].map(|of| !loads.members(of)[0].is_empty());
    let mut early = Loads::default();
    bins(&mut early, 0, 3, &all);
    bins(&mut early, 3, 100, &all[1..]);
    with_new(&mut early, 103);
    assert_eq!((early.refused(), known(&early)), (3, [true, true, false]), "none was silent for a day");
    assert_eq!((early.refused_in_slice(), loads.refused_in_slice()), (1, 0));
    with_new(&mut loads, 159);
    assert_eq!((loads.refused(), known(&loads)), (0, [false, true, true]));
}

/// Minutes of nothing since the host was suspended, and minutes of work after.
#[test]
fn a_slice_that_was_held_up_does_not_thin_out_the_bin_it_ends_in() {
    let mut loads = Loads::default();
    run(&mut loads, &disk(0), 0, 2, |second| reading(office(second - 1), None));
    let mut at = |second: u64, seconds: f64, rate: f64| {
        let totals = Totals { read_bytes: rate * seconds, ..Totals::default() };
        let time = LoadTime { now: Nanos::from_secs(second), wall_seconds: MONDAY + second };
        loads.observe(time, &[(disk(0), LoadReading { seconds, totals, free_bytes: None })]);
    };
    let woken = 2 * 86_400 + 8 * 3_600;
    at(woken + 1, f64::from(8 * 3_600), 0.0);
    at(woken + 301, 300.0, 1e7);
    at(woken + 601, 1.0, 1e7);
    let last = loads.past(&disk(0)).pop().expect("a bin");
    assert!((0.99e7..=1.01e7).contains(&last), "{last}");
}
