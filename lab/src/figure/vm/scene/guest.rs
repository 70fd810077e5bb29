//! One guest of a scene.

use super::heard::Heard;
use super::{VmScenePlan, lock, vsock};
use crate::clock::boottime;
use crate::error::{At, LabError, Result};
use crate::guest::{Guest, GuestBuilder, HostDisk, INPUT};
use crate::priority::hurry;
use crate::scene::TenantPlan;
use crate::workload::{Compute, Part, TakesPart, TenantCgroup, WorkloadSpec};
use minerva_model::{Level, Nanos};
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longer than any scene: a guest that hangs is ended by then.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Room for the programs and their libraries, twice while the archive is unpacked.
const MEMORY_MIB: u32 = 512;
/// The tenant's data, as its guest sees it.
const DEVICE: &str = "/dev/vda";
/// Where programs of a guest find the agent.
const AGENT_SOCKET: &str = "/run/minerva/agent.sock";

/// The agent, before a program that asks it for what changes nothing. The next one is as quick to ask as a program that runs for long: an
/// emulated processor takes seconds for what is executed the first time.
const AGENT: &str = r"minerva-agent 2> /tmp/agent.log &
tries=0
until [ -S /run/minerva/agent.sock ] || [ $tries -ge 600 ]; do sleep 0.1; tries=$((tries + 1)); done
";

/// A tenant's guest, and what connects it with the host.
pub(super) struct TenantGuest<'a> {
    plan: &'a VmScenePlan<'a>,
    tenant: &'a TenantPlan,
    device: PathBuf,
    group: &'a TenantCgroup,
    /// Where it asks the daemon, if it takes part and there is one.
    vsock: Option<PathBuf>,
    /// Where QEMU connects what the guest reads.
    input: PathBuf,
    listener: UnixListener,
}

impl<'a> TenantGuest<'a> {
    pub(super) fn new(
        plan: &'a VmScenePlan<'a>,
        tenant: &'a TenantPlan,
        (device, group): (PathBuf, &'a TenantCgroup),
        directory: &Path,
    ) -> Result<Self> {
        let input = directory.join(format!("{}.input", tenant.name));
        let listener = UnixListener::bind(&input).at("listen at", &input)?;
        // QEMU connects when it starts, and who asks for the connection asks after that.
        listener.set_nonblocking(true).at("listen at", &input)?;
        let asks = tenant.part.is_some() && plan.arm.has_daemon();
        let vsock = asks.then(|| vsock(directory, tenant));
        Ok(Self { plan, tenant, device, group, vsock, input, listener })
    }

    /// What its job reads.
    pub(super) fn bytes(&self) -> u64 {
        self.tenant.bytes
    }

    /// The host's end of what the guest reads.
    pub(super) fn input(&self) -> Result<UnixStream> {
        let (stream, _) = self.listener.accept().at("wait for QEMU at", &self.input)?;
        Ok(stream)
    }

    /// Runs it until `is_over`.
    pub(super) fn run(&self, heard: &Mutex<Heard>, is_over: &AtomicBool) -> Result<()> {
        // QEMU inherits it: a guest that waits for a processor asks for less than it wants.
        hurry();
        let is_time = |printed: &str| {
            lock(heard).hear(printed, boottime());
            is_over.load(Ordering::Relaxed)
        };
        let script = script(&self.spec());
        let output = self.builder().run_until_cut(&script, PATIENCE, is_time);
        let failed = |source| LabError::Guest { name: self.tenant.name.clone(), source: Box::new(source) };
        output.map(drop).map_err(failed)
    }

    fn builder<'b>(&self) -> GuestBuilder<'b> {
        let disk = HostDisk { device: self.device.clone(), limit_bytes_per_second: None, is_read_only: true };
        let builder = Guest::builder().memory_mib(MEMORY_MIB).name(&self.tenant.name).cgroup(self.group.path());
        let builder = builder.host_disk(disk).input(&self.input).with_binary(self.plan.worker);
        match &self.vsock {
            Some(vsock) => builder.vsock(vsock).with_binary(self.plan.agent),
            None => builder,
        }
    }

    fn spec(&self) -> WorkloadSpec {
        let part = self.tenant.part.filter(|_| self.vsock.is_some());
        WorkloadSpec {
            tenant: self.tenant.name.clone(),
            path: DEVICE.into(),
            access: self.tenant.access,
            bytes: Some(self.tenant.bytes),
            block_bytes: self.tenant.block_bytes,
            region_start: 0,
            region_bytes: self.tenant.bytes,
            depth: self.tenant.depth,
            compute: Compute::Nothing,
            think: Nanos::ZERO,
            rests: None,
            appearance: self.tenant.appearance,
            part: part.map(|part| TakesPart { socket: AGENT_SOCKET.into(), part }),
            seed: self.tenant.seed,
        }
    }
}

/// Tells a worker that is ready to begin.
pub(super) fn give_the_word(input: &mut UnixStream) -> Result<()> {
    input.write_all(b"go\n").at("write to", "a guest")
}

/// Does the tenant's job once it is given the word, and stays until the guest is killed.
fn script(spec: &WorkloadSpec) -> String {
    let asks = spec.part.as_ref().map_or_else(String::new, |part| {
        let part = TakesPart { part: Part::StepsBack(Level::Normal), ..part.clone() };
        let asking = WorkloadSpec { part: Some(part), bytes: Some(0), ..spec.clone() };
        format!("{AGENT}echo go | minerva-lab worker --spec '{}' > /dev/null\n", text(&asking))
    });
    format!(
        "echo none > /sys/block/vda/queue/scheduler\n{asks}\
         minerva-lab worker --spec '{}' < {INPUT} || {{ cat /tmp/agent.log >&2 2> /dev/null; exit 1; }}\n\
         sleep 100000\n",
        text(spec)
    )
}

fn text(spec: &WorkloadSpec) -> String {
    serde_json::to_string(spec).unwrap_or_default()
}
