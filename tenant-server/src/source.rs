//! Where connections come from: what clients cannot choose, and by which they are counted until it is known who they are.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Where a connection comes from. Its text is the name of an account in the limits, and no tenant's: those begin with `group:`
/// or `cgroup:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Processes of this user of the host.
    User(u32),
    /// An address, or the network of one that has its last 64 bits to itself.
    Address(IpAddr),
    /// A virtual machine's number on vsock.
    Machine(u32),
    /// The socket of one machine, by its place in the operator's file.
    Socket(usize),
}

impl Source {
    /// That of a client over TCP.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                Self::Address(IpAddr::V6(Ipv6Addr::from_bits(network)))
            }
            address => Self::Address(address),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Address(IpAddr::V6(network)) => write!(f, "address {network}/64"),
            Self::Address(address) => write!(f, "address {address}"),
            Self::Machine(cid) => write!(f, "machine {cid}"),
            Self::Socket(number) => write!(f, "socket {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn a_network_of_version_six_is_one_source() {
        let source = |text: &str| Source::of_address(text.parse().expect("an address"));
        assert_eq!(source("2001:db8:0:1::1"), source("2001:db8:0:1:ffff::2"));
        assert_ne!(source("2001:db8:0:1::1"), source("2001:db8:0:2::1"));
        assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
        assert_eq!(source("2001:db8::1").to_string(), "address 2001:db8::/64");
    }
}
