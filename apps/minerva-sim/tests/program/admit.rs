//! `admit`: whether contracts fit a disk, and what to do when they were not given.

use super::{place, sim};

/// Readers with these contracts, each in a place of its own.
fn readers(contracts: &[&str]) -> String {
    let job = |(index, contract): (usize, &&str)| {
        format!("[reader{index}]\nrw=read\nbs=64k\noffset={index}g\nsize=1g\nruntime=2\nminerva_contract={contract}\n")
    };
    contracts.iter().enumerate().map(job).collect()
}

#[test]
fn contracts_that_fit_and_ones_that_do_not_are_told_apart_with_a_margin() {
    let few = readers(&["1MB/s,64k,2s"]);
    let some = readers(&["8MB/s,64k,200ms", "4MB/s,64k,200ms"]);
    let many = readers(&["40MB/s,64k,200ms", "40MB/s,64k,200ms"]);
    // Small writes cost a rotation each, and are not under contract: they are no reason to refute the reader.
    let beside = format!("{few}[writer]\nrw=randwrite\nbs=4k\noffset=8g\nsize=1g\nruntime=2\n");
    let files = [("few.fio", &few), ("some.fio", &some), ("many.fio", &many), ("beside.fio", &beside)];
    let directory = place(&files.map(|(name, text)| (name, text.as_bytes())));
    let feasibility = |file: &str, more: &[&str]| {
        let arguments = [&["admit", file, "--json"], more].concat();
        let admission = sim(directory.path(), &arguments).json();
        let margin_ms = admission["margin_ms"].as_f64().expect("a margin");
        (admission["feasibility"].as_str().expect("a word").to_owned(), margin_ms >= 0.0)
    };
    assert_eq!(feasibility("few.fio", &[]), ("kept".to_owned(), true));
    assert_eq!(feasibility("some.fio", &[]), ("likely".to_owned(), false));
    // Without turns every request is a seek.
    assert_eq!(feasibility("some.fio", &["--scheduler", "pclock"]), ("doubtful".to_owned(), false));
    assert_ne!(feasibility("beside.fio", &[]).0, "impossible");
    assert_eq!(feasibility("many.fio", &[]), ("impossible".to_owned(), false));
    let said = sim(directory.path(), &["admit", "many.fio"]).out();
    assert!(said.starts_with("impossible under any scheduler: the contracts take "), "{said}");
}

#[test]
fn a_run_warns_of_contracts_that_do_not_fit() {
    let (fit, many) = (readers(&["1MB/s,64k,2s"]), readers(&["40MB/s,64k,200ms", "40MB/s,64k,200ms"]));
    let directory = place(&[("fit.fio", fit.as_bytes()), ("many.fio", many.as_bytes())]);
    let warned = |file: &str, scheduler: &str| {
        sim(directory.path(), &["run", file, "--scheduler", scheduler]).err.contains("contracts: impossible")
    };
    assert!(warned("many.fio", "htbs"));
    assert!(warned("many.fio", "pclock"));
    assert!(!warned("many.fio", "bfq"), "it knows no contracts");
    assert!(!warned("fit.fio", "htbs"));
}

#[test]
fn without_contracts_it_says_how_to_give_them() {
    let file = readers(&["1MB/s,64k,2s"]);
    let directory = place(&[("none.fio", b"[reader]\nrw=read\nsize=1g\n"), ("one.fio", file.as_bytes())]);
    let refusal = sim(directory.path(), &["admit", "none.fio"]).refusal();
    assert_eq!(
        refusal,
        "minerva-sim: none.fio has no contracts: give jobs `minerva_contract=RATE,BURST,DELAY`, such as \
         8800KB/s,64k,100ms\n"
    );
    let refusal = sim(directory.path(), &["admit", "one.fio", "--scheduler", "bfq"]).refusal();
    assert_eq!(refusal, "minerva-sim: bfq keeps no contracts: ask for pclock or htbs with --scheduler\n");
}

#[test]
fn what_it_says_to_buy_is_enough_in_every_second() {
    let promised = [("8MB/s", 8 << 20), ("4MB/s", 4 << 20), ("25", 25 * 65_536)];
    let readers = |contracts: &[String]| -> String {
        let job = |(index, contract): (usize, &String)| {
            format!(
                "[reader{index}]\nrw=read\nbs=64k\noffset={}g\nsize=8g\nruntime=12\nminerva_contract={contract}\n",
                10 * index
            )
        };
        contracts.iter().enumerate().map(job).collect()
    };
    let promises = promised.map(|(rate, _)| format!("{rate},64k,250ms"));
    let directory = place(&[("wanted.fio", readers(&promises).as_bytes())]);
    // Beside them, so that nobody gets more than the contract says.
    let seekers =
        "[seekers]\nrw=randread\nbs=4k\noffset=40g\nsize=8g\nnumjobs=2\nruntime=12\nminerva_contract=15,4k,250ms\n";
    let missed = |contracts: &[String]| -> usize {
        let directory = place(&[("run.fio", (readers(contracts) + seekers).as_bytes())]);
        let report = sim(directory.path(), &["run", "run.fio", "--scheduler", "htbs", "--json"]).json();
        let of = |(index, (_, bytes)): (usize, (&str, u64))| {
            let seconds = report["processes"][index]["bins_bytes"].as_array().expect("seconds");
            seconds[1..12].iter().filter(|second| second.as_u64().expect("bytes") < bytes).count()
        };
        promised.into_iter().enumerate().map(of).sum()
    };
    let answer = sim(directory.path(), &["admit", "wanted.fio", "--every", "1s", "--json"]).json();
    let contracts: Vec<String> = (0..3)
        .map(|index| answer["contracts"][format!("reader{index}")].as_str().expect("a contract").to_owned())
        .collect();
    // (8192 + 64) / 0.75 KiB, and (25 + 1) / 0.75 requests.
    assert_eq!((contracts[0].as_str(), contracts[2].as_str()), ("11008k/s,64k,250ms", "34.7/s,64k,250ms"));
    assert!(
        sim(directory.path(), &["admit", "wanted.fio", "--every", "1"]).out().contains("in every 1s:\n  [reader0] ")
    );
    assert!(missed(&promises) > 0, "a contract alone is not a promise for every second");
    assert_eq!(missed(&contracts), 0);
    let refusal = sim(directory.path(), &["admit", "wanted.fio", "--every", "250ms"]).refusal();
    assert_eq!(
        refusal,
        "minerva-sim: `reader0` has a delay of 250ms: a contract says nothing of an interval that is no longer than its delay; \
         give it a delay below 250ms\n"
    );
}

/// HTBS gives the disk to nobody else while a reader that goes straight on has a request there; pClock does.
#[test]
fn an_ssd_is_judged_for_readers_in_a_row_by_what_htbs_lets_it_do() {
    let job = |index: usize, rate: &str| {
        format!(
            "[reader{index}]\nrw=read\nbs=64k\niodepth=1\noffset={}g\nsize=4g\nruntime=4\ntime_based\n\
             minerva_contract={rate}MB/s,1m,100ms\n",
            8 * index
        )
    };
    let file = |rate: &str| (0..2).map(|index| job(index, rate)).collect::<String>();
    let (fast, slow) = (file("150"), file("100"));
    let directory = place(&[("fast.fio", fast.as_bytes()), ("slow.fio", slow.as_bytes())]);
    for (scheduler, file, is_kept) in
        [("htbs", "fast.fio", false), ("htbs", "slow.fio", true), ("pclock", "fast.fio", true)]
    {
        let ssd = ["--profile", "sata-ssd", "--scheduler", scheduler, "--json"];
        let answer = sim(directory.path(), &[&["admit", file][..], &ssd].concat()).json();
        let feasibility = answer["feasibility"].as_str().expect("a word");
        assert_eq!(feasibility, if is_kept { "likely" } else { "doubtful" }, "{scheduler}, {file}: {answer}");
        let ran = sim(directory.path(), &[&["run", file][..], &ssd].concat()).json();
        let processes = ran["processes"].as_array().expect("processes");
        let missed = processes.iter().filter_map(|process| process["promise"]["seconds_missed"].as_u64());
        assert_eq!(missed.sum::<u64>() == 0, is_kept, "{scheduler}, {file}: {processes:?}");
    }
}

/// An SSD with many requests under way does ten times what it does with one after the other.
#[test]
fn contracts_that_an_ssd_keeps_with_all_its_requests_under_way_are_not_impossible() {
    let job = |index: usize| {
        format!(
            "[reader{index}]\nrw=randread\nbs=4k\nioengine=libaio\niodepth=8\noffset={index}g\nsize=1g\nruntime=4\n\
             time_based\nminerva_contract=20MB/s,256k,200ms\n"
        )
    };
    let file: String = (0..8).map(job).collect();
    let alone = file.split_inclusive("200ms\n").next().expect("a job").replace("iodepth=8", "iodepth=1");
    let faster = alone.replace("20MB/s", "60MB/s");
    let directory = place(&[("eight.fio", file.as_bytes()), ("alone.fio", faster.as_bytes())]);
    for scheduler in ["htbs", "pclock"] {
        let ssd = ["--profile", "sata-ssd", "--scheduler", scheduler, "--json"];
        let judged = |file: &str| sim(directory.path(), &[&["admit", file][..], &ssd].concat()).json();
        let eight = judged("eight.fio");
        assert_eq!(eight["feasibility"], "likely", "{eight}");
        let utilisation = eight["utilisation"].as_f64().expect("a part");
        assert!((0.3..0.7).contains(&utilisation), "{utilisation}");
        assert_eq!(judged("alone.fio")["feasibility"], "impossible", "with one request at a time");
        let ran = sim(directory.path(), &[&["run", "eight.fio"][..], &ssd].concat());
        assert_eq!(ran.err, "");
        for process in ran.json()["processes"].as_array().expect("processes") {
            assert_eq!(process["promise"]["seconds_missed"], 0, "{scheduler}: {process}");
        }
    }
}
