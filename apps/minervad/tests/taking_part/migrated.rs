//! What the cache reports that it moved, at the real daemon: judged by who used the disk, and entered once under its key, whoever is killed.

use super::{kill, store};
use crate::ENFORCE;
use crate::bed::{Bed, Daemon, until};
use minerva_api::v1;
use minerva_model::RequestId;
use std::fs;
use std::os::unix::fs::MetadataExt;
use tonic::{Code, Status};

/// A report of a tenant's files; with the inodes of its group, unless they are told otherwise.
fn report(
    (bed, daemon): (&Bed, &Daemon),
    key: &str,
    inodes: Option<Vec<u64>>,
) -> Result<v1::ReportMigrationResponse, Status> {
    let group = bed.cgroup("sparing");
    let own = || [group.parent().expect("a group"), &group].map(|at| fs::metadata(at).expect("a group").ino()).to_vec();
    let request = v1::ReportMigrationRequest {
        request_id: key.to_owned(),
        cgroup: format!("{}/sparing", bed.name),
        inodes: inodes.unwrap_or_else(own),
        service_cgroup: String::new(),
        moved: vec![v1::MovedBytes { device: bed.number(), bytes: 64 << 20 }],
    };
    let answer = daemon.ask(async |mut client| client.report_migration(request).await).expect("a daemon")?;
    Ok(answer.into_inner())
}

/// What the ledger has under the key of a report.
fn entered(bed: &Bed, key: &str) -> Vec<u64> {
    let key = format!("{}{key}", RequestId::MOVED_PREFIX);
    let rows = store(bed).ledger(None, 0, 10_000).expect("read");
    rows.into_iter().filter(|row| row.request.as_ref().is_some_and(|id| id.0 == key)).map(|row| row.amount.0).collect()
}

#[test]
fn a_report_earns_beside_others_and_once_under_its_key_across_a_kill() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let mut daemon = bed.start();
    until("the tenant is seen", || report((&bed, &daemon), "quiet", None).is_ok());
    let quiet = report((&bed, &daemon), "quiet", None).expect("an answer");
    assert_eq!((quiet.earned_micro_credits, quiet.why.as_str()), (0, "nobody else used the disk"));
    // A later group of the same name, and nothing that could be meant.
    let code = |answer: Result<v1::ReportMigrationResponse, Status>| answer.expect_err("refused").code();
    assert_eq!(code(report((&bed, &daemon), "other", Some(vec![1, 2]))), Code::NotFound);
    assert_eq!(code(report((&bed, &daemon), "other", Some(Vec::new()))), Code::NotFound);
    assert_eq!(code(report((&bed, &daemon), "", None)), Code::InvalidArgument);
    bed.start_reader("heavy", 64);
    let mut key = 0;
    let mut earned = 0;
    until("it earns something beside the reader", || {
        key += 1;
        earned = report((&bed, &daemon), &key.to_string(), None).expect("an answer").earned_micro_credits;
        earned > 0
    });
    let key = key.to_string();
    assert_eq!(entered(&bed, &key), [earned], "what was answered is in the ledger");
    kill(&mut daemon);
    daemon = bed.start();
    // Its answer may not have been heard: it is sent again until it is.
    until("it is answered again", || {
        report((&bed, &daemon), &key, None).is_ok_and(|answer| answer.why == "it was counted before")
    });
    assert_eq!(entered(&bed, &key), [earned]);
}
