//! Work that takes time from others goes before them wherever their groups are.

use super::{add, change, filled, request};
use minerva_api::v1;

#[test]
fn the_group_above_work_that_is_late_weighs_more_than_all_named_groups_together() {
    let Some(mut filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    filled.bed.write_config("mode = \"enforce\"");
    ["heavy", "sparing"].into_iter().for_each(|reader| filled.bed.start_reader_without_pauses(reader));
    let daemon = filled.bed.start();
    let script = "while :; do dd if=/dev/zero of=data bs=64k count=4 oflag=direct status=none; done".to_owned();
    let command = vec!["sh".to_owned(), "-c".to_owned(), script];
    // Nobody knows how long it takes, and so it is taken to take a minute.
    let late = v1::AddBackgroundRequest {
        sla_ns: Some(20_000_000_000),
        command,
        ..request("late", "command", &filled.mounted)
    };
    add(&daemon, late).expect("taken");
    let above = |group: &std::path::Path| filled.bed.weight_of(group.parent().expect("a group above"));
    let (work, tenant) = (filled.group(1), filled.bed.cgroup("heavy"));
    daemon.until("it goes before others", || above(&work) >= 900 && (1..900).contains(&above(&tenant)));
    change(&daemon, "late", v1::BackgroundChange::Remove);
    daemon.until("both groups are gone", || !work.parent().is_some_and(std::path::Path::exists));
}
