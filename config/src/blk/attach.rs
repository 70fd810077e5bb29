//! How a guest gets a disk.

use super::VmDiskSettings;
use std::path::{Path, PathBuf};

/// Where sockets are that the file does not name.
const SOCKETS: &str = "/run/minerva-blk";

impl VmDiskSettings {
    /// Where QEMU connects for the disk of this name.
    pub fn socket_path(&self, name: &str) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| Path::new(SOCKETS).join(format!("{name}.sock")))
    }
}

/// What QEMU needs so that another process can serve a guest's device.
pub(crate) const SHARED_MEMORY_ARGUMENTS: &str =
    "-object memory-backend-memfd,id=memory,size=2G,share=on -machine memory-backend=memory";
/// The same for libvirt.
pub(crate) const SHARED_MEMORY_XML: &str = "\
<memoryBacking>
  <source type='memfd'/>
  <access mode='shared'/>
</memoryBacking>
";

/// QEMU's arguments and libvirt's XML for a disk.
pub fn attach_lines(name: &str, socket: &Path, queues: u16) -> String {
    let socket = socket.display();
    format!(
        "\
# QEMU; 2G is the guest's memory, as with -m. From QEMU 9.2 on write reconnect-ms=1000 for reconnect=1.
{SHARED_MEMORY_ARGUMENTS} \\
-chardev socket,id={name},path={socket},reconnect=1 \\
-device vhost-user-blk-pci,chardev={name},num-queues={queues}

# libvirt 7.1 or later: the first below <domain>, the second below <devices>.
{SHARED_MEMORY_XML}
<disk type='vhostuser' device='disk'>
  <driver name='qemu' type='raw' queues='{queues}'/>
  <source type='unix' path='{socket}'>
    <reconnect enabled='yes' timeout='1'/>
  </source>
  <target dev='vda' bus='virtio'/>
</disk>
"
    )
}
