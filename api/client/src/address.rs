//! Where a server listens.

use crate::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use tonic::transport::Uri;

/// Where a server listens: `unix:/path`, `vsock:CID:PORT`, `https://host:port`, or `http://host:port` on the loopback only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// From a virtual machine to its host (CID 2), without a network.
    Vsock {
        /// The machine; 2 is the host.
        cid: u32,
        /// The port.
        port: u32,
    },
    /// TCP with TLS, or, from the machine to itself, without.
    Tcp(Uri),
}

impl Address {
    /// Whether the connection is TCP and encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tcp(uri) if uri.scheme_str() == Some("https"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Vsock { cid, port } => write!(f, "vsock:{cid}:{port}"),
            Self::Tcp(uri) => write!(f, "{}", uri.to_string().trim_end_matches('/')),
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Address { text: text.to_owned(), reason: reason.to_owned() };
        if let Some(path) = text.strip_prefix("unix:") {
            // `unix:///path` is how gRPC writes it elsewhere.
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') {
                Ok(Self::Unix(path.into()))
            } else {
                Err(wrong("a socket is named by its whole path, as in unix:/run/minerva/tenant.sock"))
            };
        }
        if let Some(rest) = text.strip_prefix("vsock:") {
            let (cid, port) = rest.split_once(':').ok_or_else(|| wrong("write vsock:CID:PORT, as in vsock:2:7420"))?;
            let number = |text: &str| text.parse().map_err(|_| wrong("CID and port are numbers, as in vsock:2:7420"));
            return Ok(Self::Vsock { cid: number(cid)?, port: number(port)? });
        }
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return Err(wrong("it begins with unix:, vsock:, https:// or, on the loopback, http://"));
        }
        let uri: Uri = text.parse().map_err(|_| wrong("write https://host:port"))?;
        if uri.port().is_none() {
            return Err(wrong("the port is missing; 7420 is Minerva's"));
        }
        if uri.scheme_str() == Some("http") && !uri.host().is_some_and(is_loopback) {
            return Err(wrong(
                "without TLS it must be the loopback, such as http://127.0.0.1:7420; use https:// elsewhere",
            ));
        }
        Ok(Self::Tcp(uri))
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn every_form_reads_back_as_it_is_written() {
        for text in
            ["unix:/run/minerva/tenant.sock", "vsock:2:7420", "https://host.example:7420", "http://127.0.0.1:7420"]
        {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), text);
        }
        assert_eq!("unix:///a/b".parse::<Address>().expect("gRPC's form"), Address::Unix("/a/b".into()));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_write() {
        for (text, part) in [
            ("/run/minerva/tenant.sock", "begins with unix:"),
            ("unix:relative", "whole path"),
            ("vsock:2", "vsock:CID:PORT"),
            ("vsock:host:7420", "numbers"),
            ("https://host", "port is missing"),
            ("http://192.0.2.1:7420", "loopback"),
            ("", "begins with unix:"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(part) && error.contains(text), "{text}: {error}");
        }
    }
}
