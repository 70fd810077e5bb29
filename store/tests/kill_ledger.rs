//! `kill -9` of a writer in the middle of purchases: no credit is lost, none is doubled, whatever is sent again afterwards.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use minerva_model::{EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, RequestId};
use minerva_store::{Posted, Posting, Store};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Names the database for the writer, which is this same program.
const WRITER: &str = "MINERVA_TEST_LEDGER_WRITER";
const FIRST: &str = "MINERVA_TEST_LEDGER_FIRST";
const ROUNDS: u32 = 40;
const ACCOUNT: &str = "group:g";

fn open(path: &Path) -> Store {
    let (store, notes) = Store::open(path, "boot-a", Box::new(|| 0)).expect("opens");
    assert_eq!(notes, [], "a kill must not damage the file");
    store
}

/// What the engine does in a slice with a purchase: 30 credits entered, 25 spent under the purchase's key, and each earning
/// under a key of its own, so that this test can send it again too.
fn purchase(number: u64) -> [Posting; 2] {
    let entry = |kind: EntryKind, credits, key: String| {
        Posting::from(LedgerEntry {
            number: EntryNumber(number),
            account: ACCOUNT.to_owned(),
            kind,
            amount: MicroCredits::credits(credits),
            expires_in: kind.adds().then_some(Nanos::from_secs(86_400)),
            request: Some(RequestId(key)),
        })
    };
    [entry(EntryKind::Earned, 30, format!("earned-{number}")), entry(EntryKind::Spent, 25, format!("bought-{number}"))]
}

/// Not a test by itself: buys until it is killed, when the environment says so.
#[test]
fn writer() {
    let Ok(path) = std::env::var(WRITER) else { return };
    let mut store = open(Path::new(&path));
    let mut number: u64 = std::env::var(FIRST).expect("given").parse().expect("a number");
    let mut out = std::io::stdout();
    loop {
        store.post(&purchase(number)).expect("written");
        number += 1;
        if number.is_multiple_of(50) {
            store.checkpoint().expect("moved");
        }
        // One line in one write: the reader must not see half of a number.
        if out.write_all(format!("\nacknowledged {number}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

#[test]
fn no_credit_is_lost_and_none_doubled() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("minerva.db");
    let mut acknowledged = 0u64;
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "writer", "--nocapture"])
            .env(WRITER, &path)
            // A client that heard nothing sends its last purchase again: the writer begins with what may be there already.
            .env(FIRST, acknowledged.saturating_sub(1).to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut lines_left = (random >> 60) + 2;
        let mut spins = (random >> 40) % 400_000;
        for line in BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok) {
            let Some(number) = line.strip_prefix("acknowledged ") else { continue };
            acknowledged = number.parse().expect("a number");
            lines_left = lines_left.saturating_sub(1);
            if lines_left == 0 && spins > 0 {
                while spins > 0 {
                    spins = std::hint::black_box(spins - 1);
                }
                child.kill().expect("killed");
            }
        }
        child.wait().expect("reaped");

        let mut store = open(&path);
        let balance = store.balance_micro_credits(ACCOUNT).expect("read");
        let committed = u64::try_from(balance).expect("never below zero") / 5_000_000;
        assert_eq!(balance, committed as i64 * 5_000_000, "a purchase is entered whole or not at all");
        // What was acknowledged is there, and of what was not, at most the one under way.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&committed),
            "{acknowledged} acknowledged, {committed} there"
        );
        let lots: u64 = store.lots(ACCOUNT).expect("read").iter().map(|lot| lot.amount.0).sum();
        assert_eq!(lots, balance as u64);
        for number in [0, committed / 2, committed.saturating_sub(1)] {
            assert_eq!(store.post(&purchase(number)).expect("written"), [Posted::Known; 2], "purchase {number}");
        }
        assert_eq!(store.balance_micro_credits(ACCOUNT).expect("read"), balance);
    }
    assert!(acknowledged > u64::from(ROUNDS));
}
