//! Of which tenants one is expected to do as they did: those of the same group, or of the same kind and name but for numbers.

use minerva_forecast::Family;
use minerva_forecast::online::Account;
use minerva_model::Tenant;

/// Runs of hexadecimal digits from this length on are somebody's random number.
const IDENTIFIER_LENGTH: usize = 8;

/// 0, which means that nothing is known, where the name has nothing but numbers. What QEMU is told that a guest is called is left
/// out, because whoever starts it chooses that, and so is what a process calls itself: the kind is the group's (docs/adr/0053). What a
/// user's own groups did counts for that user's groups only.
pub(crate) fn family(tenant: &Tenant) -> Family {
    if let Some(group) = &tenant.group {
        return hash(&["group", group]);
    }
    let stem = stem(&tenant.name);
    if stem.is_empty() {
        return 0;
    }
    let owner = tenant.origin.delegated_from.as_ref().map_or("", |delegated| &delegated.path);
    hash(&[tenant.kind_by_group().as_str(), owner, &stem])
}

/// Whose sessions answer for each other: those of one owner.
pub(crate) fn account(tenant: &Tenant) -> Account {
    hash(&["account", &tenant.owner()])
}

/// The name without what tells one from the next: digits, and identifiers such as a container's.
fn stem(name: &str) -> String {
    let is_separator = |letter: char| !letter.is_ascii_alphanumeric();
    let mut stem = String::new();
    for part in name.split_inclusive(is_separator) {
        let word = part.trim_end_matches(is_separator);
        let is_identifier = word.len() >= IDENTIFIER_LENGTH && word.chars().all(|letter| letter.is_ascii_hexdigit());
        if !is_identifier {
            stem.extend(word.chars().filter(|letter| !letter.is_ascii_digit()));
        }
        stem.push_str(&part[word.len()..]);
    }
    if stem.chars().all(is_separator) { String::new() } else { stem }
}

/// FNV-1a (Fowler, Noll and Vo), which is the same on every machine. Never 0.
fn hash(parts: &[&str]) -> Family {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0xFF])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::{account, family, stem};
    use minerva_model::{CgroupRef, Origin, Tenant, TenantId, TenantKind, Terms};

    fn tenant(name: &str) -> Tenant {
        Tenant {
            id: TenantId(1),
            name: name.to_owned(),
            kind: TenantKind::Service,
            cgroup: CgroupRef { path: name.to_owned(), inode: 1 },
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: Terms::default(),
            origin: Origin::default(),
        }
    }

    #[test]
    fn numbers_do_not_tell_families_apart_and_words_do() {
        let stems = ["backup@17.service", "docker-0123456789abcdef.scope", "job-3", "17-4", "cafe", "Größe 3"];
        assert_eq!(stems.map(stem), ["backup@.service", "docker-.scope", "job-", "", "cafe", "Größe "]);
        assert_eq!(family(&tenant("job-1")), family(&tenant("job-22")));
        assert_ne!(family(&tenant("job-1")), family(&tenant("scan-1")));
        assert_eq!(family(&tenant("17")), 0);
    }

    #[test]
    fn who_calls_itself_qemu_stays_in_its_family() {
        let plain = tenant("backup.service");
        let calls_itself_qemu = Tenant {
            kind: TenantKind::VirtualMachine,
            origin: Origin {
                guest_name: Some("web".to_owned()),
                group_kind: Some(TenantKind::Service),
                ..Origin::default()
            },
            ..plain.clone()
        };
        assert_eq!(family(&calls_itself_qemu), family(&plain));
        // As earlier versions recorded it: a replay goes on as it did.
        let mut recorded = serde_json::to_value(&calls_itself_qemu).unwrap();
        assert!(recorded["origin"].as_object_mut().unwrap().remove("group_kind").is_some());
        let recorded: Tenant = serde_json::from_value(recorded).unwrap();
        assert_eq!(family(&recorded), super::hash(&["virtual-machine", "", "backup.service"]));
    }

    #[test]
    fn a_users_groups_are_no_family_of_the_systems() {
        let delegated_from = Some(CgroupRef { path: "user.slice".to_owned(), inode: 9 });
        let origin = Origin { delegated_from, guest_name: Some("backup".to_owned()), ..Origin::default() };
        let made_by_user = Tenant { origin, ..tenant("backup.service") };
        assert_ne!(family(&made_by_user), family(&tenant("backup.service")));
        let grouped = |name: &str| Tenant { group: Some("batch".to_owned()), ..tenant(name) };
        assert_eq!(family(&grouped("a")), family(&grouped("b")));
    }

    #[test]
    fn whatever_a_user_makes_is_on_one_account() {
        let made_by = |user: &str, name: &str| {
            let delegated_from = Some(CgroupRef { path: user.to_owned(), inode: 9 });
            Tenant { origin: Origin { delegated_from, ..Origin::default() }, ..tenant(name) }
        };
        assert_eq!(account(&made_by("user-1.slice", "a")), account(&made_by("user-1.slice", "b")));
        assert_ne!(account(&made_by("user-1.slice", "a")), account(&made_by("user-2.slice", "a")));
        let session = |user: u32, number: u32| tenant(&format!("user.slice/user-{user}.slice/session-{number}.scope"));
        assert_eq!(account(&session(1000, 3)), account(&session(1000, 4)));
        assert_ne!(account(&session(1000, 3)), account(&session(1001, 3)));
        assert_ne!(account(&tenant("a")), account(&tenant("b")));
        let grouped = |name: &str| Tenant { group: Some("batch".to_owned()), ..tenant(name) };
        assert_eq!(account(&grouped("a")), account(&grouped("b")));
        assert_ne!(account(&grouped("a")), account(&tenant("batch")));
    }
}
