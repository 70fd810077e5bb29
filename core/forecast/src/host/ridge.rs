//! Ridge regression (Hoerl and Kennard 1970): what speaks before the trees have seen enough.

use crate::linear::solve_in_place;
use crate::tenant::{FEATURES, Row};
use serde::{Deserialize, Serialize};

/// The penalty, as a part of each feature's own mean square.
const PENALTY: f64 = 1e-3;
/// What is left of the past after a row: some ten thousand rows count.
const MEMORY: f64 = 1.0 - 1e-4;

/// Sums of products of a row's first features and the constant, and the coefficients of the last solution. 9 kB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ridge {
    gram: Vec<f64>,
    with_target: Vec<f64>,
    rows: u64,
    coefficients: Option<Vec<f64>>,
    /// The least and the greatest target; earlier versions kept none.
    #[serde(default)]
    range: Option<[f32; 2]>,
}

impl Ridge {
    /// One that goes by the first `features` of a row.
    pub fn new(features: usize) -> Self {
        let n = features.min(FEATURES) + 1;
        Self { gram: vec![0.0; n * n], with_target: vec![0.0; n], rows: 0, coefficients: None, range: None }
    }

    /// Takes a row and its target; one that is not finite is not taken.
    pub fn observe(&mut self, row: &Row, target: f32) {
        let n = self.with_target.len();
        let mut x = [1.0; FEATURES + 1];
        x[..n - 1].iter_mut().zip(row.iter()).for_each(|(to, from)| *to = f64::from(*from));
        if !target.is_finite() || x.iter().any(|value| !value.is_finite()) {
            return;
        }
        for (i, xi) in x[..n].iter().enumerate() {
            for (sum, xj) in self.gram[i * n..=i * n + i].iter_mut().zip(&x) {
                *sum = *sum * MEMORY + xi * xj;
            }
            self.with_target[i] = self.with_target[i] * MEMORY + xi * f64::from(target);
        }
        self.rows += 1;
        let [least, greatest] = self.range.unwrap_or([target; 2]);
        self.range = Some([least.min(target), greatest.max(target)]);
    }

    /// Solves for the coefficients; whether it could. Cost: the cube of the features over six.
    pub fn solve(&mut self) -> bool {
        let (mut matrix, mut b, n) = (self.gram.clone(), self.with_target.clone(), self.with_target.len());
        for index in 0..n {
            // A feature that was always 0 gets the coefficient 0.
            let own = matrix[index * n + index];
            matrix[index * n + index] = if own > 0.0 { own * (1.0 + PENALTY) } else { 1.0 };
        }
        let solved = self.rows > 0 && solve_in_place(&mut matrix, &mut b, n);
        if solved {
            self.coefficients = Some(b);
        }
        solved
    }

    /// Whether it can answer.
    pub fn is_solved(&self) -> bool {
        self.coefficients.is_some()
    }

    /// Rows taken.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The answer for a row; `None` before the first solution.
    pub fn predict(&self, row: &Row) -> Option<f32> {
        let (constant, coefficients) = self.coefficients.as_ref()?.split_last()?;
        let sum: f64 = row.iter().zip(coefficients).map(|(x, b)| f64::from(*x) * b).sum();
        Some((sum + constant) as f32)
    }

    /// The same, but no less than the least target and, of logarithms, no more than twice the greatest: a row that is unlike all before it,
    /// as of who uses many processors for the first time, would lead to any number.
    pub fn predict_within_range(&self, row: &Row) -> Option<f32> {
        let answer = self.predict(row)?;
        Some(self.range.map_or(answer, |[least, greatest]| answer.max(least).min(greatest + std::f32::consts::LN_2)))
    }
}
