//! What people are shown of the pool.

use minerva_api::cache::{DeferredFile, MigrationStatus, TenantStatus};
use minerva_model::MicroCredits;
use std::fmt::Write;

const MIB: u64 = 1 << 20;

/// Who uses how much, and what waits.
pub(super) fn status(tenants: &[TenantStatus], migration: &MigrationStatus) -> String {
    let mut text = format!(
        "{:<20} {:<10} {:>17} {:>19} {:>6} {:>12} {:>9}\n",
        "TENANT", "POOL", "MiB USED OF", "FILES OF", "OPEN", "SPILLED MiB", "REFUSED"
    );
    for tenant in tenants {
        for (pool, tree) in [("temporary", &tenant.temporary), ("stable", &tenant.stable)] {
            // Writing to a string cannot fail; so everywhere below.
            let _ = writeln!(
                text,
                "{:<20} {pool:<10} {:>8} {:>8} {:>9} {:>9} {:>6} {:>12} {:>9}{}",
                tenant.name,
                tree.bytes / MIB,
                tree.bytes_max / MIB,
                tree.files,
                tree.files_max,
                tree.open,
                tree.spilled_bytes / MIB,
                tree.refused,
                if tree.is_served { "" } else { "  not served" }
            );
        }
        for (pool, tree) in [("temporary", &tenant.temporary), ("stable", &tenant.stable)] {
            if !tree.difference.is_empty() {
                let _ = writeln!(text, "{}/{pool} by {}: {}", tenant.name, tree.second_account, tree.difference);
            }
        }
        if !tenant.leaving.is_empty() {
            let _ = writeln!(text, "{} is no longer in the file but is still served: {}", tenant.name, tenant.leaving);
        }
        text.push_str(&earned(&tenant.name, tenant.earned_micro_credits, &tenant.earned_why));
    }
    let _ = writeln!(
        text,
        "{} files of {} MiB wait for migration, {} files of {} MiB were moved, {} of {} MiB are left without a link; who uses a disk tells {}",
        migration.waiting_files,
        migration.waiting_bytes / MIB,
        migration.moved_files,
        migration.moved_bytes / MIB,
        migration.left_files,
        migration.left_bytes / MIB,
        match migration.told_by.as_str() {
            "daemon" => "minervad",
            "host" => "the host, through the agent",
            _ => "the disk's own counters",
        }
    );
    text
}

/// What moving in gaps earned a tenant; nothing before the daemon said anything of it.
fn earned(tenant: &str, micro_credits: u64, why: &str) -> String {
    if why.is_empty() {
        return String::new();
    }
    let credits = MicroCredits(micro_credits);
    format!("files of {tenant} that moved in gaps earned {credits} credits since the service began; at last: {why}\n")
}

/// The files that wait.
pub(super) fn deferred(files: &[DeferredFile]) -> String {
    if files.is_empty() {
        return "nothing waits\n".to_owned();
    }
    let mut text = format!("{:>6} {:<12} {:>8} {:>8} {:<10} {}\n", "FILE", "TENANT", "MiB", "SECONDS", "STEP", "PLACE");
    for file in files {
        let _ = writeln!(
            text,
            "{:>6} {:<12} {:>8.1} {:>8} {:<10} {}\n       {}",
            file.id,
            file.tenant,
            file.bytes as f64 / MIB as f64,
            file.waited_seconds,
            file.step,
            file.path,
            file.why
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{deferred, earned};
    use minerva_api::cache::DeferredFile;

    #[test]
    fn what_moving_earned_is_shown_once_the_daemon_said_something() {
        let text = "files of web that moved in gaps earned 2.5 credits since the service began; at last: nobody else used the disk\n";
        assert_eq!(earned("web", 2_500_000, "nobody else used the disk"), text);
        assert_eq!(earned("web", 0, ""), "");
    }

    #[test]
    fn a_file_that_waits_is_shown_with_its_reason() {
        let file = DeferredFile {
            id: 7,
            tenant: "web".to_owned(),
            path: "/data/out.bin".to_owned(),
            bytes: 3 << 19,
            waited_seconds: 12,
            step: "waiting".to_owned(),
            why: "8:0: file 7 waits: 2 others use the disk".to_owned(),
            ..DeferredFile::default()
        };
        let lines = [
            "  FILE TENANT            MiB  SECONDS STEP       PLACE",
            "     7 web               1.5       12 waiting    /data/out.bin",
            "       8:0: file 7 waits: 2 others use the disk",
        ];
        assert_eq!(deferred(&[file]).lines().collect::<Vec<_>>(), lines);
        assert_eq!(deferred(&[]), "nothing waits\n");
    }
}
