//! Sessions that begin within the second that forecasts are made from.

use super::{DISK, MIB, configured, run, sample, seen};
use minerva_model::{Event, ForecastMode, Horizon, Nanos, TenantId};

/// Sessions of 120 MiB in twelve slices, each of a tenant that goes; then one more.
#[test]
fn of_slices_shorter_than_a_second_a_session_is_foreseen_in_its_first_slice() {
    let slice = Nanos::from_millis(250);
    let foreseen = |at_once: bool| {
        let Event::Configured(mut config) = configured(ForecastMode::On, slice) else { unreachable!("as it was made") };
        config.forecast.sessions_at_once = at_once;
        let mut events = vec![(Nanos::SECOND, Event::Configured(config))];
        let mut now = Nanos::SECOND;
        for number in 1..=20_u64 {
            events.push((now, seen(number, None)));
            let slices = if number == 20 { 1 } else { 12 };
            for part in 1..=slices {
                now += slice;
                let mut bytes = vec![0; number as usize];
                bytes[number as usize - 1] = part * 10 * MIB;
                events.push((now, Event::Sampled(Box::new(sample(&bytes)))));
            }
            if number < 20 {
                events.push((now, Event::TenantGone(TenantId(number))));
            }
        }
        let (engine, _) = run(events);
        engine.outlook().get(TenantId(20), DISK, Horizon::Session).map(|row| row.bytes() / MIB as f64)
    };
    assert_eq!(foreseen(false), None);
    let bytes = foreseen(true).expect("a forecast");
    assert!((40.0..160.0).contains(&bytes), "{bytes} MiB are left");
}
