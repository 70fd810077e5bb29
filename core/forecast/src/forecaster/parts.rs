//! Who makes room where there is no more: the account that has most, so that nobody displaces what others have, however many names it makes.

use crate::online::Account;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What is held, with whose it is and when it was last used, in the order in which it makes room: the oldest of the account that has most, again
/// and again. With each how much its account has by then. Of what nobody says whose it is, which is 0, each is an account of its own.
pub(super) fn first_to_go<T>(mut held: Vec<(Account, u64, T)>) -> Vec<(usize, Account, T)> {
    held.sort_by_key(|(_, last, _)| Reverse(*last));
    let mut counts = BTreeMap::new();
    let counted = held.into_iter().map(|(account, _, what)| {
        let count = counts.entry(account).or_insert(0);
        *count = if account == 0 { 1 } else { *count + 1 };
        (*count, account, what)
    });
    let mut first: Vec<_> = counted.collect();
    first.reverse();
    first.sort_by_key(|(count, _, _)| Reverse(*count));
    first
}

#[cfg(test)]
mod tests {
    use super::first_to_go;

    #[test]
    fn the_oldest_of_whoever_has_most_goes_first() {
        let held = vec![(1, 10, 'a'), (2, 1, 'b'), (1, 20, 'c'), (1, 5, 'd'), (0, 2, 'e'), (0, 3, 'f'), (2, 30, 'g')];
        let order: String = first_to_go(held).into_iter().map(|(_, _, what)| what).collect();
        assert_eq!(order, "dbaefcg");
    }
}
