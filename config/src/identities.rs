//! `[[identities]]`, and what the keys of `[participation]` show together.

use crate::judge::Judge;
use crate::listener_keys::IDENTITY;
use crate::participation::{Identity, KnownBy, ParticipationSettings};
use crate::settings::Config;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is shown by whom, with the file and line.
pub(crate) type Proofs = BTreeMap<KnownBy, String>;

impl Judge<'_> {
    pub(crate) fn identities(&mut self, value: &Spanned<DeValue<'_>>, config: &mut Config, proofs: &mut Proofs) {
        let Some(rows) = self.rows(value, "identities", "identity") else { return };
        for row in rows.iter() {
            let Some(table) = self.table(row, "[identities]") else { continue };
            let mut identity = Identity::default();
            let wrong_before = self.problems.len();
            self.keys("identities", table, IDENTITY, &mut identity);
            if self.problems.len() == wrong_before {
                self.identity(&identity, row.span(), table, proofs);
            }
            config.participation.identities.push(identity);
        }
    }

    /// What an identity's keys together show.
    fn identity(&mut self, identity: &Identity, span: Range<usize>, table: &DeTable<'_>, proofs: &mut Proofs) {
        let ways = IDENTITY.iter().map(|key| key.name).filter(|name| *name != "tenant");
        let given: Vec<&str> = ways.filter(|name| table.contains_key(*name)).collect();
        let all = "`certificate`, `token_sha256`, `vsock_cid` or `vsock_socket`";
        let Some(known_by) = identity.known_by.as_ref().filter(|_| given.len() == 1) else {
            let (title, help) = match given.as_slice() {
                [] => ("an identity without a proof", format!("add one of {all}")),
                _ => ("an identity with more than one proof", format!("write an `[[identities]]` for each of {all}")),
            };
            return self.error(span, title, "who is it?", Some(help));
        };
        if identity.tenant.is_empty() {
            let help = "add `tenant = \"NAME\"`, as `minerva-ctl status` shows it".to_owned();
            return self.error(span, "an identity without a tenant", "whose is it?", Some(help));
        }
        let place = self.place(table.get(known_by.key()).map_or(span.clone(), Spanned::span));
        if let Some(first) = proofs.insert(known_by.clone(), place) {
            let span = table.get(known_by.key()).map_or(span, Spanned::span);
            let title = format!("two identities with the {} `{known_by}`", known_by.key());
            let help = format!("the first is at {first}; one proof names one tenant");
            self.error(span, title, "the second", Some(help));
        }
    }
}

/// Contradictions between keys: the key that they are shown at, what is wrong, what to do.
pub(crate) fn contradictions(settings: &ParticipationSettings) -> Vec<(&'static str, String, &'static str)> {
    let mut found = Vec::new();
    let certificate = settings.certificate.is_some();
    match (certificate, settings.key.is_some()) {
        (true, false) => found.push((
            "participation.certificate",
            "`certificate` is set and `key` is not".to_owned(),
            "name the certificate's private key in `key`",
        )),
        (false, true) => found.push((
            "participation.key",
            "`key` is set and `certificate` is not".to_owned(),
            "name the key's certificate in `certificate`",
        )),
        _ => {}
    }
    if settings.client_ca.is_some() && !certificate {
        found.push((
            "participation.client_ca",
            "`client_ca` is set and `certificate` is not".to_owned(),
            "clients show certificates over TLS only; set `certificate` and `key` too",
        ));
    }
    if let Some(address) = settings.listen.filter(|address| !certificate && !address.ip().is_loopback()) {
        found.push((
            "participation.listen",
            format!("`listen` is {address}, which others reach, and there is no certificate"),
            "tokens would cross the network in clear; set `certificate` and `key`, or listen on 127.0.0.1",
        ));
    }
    found
}

/// Identities that nothing can ever prove, as far as the settings show.
pub(crate) fn unprovable(settings: &ParticipationSettings) -> Option<(&'static str, String)> {
    let has = |wanted: fn(&KnownBy) -> bool| {
        settings.identities.iter().filter_map(|identity| identity.known_by.as_ref()).any(wanted)
    };
    if settings.listen.is_none() && has(|by| matches!(by, KnownBy::TokenSha256(_) | KnownBy::Certificate(_))) {
        return Some(("listen", "certificates and tokens are shown over TCP, and `listen` is not set".to_owned()));
    }
    if settings.client_ca.is_none() && has(|by| matches!(by, KnownBy::Certificate(_))) {
        return Some((
            "client_ca",
            "certificates of clients are not asked for, because `client_ca` is not set".to_owned(),
        ));
    }
    if settings.vsock_port.is_none() && has(|by| matches!(by, KnownBy::VsockCid(_))) {
        return Some(("vsock_port", "nobody can ask over vsock, because `vsock_port` is not set".to_owned()));
    }
    None
}
