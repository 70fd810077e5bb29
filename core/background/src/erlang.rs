//! M/M/c: how long requests wait for one of several cores (Erlang 1917).

/// The probability that an arrival waits, with `cores` servers and an offered load in erlangs (arrivals a second by services a
/// second of one core). 1 where the load is as much as the cores or more.
pub fn wait_probability(cores: u32, erlangs: f64) -> f64 {
    let erlangs = crate::quantity(erlangs);
    if erlangs >= f64::from(cores) {
        return 1.0;
    }
    // Erlang B by its recursion: sums of powers over factorials would overflow.
    let mut blocked = 1.0;
    for servers in 1..=cores {
        blocked = erlangs * blocked / (f64::from(servers) + erlangs * blocked);
    }
    let load = erlangs / f64::from(cores);
    blocked / (1.0 - load * (1.0 - blocked))
}

/// Mean time that arrivals wait before service, of those that need not wait too; infinite where the cores cannot keep up.
pub fn mean_wait_seconds(cores: u32, arrivals_per_second: f64, services_per_core_second: f64) -> f64 {
    let spare = f64::from(cores) * services_per_core_second - crate::quantity(arrivals_per_second);
    if spare <= 0.0 || services_per_core_second <= 0.0 {
        return f64::INFINITY;
    }
    wait_probability(cores, arrivals_per_second / services_per_core_second) / spare
}

/// The least number of cores, at most `cores_max`, with which the mean wait is at most `wait_seconds`.
pub fn cores_for_wait(
    cores_max: u32,
    arrivals_per_second: f64,
    services_per_core_second: f64,
    wait_seconds: f64,
) -> u32 {
    let enough = |cores| mean_wait_seconds(cores, arrivals_per_second, services_per_core_second) <= wait_seconds;
    let (mut few, mut many) = (0, cores_max);
    while few < many {
        let middle = few + (many - few) / 2;
        if enough(middle) { many = middle } else { few = middle + 1 }
    }
    many
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums as in the textbook.
    fn by_the_book(cores: u32, erlangs: f64) -> f64 {
        let term = |k: u32| (1..=k).fold(1.0, |term, n| term * erlangs / f64::from(n));
        let last = term(cores) * f64::from(cores) / (f64::from(cores) - erlangs);
        last / ((0..cores).map(term).sum::<f64>() + last)
    }

    #[test]
    fn the_recursion_is_the_textbooks_sum() {
        for cores in [1, 2, 5, 20, 64] {
            for load in [0.1, 0.5, 0.9, 0.99] {
                let erlangs = load * f64::from(cores);
                let (ours, book) = (wait_probability(cores, erlangs), by_the_book(cores, erlangs));
                assert!((ours - book).abs() < 1e-9, "{cores} cores, {load}: {ours} {book}");
            }
        }
        // M/M/1: the load itself. M/M/2 at one erlang: a third.
        assert!((wait_probability(1, 0.3) - 0.3).abs() < 1e-12 && (wait_probability(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn as_many_cores_as_the_wait_allows_and_no_more() {
        for arrivals in [0.0, 10.0, 400.0, 1000.0, 2900.0] {
            let cores = cores_for_wait(64, arrivals, 50.0, 0.005);
            assert!(mean_wait_seconds(cores, arrivals, 50.0) <= 0.005, "{arrivals}: {cores}");
            assert!(cores == 0 || mean_wait_seconds(cores - 1, arrivals, 50.0) > 0.005, "{arrivals}: {cores}");
        }
        assert_eq!(cores_for_wait(64, 5000.0, 50.0, 0.005), 64, "what does not fit gets all");
        assert_eq!(
            cores_for_wait(64, f64::NAN, 50.0, 0.005),
            1,
            "no number counts as no load; but one core must stand ready"
        );
        assert_eq!(mean_wait_seconds(0, 1.0, 50.0), f64::INFINITY);
    }
}
