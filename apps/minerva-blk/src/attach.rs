//! `minerva-blk attach-line DISK`: how a guest gets the disk.

use crate::plan::socket_of;
use anyhow::{Context, bail};
use minerva_config::load_blk;
use std::path::Path;

/// Prints QEMU's arguments and libvirt's XML.
pub(crate) fn run(config: &Path, disk: &str) -> anyhow::Result<()> {
    let settings = load_blk(config).with_context(|| format!("failed to use {}", config.display()))?;
    let Some(found) = settings.disks.get(disk) else {
        let known: Vec<&str> = settings.disks.keys().map(String::as_str).collect();
        bail!("{} has no disk `{disk}`; it has: {}", config.display(), known.join(", "));
    };
    print!("{}", text(disk, &socket_of(disk, found), found.queues));
    Ok(())
}

fn text(name: &str, socket: &Path, queues: u16) -> String {
    let socket = socket.display();
    format!(
        "\
# QEMU; 2G is the guest's memory, as with -m. From QEMU 9.2 on write reconnect-ms=1000 for reconnect=1.
-object memory-backend-memfd,id=memory,size=2G,share=on -machine memory-backend=memory \\
-chardev socket,id={name},path={socket},reconnect=1 \\
-device vhost-user-blk-pci,chardev={name},num-queues={queues}

# libvirt 7.1 or later: the first below <domain>, the second below <devices>.
<memoryBacking>
  <source type='memfd'/>
  <access mode='shared'/>
</memoryBacking>

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
