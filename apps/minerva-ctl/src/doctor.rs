//! `minerva-ctl doctor`: will a weight bite here? For each disk and mount, with the reason and the remedy, from what the kernel
//! says. Nothing is changed, and no daemon is needed.

use crate::compare;
use crate::output::{self, CommandStatus};
use crate::place::{self, OperatorFile};
use crate::probe;
use crate::tag;
use anyhow::{Context, bail};
use minerva_actuate::suitability;
use minerva_config::Config;
use minerva_linux_observe::{HiddenGroups, MountFacts, Observer, Roots, read_mount_facts};
use minerva_model::{Device, DeviceId, Event};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a probe reads.
const PROBE_TIME: Duration = Duration::from_secs(4);

/// What was asked.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) file: OperatorFile,
    pub(crate) proof: Option<Proof>,
    pub(crate) device: Option<String>,
    pub(crate) mount: Option<PathBuf>,
    /// Of each part of a proof; without it as long as is right for what is proved.
    pub(crate) duration: Option<Duration>,
    pub(crate) json: bool,
}

/// What is to be tried on the disk itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proof {
    Probe,
    Compare { change_elevator: bool, rounds: Option<u32>, writes: bool },
}

impl Proof {
    /// What the command line asks for: to probe, or to compare like this.
    pub(crate) fn asked_for(probe: bool, compare: bool, like_this: Self) -> Option<Self> {
        if probe { Some(Self::Probe) } else { compare.then_some(like_this) }
    }
}

/// One disk, judged.
#[derive(Clone, Debug, Serialize)]
struct DiskLine {
    kind: &'static str,
    disk: String,
    number: String,
    bites: bool,
    back_end: &'static str,
    reason: String,
    remedy: Option<String>,
}

/// One mount, judged.
#[derive(Debug, Serialize)]
struct MountLine {
    kind: &'static str,
    mount: String,
    file_system: String,
    disks: Vec<String>,
    bites: bool,
    reason: String,
    remedy: Option<String>,
}

/// A slice that hides what is in it.
#[derive(Debug, Serialize)]
struct SliceLine {
    kind: &'static str,
    slice: String,
    groups: usize,
    reason: String,
    remedy: String,
}

/// Judges, prints, and proves if asked to. A disk where nothing bites and something can be done is a finding, and so is a slice that hides
/// its services.
pub(crate) fn run(request: &Request) -> anyhow::Result<CommandStatus> {
    let config = request.file.load()?;
    let roots = place::roots(&config)?;
    let (devices, hidden) = look(&roots)?;
    let mounts = read_mount_facts(&roots).context("failed to read the mounts")?;
    let wanted = Wanted::of(request, &devices, &mounts)?;
    let disks: BTreeMap<DeviceId, DiskLine> =
        devices.iter().map(|(id, device)| (*id, disk_line(device, &config))).collect();
    let shown: Vec<&DiskLine> = disks.iter().filter(|(id, _)| wanted.has_disk(**id)).map(|(_, line)| line).collect();
    let mounts: Vec<MountLine> =
        mounts.iter().filter(|mount| wanted.has_mount(mount)).map(|mount| mount_line(mount, &disks)).collect();
    // Of the whole host, not of one disk.
    let hidden = if matches!(wanted, Wanted::Everything) { hidden } else { Vec::new() };
    let slices: Vec<SliceLine> = hidden.iter().map(slice_line).collect();
    print(&shown, &mounts, &slices, request.json)?;
    if matches!(wanted, Wanted::Everything) {
        tag::report(&config.daemon.runtime_dir, request.json)?;
    }
    let mut found = shown.iter().any(|line| wanted.asks_for_something(line, &config)) || !slices.is_empty();
    if let Some(proof) = request.proof {
        let [id] = wanted.probed(&devices)[..] else {
            bail!("name the disk to read from: --device NAME or --mount PATH")
        };
        match try_on(&devices[&id], proof, request, (&config, &roots))? {
            CommandStatus::Well => {}
            CommandStatus::Found => found = true,
            interrupted => return Ok(interrupted),
        }
    }
    Ok(CommandStatus::found_if(found))
}

fn try_on(
    device: &Device,
    proof: Proof,
    request: &Request,
    (config, roots): (&Config, &Roots),
) -> anyhow::Result<CommandStatus> {
    let (duration, json) = (request.duration, request.json);
    match proof {
        Proof::Probe => probe::run(config, roots, device, duration.unwrap_or(PROBE_TIME), json),
        Proof::Compare { change_elevator, rounds, writes } => {
            let writes_beside = writes.then_some(&request.file);
            let request = compare::Request { device, change_elevator, duration, rounds, writes_beside, json };
            compare::run(config, roots, &request)
        }
    }
}

/// Every disk of the host, and the slices that hide groups.
fn look(roots: &Roots) -> anyhow::Result<(BTreeMap<DeviceId, Device>, Vec<HiddenGroups>)> {
    let mut observer = Observer::new(roots.clone(), &[]).context("failed to look at the host")?;
    let seen = observer.discover().into_iter().filter_map(|event| match event {
        Event::DeviceSeen(device) => Some((device.id, device)),
        _ => None,
    });
    let devices = seen.collect();
    Ok((devices, observer.hidden().collect()))
}

/// What the command line narrows it to.
#[derive(Debug)]
enum Wanted {
    Everything,
    Disk(DeviceId),
    Mount { point: String, disks: Vec<DeviceId> },
}

impl Wanted {
    fn of(request: &Request, devices: &BTreeMap<DeviceId, Device>, mounts: &[MountFacts]) -> anyhow::Result<Self> {
        if let Some(name) = &request.device {
            let name = name.trim_start_matches("/dev/");
            let found = devices.values().find(|device| device.name == name);
            return found.map(|device| Self::Disk(device.id)).with_context(|| {
                let names: Vec<&str> = devices.values().map(|device| device.name.as_str()).collect();
                format!("there is no whole disk {name}; there are: {}", names.join(", "))
            });
        }
        let Some(path) = &request.mount else { return Ok(Self::Everything) };
        let path = path.canonicalize().with_context(|| format!("failed to find {}", path.display()))?;
        // Of the mounts above the path the deepest one; of several on one place the last one covers the others.
        let above = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
        let mount = above.max_by_key(|mount| Path::new(&mount.mount_point).components().count());
        let mount = mount.with_context(|| format!("no file system with files holds {}", path.display()))?;
        Ok(Self::Mount { point: mount.mount_point.clone(), disks: mount.devices.clone() })
    }

    fn has_disk(&self, id: DeviceId) -> bool {
        match self {
            Self::Everything => true,
            Self::Disk(wanted) => *wanted == id,
            Self::Mount { disks, .. } => disks.contains(&id),
        }
    }

    /// Whether something is to be done about a disk: not where it is watched only because the file says so, nor where nobody asked for it
    /// and the daemon does not look at it.
    fn asks_for_something(&self, line: &DiskLine, config: &Config) -> bool {
        let only = &config.daemon.devices_only;
        let is_meant = !matches!(self, Self::Everything) || only.is_empty() || only.contains(&line.disk);
        !line.bites && line.remedy.is_some() && is_meant
    }

    fn has_mount(&self, mount: &MountFacts) -> bool {
        match self {
            Self::Everything => true,
            Self::Disk(wanted) => mount.devices.contains(wanted),
            Self::Mount { point, .. } => *point == mount.mount_point,
        }
    }

    /// The disks that a probe would read; only one will do.
    fn probed(&self, devices: &BTreeMap<DeviceId, Device>) -> Vec<DeviceId> {
        devices.keys().copied().filter(|id| self.has_disk(*id)).collect()
    }
}

fn disk_line(device: &Device, config: &Config) -> DiskLine {
    let judged = suitability(&device.facts, config.engine.devices.get(&device.name)).named(&device.name);
    DiskLine {
        kind: "disk",
        disk: device.name.clone(),
        number: device.id.to_string(),
        bites: judged.bites,
        back_end: judged.back_end.as_str(),
        reason: judged.reason,
        remedy: judged.remedy,
    }
}

/// A mount is as good as the worst of its disks.
fn mount_line(mount: &MountFacts, disks: &BTreeMap<DeviceId, DiskLine>) -> MountLine {
    let below: Vec<&DiskLine> = mount.devices.iter().filter_map(|id| disks.get(id)).collect();
    let (bites, reason, remedy) = match (mount.hidden_because, below.iter().find(|line| !line.bites)) {
        (Some(why), _) => (false, why.to_owned(), None),
        (None, Some(line)) => (false, format!("{}: {}", line.disk, line.reason), line.remedy.clone()),
        (None, None) if below.is_empty() => (false, "its disk is not one that can be steered".to_owned(), None),
        (None, None) if mount.writeback_attributed => {
            (true, "reads and writes are charged to the tenant".to_owned(), None)
        }
        (None, None) => {
            let reason =
                "reads and direct writes are charged to the tenant; buffered writes are charged to the root group";
            (true, reason.to_owned(), None)
        }
    };
    MountLine {
        kind: "mount",
        mount: mount.mount_point.clone(),
        file_system: mount.file_system.clone(),
        disks: below.iter().map(|line| line.disk.clone()).collect(),
        bites,
        reason,
        remedy,
    }
}

fn slice_line(hidden: &HiddenGroups) -> SliceLine {
    let (slice, groups) = (hidden.slice.clone(), hidden.groups);
    SliceLine { kind: "slice", slice, groups, reason: hidden.reason(), remedy: hidden.remedy() }
}

fn print(disks: &[&DiskLine], mounts: &[MountLine], slices: &[SliceLine], json: bool) -> anyhow::Result<()> {
    if json {
        disks.iter().try_for_each(output::json)?;
        mounts.iter().try_for_each(output::json)?;
        return slices.iter().try_for_each(output::json);
    }
    let mut text = String::new();
    let mut entry = |bites: bool, title: String, reason: &str, remedy: Option<&String>| {
        let answer = if bites { "bites" } else { "does not bite" };
        text.push_str(&format!("{title}: a weight {answer}\n    {reason}\n"));
        if let Some(remedy) = remedy {
            text.push_str(&format!("    to do: {remedy}\n"));
        }
    };
    for line in disks {
        let title = format!("disk {} ({}, back end {})", line.disk, line.number, line.back_end);
        entry(line.bites, title, &line.reason, line.remedy.as_ref());
    }
    for line in mounts {
        let on = if line.disks.is_empty() { String::new() } else { format!(" on {}", line.disks.join(", ")) };
        let title = format!("mount {} ({}{on})", line.mount, line.file_system);
        entry(line.bites, title, &line.reason, line.remedy.as_ref());
    }
    for SliceLine { slice, reason, remedy, .. } in slices {
        text.push_str(&format!("slice {slice}: its services are not told apart\n    {reason}\n    to do: {remedy}\n"));
    }
    output::text(&text)
}
