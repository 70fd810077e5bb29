//! What a tenant does, for the generator that makes its requests on the simulator and at a server.

use crate::job::TenantJob;
use minerva_sim_workload::{Loop, Pattern, Plan};

/// Within a region, its start and length in bytes.
pub(crate) fn plan(tenant: &TenantJob, (offset_bytes, region_bytes): (u64, u64)) -> Plan {
    Plan {
        pattern: if tenant.random { Pattern::Random } else { Pattern::Sequential },
        when: Loop::Closed { depth: tenant.depth },
        read_percent: if tenant.write { 0 } else { 100 },
        block_bytes: tenant.block_bytes,
        offset_bytes,
        region_bytes,
        ..Plan::default()
    }
}

/// The seed of a tenant's generator in a run with this seed.
pub(crate) fn seed_of(seed: u64, tenant: usize) -> u64 {
    seed << 8 | tenant as u64
}
