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
    let standing = |file: &str, more: &[&str]| {
        let arguments = [&["admit", file, "--json"], more].concat();
        let verdict = sim(directory.path(), &arguments).json();
        let margin_ms = verdict["margin_ms"].as_f64().expect("a margin");
        (verdict["standing"].as_str().expect("a word").to_owned(), margin_ms >= 0.0)
    };
    assert_eq!(standing("few.fio", &[]), ("kept".to_owned(), true));
    assert_eq!(standing("some.fio", &[]), ("likely".to_owned(), false));
    // Without turns every request is a seek.
    assert_eq!(standing("some.fio", &["--scheduler", "pclock"]), ("doubtful".to_owned(), false));
    assert_ne!(standing("beside.fio", &[]).0, "impossible");
    assert_eq!(standing("many.fio", &[]), ("impossible".to_owned(), false));
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
