use super::*;
use crate::cells::growing_laws as laws;

fn cells(cells: u64, partitions: u64, width: u32, shrink: f64) -> DynamicCells {
    let shape = DynamicShape { width, shrink };
    let cut = Cut::new(cells, partitions, 1);
    DynamicCells::laid_out(cut, shape, laws::pauses(), |_| 0).unwrap()
}

/// Width of a partition's overflow counters, y.
fn overflow_bits(cells: &DynamicCells, partition: usize) -> u32 {
    cells.partitions[partition].overflow(&epoch::pin()).map_or(0, |overflow| overflow.width)
}

#[test]
fn they_hold_what_a_vector_holds() {
    for (m, c) in [(1, 1), (7, 7), (300, 1), (300, 7), (1000, 10)] {
        for (x, s) in [(1, 0.5), (3, 0.0), (4, 1.0), (8, 0.5), (33, 0.5)] {
            laws::hold_what_a_vector_holds(&cells(m, c, x, s), m ^ c << 8);
        }
    }
}

#[test]
fn they_shift_as_a_vector_shifts() {
    for (m, c) in [(3, 1), (300, 7), (1000, 10)] {
        for (x, s) in [(1, 0.5), (3, 0.0), (4, 1.0), (4, 0.0), (8, 0.5), (32, 0.5)] {
            let shifted = laws::shift_as_a_vector_shifts(&cells(m, c, x, s), m ^ c << 8);
            assert_eq!(shifted, x.is_power_of_two());
        }
    }
}

#[test]
fn readers_see_whole_values_beside_a_writer() {
    laws::readers_see_whole_values(&cells(500, 5, 5, 0.5));
}

#[test]
fn the_papers_example_is_four_overflows_and_two() {
    let cells = cells(10, 1, 8, 0.5);
    laws::set(&cells, 3, 1026);
    let guard = &epoch::pin();
    let overflow = cells.partitions[0].overflow(guard).unwrap();
    assert_eq!((overflow.get(3), overflow.width), (4, 3));
    assert_eq!(packed::read(cells.base.atomics(), 3 * 8, 8), 2);
    assert_eq!(cells.get(3, guard), 1026);
}

#[test]
fn the_threshold_keeps_a_counter_from_rebuilding_at_every_step() {
    let rebuilds = |shrink| {
        let cells = cells(100, 1, 4, shrink);
        laws::set(&cells, 0, 31);
        for _ in 0..1000 {
            laws::set(&cells, 0, 32);
            laws::set(&cells, 0, 31);
        }
        cells.pauses.so_far().count
    };
    assert_eq!(rebuilds(1.0), 2001);
    assert_eq!(rebuilds(0.5), 2);
    assert_eq!(rebuilds(0.0), 2);
}

#[test]
fn y_follows_the_largest_counter_up_and_down() {
    let cells = cells(50, 1, 4, 0.5);
    for value in [0u64, 15, 16, 31, 32, 1000, 1 << 40, 3, 0] {
        laws::set(&cells, 17, value);
        let exact = bits_of(value >> 4);
        assert!((exact..=exact + 1).contains(&overflow_bits(&cells, 0)), "value {value}");
    }
}

#[test]
fn a_rebuild_moves_one_partition() {
    let cells = cells(1000, 10, 2, 0.5);
    laws::set(&cells, 555, 4);
    assert_eq!((cells.pauses.so_far().count, cells.pauses.so_far().moved), (1, 100));
    let widths: Vec<u32> = (0..10).map(|partition| overflow_bits(&cells, partition)).collect();
    assert_eq!(widths, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn values_can_be_laid_out_at_once() {
    let value = |cell: u64| (cell * cell) << (cell % 40);
    let shape = DynamicShape { width: 3, shrink: 0.5 };
    let cut = Cut::new(777, 12, 1);
    let cells = DynamicCells::laid_out(cut, shape, laws::pauses(), value).unwrap();
    let guard = &epoch::pin();
    assert!((0..777).all(|cell| cells.get(cell, guard) == value(cell)));
    assert!(cells.validate().is_ok());
}

#[test]
fn memory_is_x_bits_a_counter_and_y_where_a_partition_needs_them() {
    let cells = cells(64_000, 100, 4, 0.5);
    let empty = cells.bytes();
    assert!((32_000..32_000 + 100 * 16 + 512).contains(&empty), "{empty}");
    laws::set(&cells, 5, 16);
    let grown = cells.bytes() - empty;
    assert_eq!(grown, DynamicCells::overflow_bytes(640, 1));
}
