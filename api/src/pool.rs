//! The two pools of the cache.

use serde::{Deserialize, Serialize};

/// A pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// Memory; lost by a restart of the machine.
    Temporary,
    /// The disk set aside.
    #[default]
    Stable,
}

impl Pool {
    /// As people write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Temporary => "temporary",
            Self::Stable => "stable",
        }
    }
}

impl std::str::FromStr for Pool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::Temporary, Self::Stable].into_iter().find(|pool| pool.as_str() == text);
        known.ok_or_else(|| format!("`{text}` is no pool: there are temporary and stable"))
    }
}
