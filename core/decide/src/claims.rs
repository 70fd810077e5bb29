//! Claims on a level joined to one: the furthest step back is in force, and it ends when the last claim that goes as far ends.

use minerva_model::{Level, LevelClaims, Nanos, ScheduledClaim, SetClaim};

/// The level that the claims come to, and when each claim that goes as far ends, if that is known.
fn furthest(claims: &LevelClaims) -> (Level, Vec<Option<Nanos>>) {
    let set = claims.set.map(|SetClaim { level, until }| (level, until));
    let held = claims.held.iter().map(|level| (*level, None));
    let scheduled = claims.scheduled.map(|ScheduledClaim { level, next }| {
        let end = next.filter(|(_, next)| *next < level).map(|(at, _)| at);
        (level, end)
    });
    let all = || set.into_iter().chain(held.clone()).chain(scheduled);
    let level = all().map(|(level, _)| level).max().unwrap_or_default();
    (level, all().filter(|(of, _)| *of == level).map(|(_, end)| end).collect())
}

/// The level in force.
pub(crate) fn level(claims: &LevelClaims) -> Level {
    furthest(claims).0
}

/// When the level in force ends by itself, if that is known.
pub(crate) fn until(claims: &LevelClaims) -> Option<Nanos> {
    let (level, ends) = furthest(claims);
    let known: Option<Vec<Nanos>> = ends.into_iter().collect();
    known?.into_iter().max().filter(|_| level != Level::Normal)
}

/// Nothing is claimed, and nothing will be by itself.
pub(crate) fn is_empty(claims: &LevelClaims) -> bool {
    let scheduled = claims.scheduled.is_some_and(|one| one.next.is_some());
    level(claims) == Level::Normal && !scheduled
}

/// Ends what has lasted its time, and goes over to what is scheduled.
pub(crate) fn advance(claims: &mut LevelClaims, now: Nanos) {
    claims.set = claims.set.filter(|set| set.until.is_none_or(|until| until > now));
    if let Some(scheduled) = &mut claims.scheduled
        && let Some((_, level)) = scheduled.next.take_if(|(at, _)| *at <= now)
    {
        scheduled.level = level;
    }
}

#[cfg(test)]
mod tests {
    use super::{advance, is_empty, level, until};
    use minerva_model::{Level, LevelClaims, Nanos, ScheduledClaim, SetClaim};
    use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert_eq, proptest};

    fn set(level: Level, until: Option<u64>) -> Option<SetClaim> {
        Some(SetClaim { level, until: until.map(Nanos) })
    }

    #[test]
    fn the_furthest_step_back_is_in_force_until_the_last_that_goes_as_far_ends() {
        use Level::{Idle, Low, Lowest, Normal};
        let scheduled = |level, next: Option<(u64, Level)>| {
            Some(ScheduledClaim { level, next: next.map(|(at, level)| (Nanos(at), level)) })
        };
        let cases = [
            (None, vec![], None, (Normal, None)),
            (set(Low, None), vec![], None, (Low, None)),
            (set(Low, Some(50)), vec![], None, (Low, Some(50))),
            // A connection's end is not known.
            (set(Low, Some(50)), vec![Low], None, (Low, None)),
            (set(Lowest, Some(50)), vec![Low, Low], None, (Lowest, Some(50))),
            (set(Low, Some(50)), vec![Idle, Low], None, (Idle, None)),
            (set(Low, Some(50)), vec![], scheduled(Low, Some((70, Normal))), (Low, Some(70))),
            (set(Low, Some(50)), vec![], scheduled(Low, Some((70, Idle))), (Low, None)),
            (set(Low, Some(50)), vec![], scheduled(Normal, Some((20, Idle))), (Low, Some(50))),
            (None, vec![], scheduled(Normal, Some((20, Idle))), (Normal, None)),
        ];
        for (set, held, scheduled, expected) in cases {
            let claims = LevelClaims { set, held, scheduled };
            assert_eq!((level(&claims), until(&claims).map(|at| at.0)), expected, "{claims:?}");
        }
    }

    #[test]
    fn what_ends_and_what_begins_does_so_at_its_instant() {
        let scheduled = Some(ScheduledClaim { level: Level::Normal, next: Some((Nanos(70), Level::Idle)) });
        let mut claims = LevelClaims { set: set(Level::Low, Some(50)), held: Vec::new(), scheduled };
        for (now, expected) in
            [(49, Level::Low), (50, Level::Normal), (69, Level::Normal), (70, Level::Idle), (900, Level::Idle)]
        {
            advance(&mut claims, Nanos(now));
            assert_eq!((level(&claims), is_empty(&claims)), (expected, false), "{now}");
        }
        claims.scheduled = None;
        assert!(is_empty(&claims));
    }

    fn any_level() -> impl Strategy<Value = Level> {
        (0..4_usize).prop_map(|index| Level::ALL[index])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whenever it is looked at, in whatever steps: the furthest of those that stand then.
        #[test]
        fn how_often_it_is_looked_at_makes_no_difference(
            set in proptest::option::of((any_level(), proptest::option::of(0..20_u64))),
            held in proptest::collection::vec(any_level(), 0..4),
            scheduled in proptest::option::of((any_level(), proptest::option::of((0..20_u64, any_level())))),
            looks in proptest::collection::vec(any::<bool>(), 25),
        ) {
            let mut claims = LevelClaims {
                set: set.map(|(level, until)| SetClaim { level, until: until.map(Nanos) }),
                held: held.clone(),
                scheduled: scheduled
                    .map(|(level, next)| ScheduledClaim { level, next: next.map(|(at, level)| (Nanos(at), level)) }),
            };
            for (now, _) in looks.iter().enumerate().filter(|(_, looks)| **looks) {
                let now = now as u64;
                advance(&mut claims, Nanos(now));
                let set = set.filter(|(_, until)| until.is_none_or(|until| now < until)).map(|(level, _)| level);
                let scheduled = scheduled.map(|(level, next)| match next {
                    Some((at, next)) if at <= now => next,
                    _ => level,
                });
                let furthest = held.iter().copied().chain(set).chain(scheduled).max().unwrap_or(Level::Normal);
                prop_assert_eq!(level(&claims), furthest);
            }
        }
    }
}
