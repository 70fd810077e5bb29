//! `reproduce`, as scripts use it.

use super::{place, sim};

#[test]
fn a_scene_of_proactive_prints_a_line_of_json_for_each_arm_and_no_other_experiment_does() {
    let here = place(&[]);
    let play = ["reproduce", "proactive", "--scene", "one-name", "--json", "--runs", "2", "--seed", "7"];
    let lines = sim(here.path(), &[&play[..], &["--scale", "0.01", "--slice", "100ms"]].concat()).out();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("one JSON value")).collect();
    let arms: Vec<&str> = lines.iter().filter_map(|line| line["arm"].as_str()).collect();
    assert_eq!(arms, ["equal weights", "Fennel", "no forecasts", "last of the name", "forecasts", "oracle"]);
    for line in &lines {
        assert_eq!((&line["scene"], &line["seeds"]), (&"one-name".into(), &vec![7_000, 7_001].into()));
        let jobs = line["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), 4);
        assert!(jobs.iter().all(|job| job["seconds"].as_array().is_some_and(|seconds| seconds.len() == 2)), "{line}");
    }
    for option in [&["--json"][..], &["--scene", "fixed"]] {
        let refusal = sim(here.path(), &[&["reproduce", "makespan"], option].concat()).refusal();
        assert!(refusal.contains("only proactive has `--scene` and `--json`"), "{refusal}");
    }
}
