//! The operator's `[[identities]]`: which certificate, token or machine is which tenant.

use minerva_config::{Identity, KnownBy};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use subtle::ConstantTimeEq;

/// Proofs, and the names of the tenants that they prove.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identities {
    certificates: BTreeMap<String, String>,
    tokens: Vec<([u8; 32], String)>,
    cids: BTreeMap<u32, String>,
    sockets: BTreeMap<PathBuf, String>,
}

impl Identities {
    pub(crate) fn new(identities: &[Identity]) -> Self {
        let mut table = Self::default();
        for Identity { tenant, known_by } in identities {
            let tenant = tenant.clone();
            match known_by {
                Some(KnownBy::Certificate(name)) => drop(table.certificates.insert(name.clone(), tenant)),
                Some(KnownBy::TokenSha256(digest)) => table.tokens.push((*digest, tenant)),
                Some(KnownBy::VsockCid(cid)) => drop(table.cids.insert(*cid, tenant)),
                Some(KnownBy::VsockSocket(path)) => drop(table.sockets.insert(path.clone(), tenant)),
                None => {}
            }
        }
        table
    }

    /// The tenant of the first name that one has.
    pub(crate) fn of_certificate<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<&str> {
        names.into_iter().find_map(|name| self.certificates.get(name)).map(String::as_str)
    }

    /// The tenant whose token it is. All are compared to their ends, so that the time taken says nothing.
    pub(crate) fn of_token(&self, token: &[u8]) -> Option<&str> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        for (known, tenant) in &self.tokens {
            if bool::from(known.ct_eq(&digest)) {
                found = Some(tenant.as_str());
            }
        }
        found
    }

    /// The tenant of a virtual machine's number on vsock.
    pub(crate) fn of_cid(&self, cid: u32) -> Option<&str> {
        self.cids.get(&cid).map(String::as_str)
    }

    /// The tenant of the virtual machine whose own socket this is.
    pub(crate) fn of_socket(&self, path: &Path) -> Option<&str> {
        self.sockets.get(path).map(String::as_str)
    }
}

/// The table in force. A new one holds from the next request on, also for those who are connected.
#[derive(Clone, Debug)]
pub(crate) struct SharedIdentities(Arc<RwLock<Arc<Identities>>>);

impl SharedIdentities {
    pub(crate) fn new(identities: &[Identity]) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(Identities::new(identities)))))
    }

    pub(crate) fn set(&self, identities: &[Identity]) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Identities::new(identities));
    }

    pub(crate) fn get(&self) -> Arc<Identities> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::Identities;
    use minerva_config::{Identity, KnownBy};
    use sha2::{Digest, Sha256};
    use std::path::Path;

    #[test]
    fn a_proof_is_its_tenants_and_nobody_elses() {
        let one = |tenant: &str, known_by| Identity { tenant: tenant.to_owned(), known_by: Some(known_by) };
        let table = Identities::new(&[
            one("a", KnownBy::Certificate("a.example".to_owned())),
            one("b", KnownBy::TokenSha256(Sha256::digest("secret").into())),
            one("c", KnownBy::VsockCid(7)),
            one("d", KnownBy::VsockSocket("/run/d".into())),
        ]);
        assert_eq!(table.of_certificate(["x", "a.example"]), Some("a"));
        assert_eq!(
            (table.of_token(b"secret"), table.of_token(b"Secret"), table.of_token(b"")),
            (Some("b"), None, None)
        );
        assert_eq!((table.of_cid(7), table.of_cid(8)), (Some("c"), None));
        assert_eq!((table.of_socket(Path::new("/run/d")), table.of_socket(Path::new("/run/e"))), (Some("d"), None));
    }
}
