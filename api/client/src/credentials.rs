//! How a client over TCP shows who it is.

use crate::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// How a client over TCP shows who it is, and by what it knows the server. Over a Unix socket and vsock the server sees for
/// itself, and none of this is used.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The certificate, as PEM, of who signed the server's.
    pub authority: Option<String>,
    /// This side's certificate and its key, as PEM.
    pub identity: Option<(String, String)>,
    /// A bearer token that stands for the tenant.
    pub token: Option<String>,
}

impl fmt::Debug for Credentials {
    /// Tells which there are; keys and tokens are nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("authority", &self.authority.is_some())
            .field("identity", &self.identity.is_some())
            .field("token", &self.token.is_some())
            .finish()
    }
}

impl Credentials {
    /// As the environment says: `MINERVA_CA`, `MINERVA_CERTIFICATE` with `MINERVA_KEY`, `MINERVA_TOKEN` or
    /// `MINERVA_TOKEN_FILE`; all but the token itself are names of files.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_lookup(&|name| std::env::var_os(name))
    }

    pub(crate) fn from_lookup(lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let file = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let read = |name: &str, what| file(name).map(|path| read(&path, what)).transpose();
        let identity = match (
            read("MINERVA_CERTIFICATE", "the client's certificate")?,
            read("MINERVA_KEY", "the client's key")?,
        ) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(Error::Unfit(
                    "MINERVA_CERTIFICATE and MINERVA_KEY go together: set both or none".to_owned(),
                ));
            }
        };
        let token = match lookup("MINERVA_TOKEN").filter(|value| !value.is_empty()) {
            Some(token) => Some(token.into_string().map_err(|_| Error::Unfit("MINERVA_TOKEN is no text".to_owned()))?),
            None => read("MINERVA_TOKEN_FILE", "the token")?,
        };
        let authority = read("MINERVA_CA", "the authority's certificate")?;
        Ok(Self { authority, identity, token: token.map(|token| token.trim().to_owned()) })
    }
}

fn read(path: &Path, what: &'static str) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Credentials { what, path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::Credentials;
    use std::ffi::OsString;

    fn read(pairs: &[(&str, &str)]) -> Result<Credentials, String> {
        let lookup = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        Credentials::from_lookup(&lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn a_token_is_read_without_its_line_end_and_never_shown() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "secret\n").expect("a token");
        let path = file.path().to_str().expect("a path");
        let credentials = read(&[("MINERVA_TOKEN_FILE", path)]).expect("credentials");
        assert_eq!(credentials.token.as_deref(), Some("secret"));
        assert!(!format!("{credentials:?}").contains("secret"));
    }

    #[test]
    fn half_an_identity_and_a_missing_file_are_told() {
        let error = read(&[("MINERVA_KEY", "/dev/null")]).expect_err("half");
        assert!(error.contains("go together"), "{error}");
        let error = read(&[("MINERVA_CA", "/nonexistent/ca.pem")]).expect_err("no file");
        assert_eq!(error, "failed to read the authority's certificate from /nonexistent/ca.pem");
    }
}
