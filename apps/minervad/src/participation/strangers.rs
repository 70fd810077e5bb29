//! Those who connected and of whom nobody knows yet who they are, counted by where they come from, which they cannot choose.
//! No stranger keeps another one out: where there is no room, the one that has dawdled longest goes, of the newcomer's own
//! source if that has its fill, else of the source that has most. Pure: the instant is an argument, and how one is hung up on
//! is the caller's.

use minerva_model::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Where a connection comes from. Its text is the name of an account in the limits, and no tenant's: those begin with `group:`
/// or `cgroup:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
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

/// One of them; `H` hangs up on it.
#[derive(Debug)]
struct Stranger<H> {
    source: Source,
    since: Nanos,
    /// Requests of which it is just being found out who asks.
    asking: u32,
    hang_up: Option<H>,
}

/// See the file's documentation.
#[derive(Debug)]
pub(crate) struct Strangers<H> {
    /// Numbers are given in order, so that the first is the oldest.
    by_number: BTreeMap<u64, Stranger<H>>,
    by_source: BTreeMap<Source, BTreeSet<u64>>,
    next: u64,
}

impl<H> Default for Strangers<H> {
    fn default() -> Self {
        Self { by_number: BTreeMap::new(), by_source: BTreeMap::new(), next: 0 }
    }
}

impl<H> Strangers<H> {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_number.len()
    }

    /// How many there are of a source.
    pub(crate) fn count_of(&self, source: &Source) -> usize {
        self.by_source.get(source).map_or(0, BTreeSet::len)
    }

    /// One more; its number.
    pub(crate) fn enter(&mut self, now: Nanos, source: Source) -> u64 {
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, Stranger { source, since: now, asking: 0, hang_up: None });
        self.by_source.entry(source).or_default().insert(number);
        number
    }

    /// It can be hung up on by this. Given back for one that has to go at once.
    pub(crate) fn can_be_hung_up_on(&mut self, number: u64, by: H) -> Option<H> {
        match self.by_number.get_mut(&number) {
            Some(stranger) => {
                stranger.hang_up = Some(by);
                None
            }
            None => Some(by),
        }
    }

    /// It is known now, or gone. False if it was told to go before.
    pub(crate) fn leave(&mut self, number: u64) -> bool {
        self.take(number).is_some()
    }

    /// It asks: while that is looked into it does not dawdle.
    pub(crate) fn ask(&mut self, number: u64) {
        if let Some(stranger) = self.by_number.get_mut(&number) {
            stranger.asking += 1;
        }
    }

    /// It was looked into.
    pub(crate) fn asked(&mut self, number: u64) {
        if let Some(stranger) = self.by_number.get_mut(&number) {
            stranger.asking = stranger.asking.saturating_sub(1);
        }
    }

    /// Makes room: the oldest of a source goes, one that asks nothing before one that does.
    pub(crate) fn drop_one_of(&mut self, source: &Source) -> Option<(Source, Option<H>)> {
        let numbers = self.by_source.get(source)?;
        let idle = |number: &&u64| self.by_number.get(number).is_some_and(|stranger| stranger.asking == 0);
        let number = *numbers.iter().find(idle).or_else(|| numbers.first())?;
        self.take(number).map(|stranger| (stranger.source, stranger.hang_up))
    }

    /// The same of the source that has most.
    pub(crate) fn drop_one(&mut self) -> Option<(Source, Option<H>)> {
        let source = *self.by_source.iter().max_by_key(|(_, numbers)| numbers.len())?.0;
        self.drop_one_of(&source)
    }

    /// Those who have been here for longer than anyone needs to say who it is go.
    pub(crate) fn drop_overdue(&mut self, now: Nanos, patience: Nanos) -> Vec<(Source, Option<H>)> {
        let old = self.by_number.iter().take_while(|(_, stranger)| now.since(stranger.since) >= patience);
        let overdue: Vec<u64> = old.filter(|(_, stranger)| stranger.asking == 0).map(|(number, _)| *number).collect();
        let gone = overdue.into_iter().filter_map(|number| self.take(number));
        gone.map(|stranger| (stranger.source, stranger.hang_up)).collect()
    }

    fn take(&mut self, number: u64) -> Option<Stranger<H>> {
        let stranger = self.by_number.remove(&number)?;
        if let Some(numbers) = self.by_source.get_mut(&stranger.source) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_source.remove(&stranger.source);
            }
        }
        Some(stranger)
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, Strangers};
    use minerva_model::Nanos;

    const ONE: Source = Source::User(1);
    const OTHER: Source = Source::User(2);

    /// Enters, and can be hung up on by its own number.
    fn enter(strangers: &mut Strangers<u64>, at: u64, source: Source) -> u64 {
        let number = strangers.enter(Nanos(at), source);
        assert_eq!(strangers.can_be_hung_up_on(number, number), None);
        number
    }

    #[test]
    fn the_longest_dawdler_of_the_greatest_crowd_goes() {
        let mut strangers = Strangers::default();
        let early = enter(&mut strangers, 0, OTHER);
        let crowd: Vec<u64> = (1..5).map(|at| enter(&mut strangers, at, ONE)).collect();
        strangers.ask(crowd[0]);
        assert_eq!(strangers.drop_one(), Some((ONE, Some(crowd[1]))), "not the first, which asks, and not the lonely");
        strangers.asked(crowd[0]);
        assert_eq!(strangers.drop_one_of(&ONE), Some((ONE, Some(crowd[0]))));
        assert_eq!(strangers.drop_one_of(&OTHER), Some((OTHER, Some(early))));
        assert_eq!((strangers.drop_one_of(&OTHER), strangers.count(), strangers.count_of(&ONE)), (None, 2, 2));
        // One that was told to go before it could be hung up on goes then.
        assert_eq!(strangers.can_be_hung_up_on(early, 7), Some(7));
        assert!(!strangers.leave(early) && strangers.leave(crowd[2]));
    }

    #[test]
    fn who_does_not_say_who_it_is_goes_in_time() {
        let mut strangers = Strangers::default();
        let (silent, asks) = (enter(&mut strangers, 0, ONE), enter(&mut strangers, 0, OTHER));
        let young = enter(&mut strangers, 5, ONE);
        strangers.ask(asks);
        assert!(strangers.drop_overdue(Nanos(9), Nanos(10)).is_empty());
        assert_eq!(strangers.drop_overdue(Nanos(10), Nanos(10)), [(ONE, Some(silent))]);
        strangers.asked(asks);
        assert_eq!(strangers.drop_overdue(Nanos(10), Nanos(10)), [(OTHER, Some(asks))]);
        assert_eq!(strangers.drop_overdue(Nanos(15), Nanos(10)), [(ONE, Some(young))]);
        assert_eq!(strangers.count(), 0);
    }

    #[test]
    fn a_network_of_version_six_is_one_source() {
        let source = |text: &str| Source::of_address(text.parse().expect("an address"));
        assert_eq!(source("2001:db8:0:1::1"), source("2001:db8:0:1:ffff::2"));
        assert_ne!(source("2001:db8:0:1::1"), source("2001:db8:0:2::1"));
        assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
        assert_eq!(source("2001:db8::1").to_string(), "address 2001:db8::/64");
    }
}
