//! A plan's slots, so many as people read.

use minerva_api::v1;

/// Rows of a table; a longer plan's slots are taken together.
const ROWS: usize = 24;

/// So few slots that they can be read.
pub(super) fn together(slots: &[v1::BackgroundSlot]) -> Vec<v1::BackgroundSlot> {
    let each = slots.len().div_ceil(ROWS).max(1);
    let mean = |part: &[v1::BackgroundSlot], of: fn(&v1::BackgroundSlot) -> u32| {
        part.iter().map(of).sum::<u32>() / u32::try_from(part.len()).unwrap_or(1).max(1)
    };
    let joined = |part: &[v1::BackgroundSlot]| {
        let last = part.last().copied().unwrap_or_default();
        v1::BackgroundSlot {
            start_unix_ns: part.first().map_or(0, |slot| slot.start_unix_ns),
            length_ns: part.iter().map(|slot| slot.length_ns).sum(),
            foreground_permille: mean(part, |slot| slot.foreground_permille),
            background_permille: mean(part, |slot| slot.background_permille),
            stolen_permille: mean(part, |slot| slot.stolen_permille),
            ..last
        }
    };
    slots.chunks(each).map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::together;
    use minerva_api::v1;

    #[test]
    fn a_month_is_shown_in_as_few_rows_as_a_day() {
        let slot = v1::BackgroundSlot {
            foreground_permille: 100,
            background_permille: 300,
            length_ns: 60_000_000_000,
            ..v1::BackgroundSlot::default()
        };
        let slots = vec![slot; 720];
        let shown = together(&slots);
        assert_eq!((shown.len(), shown[0].length_ns), (24, 30 * 60_000_000_000));
        assert_eq!((shown[0].foreground_permille, shown[23].background_permille), (100, 300));
    }
}
