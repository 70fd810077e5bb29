//! `minerva-fs doctor` in a virtual machine: are the trees the host's, does the agent answer and for whom, what waits and why, and what does
//! this kernel offer to who moves files?

use crate::finding::Finding;
use crate::guest;
use crate::leftovers;
use crate::settings::socket;
use minerva_api::cache::{Answer, Request, ask};
use minerva_api::client::connect_as_tenant;
use minerva_api::v1;
use minerva_config::FsConfig;
use rustix::fs::statvfs;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The agent waits longer for a host that is away.
const ANSWER: Duration = Duration::from_secs(8);
/// Without leases nobody knows who has a file open.
const LEASES: &str = "/proc/sys/fs/leases-enable";
/// Seconds that the kernel lets whoever opens a leased file wait.
const PATIENCE: &str = "/proc/sys/fs/lease-break-time";

/// All of it.
pub(crate) fn findings(config: &FsConfig) -> Vec<Finding> {
    let mut findings: Vec<_> = ["temporary", "stable"].map(|kind| tree(&config.server.mount.join(kind))).into();
    findings.push(leases());
    findings.push(agent(&guest::agent(config)));
    let answer = ask(&socket(config), &Request::Status).ok();
    let is_served = matches!(answer, Some(Answer::Status { .. }));
    findings.push(service(answer));
    findings.extend(leftovers::find_in_guest(config, is_served));
    findings
}

fn tree(at: &Path) -> Finding {
    let what = "tree".to_owned();
    let room = guest::judge(at).and_then(|()| Ok(statvfs(at)?));
    match room {
        Ok(room) => {
            let mib = |blocks: u64| (blocks * room.f_frsize) >> 20;
            let used = mib(room.f_blocks.saturating_sub(room.f_bfree));
            let detail = format!(
                "{} is the host's, {used} of {} MiB and {} of {} files are used",
                at.display(),
                mib(room.f_blocks),
                room.f_files.saturating_sub(room.f_ffree),
                room.f_files
            );
            Finding { what, is_good: true, detail }
        }
        Err(error) => Finding { what, is_good: false, detail: format!("{error:#}") },
    }
}

fn leases() -> Finding {
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let what = "leases".to_owned();
    match (number(LEASES), number(PATIENCE)) {
        (Some(1), patience) => {
            let detail = format!(
                "this kernel says who has a file open; whoever opens one at the end of its move waits for that, {} s at most",
                patience.unwrap_or(45)
            );
            Finding { what, is_good: true, detail }
        }
        _ => {
            let detail = format!(
                "{LEASES} is not 1, so that nobody knows who has a file open, and none moves: sysctl fs.leases-enable=1"
            );
            Finding { what, is_good: false, detail }
        }
    }
}

/// Whether somebody says when files may move.
fn agent(socket: &Path) -> Finding {
    let asked = async {
        let mut server = connect_as_tenant(socket).await?;
        let answer = tokio::time::timeout(ANSWER, server.describe(v1::DescribeRequest {})).await;
        let answer = answer.map_err(|_| anyhow::anyhow!("it takes the connection and does not answer"))?;
        anyhow::Ok(answer.map_err(|status| anyhow::anyhow!("{}", status.message()))?.into_inner())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let told = match runtime {
        Ok(runtime) => runtime.block_on(asked),
        Err(error) => Err(error.into()),
    };
    let detail = match told {
        Ok(v1::DescribeResponse { tenant, version, mode, .. }) => format!(
            "{} reaches the host's minervad {version}, in mode {mode}, where this machine is {tenant}: it says when files may move",
            socket.display()
        ),
        Err(error) => format!(
            "nobody says when files may move, so they wait for `minerva-ctl cache flush`: {}: {error:#}; start it (systemctl start \
             minerva-agent), and see on the host that minervad listens to machines",
            socket.display()
        ),
    };
    Finding::note("agent", detail)
}

fn service(answer: Option<Answer>) -> Finding {
    let detail = match answer {
        Some(Answer::Status { migration, .. }) => format!(
            "it answers; {} files were moved since it began, and {} attempts ended without a move",
            migration.moved_files, migration.failed
        ),
        _ => "none answers; start it: systemctl start minerva-fs".to_owned(),
    };
    Finding::note("service", detail)
}
