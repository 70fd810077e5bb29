//! A program in a guest owes work: it is told when it may do it, the host's operator sees how far it is, and it is withdrawn when the agent
//! or the guest goes.

use crate::host::{Host, LoopDisk, TENANT, Watch};
use crate::{Network, TIMEOUT, network, networked};
use minerva_client::{Client, Debt, Owing};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Tells this program that it is the one in the guest.
const IN_GUEST: &str = "MINERVA_TEST_DEBT_IN_GUEST";
/// The guest's files by which its script and its program wait for each other.
const REPORTED: &str = "/tmp/reported";
const KILLED: &str = "/tmp/killed";
const SECOND: Duration = Duration::from_secs(1);

const SCRIPT: &str = r#"
agent() {
    minerva-agent --report-period 500ms 2>> /tmp/agent.log &
    agent=$!
}
agent
tries=0
until [ -S /run/minerva/agent.sock ] || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
MINERVA_TEST_DEBT_IN_GUEST=1 debtor --exact debts::in_the_guest_a_program_owes_work --nocapture > /tmp/debtor.log 2>&1 &
tries=0
until [ -e /tmp/reported ] || [ $tries -ge 600 ]; do sleep 0.1; tries=$((tries + 1)); done
sleep 2
kill -9 $agent
sleep 3
agent
touch /tmp/killed
sleep 6
cat /tmp/debtor.log /tmp/agent.log >&2
"#;

/// The program in the guest; on the host it does nothing.
#[test]
fn in_the_guest_a_program_owes_work() {
    if std::env::var_os(IN_GUEST).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect().await.expect("the agent");
        let debt = Debt::new("rebuild", 50 * SECOND).ties(4096).done_within(600 * SECOND);
        let mut held = client.debt(debt).await.expect("held");
        let owing = |done: u32| Owing { service: 50 * SECOND, done: done * SECOND, tied_bytes: 4096 };
        println!("held, may work: {}", held.may_work());
        held.wait().await;
        println!("told to work");
        held.report(owing(10));
        std::fs::write(REPORTED, "").expect("written");
        while !Path::new(KILLED).exists() {
            tokio::time::sleep(SECOND / 10).await;
        }
        // It did more while nobody was there to be told.
        held.report(owing(20));
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_program_in_a_guest_owes_work_until_its_agent_or_its_guest_goes() {
    let Some(mut host) = Host::new() else { return };
    let Some(minervad) = host.program("minervad") else { return };
    let Some(disk) = LoopDisk::new(&host) else { return };
    let Network { participation, files, prelude } = network(&host);
    host.serve_disk(&minervad, &participation, &disk.name);
    let Some(agent) = host.program("minerva-agent") else { return };
    let debtor = host.path("debtor");
    let own = std::env::current_exe().expect("this program has a path");
    assert!(Command::new("strip").arg("-o").arg(&debtor).arg(own).status().expect("strip").success());

    let (watch, ended) = (Watch::of(&host), Arc::new(AtomicBool::new(false)));
    let until = Arc::clone(&ended);
    let watching = std::thread::spawn(move || {
        let mut seen: Vec<Option<(String, f64, u64)>> = Vec::new();
        let mut is_last = false;
        while !is_last {
            // Once more after the end.
            is_last = until.load(Ordering::Relaxed);
            if let Some(owed) = watch.owed() {
                let one = owed.into_iter().next().map(|queue| (queue.name, queue.done_items, queue.tied_bytes));
                if seen.last() != Some(&one) {
                    seen.push(one);
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        seen
    });
    let guest = networked(files).name(TENANT).memory_mib(768).cpus(2).cgroup(host.cgroup());
    let _turn = super::TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let result = guest.with_binary(agent).with_binary(debtor).run(&format!("{prelude}{SCRIPT}"), TIMEOUT);
    // The daemon hears of it within a slice.
    std::thread::sleep(SECOND);
    ended.store(true, Ordering::Relaxed);
    let seen = watching.join().expect("it does not panic");
    let output = match result {
        Ok(output) => output,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}\n{}", host.log()),
    };
    let owed = |done: f64| Some(("rebuild".to_owned(), done, 4096));
    // Registered again either before the program was told that it may go on, or after.
    let again = if seen.get(4) == Some(&owed(10.0)) { vec![owed(10.0), owed(20.0)] } else { vec![owed(20.0)] };
    let expected = [vec![None, owed(0.0), owed(10.0), None], again, vec![None]].concat();
    let context = format!("{seen:?}\n{}\n{}\n{}", output.stdout, output.stderr, host.log());
    assert_eq!(seen, expected, "{context}");
}
