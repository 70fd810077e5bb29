//! What Prometheus reads of the service.

use crate::deferred::{defer, until_told, write};
use crate::pool_folder::PoolFolder;
use minerva_api::cache::Pool;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A pool with metrics, and where they are.
pub(crate) fn place(tenant: &str) -> (PoolFolder, PathBuf) {
    let place = PoolFolder::new(tenant);
    let socket = place.folder.path().join("metrics.sock");
    let folder = place.folder.path().join("fs.toml.d");
    fs::create_dir(&folder).unwrap();
    // Nothing goes from memory to the disk, so that what each pool holds is known.
    let text = format!("[server]\nmetrics = \"unix:{}\"\n[pools.temporary]\nwatermark = 100\n", socket.display());
    fs::write(folder.join("metrics.toml"), text).unwrap();
    (place, socket)
}

pub(crate) fn scrape(socket: &PathBuf) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text
}

pub(crate) fn value(text: &str, metric: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{metric} is not in {text}")).parse().unwrap()
}

#[test]
fn a_scrape_tells_of_each_tenant_and_pool_and_all_of_it_is_in_the_operators_handbook() {
    let (place, socket) = place("temporary = \"1MiB\"");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    let _service = place.serve();
    fs::write(place.stable().join("file"), vec![1; 64 << 10]).unwrap();
    assert!(fs::write(place.temporary().join("large"), vec![1; 2 << 20]).is_err());
    let data = defer(&place, &target.join("waits"), Pool::Stable).unwrap().1;
    fs::write(&data, vec![2; 4096]).unwrap();
    fs::hard_link(&data, place.stable().join("second")).unwrap();
    until_told(&place, "it has 2 names in the pool");
    let text = scrape(&socket);
    let stable = "{tenant=\"web\",pool=\"stable\"}";
    let of = |metric: &str, labels: &str| value(&text, &format!("minerva_cache_{metric}{labels}"));
    assert_eq!(of("used_bytes", stable), f64::from(68 << 10));
    assert_eq!(of("written_bytes_total", stable), f64::from(68 << 10));
    assert_eq!((of("waiting_files", stable), of("waiting_bytes", stable)), (1.0, 4096.0));
    assert!(of("move_failures_total", stable) > 0.0);
    assert!(of("refused_total", "{tenant=\"web\",pool=\"temporary\"}") > 0.0);
    assert_eq!(of("quota_bytes", "{tenant=\"web\",pool=\"temporary\"}"), f64::from(1 << 20));
    for operation in ["write", "sync", "metadata"] {
        let labels = format!("{{tenant=\"web\",pool=\"stable\",operation=\"{operation}\"}}");
        let count = of("request_seconds_count", &labels);
        let all = format!("{{le=\"+Inf\",tenant=\"web\",pool=\"stable\",operation=\"{operation}\"}}");
        assert!(count > 0.0 && of("request_seconds_bucket", &all) == count, "{operation}");
        assert_eq!(of("request_failures_total", &labels), 0.0);
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
    let handbook = include_str!("../../../../docs/operator.md");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
    assert_eq!(names.len(), 24, "{names:?}");
    for name in names {
        assert!(handbook.contains(&format!("`{name}")), "docs/operator.md does not have {name}");
    }
}

#[test]
fn what_was_moved_is_counted_and_silent_connections_keep_no_scrape_out() {
    let (place, socket) = place("");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    let _service = place.serve();
    // As many as are served at once; each ends by itself after a while.
    let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    write(&place, &target.join("file"), &[1; 8192]);
    crate::deferred::until_moved(&place);
    let text = scrape(&socket);
    let moved = "minerva_cache_moved_bytes_total{tenant=\"web\",pool=\"stable\"}";
    assert_eq!(value(&text, moved), 8192.0);
    drop(silent);
}

#[test]
fn where_metrics_cannot_be_read_nothing_is_served_and_that_is_said() {
    let (place, socket) = place("");
    fs::create_dir_all(socket.join("in the way")).unwrap();
    let output = place.run(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("for metrics; set another server.metrics"), "{said}");
}
