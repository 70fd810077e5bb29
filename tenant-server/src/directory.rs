//! Who is who: the loop writes it when a tenant comes, goes or changes; the server looks up who asks.

use minerva_model::{Role, Tenant, TenantId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A tenant as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTenant {
    /// Which.
    pub id: TenantId,
    /// As people know it.
    pub name: String,
    /// Its account: limits are kept for each, so that many tenants of one group are one.
    pub account: String,
    /// Whoever runs its processes ([`Tenant::maker`]), and answers for those that hang.
    pub maker: String,
    /// What it may call.
    pub role: Role,
}

/// Shared between the loop and the server. Each access is short.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    listed: Arc<RwLock<BTreeMap<String, ListedTenant>>>,
    is_complete: Arc<AtomicBool>,
}

impl Directory {
    /// A tenant came or changed.
    pub fn enter(&self, tenant: &Tenant) {
        let listed = ListedTenant {
            id: tenant.id,
            name: tenant.name.clone(),
            account: tenant.history_key(),
            maker: tenant.maker().to_owned(),
            role: tenant.terms.role,
        };
        self.listed.write().unwrap_or_else(PoisonError::into_inner).insert(tenant.cgroup.path.clone(), listed);
    }

    /// A tenant is gone; another that has its path by now stays.
    pub fn strike(&self, tenant: &Tenant) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if listed.get(&tenant.cgroup.path).is_some_and(|one| one.id == tenant.id) {
            listed.remove(&tenant.cgroup.path);
        }
    }

    /// The loop has looked: whoever was there at the start is listed.
    pub fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Whether who is not listed was not there at the start.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// The tenant to which a process in this cgroup belongs: that of the path, or of the nearest one above.
    pub fn of_cgroup(&self, path: &str) -> Option<ListedTenant> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let mut path = path.trim_matches('/');
        loop {
            if let Some(one) = listed.get(path) {
                return Some(one.clone());
            }
            path = path.rsplit_once('/')?.0;
        }
    }

    /// The tenant of this name, if there is just one.
    pub fn of_name(&self, name: &str) -> Option<ListedTenant> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let mut named = listed.values().filter(|one| one.name == name);
        let first = named.next()?;
        named.next().is_none().then(|| first.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::Directory;
    use minerva_model::{CgroupRef, Tenant, TenantId, TenantKind};

    fn tenant(number: u64, path: &str) -> Tenant {
        Tenant {
            id: TenantId(number),
            name: path.rsplit('/').next().unwrap_or_default().to_owned(),
            kind: TenantKind::Cgroup,
            cgroup: CgroupRef { path: path.to_owned(), inode: number },
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: minerva_model::Terms::default(),
            origin: minerva_model::Origin::default(),
        }
    }

    #[test]
    fn a_process_belongs_to_the_nearest_tenant_above_it() {
        let directory = Directory::default();
        directory.enter(&tenant(1, "machine/vm"));
        directory.enter(&tenant(2, "machine/vm/inner"));
        let id = |path| directory.of_cgroup(path).map(|one| one.id.0);
        assert_eq!(id("/machine/vm/vcpu0"), Some(1));
        assert_eq!(id("/machine/vm/inner"), Some(2));
        assert_eq!(id("/machine"), None);
        assert_eq!(id("/machine/vmx"), None);
    }

    #[test]
    fn a_later_tenant_of_the_same_path_stays_when_the_earlier_goes() {
        let directory = Directory::default();
        let (old, new) = (tenant(1, "a"), tenant(2, "a"));
        directory.enter(&old);
        directory.enter(&new);
        directory.strike(&old);
        assert_eq!(directory.of_name("a").map(|one| one.id), Some(TenantId(2)));
        directory.strike(&new);
        assert_eq!(directory.of_name("a"), None);
    }

    #[test]
    fn a_name_that_two_have_is_nobodys() {
        let directory = Directory::default();
        directory.enter(&tenant(1, "x/a"));
        directory.enter(&tenant(2, "y/a"));
        assert_eq!(directory.of_name("a"), None);
    }
}
