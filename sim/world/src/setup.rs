//! What a world is made of.

use crate::promise::Promise;
use crate::supposed::OutlookSource;
use minerva_blocksched::{FlowParameters, Scheduler};
use minerva_model::{EngineConfig, Nanos};
use minerva_sim_device::DeviceModel;
use minerva_sim_workload::Source;

/// A process: a stream of requests that belongs to a tenant.
pub struct ProcessSetup {
    /// What people call it.
    pub name: String,
    /// Index of its tenant.
    pub tenant: usize,
    /// What it does.
    pub source: Box<dyn Source>,
    /// When it starts.
    pub starts_at: Nanos,
    /// What the host's scheduler is told of it; the group is set by the world. With a guest scheduler in between this is
    /// what the guest's is told, and the host sees the tenant as one flow.
    pub parameters: FlowParameters,
    /// What is promised to it, to be judged in the report. No scheduler sees this: what they enforce is in `parameters`.
    pub promise: Option<Promise>,
}

/// A guest's own scheduler above the host's (Bai and Huang, section 2.4).
pub struct GuestSetup {
    /// It.
    pub scheduler: Box<dyn Scheduler>,
    /// Requests that the guest has at the host at once.
    pub depth: u32,
    /// What the host's scheduler is told of the guest as a whole.
    pub parameters: FlowParameters,
    /// Requests keep their process's name on the way to the host, as in the Tag Scheduler's virtio path: the host's scheduler
    /// sees each process as a flow, with the parameters of the process. Otherwise it sees the guest as one flow.
    pub passes_streams: bool,
}

/// A tenant: a VM, container or group of processes.
pub struct TenantSetup {
    /// What people call it.
    pub name: String,
    /// Weight of its group in the host's scheduler, at the start.
    pub weight: u32,
    /// A scheduler of its own, if it is a guest that has one.
    pub guest: Option<GuestSetup>,
}

/// Minerva's engine in a world.
#[derive(Clone, Debug)]
pub struct EngineSetup {
    /// Its settings.
    pub config: EngineConfig,
    /// The disk seeks, as the kernel would say of it.
    pub rotational: bool,
    /// Where its outlook comes from.
    pub outlook: OutlookSource,
}

/// A world.
pub struct WorldSetup {
    /// The disk.
    pub device: Box<dyn DeviceModel>,
    /// The host's scheduler.
    pub host: Box<dyn Scheduler>,
    /// Requests at the disk at once; never more than the disk takes.
    pub depth: u32,
    /// Tenants.
    pub tenants: Vec<TenantSetup>,
    /// Processes.
    pub processes: Vec<ProcessSetup>,
    /// Minerva steers the tenants' weights when given, as far as the host's scheduler reads them: BFQ does.
    pub engine: Option<EngineSetup>,
    /// Width of the bins of throughput over time.
    pub bin: Nanos,
}
