//! The middle of several runs.

/// The middle one; of an even number the mean of the two in the middle; not a number of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn of_an_even_number_it_lies_between_the_two_in_the_middle() {
        assert_eq!([median([9.0, 1.0, 3.0]), median([4.0, 9.0, 1.0, 2.0])], [3.0, 3.0]);
        assert_eq!(median([1.0, f64::INFINITY]), f64::INFINITY);
        assert!(median([]).is_nan());
    }
}
