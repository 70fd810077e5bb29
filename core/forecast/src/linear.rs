//! Systems of linear equations with a symmetric positive definite matrix.

/// Solves `a x = b` by Cholesky's factorisation, in place: `a` (row-major, `n` by `n`, the lower triangle is read) becomes its
/// factor and `b` becomes `x`.
///
/// Answers whether `a` was positive definite; if not, `b` is worthless.
pub(crate) fn solve_in_place(a: &mut [f64], b: &mut [f64], n: usize) -> bool {
    debug_assert!(a.len() >= n * n && b.len() >= n, "the matrix is n by n");
    for row in 0..n {
        for column in 0..=row {
            let dot: f64 =
                a[row * n..row * n + column].iter().zip(&a[column * n..column * n + column]).map(|(x, y)| x * y).sum();
            let rest = a[row * n + column] - dot;
            if row != column {
                a[row * n + column] = rest / a[column * n + column];
            } else if rest > 0.0 && rest.is_finite() {
                a[row * n + row] = rest.sqrt();
            } else {
                return false;
            }
        }
    }
    for row in 0..n {
        let dot: f64 = (0..row).map(|column| a[row * n + column] * b[column]).sum();
        b[row] = (b[row] - dot) / a[row * n + row];
    }
    for row in (0..n).rev() {
        let dot: f64 = (row + 1..n).map(|below| a[below * n + row] * b[below]).sum();
        b[row] = (b[row] - dot) / a[row * n + row];
    }
    b[..n].iter().all(|x| x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::solve_in_place;

    #[test]
    fn a_small_system_is_solved_and_a_singular_one_refused() {
        let mut a = [4.0, 0.0, 0.0, 2.0, 5.0, 0.0, 1.0, 3.0, 6.0];
        let mut b = [4.0 + 4.0 + 3.0, 2.0 + 10.0 + 9.0, 1.0 + 6.0 + 18.0];
        assert!(solve_in_place(&mut a, &mut b, 3));
        for (found, expected) in b.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{b:?}");
        }
        assert!(!solve_in_place(&mut [1.0, 1.0, 1.0, 1.0], &mut [1.0, 2.0], 2));
        assert!(!solve_in_place(&mut [f64::NAN], &mut [1.0], 1));
    }
}
