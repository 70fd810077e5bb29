//! Which process is the virtual machine of a number on vsock: the QEMU that was told so, and that has the kernel's device open.
//! Whoever only writes the number into its command line is not believed.

use crate::participation::identity::{NotIdentified, Process};
use minerva_linux_observe::Roots;
use std::fs;
use std::path::Path;

/// The device whose opener the kernel gives the number to.
const DEVICE: &str = "/dev/vhost-vsock";

/// The process and its cgroup; a sentence when there is none, or more than one. Looks at every process of the host.
pub(crate) fn machine_of_cid(cid: u32, roots: &Roots) -> Result<(Process, String), String> {
    let pids = fs::read_dir(&roots.proc).into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut machines = pids.filter(|pid| {
        let process = roots.proc.join(pid.to_string());
        fs::read(process.join("cmdline")).is_ok_and(|line| names_cid(&line, cid)) && has_open(&process, DEVICE)
    });
    match (machines.next(), machines.next()) {
        (Some(pid), None) => Process::now(pid, roots).map_err(|error: NotIdentified| error.to_string()),
        (None, _) => Err(format!(
            "No virtual machine of this host is known to have the number {cid} on vsock; name it in [[identities]] of the \
             operator's file (vsock_cid)."
        )),
        (Some(_), Some(_)) => Err(format!("More than one process says that it is the machine {cid} on vsock.")),
    }
}

/// The command line has `guest-cid=N` among the properties of a device.
fn names_cid(command_line: &[u8], cid: u32) -> bool {
    let wanted = format!("guest-cid={cid}");
    let mut properties = command_line.split(|byte| matches!(byte, 0 | b','));
    properties.any(|property| property == wanted.as_bytes())
}

fn has_open(process: &Path, device: &str) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|target| target == Path::new(device))
}

#[cfg(test)]
mod tests {
    use super::{has_open, machine_of_cid, names_cid};
    use minerva_linux_observe::Roots;
    use std::path::Path;

    #[test]
    fn the_number_is_a_property_of_its_own() {
        let line = b"qemu-system-x86_64\0-device\0vhost-vsock-pci,id=v0,guest-cid=42,vhostfd=7\0";
        assert!(names_cid(line, 42));
        assert!(!names_cid(line, 4) && !names_cid(line, 421) && !names_cid(b"echo guest-cid=420", 42));
    }

    #[test]
    fn who_only_says_so_is_not_believed() {
        let Ok(roots) = Roots::detect() else { return eprintln!("skipped: needs /proc") };
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "read line", "guest-cid=977001"]).stdin(std::process::Stdio::piped());
        let mut liar = command.spawn().expect("a process");
        let found = machine_of_cid(977_001, &roots);
        liar.kill().and_then(|()| liar.wait()).expect("an end");
        assert!(found.expect_err("a liar").starts_with("No virtual machine of this host"));
        let null = std::fs::File::open("/dev/null").expect("a device");
        assert!(has_open(Path::new("/proc/self"), "/dev/null"));
        drop(null);
    }
}
