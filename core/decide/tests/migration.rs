//! Scripts in `testdata/migration*.txt`: commands above `----`, what was ordered below. `UPDATE_EXPECT=1 cargo test` writes them anew;
//! read the difference.
//!
//! | command | meaning |
//! |---|---|
//! | `file N TENANT MEGABYTES [disk=MINOR] [pool=PERMILLE]` | a file begins to wait |
//! | `ask N` | somebody asks for it |
//! | `late N HOURS` | it has waited so long, and is overdue |
//! | `moved N` | it is at its place |
//! | `slice MINOR=OTHERS[@PERMILLE] …` | a second, with so many others on each disk by the daemon (`n` by counters: `2c`, `?` not known) and who is expected |

#![expect(clippy::unwrap_used, reason = "a script that does not parse is a failed test")]

use expect_test::expect_file;
use minerva_decide::{Migration, MigrationPace, TargetDisk, ToldBy, WaitingFile};
use minerva_model::{DeviceId, Nanos};
use proptest::prelude::*;
use std::fmt::Write;

fn disk(minor: u32) -> DeviceId {
    DeviceId { major: 8, minor }
}

fn file(words: &[&str]) -> WaitingFile {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.parse().ok());
    WaitingFile {
        id: words[0].parse().unwrap(),
        tenant: words[1].to_owned(),
        device: disk(option("disk=").unwrap_or(0)),
        bytes: 1_000_000 * words[2].parse::<u64>().unwrap(),
        waited: Nanos::ZERO,
        is_overdue: false,
        is_asked_for: false,
        is_under_way: false,
        pool_permille: option("pool=").unwrap_or(100),
    }
}

fn target(word: &str) -> TargetDisk {
    let (minor, told) = word.split_once('=').unwrap();
    let (others, expected) = told.split_once('@').map_or((told, None), |(others, part)| (others, part.parse().ok()));
    let others = match others.strip_suffix('c') {
        _ if others == "?" => None,
        Some(count) => Some((count.parse().unwrap(), ToldBy::Counters)),
        None => Some((others.parse().unwrap(), ToldBy::Daemon)),
    };
    TargetDisk { device: disk(minor.parse().unwrap()), others, expected_permille: expected }
}

fn answer(script: &str) -> String {
    let commands = script.split("----").next().unwrap();
    let (mut migration, mut files, mut out, mut second) = (Migration::default(), Vec::new(), String::new(), 0);
    for line in commands.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "file" => files.push(file(&words[1..])),
            "moved" => files.retain(|file: &WaitingFile| file.id != words[1].parse::<u64>().unwrap()),
            "ask" => {
                let id: u64 = words[1].parse().unwrap();
                files.iter_mut().filter(|file| file.id == id).for_each(|file| file.is_asked_for = true);
            }
            "late" => {
                let (id, hours): (u64, u64) = (words[1].parse().unwrap(), words[2].parse().unwrap());
                for file in files.iter_mut().filter(|file| file.id == id) {
                    (file.is_overdue, file.waited) = (true, Nanos::from_secs(3600 * hours));
                }
            }
            "slice" => {
                second += 1;
                let disks: Vec<TargetDisk> = words[1..].iter().map(|word| target(word)).collect();
                for order in migration.slice(&disks, &files) {
                    writeln!(out, "{second:>4} s  {order}").unwrap();
                    let goes = |file: &&mut WaitingFile| file.id == order.file && order.pace != MigrationPace::Hold;
                    files.iter_mut().filter(goes).for_each(|file| file.is_under_way = true);
                }
                files.iter_mut().for_each(|file| file.waited += Nanos::from_secs(1));
            }
            word => panic!("{word}"),
        }
    }
    format!("{commands}----\n{out}")
}

#[test]
fn migration() {
    expect_file!["../testdata/migration.txt"].assert_eq(&answer(include_str!("../testdata/migration.txt")));
}

proptest! {
    /// While others use a disk nothing moves there unless it was asked for, a pool is full or a file has waited too long; then it does.
    /// And who is first at a quiet disk is moved.
    #[test]
    fn others_are_disturbed_only_for_a_reason_and_nothing_waits_at_a_quiet_disk(
        pools in proptest::collection::vec((0_u32..1100, any::<bool>(), 0_u64..1000, any::<bool>()), 1..20),
        others in proptest::collection::vec(0_u32..3, 1..50),
    ) {
        let files: Vec<WaitingFile> = (0..).zip(&pools).map(|(id, (pool, asked, waited, overdue))| WaitingFile {
            id, tenant: "t".to_owned(), device: disk(0), bytes: 1, waited: Nanos::from_secs(*waited),
            is_overdue: *overdue, is_asked_for: *asked, is_under_way: false, pool_permille: *pool,
        }).collect();
        let is_pressing = |file: &WaitingFile| file.is_asked_for || file.pool_permille >= 950 || file.is_overdue;
        let mut migration = Migration::default();
        let mut quiet = 0;
        for count in others {
            quiet = if count == 0 { quiet + 1 } else { 0 };
            let target = TargetDisk { device: disk(0), others: Some((count, ToldBy::Daemon)), expected_permille: None };
            let orders = migration.slice(&[target], &files);
            prop_assert_eq!(orders.len(), 1);
            let chosen = &files[orders[0].file as usize];
            match orders[0].pace {
                MigrationPace::Gaps => prop_assert!(quiet >= 2),
                MigrationPace::Share(part) => prop_assert!(part <= 200 && is_pressing(chosen)),
                MigrationPace::Hold => prop_assert!(quiet < 2 && !files.iter().any(is_pressing)),
            }
            // Nobody who was asked for waits behind one who was not.
            prop_assert!(chosen.is_asked_for || files.iter().all(|file| !file.is_asked_for));
        }
    }
}
