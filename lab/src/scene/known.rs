//! An oracle: it knows how much each tenant has left, and lets the shortest go first as far as Minerva lets forecasts go.

use super::{Steered, Steering, SteeringContext};
use crate::error::{At, Result};
use std::fs;
use std::path::PathBuf;

/// BFQ's default weight.
const EQUAL: u32 = 100;
/// What each keeps of it: no forecast is trusted with more than nine tenths of a share (`core/decide/src/deal.rs`).
const KEPT: u32 = 10;

/// The shortest remaining work goes first; the others keep a tenth of their share.
#[derive(Clone, Copy, Debug)]
pub struct Known;

impl Steering for Known {
    fn name(&self) -> &str {
        "oracle"
    }

    fn start(&self, context: &SteeringContext<'_>) -> Result<Box<dyn Steered>> {
        let files = context.tenants.iter().map(|tenant| context.parent.bfq_weight_file(&tenant.name));
        Ok(Box::new(Knows { files: files.collect(), weights: vec![EQUAL; context.tenants.len()] }))
    }
}

struct Knows {
    files: Vec<PathBuf>,
    /// As they were written last.
    weights: Vec<u32>,
}

impl Steered for Knows {
    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    fn see(&mut self, left_bytes: &[u64]) -> Result<()> {
        for ((file, before), weight) in self.files.iter().zip(&mut self.weights).zip(weights(left_bytes)) {
            if std::mem::replace(before, weight) != weight {
                fs::write(file, weight.to_string()).at("write", file)?;
            }
        }
        Ok(())
    }
}

/// Weights that add up to what equal ones do among those that have something left.
fn weights(left_bytes: &[u64]) -> Vec<u32> {
    let shortest = (0..left_bytes.len()).filter(|index| left_bytes[*index] > 0).min_by_key(|index| left_bytes[*index]);
    let others = left_bytes.iter().filter(|left| **left > 0).count().saturating_sub(1) as u32;
    let weight = |(index, left): (usize, &u64)| match left {
        0 => EQUAL,
        _ if Some(index) == shortest => EQUAL + others * (EQUAL - KEPT),
        _ => KEPT,
    };
    left_bytes.iter().enumerate().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::weights;

    #[test]
    fn the_shortest_goes_first_and_the_others_keep_a_tenth() {
        let table: [(&[u64], &[u32]); 4] = [
            (&[5, 3, 9, 7], &[10, 370, 10, 10]),
            (&[5, 0, 9, 0], &[190, 100, 10, 100]),
            (&[0, 0, 9, 0], &[100; 4]),
            (&[], &[]),
        ];
        for (left, expected) in table {
            assert_eq!(weights(left), expected, "{left:?}");
        }
    }
}
