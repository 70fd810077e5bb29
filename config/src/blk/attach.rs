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
    let socket = socket.to_string_lossy();
    // QEMU's names begin with a letter.
    let id = format!("disk-{name}");
    let chardev = quoted(&format!("socket,id={id},path={},reconnect=1", socket.replace(',', ",,")));
    let socket = escaped(&socket);
    format!(
        "\
# QEMU; 2G is the guest's memory, as with -m. From QEMU 9.2 on write reconnect-ms=1000 for reconnect=1.
{SHARED_MEMORY_ARGUMENTS} \\
-chardev {chardev} \\
-device vhost-user-blk-pci,chardev={id},num-queues={queues}

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

/// As a shell takes it for one word.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.,=_-:+@%".contains(&byte);
    if word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// As the value of an attribute in XML, in single quotes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::attach_lines;
    use std::path::Path;

    #[test]
    fn any_name_and_any_path_are_taken_by_qemu_a_shell_and_libvirt() {
        let plain = attach_lines("101", Path::new("/run/minerva-blk/101.sock"), 4);
        assert!(
            plain.contains("-chardev socket,id=disk-101,path=/run/minerva-blk/101.sock,reconnect=1 \\\n"),
            "{plain}"
        );
        assert!(plain.contains("chardev=disk-101,num-queues=4"), "{plain}");
        let odd = attach_lines("vm1", Path::new("/run/a vm's, b&c.sock"), 1);
        assert!(odd.contains(r"-chardev 'socket,id=disk-vm1,path=/run/a vm'\''s,, b&c.sock,reconnect=1' "), "{odd}");
        assert!(odd.contains("path='/run/a vm&apos;s, b&amp;c.sock'>"), "{odd}");
    }
}
