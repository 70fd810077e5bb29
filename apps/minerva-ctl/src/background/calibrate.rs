//! `minerva-ctl background calibrate`: what a disk serves to others while its background work rests.

use super::{refused, seconds};
use crate::figures::size;
use crate::output::{self, CommandStatus};
use minerva_api::client::Operator;
use minerva_api::v1;
use std::time::Duration;

/// How often it is looked how far it is.
const PERIOD: Duration = Duration::from_secs(2);

/// Begins it, waits for its end, and shows before and after; that nothing could be measured is a finding.
pub(super) async fn run(
    mut client: Operator,
    disk: &str,
    length: Duration,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let before = one(&mut client, disk).await?;
    let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let request = v1::CalibrateBackgroundRequest { device: disk.to_owned(), length_ns };
    if let Err(status) = client.calibrate_background(request).await {
        return refused(status, json);
    }
    let mut after = one(&mut client, disk).await?;
    while let Some(left_ns) = after.calibrating_left_ns {
        let left = Duration::from_nanos(left_ns);
        output::note(&format!("background work of {disk} rests, {} s left", left.as_secs()));
        tokio::time::sleep(PERIOD.min(left.max(Duration::from_millis(200)))).await;
        after = one(&mut client, disk).await?;
    }
    if json {
        output::json(&serde_json::json!({ "before": before, "after": after }))?;
    } else {
        output::text(&format!("before: {}after:  {}", words(&before), words(&after)))?;
    }
    let is_measured = after.calibrated_seconds > 0.0
        && (after.calibrated_seconds, after.bytes_per_busy_second)
            != (before.calibrated_seconds, before.bytes_per_busy_second);
    if !is_measured {
        output::note(&format!(
            "others used {disk} for less than a second without background work: nothing was measured, and plans go on as before"
        ));
    }
    Ok(CommandStatus::found_if(!is_measured))
}

/// A disk that has no work has nothing to say.
async fn one(client: &mut Operator, disk: &str) -> anyhow::Result<v1::BackgroundDisk> {
    let answer = client.background(v1::BackgroundRequest::default()).await?.into_inner();
    Ok(answer.disks.into_iter().find(|known| known.device == disk).unwrap_or_default())
}

fn words(disk: &v1::BackgroundDisk) -> String {
    if disk.bytes_per_busy_second <= 0.0 {
        return "nothing is known of what it serves to others\n".to_owned();
    }
    let bytes = size(disk.bytes_per_busy_second);
    let how = match disk.calibrated_seconds {
        busy if busy > 0.0 => format!("calibrated over {} of its time without background work", seconds(busy)),
        _ => "as seen so far, also beside background work".to_owned(),
    };
    let requests = match disk.requests_per_second {
        requests if requests > 0.0 => format!("; {requests:.0} requests a second while they use it"),
        _ => String::new(),
    };
    format!("{bytes} for others in a second of its time ({how}){requests}\n")
}

#[cfg(test)]
mod tests {
    use super::words;
    use minerva_api::v1;

    #[test]
    fn what_is_calibrated_is_told_from_what_was_seen_beside_work() {
        let disk = |bytes_per_busy_second, calibrated_seconds| v1::BackgroundDisk {
            bytes_per_busy_second,
            calibrated_seconds,
            requests_per_second: 120.0,
            ..v1::BackgroundDisk::default()
        };
        assert!(words(&disk(0.0, 0.0)).contains("nothing is known"));
        let seen = words(&disk(1e6, 0.0));
        assert!(
            seen.contains("1.0 MB") && seen.contains("beside background work") && seen.contains("120 requests"),
            "{seen}"
        );
        assert!(words(&disk(1e7, 12.0)).contains("calibrated over 12"), "{}", words(&disk(1e7, 12.0)));
    }
}
