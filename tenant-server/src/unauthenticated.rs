//! Those who connected and of whom nobody knows yet who they are, counted by where they come from, which they cannot choose.
//! No such connection keeps another one out: where there is no room, the one that has been idle longest goes, of the newcomer's own
//! source if that has its fill, else of the source that has most, of equal ones the oldest. Pure: the instant is an argument, and how
//! one is hung up on is the caller's.

use crate::source::Source;
use minerva_model::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// One of them; `H` hangs up on it.
#[derive(Debug)]
struct Connection<H> {
    source: Source,
    since: Nanos,
    /// Requests of which it is just being found out who asks.
    asking: u32,
    hang_up: Option<H>,
}

/// See the file's documentation.
#[derive(Debug)]
pub(crate) struct Unauthenticated<H> {
    /// Numbers are given in order, so that the first is the oldest.
    by_number: BTreeMap<u64, Connection<H>>,
    by_source: BTreeMap<Source, BTreeSet<u64>>,
    next: u64,
}

impl<H> Default for Unauthenticated<H> {
    fn default() -> Self {
        Self { by_number: BTreeMap::new(), by_source: BTreeMap::new(), next: 0 }
    }
}

impl<H> Unauthenticated<H> {
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
        self.by_number.insert(number, Connection { source, since: now, asking: 0, hang_up: None });
        self.by_source.entry(source).or_default().insert(number);
        number
    }

    /// It can be hung up on by this. Given back for one that has to go at once.
    pub(crate) fn can_be_hung_up_on(&mut self, number: u64, by: H) -> Option<H> {
        match self.by_number.get_mut(&number) {
            Some(connection) => {
                connection.hang_up = Some(by);
                None
            }
            None => Some(by),
        }
    }

    /// It is known now, or gone. False if it was told to go before.
    pub(crate) fn leave(&mut self, number: u64) -> bool {
        self.take(number).is_some()
    }

    /// It asks: while that is looked into it is not idle.
    pub(crate) fn ask(&mut self, number: u64) {
        if let Some(connection) = self.by_number.get_mut(&number) {
            connection.asking += 1;
        }
    }

    /// It was looked into.
    pub(crate) fn asked(&mut self, number: u64) {
        if let Some(connection) = self.by_number.get_mut(&number) {
            connection.asking = connection.asking.saturating_sub(1);
        }
    }

    /// Makes room: the oldest of a source goes, one that asks nothing before one that does.
    pub(crate) fn drop_one_of(&mut self, source: &Source) -> Option<(Source, Option<H>)> {
        let numbers = self.by_source.get(source)?;
        let idle = |number: &&u64| self.by_number.get(number).is_some_and(|connection| connection.asking == 0);
        let number = *numbers.iter().find(idle).or_else(|| numbers.first())?;
        self.take(number).map(|connection| (connection.source, connection.hang_up))
    }

    /// The same of the source that has most; of several that have as many, the one whose oldest has been here for longest. None is
    /// put at a disadvantage by what kind of source it is.
    pub(crate) fn drop_one(&mut self) -> Option<(Source, Option<H>)> {
        let by_size = self.by_source.iter().map(|(source, numbers)| (numbers.len(), Reverse(numbers.first()), source));
        let source = *by_size.max()?.2;
        self.drop_one_of(&source)
    }

    /// Those who have been here for longer than anyone needs to say who it is go.
    pub(crate) fn drop_overdue(&mut self, now: Nanos, patience: Nanos) -> Vec<(Source, Option<H>)> {
        let old = self.by_number.iter().take_while(|(_, connection)| now.since(connection.since) >= patience);
        let overdue: Vec<u64> =
            old.filter(|(_, connection)| connection.asking == 0).map(|(number, _)| *number).collect();
        let gone = overdue.into_iter().filter_map(|number| self.take(number));
        gone.map(|connection| (connection.source, connection.hang_up)).collect()
    }

    fn take(&mut self, number: u64) -> Option<Connection<H>> {
        let connection = self.by_number.remove(&number)?;
        if let Some(numbers) = self.by_source.get_mut(&connection.source) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_source.remove(&connection.source);
            }
        }
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::Unauthenticated;
    use crate::source::Source;
    use minerva_model::Nanos;

    const ONE: Source = Source::User(1);
    const OTHER: Source = Source::User(2);

    /// Enters, and can be hung up on by its own number.
    fn enter(unauthenticated: &mut Unauthenticated<u64>, at: u64, source: Source) -> u64 {
        let number = unauthenticated.enter(Nanos(at), source);
        assert_eq!(unauthenticated.can_be_hung_up_on(number, number), None);
        number
    }

    #[test]
    fn the_longest_idle_of_the_largest_source_goes() {
        let mut unauthenticated = Unauthenticated::default();
        let early = enter(&mut unauthenticated, 0, OTHER);
        let crowd: Vec<u64> = (1..5).map(|at| enter(&mut unauthenticated, at, ONE)).collect();
        unauthenticated.ask(crowd[0]);
        assert_eq!(
            unauthenticated.drop_one(),
            Some((ONE, Some(crowd[1]))),
            "not the first, which asks, and not the lonely"
        );
        unauthenticated.asked(crowd[0]);
        assert_eq!(unauthenticated.drop_one_of(&ONE), Some((ONE, Some(crowd[0]))));
        assert_eq!(unauthenticated.drop_one_of(&OTHER), Some((OTHER, Some(early))));
        assert_eq!(
            (unauthenticated.drop_one_of(&OTHER), unauthenticated.count(), unauthenticated.count_of(&ONE)),
            (None, 2, 2)
        );
        // One that was told to go before it could be hung up on goes then.
        assert_eq!(unauthenticated.can_be_hung_up_on(early, 7), Some(7));
        assert!(!unauthenticated.leave(early) && unauthenticated.leave(crowd[2]));
    }

    #[test]
    fn among_sources_that_have_as_many_the_oldest_goes_whatever_its_kind() {
        let mut unauthenticated = Unauthenticated::default();
        let users: Vec<u64> =
            (1..4).map(|uid| enter(&mut unauthenticated, u64::from(uid), Source::User(uid))).collect();
        let address = Source::of_address("10.0.0.1".parse().expect("an address"));
        let others = [address, Source::Machine(3), Source::Socket(0)];
        let others = others.map(|source| enter(&mut unauthenticated, 4, source));
        let mut goes = || unauthenticated.drop_one().and_then(|(_, number)| number);
        let gone: Vec<u64> = std::iter::from_fn(&mut goes).collect();
        assert_eq!(gone, [users, others.to_vec()].concat());
    }

    #[test]
    fn who_does_not_say_who_it_is_goes_in_time() {
        let mut unauthenticated = Unauthenticated::default();
        let (silent, asks) = (enter(&mut unauthenticated, 0, ONE), enter(&mut unauthenticated, 0, OTHER));
        let young = enter(&mut unauthenticated, 5, ONE);
        unauthenticated.ask(asks);
        assert!(unauthenticated.drop_overdue(Nanos(9), Nanos(10)).is_empty());
        assert_eq!(unauthenticated.drop_overdue(Nanos(10), Nanos(10)), [(ONE, Some(silent))]);
        unauthenticated.asked(asks);
        assert_eq!(unauthenticated.drop_overdue(Nanos(10), Nanos(10)), [(OTHER, Some(asks))]);
        assert_eq!(unauthenticated.drop_overdue(Nanos(15), Nanos(10)), [(ONE, Some(young))]);
        assert_eq!(unauthenticated.count(), 0);
    }
}
