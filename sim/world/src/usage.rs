//! What the processes of a tenant use together besides the disk.

use minerva_sim_workload::ProcessUsage;

/// The sums of each of so many tenants, where any of its processes shows something.
pub(crate) fn by_tenant(
    tenants: usize,
    processes: impl Iterator<Item = (usize, Option<ProcessUsage>)>,
) -> Vec<Option<ProcessUsage>> {
    let mut usage = vec![None; tenants];
    for (tenant, own) in processes {
        if let Some(own) = own {
            usage[tenant] = Some(together(usage[tenant].unwrap_or_default(), own));
        }
    }
    usage
}

/// The session is that of the first which has one.
fn together(one: ProcessUsage, other: ProcessUsage) -> ProcessUsage {
    ProcessUsage {
        cpu_ns: one.cpu_ns + other.cpu_ns,
        memory_bytes: one.memory_bytes + other.memory_bytes,
        open_files: one.open_files + other.open_files,
        open_sockets: one.open_sockets + other.open_sockets,
        open_file_bytes: one.open_file_bytes + other.open_file_bytes,
        under_way: one.under_way.or(other.under_way),
    }
}
