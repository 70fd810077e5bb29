//! `minerva-lab figure clients`.

use super::Line;
use crate::cli::ClientsArguments;
use crate::{binaries, signals};
use anyhow::Context;
use minerva_lab::figure::{ClientsPlan, clients};

const ANSWER_MS_MAX: f64 = 5.0;
const CLIENT_KIB_MAX: f64 = 20.0;
/// The budget of a whole slice.
const SLICE_MS_MAX: f64 = 50.0;

pub(super) fn run(arguments: &ClientsArguments) -> anyhow::Result<()> {
    let plan = ClientsPlan {
        clients: arguments.clients,
        requests_per_second: arguments.requests_per_second,
        seconds: arguments.seconds,
        tenants: arguments.tenants.max(1),
        daemon: binaries::minervad(&arguments.output)?,
        callers: std::env::current_exe().context("failed to find the running program")?,
    };
    let interrupted = signals::interrupt_flag()?;
    let result = clients(&plan, &interrupted)?;
    let count = result.clients;
    let asked = format!("{count} clients in {} tenants, {} requests a second", plan.tenants, plan.requests_per_second);
    let failed = match result.failed {
        0 => String::new(),
        failed => format!("; {failed} failed, the first: {}", result.failure),
    };
    let p99 = result.answer_ms(0.99);
    let line = |value, unit, goal: String, met, detail| Line { id: "clients", value, unit, goal, met, detail };
    let json = arguments.output.json;
    line(
        p99,
        "ms response time, p99",
        format!("under {ANSWER_MS_MAX}"),
        p99 < ANSWER_MS_MAX && result.failed == 0,
        format!(
            "{asked}: median {:.2} ms, p99 {p99:.2} ms, p99.9 {:.2} ms of {} answers{failed}",
            result.answer_ms(0.5),
            result.answer_ms(0.999),
            result.answers_ms.len(),
        ),
    )
    .print(json)?;
    let kibibytes = result.bytes_per_client() / 1024.0;
    let [before, connected, after] = result.resident_bytes.map(|bytes| bytes >> 20);
    line(
        kibibytes,
        "KiB a client",
        format!("under {CLIENT_KIB_MAX}"),
        kibibytes < CLIENT_KIB_MAX,
        format!(
            "{count} clients: {before} MiB before, {connected} MiB with all connected, {after} MiB after the requests"
        ),
    )
    .print(json)?;
    let [alone, busy] = result.slice_ms;
    line(
        busy,
        "ms a slice",
        format!("at most {SLICE_MS_MAX}"),
        busy <= SLICE_MS_MAX,
        format!("{asked}: {busy:.2} ms a slice with them, {alone:.2} ms without; {} began late", result.slices_late),
    )
    .print(json)?;
    Ok(())
}
