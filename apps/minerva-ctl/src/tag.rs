//! Tags of requests: `minerva-ctl run --tag`, and what `minerva-ctl doctor` says of them, in a guest of its kernel and on the host of the disks
//! that servers serve.

use crate::output;
use anyhow::Context;
use minerva_client::{Tag, TagLevels, tag_levels};
use minerva_linux_actuate::{ask_server, server_names, server_socket};
use minerva_model::{ControlRequest, DiskReport, ServerAnswer, ServerReport};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Who looks at the host does not wait for a server that hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Gives this thread, and what it will start or become, a tag.
pub(crate) fn set(tag: u8, stream: Option<u8>) -> anyhow::Result<()> {
    let given = Tag::new(tag).and_then(|tag| stream.map_or(Some(tag), |stream| tag.in_stream(stream)));
    let given = given.context("tags go from 1 to 254, streams from 1 to 31")?;
    let tagged =
        minerva_client::tagged(given).context("failed to give the command a tag: the kernel takes no I/O priority")?;
    if tagged.levels() == TagLevels::Eight {
        output::note(&format!(
            "this kernel passes eight levels of tags (254 from 6.1.191 and 6.5 on): {tag} is one with its neighbours"
        ));
    }
    // The command has it for good.
    std::mem::forget(tagged);
    Ok(())
}

/// What is known of tags.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum TagLine {
    /// Of this kernel.
    TagLevels { levels: u32, reason: String },
    /// Of a disk that a server serves.
    TagsSeen { server: String, disk: String, tags: Vec<u8>, tagged_ops: u64, reason: String },
}

/// Prints what this kernel passes to a host, and which tags came from the guests that servers of this host serve.
pub(crate) fn report(runtime_dir: &Path, json: bool) -> anyhow::Result<()> {
    let mut lines = vec![levels()];
    for server in server_names(runtime_dir) {
        let answer = ask_server(&server_socket(runtime_dir, &server), &ControlRequest::List, &[], PATIENCE);
        // One that does not answer, or not to this user, is not what is asked about here.
        let Ok(ServerAnswer::Holds(text)) = answer else { continue };
        let Ok(report) = serde_json::from_str::<ServerReport>(&text) else { continue };
        lines.extend(report.disks.iter().map(|disk| seen(&server, disk)));
    }
    if json {
        return lines.iter().try_for_each(output::json);
    }
    output::text(&lines.iter().map(text).collect::<String>())
}

fn levels() -> TagLine {
    let (levels, reason) = match tag_levels() {
        Ok(TagLevels::All) => (254, "as a guest, its applications can give their requests all tags".to_owned()),
        Ok(TagLevels::Eight) => {
            let why = "as a guest, its applications have eight levels; Linux 6.1.191, 6.5 and later pass all 254 tags";
            (8, why.to_owned())
        }
        Err(error) => (0, format!("as a guest, its applications can give no tags: {error}")),
    };
    TagLine::TagLevels { levels, reason }
}

fn seen(server: &str, disk: &DiskReport) -> TagLine {
    let tags = disk.figures.tags_seen.clone();
    let requests = disk.io.read_ops + disk.io.write_ops + disk.other_ops;
    let reason = if tags.is_empty() {
        format!(
            "none of {requests} requests had a tag; in the guest `minerva-ctl doctor` says whether its kernel passes them"
        )
    } else {
        format!("{} of {requests} requests had one of {} tags", disk.tagged_ops, tags.len())
    };
    let (server, disk, tagged_ops) = (server.to_owned(), disk.settings.name.clone(), disk.tagged_ops);
    TagLine::TagsSeen { server, disk, tags, tagged_ops, reason }
}

fn text(line: &TagLine) -> String {
    match line {
        TagLine::TagLevels { levels, reason } => format!("tags: this kernel passes {levels} levels\n    {reason}\n"),
        TagLine::TagsSeen { server, disk, tags, reason, .. } => {
            let tags: Vec<String> = tags.iter().map(u8::to_string).collect();
            let tags = if tags.is_empty() { "none".to_owned() } else { tags.join(", ") };
            format!("tags of {disk} ({server}): {tags}\n    {reason}\n")
        }
    }
}
