//! Columns of a table: which of them fit into a width, where each begins, how wide it is.

/// One column as a table wishes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Head.
    pub(crate) title: &'static str,
    /// Narrower makes no sense.
    pub(crate) min: u16,
    /// Wider makes no sense.
    pub(crate) ideal: u16,
    /// Numbers stand at the right edge.
    pub(crate) right: bool,
    /// Who goes first when room is short: high ranks. Rank 0 always stays.
    pub(crate) rank: u8,
}

/// A column that got room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its place in the wish list.
    pub(crate) index: usize,
    /// Columns from the table's left edge.
    pub(crate) x: u16,
    /// Columns.
    pub(crate) width: u16,
}

/// Shares `width` out, one blank between columns. Columns of rank 0 stay even where they do not fit: the canvas cuts them.
pub(crate) fn share(width: u16, columns: &[Column]) -> Vec<Slot> {
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|index| columns.get(*index).map_or(u8::MAX, |column| column.rank));
    let mut kept: Vec<(usize, &Column, u16)> = Vec::new();
    let mut used: u16 = 0;
    for index in by_rank {
        let Some(column) = columns.get(index) else {
            continue;
        };
        let with_gap = column.min.saturating_add(u16::from(!kept.is_empty()));
        if column.rank > 0 && used.saturating_add(with_gap) > width {
            break;
        }
        used = used.saturating_add(with_gap);
        kept.push((index, column, column.min));
    }
    let mut left = width.saturating_sub(used);
    while left > 0 && kept.iter().any(|(_, column, wide)| *wide < column.ideal) {
        for (_, column, wide) in &mut kept {
            if left > 0 && *wide < column.ideal {
                *wide += 1;
                left -= 1;
            }
        }
    }
    kept.sort_by_key(|(index, ..)| *index);
    let mut x: u16 = 0;
    kept.into_iter()
        .map(|(index, _, wide)| {
            let slot = Slot { index, x, width: wide };
            x = x.saturating_add(wide).saturating_add(1);
            slot
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn column(min: u16, ideal: u16, rank: u8) -> Column {
        Column { title: "", min, ideal, right: false, rank }
    }

    #[test]
    fn high_ranks_go_first_and_room_left_is_shared() {
        let wish = [column(4, 10, 0), column(3, 3, 2), column(2, 4, 1)];
        assert_eq!(share(4, &wish), [Slot { index: 0, x: 0, width: 4 }]);
        assert_eq!(share(8, &wish), [Slot { index: 0, x: 0, width: 5 }, Slot { index: 2, x: 6, width: 2 }]);
        assert_eq!(
            share(80, &wish),
            [Slot { index: 0, x: 0, width: 10 }, Slot { index: 1, x: 11, width: 3 }, Slot { index: 2, x: 15, width: 4 }]
        );
    }

    proptest! {
        #[test]
        fn slots_never_overlap_nor_leave_the_table(width in 0u16..400, wish in proptest::collection::vec((1u16..30, 0u16..30, 1u8..9), 0..12)) {
            let wish: Vec<Column> = wish.into_iter().map(|(min, more, rank)| column(min, min + more, rank)).collect();
            let slots = share(width, &wish);
            for pair in slots.windows(2) {
                prop_assert!(pair[0].x + pair[0].width < pair[1].x);
            }
            if let Some(last) = slots.last() {
                prop_assert!(last.x + last.width <= width);
            }
        }
    }
}
