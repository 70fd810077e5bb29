//! Keys of the listeners for tenants: `[participation]` and `[[identities]]`. Rows as in `keys`.

use crate::forms::{PATH_FORM, absolute, check_name, show_path};
use crate::key::{Key, Kind, show_duration, show_text};
use crate::participation::{Identity, KnownBy, PORT_DEFAULT};
use crate::settings::Config;
use minerva_model::Nanos;
use std::net::SocketAddr;

const ADDRESS_FORM: &str = "an address and a port, such as \"192.0.2.1:7420\" or \"[::]:7420\"";
/// Numbers below are the kernel's own: any, this machine's hypervisor, itself, the host.
const VSOCK_CID_MIN: u64 = 3;

pub(crate) const PARTICIPATION: &[Key<Config>] = &[
    Key {
        name: "socket",
        doc: "Where processes and containers of this host may ask; \"\": nowhere; unset: `tenant.sock` in `daemon.runtime_dir`.",
        kind: Kind::Text {
            form: PATH_FORM,
            set: |c, v| {
                c.participation.socket = if v.is_empty() { None } else { Some(absolute(v)?) };
                Ok(())
            },
        },
        show: |c| c.participation.socket.as_deref().map_or_else(|| show_text(""), show_path),
        example: "",
    },
    Key {
        name: "listen",
        doc: "Where others may ask over TCP, with TLS; without a certificate on a loopback address only.",
        kind: Kind::Text {
            form: ADDRESS_FORM,
            set: |c, v| address(v).map(|address| c.participation.listen = Some(address)),
        },
        show: |c| c.participation.listen.and_then(|address| show_text(&address.to_string())),
        example: "\"127.0.0.1:7420\"",
    },
    Key {
        name: "certificate",
        doc: "The server's certificate chain, as PEM.",
        kind: Kind::Text {
            form: PATH_FORM,
            set: |c, v| absolute(v).map(|path| c.participation.certificate = Some(path)),
        },
        show: |c| c.participation.certificate.as_deref().and_then(show_path),
        example: "\"/etc/minerva/server.pem\"",
    },
    Key {
        name: "key",
        doc: "The certificate's private key, as PEM.",
        kind: Kind::Text { form: PATH_FORM, set: |c, v| absolute(v).map(|path| c.participation.key = Some(path)) },
        show: |c| c.participation.key.as_deref().and_then(show_path),
        example: "\"/etc/minerva/server.key\"",
    },
    Key {
        name: "client_ca",
        doc: "Who signs the certificates of clients, as PEM; unset: clients show tokens.",
        kind: Kind::Text {
            form: PATH_FORM,
            set: |c, v| absolute(v).map(|path| c.participation.client_ca = Some(path)),
        },
        show: |c| c.participation.client_ca.as_deref().and_then(show_path),
        example: "\"/etc/minerva/clients.pem\"",
    },
    Key {
        name: "vsock_port",
        doc: "The port of vsock where virtual machines may ask; unset: nowhere. Clients take 7420.",
        kind: Kind::Whole {
            least: 1,
            most: u32::MAX as u64 - 1,
            set: |c, v| c.participation.vsock_port = Some(v as u32),
        },
        show: |c| c.participation.vsock_port.map(|port| port.to_string()),
        example: "7420",
    },
    Key {
        name: "keepalive",
        doc: "A client that says nothing for so long is asked whether it is there, and dropped when it does not answer in as long.",
        kind: Kind::Duration {
            least: Nanos::SECOND,
            most: Nanos::from_secs(3600),
            set: |c, v| c.participation.keepalive = v,
        },
        show: |c| show_duration(c.participation.keepalive),
        example: "",
    },
    Key {
        name: "ledger_keep",
        doc: "How long the ledger of credits has each entry, and knows the keys of purchases; of older ones it has the sum.",
        kind: Kind::Duration {
            least: Nanos::from_secs(86_400),
            most: Nanos::from_secs(10 * 365 * 86_400),
            set: |c, v| c.participation.ledger_keep = v,
        },
        show: |c| show_duration(c.participation.ledger_keep),
        example: "",
    },
    Key {
        name: "requests_per_second",
        doc: "Requests of one account, on average: of a group of the rules, or of a tenant without one.",
        kind: Kind::Whole {
            least: 1,
            most: 1_000_000,
            set: |c, v| c.participation.limits.requests_per_second = v as u32,
        },
        show: |c| Some(c.participation.limits.requests_per_second.to_string()),
        example: "",
    },
    Key {
        name: "burst",
        doc: "Requests of one account at once, after a pause.",
        kind: Kind::Whole { least: 1, most: 1_000_000, set: |c, v| c.participation.limits.burst = v as u32 },
        show: |c| Some(c.participation.limits.burst.to_string()),
        example: "",
    },
    Key {
        name: "connections_max",
        doc: "Connections in all.",
        kind: Kind::Whole { least: 1, most: 1_000_000, set: |c, v| c.participation.limits.connections_max = v as u32 },
        show: |c| Some(c.participation.limits.connections_max.to_string()),
        example: "",
    },
    Key {
        name: "connections_per_account_max",
        doc: "Connections of one account.",
        kind: Kind::Whole {
            least: 1,
            most: 1_000_000,
            set: |c, v| c.participation.limits.connections_per_account_max = v as u32,
        },
        show: |c| Some(c.participation.limits.connections_per_account_max.to_string()),
        example: "",
    },
    Key {
        name: "streams_max",
        doc: "Requests and streams under way in all.",
        kind: Kind::Whole { least: 1, most: 1_000_000, set: |c, v| c.participation.limits.streams_max = v as u32 },
        show: |c| Some(c.participation.limits.streams_max.to_string()),
        example: "",
    },
    Key {
        name: "streams_per_account_max",
        doc: "Requests and streams under way of one account.",
        kind: Kind::Whole {
            least: 1,
            most: 1_000_000,
            set: |c, v| c.participation.limits.streams_per_account_max = v as u32,
        },
        show: |c| Some(c.participation.limits.streams_per_account_max.to_string()),
        example: "",
    },
];

pub(crate) const IDENTITY: &[Key<Identity>] = &[
    Key {
        name: "tenant",
        doc: "The tenant's name, as `minerva-ctl status` shows it.",
        kind: Kind::Text {
            form: "the name of a tenant",
            set: |i, v| {
                check_name(v)?;
                i.tenant = v.to_owned();
                Ok(())
            },
        },
        show: |_| None,
        example: "\"vm1\"",
    },
    Key {
        name: "certificate",
        doc: "It has a certificate of `client_ca` with this common name or alternative DNS name.",
        kind: Kind::Text {
            form: "the common name or DNS name of a certificate",
            set: |i, v| {
                check_name(v)?;
                i.known_by = Some(KnownBy::Certificate(v.to_owned()));
                Ok(())
            },
        },
        show: |_| None,
        example: "\"vm1.example.org\"",
    },
    Key {
        name: "token_sha256",
        doc: "Or it shows a token of which this is the SHA-256: `printf %s TOKEN | sha256sum`.",
        kind: Kind::Text {
            form: "64 hexadecimal digits",
            set: |i, v| digest(v).map(|digest| i.known_by = Some(KnownBy::TokenSha256(digest))),
        },
        show: |_| None,
        example: "\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
    },
    Key {
        name: "vsock_cid",
        doc: "Or it is the virtual machine of this number on vsock.",
        kind: Kind::Whole {
            least: VSOCK_CID_MIN,
            most: u32::MAX as u64 - 1,
            set: |i, v| i.known_by = Some(KnownBy::VsockCid(v as u32)),
        },
        show: |_| None,
        example: "42",
    },
    Key {
        name: "vsock_socket",
        doc: "Or its vsock device runs in user space and turns connections to this socket, the device's path with `_7420`.",
        kind: Kind::Text {
            form: PATH_FORM,
            set: |i, v| absolute(v).map(|path| i.known_by = Some(KnownBy::VsockSocket(path))),
        },
        show: |_| None,
        example: "\"/run/minerva/vm1.vsock_7420\"",
    },
];

/// With a port, or without one for the usual.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return if address.port() == 0 { Err("the port is not in 1 to 65535".to_owned()) } else { Ok(address) };
    }
    match text.parse() {
        Ok(host) => Ok(SocketAddr::new(host, PORT_DEFAULT)),
        Err(_) => Err("not an address; names are not looked up".to_owned()),
    }
}

fn digest(text: &str) -> Result<[u8; 32], String> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!("{} characters, not 64 hexadecimal digits", text.chars().count()));
    }
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|error| error.to_string())?;
    }
    Ok(digest)
}
