//! Forecasts of real tenants on a real disk. When a forecast earns skill is chance, on a machine with other work above all, so nothing
//! here waits for it: what is tested is that forecasts appear and hold together, that nobody is moved before anything was earned, and
//! what is said where nothing is known.

use crate::ENFORCE;
use crate::bed::{Bed, Daemon};
use minerva_api::v1;
use std::collections::BTreeSet;
use tokio_stream::StreamExt as _;
use tonic::Code;

/// Slices that are looked at, one by one.
const SLICES: usize = 150;
/// Policies that act on forecasts; a decision names each that speaks.
const ACTING: [&str; 2] = ["foresight", "interleave"];

fn forecast(daemon: &Daemon, of: &str, horizon: &str) -> Result<v1::ForecastResponse, tonic::Status> {
    let request = v1::ForecastRequest { tenant: of.to_owned(), horizon: horizon.to_owned() };
    let answer = daemon.ask(async |mut client| client.forecast(request).await).expect("a daemon");
    answer.map(tonic::Response::into_inner)
}

fn is_in_order(interval: Option<v1::Interval>) -> bool {
    interval.is_some_and(|interval| {
        let v1::Interval { value, lower, upper, coverage_permille } = interval;
        lower >= 0.0 && lower <= value && value <= upper && upper.is_finite() && coverage_permille == 800
    })
}

#[test]
fn forecasts_appear_hold_together_and_move_nobody_before_they_have_skill() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(&format!("{ENFORCE}\n[forecast]\nmode = \"on\""));
    bed.start_readers();
    let daemon = bed.start();
    let slices = daemon
        .ask(async |mut client| {
            let watched = client.watch(v1::WatchRequest {}).await.expect("a stream").into_inner();
            watched.take(SLICES).filter_map(Result::ok).filter_map(|answer| answer.slice).collect::<Vec<_>>().await
        })
        .expect("a daemon");
    assert_eq!(slices.len(), SLICES);
    let (mut horizons, mut skilled) = (BTreeSet::new(), BTreeSet::new());
    // A client that is too slow misses slices, and with them perhaps the one in which something was earned.
    let numbers_follow = slices.windows(2).all(|pair| pair[1].number == pair[0].number + 1);
    for slice in &slices {
        for tenant in &slice.tenants {
            for used in &tenant.uses {
                for row in &used.forecasts {
                    assert!(is_in_order(row.read_bytes) && is_in_order(row.write_bytes), "{row:?}");
                    assert!(row.busy_permille <= 1_000 && row.skill <= 1.0 && row.mode == "on", "{row:?}");
                    horizons.insert(row.horizon.clone());
                }
                if used.forecasts.iter().any(|row| row.skill > 0.0) {
                    skilled.insert(tenant.id.clone());
                }
                let moved = ACTING.iter().any(|policy| used.why.contains(policy));
                assert!(!moved || skilled.contains(&tenant.id) || !numbers_follow, "unearned: {}", used.why);
            }
        }
    }
    assert!(horizons.contains("next-slice"), "{horizons:?}");
    let answer = forecast(&daemon, "heavy", "").expect("a tenant");
    assert_eq!((answer.mode.as_str(), answer.disks.len()), ("on", 1));
    assert!(!answer.disks[0].past.is_empty());
}

#[test]
fn of_a_day_that_was_not_seen_nothing_is_said_and_what_is_no_disk_is_named() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    bed.start_readers();
    let daemon = bed.start();
    daemon.pass_slices(3);
    let answer = forecast(&daemon, &bed.device, "day").expect("a disk");
    assert_eq!((answer.tenant.as_str(), answer.mode.as_str()), (bed.device.as_str(), "shadow"));
    assert!(answer.load.is_none(), "a whole day has to be seen first");
    let refused = |of: &str, horizon: &str| forecast(&daemon, of, horizon).expect_err("refused");
    let unknown = refused("heavy", "week");
    assert_eq!(unknown.code(), Code::NotFound);
    assert!(unknown.message().contains("not of single tenants"), "{}", unknown.message());
    assert_eq!(refused(&bed.device, "month").code(), Code::InvalidArgument);
}
