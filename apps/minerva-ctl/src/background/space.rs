//! When space runs out, in words.

use crate::moment::show;
use minerva_api::v1;

/// A sentence; nothing where space lasts whatever comes, or where nobody knows how much there is.
pub(super) fn sentence(plan: &v1::BackgroundPlan) -> Option<String> {
    let (earliest, latest) = (plan.space_earliest_unix_ns, plan.space_latest_unix_ns);
    let by = |date: Option<i64>| date.map_or_else(|| "not in this time".to_owned(), show);
    let Some(likely) = plan.space_likely_unix_ns else {
        return earliest.map(|at| {
            format!("space likely lasts; it runs out {} at the earliest, if more is written than expected", show(at))
        });
    };
    let within = if plan.is_space_interval_known {
        format!("earliest {}, latest {}, if more or less is written than expected", by(earliest), by(latest))
    } else {
        "how far that can be off is not known before forecasts of whole days were scored".to_owned()
    };
    Some(format!("space runs out: likely {} ({within})", show(likely)))
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use crate::moment::show;
    use minerva_api::v1;

    const DAY_NS: i64 = 86_400_000_000_000;

    #[test]
    fn the_date_has_an_interval_or_says_that_none_is_known() {
        let plan = |likely, earliest, latest| v1::BackgroundPlan {
            space_likely_unix_ns: likely,
            space_earliest_unix_ns: earliest,
            space_latest_unix_ns: latest,
            is_space_interval_known: true,
            ..v1::BackgroundPlan::default()
        };
        let day = |days: i64| show(days * DAY_NS);
        assert_eq!(sentence(&plan(None, None, None)), None);
        let told = sentence(&plan(Some(9 * DAY_NS), Some(6 * DAY_NS), None)).unwrap();
        let all = format!("likely {} (earliest {}, latest not in this time, if more", day(9), day(6));
        assert!(told.contains(&all), "{told}");
        let told = sentence(&plan(None, Some(20 * DAY_NS), None)).unwrap();
        assert!(told.starts_with("space likely lasts") && told.contains(&day(20)), "{told}");
        let day = Some(DAY_NS);
        let unknown = v1::BackgroundPlan { is_space_interval_known: false, ..plan(day, day, day) };
        let told = sentence(&unknown).unwrap();
        assert!(told.contains("is not known before") && !told.contains("earliest"), "{told}");
    }
}
