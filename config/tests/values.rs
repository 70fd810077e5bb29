//! What a good file gives, and what is generated.

use expect_test::expect_file;
use minerva_config::{
    Config, Identity, KnownBy, LogFormat, LogLevel, Metrics, PORT_DEFAULT, default_file, json_schema, load,
    load_default, parse,
};
use minerva_model::{
    BackEnd, ContentionCounting, ForecastMode, ForecastSettings, JobSettings, MicroCredits, Mode, Nanos, Share,
    TenantRule,
};
use std::path::{Path, PathBuf};

#[test]
fn an_empty_file_means_the_defaults() {
    let config = parse("", Path::new("minerva.toml")).expect("allowed");
    assert_eq!(config.engine, Config::default().engine);
    assert_eq!(config.daemon, Config::default().daemon);
    assert!(config.warnings.is_empty());
}

#[test]
fn the_committed_default_file_is_the_generated_one_and_equals_the_defaults() {
    expect_file!["../minerva.toml"].assert_eq(&default_file());
    let config = parse(&default_file(), Path::new("minerva.toml")).expect("allowed");
    assert_eq!(config.engine, Config::default().engine);
    assert_eq!(config.daemon, Config::default().daemon);
    assert_eq!(config.named, Config::default().named);
    assert_eq!(config.participation, Config::default().participation);
    assert!(config.rules.is_empty() && config.warnings.is_empty());
}

#[test]
fn every_example_in_the_default_file_is_accepted() {
    let uncommented: String = default_file()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let config = parse(&uncommented, Path::new("minerva.toml")).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.engine.devices["sda"].back_end, Some(BackEnd::Bfq));
    assert_eq!(config.rules.len(), 1);
    assert_eq!(config.participation.identities.len(), 4);
    assert_eq!(config.daemon.cgroup_root, Some(PathBuf::from("/sys/fs/cgroup")));
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let text = serde_json::to_string_pretty(&json_schema()).expect("serialises");
    expect_file!["../minerva.schema.json"].assert_eq(&(text + "\n"));
}

#[test]
fn every_kind_of_value_arrives() {
    let text = r#"
mode = "enforce"
[observe]
slice = "500ms"
[fennel]
recent_half_life = "1m 30s"
long_term_weight = 1
share_heavy = 0x0A
quiet_bytes_per_second = "1.5MB"
[daemon]
metrics = "loopback:9561"
include = ["machine.slice/**", "system.slice/*.service"]
guard = false
[log]
level = "debug"
format = "json"
[devices.nvme0n1]
back_end = "iocost"
enable_iocost = true
strict_guarantees = true
strict_guarantees_by_use = true
low_latency_by_use = true
bandwidth_bytes_per_second = 150_000_000
[[rules]]
pattern = "system.slice/backup.service"
name = "backup"
group = "batch"
exclude = true
weight_percent = 50
role = "guest"
price_percent = 150
quota_percent = 20
credits_expiry = "12h"
forecast = "on"
[[jobs]]
pattern = "batch/*"
name = "sort"
bytes = "40GB"
[[jobs]]
pattern = "batch/two"
name = "count"
[forecast]
mode = "off"
keep_every = "1h"
days_ahead = false
sessions = "last"
"#;
    let config = parse(text, Path::new("minerva.toml")).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.engine.mode, Mode::Enforce);
    assert_eq!(config.engine.observe.slice, Nanos::from_millis(500));
    assert_eq!(config.engine.fennel.recent_half_life, Nanos::from_secs(90));
    assert_eq!(config.engine.fennel.long_term_weight, 1.0);
    assert_eq!(config.engine.fennel.share_heavy, Share::new(10));
    assert_eq!(config.engine.fennel.quiet_bytes_per_second, 1.5e6);
    assert_eq!(config.daemon.metrics, Metrics::Loopback(9561));
    assert_eq!(config.daemon.include.len(), 2);
    assert!(!config.daemon.guard);
    assert_eq!((config.daemon.log.level, config.daemon.log.format), (LogLevel::Debug, LogFormat::Json));
    let disk = &config.engine.devices["nvme0n1"];
    assert_eq!(disk.back_end, Some(BackEnd::IoCost));
    assert!(
        disk.enable_iocost
            && disk.strict_guarantees
            && disk.strict_guarantees_by_use == Some(true)
            && disk.low_latency_by_use
    );
    assert_eq!(disk.bandwidth_bytes_per_second, Some(150_000_000));
    let rule = TenantRule {
        pattern: "system.slice/backup.service".into(),
        name: Some("backup".into()),
        group: Some("batch".into()),
        exclude: true,
        weight_percent: Some(50),
        role: Some(minerva_model::Role::Guest),
        price_percent: Some(150),
        quota_percent: Some(20),
        credits_expiry: Some(Nanos::from_secs(12 * 3600)),
        forecast: Some(ForecastMode::On),
        job: None,
    };
    assert_eq!(config.rules, [rule]);
    let job = |name: &str, bytes| Some(JobSettings { name: name.into(), bytes });
    let jobs: Vec<_> = config.jobs.iter().map(|rule| (rule.pattern.as_str(), rule.job.clone())).collect();
    assert_eq!(jobs, [("batch/*", job("sort", Some(40_000_000_000))), ("batch/two", job("count", None))]);
    let forecast = ForecastSettings {
        mode: ForecastMode::Off,
        keep_every: Nanos::from_secs(3600),
        days_ahead: false,
        sessions: minerva_model::SessionSource::Last,
        ..ForecastSettings::default()
    };
    assert_eq!(config.engine.forecast, forecast);
}

#[test]
fn drop_ins_replace_single_keys_in_the_order_of_their_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("minerva.toml");
    let drop_ins = directory.path().join("minerva.toml.d");
    std::fs::create_dir(&drop_ins).expect("made");
    let write = |name: &str, text: &str| std::fs::write(drop_ins.join(name), text).expect("written");
    std::fs::write(&path, "mode = \"observe\"\n[fennel]\ngroups = 4\n[[rules]]\npattern = \"a\"\nexclude = true\n")
        .expect("written");
    write("20-b.toml", "mode = \"enforce\"\n[devices.sda]\nback_end = \"max\"\n");
    write(
        "10-a.toml",
        "mode = \"shadow\"\n[[rules]]\npattern = \"b\"\nexclude = true\n[devices.sda]\nelevator = \"bfq\"\n",
    );
    write(".30-hidden.toml", "mode = \"observe\"\n");
    write("40-backup.toml~", "mode = \"observe\"\n");
    let config = load(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.engine.mode, Mode::Enforce);
    assert_eq!(config.engine.fennel.groups, 4);
    assert_eq!(config.rules.iter().map(|rule| rule.pattern.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(config.engine.devices["sda"].back_end, Some(BackEnd::Max));
    assert_eq!(config.engine.devices["sda"].elevator.as_deref(), Some("bfq"));
}

#[test]
fn drop_ins_hold_where_the_file_that_nobody_named_is_absent() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("minerva.toml");
    let config = load_default(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((config.engine, config.daemon), (Config::default().engine, Config::default().daemon));
    std::fs::create_dir(directory.path().join("minerva.toml.d")).expect("made");
    let drop_in = directory.path().join("minerva.toml.d/own.toml");
    std::fs::write(&drop_in, "mode = \"enforce\"\n[daemon]\nruntime_dir = \"/run/other\"\n").expect("written");
    let config = load_default(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((config.engine.mode, config.daemon.runtime_dir.as_path()), (Mode::Enforce, Path::new("/run/other")));
    assert!(load(&path).is_err(), "one that was named must be there");
    std::fs::write(&drop_in, "mode = \"enfroce\"\n").expect("written");
    let wrong = load_default(&path).expect_err("refused").to_string();
    assert!(wrong.contains("own.toml:1"), "{wrong}");
    std::fs::write(&path, [0xff]).expect("written");
    assert!(load_default(&path).is_err(), "one that is there is judged");
}

#[test]
fn places_count_from_one_in_characters() {
    let text = "mode = \"shadow\"\n\n[observe]\n\"é\" = 1\nslice = 3 # é\n";
    let errors = parse(text, Path::new("minerva.toml")).expect_err("wrong");
    let places: Vec<_> = errors.problems.iter().map(|problem| problem.line_column()).collect();
    assert_eq!(places, [(4, 1), (5, 9)]);
}

#[test]
fn hostile_text_gives_an_error_and_no_panic() {
    let nested = format!("a = {}", "[".repeat(100_000));
    let dotted = format!("{} = 1", vec!["a"; 50_000].join("."));
    for text in [
        &nested,
        &dotted,
        "\u{feff}mode = 3",
        "mode = \"\u{0}",
        "\"\\u{d800}\" = 1",
        "a.b.c = 1\na.b = 2",
        "=",
        "[[a]]\n[a]",
    ] {
        assert!(parse(text, Path::new("minerva.toml")).is_err());
    }
}

#[test]
fn what_taking_part_costs_and_means_arrives() {
    let text = r#"
[credits]
priority_weight = 0.25
boosted_slice_price = 12.5
counting = "others"
expiry = "2h"
[levels]
low_percent = 50
idle_points = 20
[coordination]
hold_max = "10s"
assumed_bytes_per_second = "100MB"
"#;
    let config = parse(text, Path::new("minerva.toml")).unwrap_or_else(|errors| panic!("{errors}")).engine;
    assert_eq!(config.credits.priority_weight, MicroCredits(250_000));
    assert_eq!(config.credits.boosted_slice_price, MicroCredits(12_500_000));
    assert_eq!((config.credits.counting, config.credits.expiry), (ContentionCounting::Others, Nanos::from_secs(7200)));
    assert_eq!((config.levels.low.percent, config.levels.idle.points), (50, 20));
    assert_eq!(config.coordination.hold_max, Nanos::from_secs(10));
    assert_eq!(config.coordination.assumed_bytes_per_second, 100_000_000);
}

#[test]
fn prices_and_levels_that_cannot_be_meant_are_refused() {
    let text = "[credits]\nboosted_slice_price = 0\nexpiry = \"1s\"\n[levels]\nlow_percent = 0\n[coordination]\nraise_percent = 50\n";
    let errors = parse(text, Path::new("minerva.toml")).expect_err("refused").to_string();
    for name in ["boosted_slice_price", "expiry", "low_percent", "raise_percent"] {
        assert!(errors.contains(name), "{name} in {errors}");
    }
}

#[test]
fn doors_and_identities_arrive() {
    let text = r#"
[participation]
socket = ""
listen = "127.0.0.1"
vsock_port = 7421
burst = 5
[[identities]]
tenant = "vm1"
vsock_cid = 42
[[identities]]
tenant = "vm2"
token_sha256 = "9F86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
"#;
    let config = parse(text, Path::new("minerva.toml")).unwrap_or_else(|errors| panic!("{errors}"));
    let listeners = &config.participation;
    assert!(config.warnings.is_empty());
    assert_eq!((listeners.socket.as_deref(), listeners.vsock_port, listeners.limits.burst), (None, Some(7421), 5));
    assert_eq!(listeners.listen.map(|address| address.port()), Some(PORT_DEFAULT));
    let vm = Identity { tenant: "vm1".to_owned(), known_by: Some(KnownBy::VsockCid(42)) };
    assert_eq!(listeners.identities[0], vm);
    let Some(KnownBy::TokenSha256(digest)) = listeners.identities[1].known_by else { panic!("a token") };
    assert_eq!((digest[0], digest[31]), (0x9f, 0x08));
    let text = "[daemon]\nruntime_dir = \"/run/second\"\n";
    let config = parse(text, Path::new("minerva.toml")).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.participation.socket.as_deref(), Some(Path::new("/run/second/tenant.sock")));
    let mut other = listeners.clone();
    other.limits.burst = 6;
    other.identities.clear();
    assert!(listeners.is_same_server(&other));
    let known_by = Some(KnownBy::VsockSocket("/run/vm2.sock_7420".into()));
    other.identities.push(Identity { tenant: "vm2".to_owned(), known_by });
    assert!(!listeners.is_same_server(&other), "a new socket is a listener");
    assert!(other.is_same_server(listeners), "one that nobody is named for any more refuses everybody");
    let mut renamed = other.clone();
    renamed.identities[0].tenant = "vm3".to_owned();
    assert!(other.is_same_server(&renamed), "whoever asks there is another tenant from then on");
    other.clone_from(listeners);
    other.vsock_port = None;
    assert!(!listeners.is_same_server(&other));
}
