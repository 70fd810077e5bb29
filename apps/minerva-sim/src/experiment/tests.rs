//! The promises of the papers' experiments.

use super::{ablation, elsewhere, htbs, tag};
use crate::scheduler::Name;
use minerva_blocksched::{Feasibility, HtbsOptions};
use minerva_model::Nanos;
use minerva_sim_device::profile;

const SECONDS: usize = 15;

#[test]
fn htbs_keeps_every_second_and_pclock_does_not() {
    let disk = profile("sata7200-80g").expect("built in");
    for block_bytes in [16_384, 65_536, 262_144] {
        let clients = htbs::four_jobs(&disk, block_bytes, Nanos::from_millis(200), SECONDS);
        for seed in [1, 2] {
            let missed = |name| htbs::outcome(&disk, name, &clients, seed, SECONDS).missed();
            assert_eq!(missed(Name::Htbs), 0, "{block_bytes} bytes, seed {seed}");
            assert!(missed(Name::Pclock) > 0, "{block_bytes} bytes, seed {seed}");
        }
    }
}

#[test]
fn htbs_keeps_what_its_original_misses() {
    let disk = profile("sata7200-80g").expect("built in");
    let clients = htbs::mixed_tenants(&disk, 30);
    let missed = |options| htbs::with_options(&disk, options, &clients, 1, 30).missed();
    assert_eq!(missed(HtbsOptions::default()), 0);
    assert!(missed(HtbsOptions::original()) > 0);
}

#[test]
fn htbs_keeps_elsewhere_what_the_admission_test_finds_likely() {
    let disk = profile("sas10k-300g").expect("built in");
    let mut likely = 0;
    for case in elsewhere::cases(&[disk], SECONDS) {
        if case.feasibility(Name::Htbs, 1).is_some_and(|feasibility| feasibility <= Feasibility::Likely) {
            likely += 1;
            let outcome = htbs::outcome(&case.profile, Name::Htbs, &case.clients, 1, SECONDS);
            assert_eq!(outcome.missed(), 0, "{}", case.name);
        }
    }
    assert!(likely > 10, "most of these sets fit the disk, and {likely} were found to");
}

#[test]
fn guarantees_cost_little_throughput() {
    let disk = profile("sata7200-80g").expect("built in");
    for count in [2, 16] {
        let clients = htbs::equal_readers(&disk, count, SECONDS);
        let [ours, bfq, pclock] =
            [Name::Htbs, Name::Bfq, Name::Pclock].map(|name| htbs::outcome(&disk, name, &clients, 1, SECONDS));
        assert_eq!(ours.missed(), 0, "{count} readers");
        assert!(ours.bytes_per_second >= 0.95 * bfq.bytes_per_second, "{count} readers");
        assert!(ours.bytes_per_second >= 2.0 * pclock.bytes_per_second, "{count} readers");
    }
}

#[test]
fn priorities_hold_across_vms() {
    let disk = profile("sata-ssd").expect("built in");
    let streams = tag::fig8();
    let mut lost = 0;
    for (seed, read_percent) in (0..6).zip(tag::READ_PERCENTS.into_iter().cycle()) {
        let run = |stack| tag::run(&disk, stack, &streams, read_percent, seed, Nanos::from_secs(5));
        let ours = run(tag::Stack::Tagged(tag::tag_options(true, true)));
        assert_eq!(tag::inversions(&streams, &ours), [], "seed {seed}, {read_percent} % reads");
        assert!(tag::proportion_error(&streams, &ours) <= 0.05, "seed {seed}, {read_percent} % reads");
        assert!(ours.bytes_per_second >= 0.98 * run(tag::Stack::Passed(Name::Noop)).bytes_per_second);
        lost += tag::inversions(&streams, &run(tag::Stack::Tagged(tag::tag_options(false, false)))).len();
    }
    assert!(lost > 0, "the paper's own settings lose the order");
}

#[test]
fn a_flow_without_a_contract_has_an_equal_part() {
    let disk = profile("sata7200-80g").expect("built in");
    for (readers, seed) in [(1, 1), (1, 2), (3, 1), (3, 2)] {
        let (part, missed) = ablation::part_beside_greedy(&disk, readers, seed, 30);
        assert_eq!(missed, 0, "{readers} readers, seed {seed}");
        let equal = 1.0 / (readers + 1) as f64;
        assert!((0.7 * equal..=1.3 * equal).contains(&part), "{readers} readers, seed {seed}: {part}");
    }
}

#[test]
fn every_option_of_htbs_shows_in_its_scene() {
    let disk = profile("sata7200-80g").expect("built in");
    for seed in [1, 2, 3] {
        for (mend, effect) in ablation::mends().iter().zip(ablation::effects(&disk, seed, 30, 2)) {
            let (name, ablation::Effect { with, without }) = (mend.option, effect);
            assert_eq!(with.missed, 0, "{name}, seed {seed}: {effect:?}");
            match mend.gain {
                ablation::Gain::Promises => assert!(without.missed > 0, "{name}, seed {seed}: {effect:?}"),
                ablation::Gain::Throughput => {
                    assert!(with.bytes_per_second >= 1.05 * without.bytes_per_second, "{name}, seed {seed}: {effect:?}")
                }
            }
        }
    }
}

/// The paper assigned none there.
#[test]
fn cfq_has_no_priorities_in_fig_8_of_bai_and_huang() {
    let ssd = profile("sata-ssd").expect("built in");
    let (streams, until) = (tag::fig8(), Nanos::from_secs(5));
    let report = tag::run(&ssd, tag::Stack::PlainCfqOverCfq, &streams, 100, 1, until);
    for vm in report.processes.chunks(2) {
        let ratio = vm[0].bytes as f64 / vm[1].bytes as f64;
        assert!((0.8..1.25).contains(&ratio), "{} and {}: {ratio}", vm[0].name, vm[1].name);
    }
}
