//! `minerva-ctl record`: writes a recording that the daemon sends.

use crate::output::{self, Verdict};
use anyhow::{Context, bail};
use minerva_api::client::Operator;
use minerva_api::v1;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio_stream::wrappers::ReceiverStream;

/// Records for `duration`, or until interrupted.
pub(crate) async fn run(
    mut client: Operator,
    file: PathBuf,
    duration: Option<Duration>,
    json: bool,
) -> anyhow::Result<Verdict> {
    let mut out = tokio::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
        .await
        .with_context(|| format!("failed to create {}", file.display()))?;
    // The recording lasts as long as this side of the call is open.
    let (asking, asked) = tokio::sync::mpsc::channel(1);
    let mut pieces = client.record(ReceiverStream::new(asked)).await?.into_inner();
    if duration.is_none() {
        eprintln!("recording to {}; interrupt to end", file.display());
    }
    let end = async {
        match duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => drop(tokio::signal::ctrl_c().await),
        }
    };
    tokio::pin!(end);
    let mut asking: Option<tokio::sync::mpsc::Sender<v1::RecordRequest>> = Some(asking);
    let mut bytes: u64 = 0;
    loop {
        tokio::select! {
            piece = pieces.message() => match piece? {
                Some(v1::RecordResponse { piece }) => {
                    out.write_all(&piece).await.with_context(|| format!("failed to write {}", file.display()))?;
                    bytes += piece.len() as u64;
                }
                None if asking.is_none() => break,
                None => bail!(
                    "the daemon ended the recording: it stopped, another recording runs, or this disk was too slow for it; \
                     {} holds what came",
                    file.display()
                ),
            },
            () = &mut end, if asking.is_some() => asking = None,
        }
    }
    out.flush().await.and(out.sync_all().await).with_context(|| format!("failed to finish {}", file.display()))?;
    if json {
        output::json(&serde_json::json!({ "file": file, "bytes": bytes }))?;
    } else {
        eprintln!("recorded {bytes} bytes to {}", file.display());
    }
    Ok(Verdict::Well)
}
