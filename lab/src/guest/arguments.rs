//! Arguments of QEMU.

use super::architecture::Architecture;
use super::debian;
use super::folder::GuestFolder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Emulated processors, each in a thread of its own.
pub(super) fn add_processors(command: &mut Command, architecture: Architecture, count: u32) {
    command.args(["-accel", "tcg,thread=multi", "-cpu", architecture.processor(), "-smp", &count.to_string()]);
}

/// The console, and what the script writes and ends with, each to a file in `place`.
pub(super) fn add_outputs(command: &mut Command, place: &GuestFolder<'_>) {
    command.arg("-serial").arg(format!("file:{}", place.show("console")));
    command.args(["-device", "virtio-serial-pci"]);
    for (number, name) in [(1, "stdout"), (2, "stderr"), (3, "status")] {
        command.arg("-chardev").arg(format!("file,id={name},path={}", place.show(name)));
        command.arg("-device").arg(format!("virtserialport,nr={number},chardev={name},name={name}"));
    }
}

/// What the script reads, from a socket of the host; the port after those of [`add_outputs`].
pub(super) fn add_input(command: &mut Command, socket: &Path) {
    let socket = socket.to_string_lossy().replace(',', ",,");
    command.arg("-chardev").arg(format!("socket,id=input,path={socket}"));
    command.args(["-device", "virtserialport,nr=4,chardev=input,name=input"]);
}

/// Debian's disk. What the guest writes goes to a file without a name, and the image stays as it was made.
pub(super) fn add_debian(command: &mut Command, image: &Path) {
    let file = image.to_string_lossy().replace(',', ",,");
    command.arg("-drive").arg(format!("if=none,id=debian,format=raw,cache=unsafe,snapshot=on,file={file}"));
    command.arg("-device").arg(format!("virtio-blk-pci,drive=debian,serial={}", debian::SERIAL));
}

/// The guest's memory, so that programs that serve its devices can read and write it.
pub(super) fn share_memory(command: &mut Command, memory_mib: u32) {
    command.arg("-object").arg(format!("memory-backend-memfd,id=memory,size={memory_mib}M,share=on"));
    command.args(["-machine", "memory-backend=memory"]);
}

/// Disks that others serve.
pub(super) fn add_vhost_user_disks(command: &mut Command, sockets: &[PathBuf]) {
    for (number, socket) in sockets.iter().enumerate() {
        let socket = socket.to_string_lossy().replace(',', ",,");
        command.arg("-chardev").arg(format!("socket,id=vhost{number},path={socket},reconnect=1"));
        command.arg("-device").arg(format!("vhost-user-blk-pci,chardev=vhost{number},num-queues=1"));
    }
}

/// A block device of the host, past its page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDisk {
    /// Which.
    pub device: PathBuf,
    /// Bytes a second that QEMU lets the guest have; none, and 0, for no limit.
    pub limit_bytes_per_second: Option<u64>,
    /// The guest may not write it.
    pub is_read_only: bool,
}

/// Block devices of the host.
pub(super) fn add_host_disks(command: &mut Command, disks: &[HostDisk]) {
    for (number, disk) in disks.iter().enumerate() {
        let device = disk.device.to_string_lossy().replace(',', ",,");
        let limit = disk.limit_bytes_per_second;
        let limit = limit.map_or_else(String::new, |bytes| format!(",throttling.bps-total={bytes}"));
        let read_only = if disk.is_read_only { "on" } else { "off" };
        let drive = format!("if=none,id=host{number},format=raw,cache=none,aio=native,readonly={read_only}");
        command.arg("-drive").arg(format!("{drive}{limit},file={device}"));
        command.arg("-device").arg(format!("virtio-blk-pci,drive=host{number},num-queues=1"));
    }
}

/// Directories that others serve.
pub(super) fn add_shared_directories(command: &mut Command, directories: &[(String, PathBuf)]) {
    for (number, (tag, socket)) in directories.iter().enumerate() {
        let socket = socket.to_string_lossy().replace(',', ",,");
        command.arg("-chardev").arg(format!("socket,id=directory{number},path={socket}"));
        command.arg("-device").arg(format!("vhost-user-fs-pci,chardev=directory{number},tag={tag},queue-size=1024"));
    }
}
