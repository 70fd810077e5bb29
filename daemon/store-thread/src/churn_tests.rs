//! Tenants that come and go leave nothing in the daemon's memory of them, nor in its store.

use super::{Memory, MemorySettings, StoreMetrics};
use minerva_model::{
    CgroupRef, Declaration, DeviceId, Level, Nanos, Origin, Tenant, TenantHistory, TenantId, TenantKind, Terms,
    UsageAverage,
};
use minerva_store::{SetLevel, StoredClaim};
use std::path::Path;

const BOOT: &str = "a boot";
const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
/// As many are there at once.
const PRESENT: u64 = 500;

fn tenant(number: u64) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: format!("job-{number}"),
        kind: TenantKind::Scope,
        cgroup: CgroupRef { path: format!("user.slice/job-{number}.scope"), inode: number + 1 },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin::default(),
    }
}

/// So many come, use a disk, declare and claim something, and go. The bytes of the store afterwards.
fn store_bytes_after(tenants: u64, directory: &Path) -> u64 {
    let settings = MemorySettings {
        state_dir: directory.to_owned(),
        boot_id: BOOT.to_owned(),
        ledger_keep: Nanos::from_secs(86_400),
    };
    let mut memory = Memory::start(settings, StoreMetrics::default(), Box::new(|| {})).expect("a thread");
    let set = SetLevel { level: Level::Low, until: None, process: None };
    for first in (0..tenants).step_by(PRESENT as usize) {
        let all: Vec<Tenant> = (first..first + PRESENT).map(tenant).collect();
        for tenant in &all {
            let usage = UsageAverage { recent_bytes_per_second: 1e6, long_term_bytes_per_second: 1e5 };
            let key = tenant.history_key();
            memory.remember(TenantHistory { key, device: DISK, usage, disk_part: 0.1, group: 3, age: Nanos::ZERO });
            let declaration =
                Declaration { key: tenant.declaration_key(), level: Level::Low, ..Declaration::default() };
            memory.declare(declaration);
            memory.claim_later(tenant, StoredClaim { set: Some(set), schedule: None });
        }
        flush_whole(&mut memory);
        for tenant in &all {
            // As the loop does when it hears that one has gone.
            memory.claim_later(tenant, StoredClaim::default());
            memory.tenant_gone(tenant, true);
        }
        flush_whole(&mut memory);
    }
    assert!(memory.declared.is_empty() && memory.purchases_under_way.is_empty() && memory.learnt.is_empty());
    memory.look_for_store();
    let last = tenant(tenants - 1);
    memory.close();
    let store = minerva_store::Store::open(&directory.join("minerva.db"), BOOT, minerva_store::system_clock());
    let (mut store, notes) = store.expect("opens");
    assert_eq!(notes, []);
    assert!(store.recall(&last.history_key()).expect("read").is_empty());
    assert_eq!(store.declared(&last.declaration_key()).expect("read"), None);
    assert_eq!(store.claimed(&last.declaration_key()).expect("read"), None);
    store.checkpoint().expect("moved");
    drop(store);
    std::fs::metadata(directory.join("minerva.db")).expect("a store").len()
}

/// Hands everything to the thread, which may be behind.
fn flush_whole(memory: &mut Memory) {
    memory.flush();
    while !memory.pending.is_empty() {
        std::thread::yield_now();
        memory.flush();
    }
}

/// Ten times as many tenants leave a store of the same size. `MINERVA_CHURN` says how many.
#[test]
fn tenants_that_came_and_went_leave_nothing_in_the_store() {
    let tenants = std::env::var("MINERVA_CHURN").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let after = |tenants| {
        let directory = tempfile::tempdir().expect("a directory");
        store_bytes_after(tenants, directory.path())
    };
    let (few, many) = (after(tenants / 10), after(tenants));
    println!("the store after {} tenants: {few} bytes, after {tenants}: {many}", tenants / 10);
    // A few batches of them may wait for the thread at once.
    assert!(many <= 2 * few, "{few} bytes after {}, {many} after {tenants}", tenants / 10);
}
