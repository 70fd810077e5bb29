//! Trees are the same to the bit however fast they grow: what fits say is pinned.

#![expect(clippy::expect_used, reason = "tests stop at data that are damaged")]

use minerva_forecast::boosting::{Boosted, Loss, Training};

const FEATURES: usize = 12;

/// Rows of which some features never change, one is coarse and one is no number now and then; the first is constant if `is_plain`.
fn rows(count: usize, is_plain: bool) -> Vec<f32> {
    let mut seed = 11_u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / 16_777_216.0
    };
    let value = |at: usize, drawn: f32| match at % FEATURES {
        0 if is_plain => 3.0,
        3 | 7 => 1.5,
        9 => 0.0,
        4 => (5.0 * drawn).floor(),
        5 if drawn < 0.1 => f32::NAN,
        _ => drawn,
    };
    (0..count * FEATURES).map(|at| value(at, draw())).collect()
}

fn fitted(is_plain: bool, leaves: Option<usize>, loss: Loss) -> (Boosted, u64) {
    let rows = rows(3_000, is_plain);
    let target = |row: &[f32]| {
        row[0] * row[1] + (4.0 * row[2] - 2.0) * row[10] * row[11] + if row[4] > 2.0 { row[6] } else { -row[8] }
    };
    let targets: Vec<f32> = rows.chunks_exact(FEATURES).map(target).collect();
    let training = Training::new(rows, FEATURES, &targets, 30, loss).expect("rows");
    let mut training = match leaves {
        Some(leaves) => training.by_leaves(leaves),
        None => training,
    };
    while training.advance() {}
    let additions = training.additions();
    (training.finish(), additions)
}

/// Fowler, Noll and Vo's hash of the bits of all answers.
fn digest(model: &Boosted, is_plain: bool) -> u64 {
    rows(500, is_plain).chunks_exact(FEATURES).fold(0xCBF2_9CE4_8422_2325, |hash, row| {
        let bytes = model.predict(row).to_bits().to_le_bytes();
        bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3))
    })
}

#[test]
fn trees_are_the_same_to_the_bit_as_when_every_histogram_was_counted() {
    // Digests, and what was added to histograms, are those of the version that counted all features of all leaves.
    for (is_plain, leaves, loss, expected, additions_before) in [
        (false, None, Loss::Squared, 0xDDC2_1CAC_935B_F810, 2_207_100),
        (false, Some(16), Loss::Absolute, 0xEC2B_34FF_169A_3D8B, 2_572_476),
        (false, Some(31), Loss::Squared, 0x4E94_5E1D_72B4_7381, 3_006_300),
        (true, None, Loss::Absolute, 0x2315_0019_33A3_1003, 2_207_148),
        (true, Some(31), Loss::Squared, 0x17A5_ED14_C1E6_7EF9, 3_029_448),
    ] {
        let (model, additions) = fitted(is_plain, leaves, loss);
        assert_eq!(digest(&model, is_plain), expected, "{is_plain} {leaves:?} {loss:?}");
        assert!(additions < additions_before, "{is_plain} {leaves:?} {loss:?}: {additions}");
    }
}
