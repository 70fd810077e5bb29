//! `kill -9` of a writer at random moments: every row that it acknowledged is there.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use minerva_model::{Decision, DeviceId, Nanos, Share, TenantHistory, TenantId, UsageAverage};
use minerva_store::{AuditLimits, AuditRow, Store};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Names the database for the writer, which is this same program.
const WRITER: &str = "MINERVA_TEST_STORE_WRITER";
const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const ROUNDS: u32 = 40;

fn open(path: &Path) -> Store {
    let (store, notes) = Store::open(path, "boot-a", Box::new(|| 0)).expect("opens");
    assert_eq!(notes, [], "a kill must not damage the file");
    store
}

fn history(number: u64) -> TenantHistory {
    TenantHistory {
        key: format!("group:{}", number % 100),
        device: DISK,
        usage: UsageAverage { recent_bytes_per_second: number as f64, long_term_bytes_per_second: 0.0 },
        disk_part: 0.25,
        group: 0,
        age: Nanos::ZERO,
    }
}

fn audit_row(number: u64) -> AuditRow {
    AuditRow {
        at_unix_ms: number as i64,
        tenant_name: format!("tenant-{number}"),
        cgroup_path: "a".into(),
        account: "cgroup:a#1".into(),
        device_name: "sda".into(),
        decision: Decision { tenant: TenantId(number), device: DISK, share: Share::NEUTRAL, factors: Vec::new() },
        text: String::new(),
    }
}

/// Not a test by itself: writes until it is killed, when the environment says so.
#[test]
fn writer() {
    let Ok(path) = std::env::var(WRITER) else { return };
    let mut store = open(Path::new(&path));
    let mut first: u64 = std::env::var("MINERVA_TEST_FIRST").expect("given").parse().expect("a number");
    let mut out = std::io::stdout();
    loop {
        let numbers = first..first + 20;
        store.remember(&numbers.clone().map(history).collect::<Vec<_>>()).expect("written");
        store.audit(&numbers.map(audit_row).collect::<Vec<_>>()).expect("written");
        first += 20;
        if first.is_multiple_of(400) {
            store.checkpoint().expect("moved");
            store.prune(AuditLimits { rows_max: 100_000, ..AuditLimits::default() }).expect("pruned");
        }
        // One line in one write: the reader must not see half of a number.
        if out.write_all(format!("\nacknowledged {first}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

#[test]
fn no_acknowledged_row_is_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("minerva.db");
    let mut acknowledged = 0u64;
    // A fixed sequence of moments: after so many acknowledgements, then after so much of the next transaction.
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut kills = 0;
    for _ in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "writer", "--nocapture"])
            .env(WRITER, &path)
            .env("MINERVA_TEST_FIRST", acknowledged.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut lines_left = (random >> 60) + 1;
        let mut spins = (random >> 40) % 400_000;
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        for line in lines.map_while(Result::ok) {
            let Some(number) = line.strip_prefix("acknowledged ") else { continue };
            acknowledged = number.parse().expect("a number");
            lines_left = lines_left.saturating_sub(1);
            if lines_left == 0 && spins > 0 {
                while spins > 0 {
                    spins = std::hint::black_box(spins - 1);
                }
                child.kill().expect("killed");
                kills += 1;
            }
        }
        child.wait().expect("reaped");

        let store = open(&path);
        for number in acknowledged.saturating_sub(100)..acknowledged {
            let found = store.recall(&history(number).key).expect("read");
            assert!(found[0].usage.recent_bytes_per_second >= number as f64, "history {number} is lost");
        }
        for number in acknowledged.saturating_sub(500)..acknowledged {
            assert!(
                !store.explain(&format!("tenant-{number}"), None, None).expect("read").is_empty(),
                "audit {number} is lost"
            );
        }
    }
    assert_eq!(kills, ROUNDS);
    let store = open(&path);
    for number in 0..acknowledged {
        assert!(
            !store.explain(&format!("tenant-{number}"), None, None).expect("read").is_empty(),
            "audit {number} is lost"
        );
    }
}
