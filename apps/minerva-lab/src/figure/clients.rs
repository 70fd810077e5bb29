//! `minerva-lab figure clients`.

use super::Line;
use crate::cli::ClientsArguments;
use crate::{binaries, signals};
use anyhow::Context;
use minerva_lab::figure::{ClientsPlan, ClientsResult, clients};

const ANSWER_MS_MAX: f64 = 5.0;
const CLIENT_KIB_MAX: f64 = 20.0;
/// The budget of a whole slice.
const SLICE_MS_MAX: f64 = 50.0;
/// So many clients and requests a second are asked for: fewer meet no goal.
const CLIENTS_MIN: usize = 10_000;
const REQUESTS_MIN: u32 = 2000;

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
    lines(&plan, &result).iter().try_for_each(|line| line.print(arguments.output.json))
}

fn lines(plan: &ClientsPlan, result: &ClientsResult) -> [Line; 3] {
    let count = result.clients;
    let is_enough = count >= CLIENTS_MIN && plan.requests_per_second >= REQUESTS_MIN && are_answered(result);
    let asked = format!("{count} clients in {} tenants, {} requests a second", plan.tenants, plan.requests_per_second);
    let failed = match result.failed {
        0 => String::new(),
        failed => format!("; {failed} failed, the first: {}", result.failure),
    };
    let line = |value, unit, goal: String, met: bool, detail| {
        let goal = format!("{goal}, with {CLIENTS_MIN} clients and {REQUESTS_MIN} requests a second");
        Line { id: "clients", value, unit, goal, met: met && is_enough, detail }
    };
    let p99 = result.answer_ms(0.99);
    let kibibytes = result.bytes_per_client() / 1024.0;
    let [before, connected, after] = result.resident_bytes.map(|bytes| bytes >> 20);
    let [alone, busy] = result.slice_ms;
    [
        line(
            p99,
            "ms response time, p99",
            format!("under {ANSWER_MS_MAX}"),
            p99 < ANSWER_MS_MAX,
            format!(
                "{asked}: median {:.2} ms, p99 {p99:.2} ms, p99.9 {:.2} ms of {} answers{failed}",
                result.answer_ms(0.5),
                result.answer_ms(0.999),
                result.answers_ms.len(),
            ),
        ),
        line(
            kibibytes,
            "KiB a client",
            format!("under {CLIENT_KIB_MAX}"),
            kibibytes < CLIENT_KIB_MAX,
            format!(
                "{count} clients: {before} MiB before, {connected} MiB with all connected, {after} MiB after the requests"
            ),
        ),
        line(
            busy,
            "ms a slice",
            format!("at most {SLICE_MS_MAX}"),
            busy <= SLICE_MS_MAX,
            format!(
                "{asked}: {busy:.2} ms a slice with them, {alone:.2} ms without; {} began late",
                result.slices_late
            ),
        ),
    ]
}

/// Where nobody is answered the daemon has little to do and to remember.
fn are_answered(result: &ClientsResult) -> bool {
    result.failed == 0 && !result.answers_ms.is_empty()
}

#[cfg(test)]
mod tests {
    use super::lines;
    use minerva_lab::figure::{ClientsPlan, ClientsResult};

    #[test]
    fn too_few_clients_requests_and_answers_meet_no_goal() {
        let met_with = |clients, requests_per_second, answers: usize, failed| {
            let plan = ClientsPlan {
                clients,
                requests_per_second,
                seconds: 30,
                tenants: 4,
                daemon: "d".into(),
                callers: "c".into(),
            };
            let result = ClientsResult {
                clients,
                answers_ms: vec![1.0; answers],
                failed,
                failure: String::new(),
                resident_bytes: [1 << 20; 3],
                slice_ms: [1.0, 2.0],
                slices_late: 0,
            };
            lines(&plan, &result).map(|line| line.met)
        };
        let met = |clients, requests_per_second, answers| met_with(clients, requests_per_second, answers, 0);
        assert_eq!(met(10_000, 2000, 60_000), [true; 3]);
        assert_eq!([met(9_999, 2000, 60_000), met(10_000, 1999, 60_000)], [[false; 3]; 2]);
        assert_eq!([met(10_000, 2000, 0), met_with(10_000, 2000, 59_999, 1)], [[false; 3]; 2]);
    }
}
