//! What describes a disk.

use minerva_model::Nanos;
use minerva_sim_device::disksim::{Sources, import, model_file, seek_file};
use minerva_sim_device::{Kind, Profile, Request};

/// A profile either is refused or makes a disk that serves.
pub fn profile(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(profile) = Profile::parse(text) {
        serve(&profile);
    }
}

/// The lines of a measured trace.
pub fn trace(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(all) = minerva_sim_device::validate::parse_trace(text) {
        assert!(all.len() <= text.len());
    }
}

/// The parameter files of a drive, one after the other with a line `---` between them.
pub fn disksim(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut parts = text.split("\n---\n");
    let (diskspecs, model) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    model_file(diskspecs);
    seek_file(model);
    if let Ok(profile) = import("drive", &Sources { diskspecs, model, seek: parts.next(), parv: parts.next() }) {
        assert_eq!(profile.problem(), None);
        serve(&profile);
    }
}

/// fio's output.
pub fn ssd_fit(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let base = minerva_sim_device::profile("sata-ssd").expect("it is built in");
    if let Ok(fit) = minerva_sim_device::fit::ssd_fit(&base, text) {
        assert_eq!(fit.profile.problem(), None);
    }
}

fn serve(profile: &Profile) {
    let mut device = profile.build(None, 1);
    for tag in 0..4u64 {
        let kind = if tag % 3 == 1 { Kind::Write } else { Kind::Read };
        let offset_bytes = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        device.submit(Nanos::ZERO, Request { tag, kind, offset_bytes, length_bytes: 65536 });
    }
    let mut done = 0;
    while let Some(at) = device.next_completion() {
        done += usize::from(device.complete(at).is_some());
    }
    assert_eq!(done, 4, "a request was lost");
}
