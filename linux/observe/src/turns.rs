//! Whose processes are looked at next, and what is summed over them.

use minerva_model::{TenantId, TenantUsage};

/// The members from the one after `last` on, round to `last` itself.
pub(crate) fn in_turns(
    members: impl Iterator<Item = TenantId> + Clone,
    last: TenantId,
) -> impl Iterator<Item = TenantId> {
    let rest = members.clone().filter(move |id| *id <= last);
    members.filter(move |id| *id > last).chain(rest)
}

/// What is summed over the processes of a tenant that is looked at.
pub(crate) const fn empty_usage(tenant: TenantId) -> TenantUsage {
    TenantUsage {
        tenant,
        cpu_ns: 0,
        memory_bytes: 0,
        network_bytes: None,
        open_files: 0,
        open_sockets: 0,
        open_file_bytes: 0,
        processes: 0,
        process_read_bytes: 0,
        process_write_bytes: 0,
    }
}
