//! What an operator has edited in the file of disks that are served on as they were: a hand-over changes nothing of them, so it is told.

use crate::disk::settings_of;
use minerva_config::BlkConfig;
use minerva_model::{DiskSettings, DiskTerms};

/// A line for each disk that goes on otherwise than the file says by now.
pub(crate) fn untaken<'a>(config: &BlkConfig, served: impl Iterator<Item = &'a DiskSettings>) -> Vec<String> {
    served.filter_map(|disk| untaken_of(config, disk)).collect()
}

fn untaken_of(config: &BlkConfig, served: &DiskSettings) -> Option<String> {
    let name = &served.name;
    let Some(disk) = config.disks.get(name) else {
        let remedy = format!("`minerva-ctl disk remove {name}` ends that");
        return Some(format!("{name}: goes on, and stands in no file: {remedy}"));
    };
    let keys = differing(&settings_of(name, disk), served);
    let remedy = "`minerva-ctl disk set` changes what it can at once, and a restart the rest";
    (!keys.is_empty())
        .then(|| format!("{name}: goes on as before, but {} has another {}: {remedy}", disk.place, keys.join(", ")))
}

/// The keys of the file that differ.
fn differing(file: &DiskSettings, served: &DiskSettings) -> Vec<&'static str> {
    let (new, old) = (&file.terms, &served.terms);
    let has_contract = new.rate_bytes_per_second.is_some() || old.rate_bytes_per_second.is_some();
    // Times are kept in microseconds.
    let microseconds = |terms: &DiskTerms| terms.delay.0 / 1_000;
    let keys = [
        ("image", file.image != served.image),
        ("socket", file.socket != served.socket),
        ("read_only", file.read_only != served.read_only),
        ("direct", file.direct != served.direct),
        ("queues", file.queues != served.queues),
        ("weight", new.weight != old.weight),
        ("rate", new.rate_bytes_per_second != old.rate_bytes_per_second),
        ("burst", has_contract && new.burst_bytes != old.burst_bytes),
        ("delay", has_contract && microseconds(new) != microseconds(old)),
        ("limit", new.limit_bytes_per_second != old.limit_bytes_per_second),
        ("tag_default", new.tag_default != old.tag_default),
        ("tag_max", new.tag_max != old.tag_max),
        ("access", new.is_random != old.is_random),
        ("request", new.request_bytes != old.request_bytes),
        ("force", new.force != old.force),
    ];
    keys.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
}

#[cfg(test)]
mod tests {
    use super::untaken;
    use crate::disk::settings_of;
    use minerva_config::parse_blk;
    use std::path::Path;

    #[test]
    fn what_was_edited_of_a_disk_that_goes_on_is_told() {
        let parse = |text: &str| parse_blk(text, Path::new("blk.toml")).unwrap();
        let before = parse("[disks.vm1]\nimage = \"/a\"\n[disks.vm2]\nimage = \"/b\"\n[disks.vm3]\nimage = \"/c\"\n");
        let served: Vec<_> = before.disks.iter().map(|(name, disk)| settings_of(name, disk)).collect();
        let after = parse("[disks.vm1]\nimage = \"/a\"\n[disks.vm2]\nimage = \"/b\"\nweight = 500\ntag_max = 90\n");
        assert_eq!(untaken(&before, served.iter()), Vec::<String>::new());
        let told = untaken(&after, served.iter());
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("vm2: goes on as before") && told[0].contains("weight, tag_max"), "{told:?}");
        assert!(told[1].contains("vm3: goes on, and stands in no file"), "{told:?}");
    }
}
