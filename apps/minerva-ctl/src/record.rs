//! `minerva-ctl record`: writes a recording that the daemon sends.

use crate::daemon::answered;
use crate::output::{self, CommandStatus};
use crate::signals::Signals;
use anyhow::{Context, bail};
use minerva_api::client::Operator;
use minerva_api::v1;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::Sender;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Records for `duration`, or until a signal comes; either way the recording is whole.
pub(crate) async fn run(
    mut client: Operator,
    file: PathBuf,
    duration: Option<Duration>,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let mut signals = Signals::catch()?;
    // Before the daemon is asked, which would begin for nothing if there were no place for the recording.
    let mut out = tokio::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
        .await
        .with_context(|| format!("failed to create {}", file.display()))?;
    // The recording lasts as long as this side of the call is open.
    let (asking, asked) = tokio::sync::mpsc::channel(1);
    let begun = tokio::select! {
        answer = answered(client.record(ReceiverStream::new(asked))) => answer.map_err(anyhow::Error::new),
        came = signals.next() => {
            remove(&file);
            return Ok(CommandStatus::Signalled(came.number));
        }
    };
    let pieces = begun.inspect_err(|_| remove(&file))?.into_inner();
    output::say(&format!("recording to {}; interrupt to end", output::path(&file)));
    let bytes = receive(pieces, asking, &mut out, &file, duration, &mut signals).await?;
    out.flush().await.and(out.sync_all().await).with_context(|| format!("failed to finish {}", file.display()))?;
    if json {
        output::json(&serde_json::json!({ "file": file.to_string_lossy(), "bytes": bytes }))?;
    } else {
        output::say(&format!("recorded {bytes} bytes to {}", output::path(&file)));
    }
    Ok(CommandStatus::Well)
}

/// Writes what comes until the daemon ends the recording, which it is asked to after `duration` or at a signal by dropping
/// `asking`; how many bytes came.
async fn receive(
    mut pieces: Streaming<v1::RecordResponse>,
    asking: Sender<v1::RecordRequest>,
    out: &mut File,
    file: &Path,
    duration: Option<Duration>,
    signals: &mut Signals,
) -> anyhow::Result<u64> {
    let end = async {
        match duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(end);
    let mut asking = Some(asking);
    let mut bytes: u64 = 0;
    loop {
        tokio::select! {
            piece = pieces.message() => match piece? {
                Some(v1::RecordResponse { piece }) => {
                    out.write_all(&piece).await.with_context(|| format!("failed to write {}", file.display()))?;
                    bytes += piece.len() as u64;
                }
                None if asking.is_none() => return Ok(bytes),
                None => bail!(
                    "the daemon ended the recording: it stopped, another recording runs, or this disk was too slow for it; \
                     {} holds what came",
                    file.display()
                ),
            },
            () = &mut end, if asking.is_some() => asking = None,
            came = signals.next() => {
                if asking.take().is_none() {
                    bail!("ended by signal {} before the daemon had ended: {} lacks its end", came.number, file.display());
                }
            }
        }
    }
}

/// The empty file of a recording that did not begin, so that it is not in the way of the next one.
fn remove(file: &Path) {
    if let Err(error) = std::fs::remove_file(file) {
        output::note(&format!("failed to remove {}: {error}", output::path(file)));
    }
}
