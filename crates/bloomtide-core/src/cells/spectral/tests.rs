//! Laws of the spectral cells, against a plain list of 64-bit counters.

use super::*;
use crate::cells::growing::Rebuilds;
use crate::cells::growing_laws::{self as laws, Random, set};
use std::sync::atomic::{AtomicU64, Ordering};

fn shape(design_bits: f64, slack: f64) -> SpectralShape {
    SpectralShape { design_bits, slack }
}

fn cells(cells: u64, partitions: u64, shape: SpectralShape) -> SpectralCells {
    SpectralCells::laid_out(Cut::new(cells, partitions, 1), shape, Arc::default(), |_| 0).unwrap()
}

fn get(cells: &SpectralCells, cell: u64) -> u64 {
    cells.get(cell, &epoch::pin())
}

fn values(cells: &SpectralCells) -> impl Iterator<Item = u64> {
    (0..cells.len()).map(|cell| get(cells, cell))
}

fn try_set(cells: &SpectralCells, cell: u64, value: u64) -> bool {
    cells.try_change(cell, |_| value).is_ok()
}

#[test]
fn they_hold_what_a_vector_holds() {
    let sizes = [(1, 1), (2, 1), (7, 7), (17, 2), (31, 3), (300, 1), (300, 7), (1000, 10)];
    for (m, c) in sizes {
        for (design, slack) in [(1.0, 0.0), (3.7, 0.1)] {
            let cells = cells(m, c, shape(design, slack));
            laws::hold_what_a_vector_holds(&cells, m ^ c << 8);
        }
    }
}

#[test]
fn readers_see_whole_values_beside_a_writer() {
    laws::readers_see_whole_values(&cells(500, 5, shape(2.0, 0.1)));
    // Enough bits for all, but not where they are needed: no array grows, and everything moves.
    let moving = cells(500, 5, shape(17.0, 0.1));
    let (bits, _) = moving.base_bits();
    laws::readers_see_whole_values(&moving);
    assert!(moving.pauses.so_far().count > 100);
    assert_eq!(moving.base_bits().0, bits);
    moving.validate().unwrap();
}

#[test]
fn without_room_nothing_is_set() {
    let cells = cells(10, 1, shape(1.0, 0.0));
    assert!(try_set(&cells, 4, 1));
    assert!(!try_set(&cells, 4, 2));
    assert!(values(&cells).eq([0, 0, 0, 0, 1, 0, 0, 0, 0, 0]));
    assert_eq!(cells.pauses.so_far(), Rebuilds::default());
}

#[test]
fn the_nearest_spare_bits_are_taken_and_only_what_lies_between_moves() {
    let shape = shape(1.0, 0.0);
    let lay = |widths: [u32; 11]| {
        let fields = Fields::lay(0..11, |_| 0, |j, _| widths[j as usize], &|j| j & 1).unwrap();
        Partition::new(fields)
    };
    let check = |part: &Partition, value, moved, widths: [u32; 11]| {
        assert_eq!(part.make_room(5, value, &shape).unwrap(), moved);
        let guard = epoch::pin();
        let fields = part.fields(&guard);
        assert!((0..11).map(|j| fields.span(j).1).eq(widths));
        assert!((0..11).all(|j| fields.get(j) == j & 1));
        fields.validate().unwrap();
    };
    // To cell 5 it is three from the left, four from the right.
    let part = lay([1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1]);
    check(&part, 2, 3, [1, 1, 1, 1, 1, 2, 1, 1, 1, 2, 1]);
    check(&part, 4, 4, [1, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1]);
    // Two donors on one side, and one on the other with more than it is asked for.
    let part = lay([1, 3, 1, 1, 1, 1, 1, 2, 2, 1, 1]);
    check(&part, 8, 3 + 4, [1, 2, 1, 1, 1, 4, 1, 1, 1, 1, 1]);
}

#[test]
fn spare_bits_come_from_far_away_in_stages() {
    let len = 20_000;
    for (value, donor) in [(u64::MAX, 0), (u64::MAX, len - 1), (1 << 40, 7_000)] {
        let fields =
            Fields::lay(0..len, |_| 0, |j, _| if j == donor { 64 } else { 2 }, &|j| j % 3).unwrap();
        let own = Partition::new(fields);
        let taker = 12_345;
        // The other cells have no bit to spare.
        let guard = epoch::pin();
        let set = |field, value| own.fields(&guard).try_set(field, value, &own.version);
        for field in (0..len).filter(|j| j % 3 < 2 && *j != donor) {
            assert!(set(field, 2));
        }
        assert!(set(donor, 1));
        let moved = own.make_room(taker, value, &shape(1.0, 0.0)).unwrap();
        assert_eq!(moved, taker.abs_diff(donor));
        assert!(set(taker, value));
        own.fields(&guard).validate().unwrap();
        for field in 0..len {
            let expected = if field == taker {
                value
            } else if field == donor {
                1
            } else {
                2
            };
            assert_eq!(own.get(field, &guard), expected);
        }
    }
}

#[test]
fn freed_bits_serve_others() {
    let cells = cells(10, 1, shape(2.0, 0.0));
    set(&cells, 0, (1 << 11) - 1);
    assert_eq!(cells.base_bits(), (20, 0));
    set(&cells, 0, 1);
    assert_eq!(cells.base_bits(), (20, 10));
    set(&cells, 9, (1 << 11) - 1);
    assert_eq!(cells.base_bits(), (20, 0));
    assert_eq!(get(&cells, 9), (1 << 11) - 1);
    cells.validate().unwrap();
}

#[test]
fn values_survive_a_list_and_another_number_of_partitions() {
    let mut random = Random(9);
    let first = cells(1000, 8, shape(2.0, 0.1));
    (0..5000).for_each(|_| {
        let cell = random.below(1000);
        set(&first, cell, get(&first, cell) + 1);
    });
    set(&first, 7, STUCK);
    for partitions in [1, 3, 8, 999, 1000] {
        let cut = Cut::new(1000, partitions, 1);
        let value = |cell| get(&first, cell);
        let other = SpectralCells::laid_out(cut, first.shape, Arc::default(), value).unwrap();
        assert!(values(&other).eq(values(&first)));
        other.validate().unwrap();
    }
}

#[test]
fn a_list_of_values_keeps_the_room_of_an_empty_filter() {
    let shape = shape(3.0, 0.5);
    let lay = |values: &[u64]| {
        let value = |cell: u64| values.get(cell as usize).copied().unwrap_or(0);
        SpectralCells::laid_out(Cut::new(10, 1, 1), shape, Arc::default(), value).unwrap()
    };
    assert_eq!(lay(&[]).base_bits(), (35, 25));
    assert_eq!(lay(&[1 << 33]).base_bits(), (34 + 9 + 5, 5));
    let widest = lay(&[u64::MAX; 10]);
    assert_eq!(widest.base_bits(), (640, 0));
    widest.validate().unwrap();
}

#[test]
fn memory_is_the_sum_of_what_was_allocated() {
    let cells = cells(1000, 10, shape(3.0, 0.1));
    // Per partition 310 bits in 5 words; 101 starts in 12 groups of 9: 9 + 3·12 + 9·12 bits each.
    let words = (5 * 64 + 12 * (9 + 3 * 12 + 9 * 12) as u64).div_ceil(512) * 64;
    let records = (size_of::<Partition>() + size_of::<Fields>()) as u64;
    assert_eq!(cells.bytes(), 10 * (words + records));
}

#[test]
fn growth_is_counted_in_memory_and_in_time() {
    let counters = cells(100, 1, shape(1.0, 0.0));
    counters.pauses.set_clock(tick);
    let before = counters.bytes();
    set(&counters, 50, 2);
    assert_eq!(counters.pauses.so_far(), Rebuilds { count: 1, moved: 100, longest: 1, total: 1 });
    // One bit for the value, a tenth of a bit for each cell.
    assert_eq!(counters.base_bits(), (111, 10));
    assert!(counters.bytes() >= before);
    set(&counters, 50, 4);
    assert_eq!(counters.pauses.so_far().count, 2);
    assert!(counters.pauses.so_far().moved < 111);
}

fn tick() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn bad_shapes_are_refused() {
    let refused = |cells, partitions, design, slack| {
        let shape = shape(design, slack);
        let cut = Cut::new(cells, partitions, 1);
        SpectralCells::laid_out(cut, shape, Arc::default(), |_| 0).is_err()
    };
    assert!(refused(1, 1, 0.5, 0.1) && refused(1, 1, f64::NAN, 0.1) && refused(1, 1, 65.0, 0.1));
    assert!(refused(1, 1, 2.0, -0.1) && refused(1, 1, 2.0, f64::INFINITY));
    assert!(refused(u64::MAX, 1, 2.0, 0.1) && refused(u64::MAX, u64::MAX, 64.0, 64.0));
    assert!(!refused(5, 5, 64.0, 64.0));
}
