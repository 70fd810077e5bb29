//! The kernel without what unpacks it. Unpacking itself costs a kernel on an emulated processor more than all the rest of its boot;
//! the host does it once, and QEMU starts the ELF file by its PVH entry (Documentation/arch/x86/boot.rst, `payload_offset`;
//! Xen's `docs/misc/pvh.pandoc`).

use super::error::GuestError;
use super::program::run;
use goblin::elf::Elf;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The first version of the boot protocol that tells where the payload is.
const PROTOCOL: u16 = 0x208;
/// After its payload a kernel carries the unpacked length, which the formats below do not.
const LENGTH_BYTES: usize = 4;
/// The note that names the entry for QEMU, `XEN_ELFNOTE_PHYS32_ENTRY`.
const PVH_ENTRY: u32 = 18;

/// What Debian's kernels are compressed by: how it begins, its program, the ending that the program expects.
const FORMATS: [(&[u8], &str, &str); 2] = [(b"\xfd7zXZ\0", "xz", "xz"), (b"\x28\xb5\x2f\xfd", "zstd", "zst")];

/// Unpacks the kernel `image` to `vmlinux`, which appears only when it is whole; whether it can be booted so.
pub(super) fn extract(image: &Path, vmlinux: &Path) -> Result<bool, GuestError> {
    let bytes = fs::read(image).map_err(GuestError::at("read", image))?;
    let Some(payload) = payload(&bytes) else { return Ok(false) };
    let Some((_, program, ending)) = FORMATS.into_iter().find(|(magic, ..)| payload.starts_with(magic)) else {
        return Ok(false);
    };
    let folder = vmlinux.parent().unwrap_or(Path::new("."));
    let scratch = tempfile::tempdir_in(folder).map_err(GuestError::at("make a directory in", folder))?;
    let [packed, unpacked] = [format!("vmlinux.{ending}"), "vmlinux".to_owned()].map(|name| scratch.path().join(name));
    fs::write(&packed, payload).map_err(GuestError::at("write", &packed))?;
    run(Command::new(program).args(["--decompress", "--quiet"]).arg(&packed), program)?;
    let elf = fs::read(&unpacked).map_err(GuestError::at("read", &unpacked))?;
    let can_boot = has_pvh_entry(&elf);
    if can_boot {
        fs::rename(&unpacked, vmlinux).map_err(GuestError::at("move the kernel to", vmlinux))?;
    }
    Ok(can_boot)
}

/// The compressed kernel within an image, without the length behind it.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let version = u16::from_le_bytes(image.get(0x206..0x208)?.try_into().ok()?);
    if image.get(0x202..0x206)? != b"HdrS" || version < PROTOCOL {
        return None;
    }
    // Of 512 bytes each, beside the first.
    let setup_sectors = match image.get(0x1f1)? {
        0 => 4,
        count => usize::from(*count),
    };
    let start = (setup_sectors + 1) * 512 + word(0x248)?;
    let whole = image.get(start..start + word(0x24c)?)?;
    whole.get(..whole.len().checked_sub(LENGTH_BYTES)?)
}

fn has_pvh_entry(elf: &[u8]) -> bool {
    let Ok(parsed) = Elf::parse(elf) else { return false };
    let mut notes = parsed.iter_note_headers(elf).into_iter().flatten().flatten();
    notes.any(|note| note.name == "Xen" && note.n_type == PVH_ENTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a kernel of this version of the boot protocol, with `payload` after two sectors and 16 bytes.
    fn image(version: u16, payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024 + 16];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&version.to_le_bytes());
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    #[test]
    fn a_payload_is_found_and_its_length_cut_off() {
        assert_eq!(payload(&image(0x20f, b"packed\x06\0\0\0")), Some(b"packed".as_slice()));
    }

    #[test]
    fn what_is_no_kernel_or_cut_short_or_too_old_has_no_payload() {
        let whole = image(0x20f, b"packed\x06\0\0\0");
        for length in 0..whole.len() {
            assert_eq!(payload(&whole[..length]), None, "{length}");
        }
        assert_eq!(payload(&image(0x207, b"packed\x06\0\0\0")), None);
        assert_eq!(payload(&image(0x20f, b"abc")), None);
        assert_eq!(payload(&[0; 2048]), None);
    }

    #[test]
    fn what_is_no_elf_file_has_no_entry() {
        assert!(!has_pvh_entry(b"packed"));
    }
}
