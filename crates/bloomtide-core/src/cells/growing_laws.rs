//! Laws of every storage of growing counters, for the tests of each.

use super::growing::{GrowingCells, Pauses, Refused, STUCK};
use crossbeam_epoch as epoch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts rebuilds without a clock.
pub(crate) fn pauses() -> Arc<Pauses> {
    Arc::default()
}

/// Sets a cell as a filter does: makes room, and tidies up after lowering.
pub(crate) fn set(cells: &impl GrowingCells, cell: u64, value: u64) {
    let partition = cells.cut().locate(cell).0;
    loop {
        match cells.try_change(cell, |_| value) {
            Ok(old) if old > value && cells.is_untidy(partition) => {
                return cells.tidy(partition).unwrap();
            }
            Ok(_) => return,
            Err(refused) => assert_eq!(refused, Refused::NoRoom),
        }
        cells.make_room(cell, value).unwrap();
    }
}

/// Numbers that look random, from a seed that is not zero.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}

/// A shift is all of its cells' changes and their least value, or nothing; true iff some were made.
pub(crate) fn shift_as_a_vector_shifts(cells: &impl GrowingCells, seed: u64) -> bool {
    let mut random = Random(seed | 1 << 41);
    let mut model = vec![0u64; cells.len() as usize];
    let guard = &epoch::pin();
    let mut shifts = 0;
    for _ in 0..4000 {
        let mut own: Vec<u64> = (0..3).map(|_| random.below(cells.len())).collect();
        own.sort_unstable();
        own.dedup();
        let change = [1, -1, 0, 5, -5][random.below(5) as usize];
        if let Some(least) = cells.shift(&own, change) {
            own.iter().for_each(|cell| {
                let value = &mut model[*cell as usize];
                *value = value.checked_add_signed(change).unwrap();
            });
            assert_eq!(Some(least), own.iter().map(|cell| model[*cell as usize]).min());
            shifts += 1;
        } else {
            for cell in own {
                let new = model[cell as usize].saturating_add_signed(change);
                set(cells, cell, new);
                model[cell as usize] = new;
            }
        }
    }
    let held: Vec<u64> = (0..cells.len()).map(|cell| cells.get(cell, guard)).collect();
    assert_eq!(held, model);
    cells.validate().unwrap();
    shifts > 0
}

/// Random steps up and down, jumps to any size, and back to zero.
pub(crate) fn hold_what_a_vector_holds(cells: &impl GrowingCells, seed: u64) {
    let mut random = Random(seed | 1 << 40);
    let mut model = vec![0u64; cells.len() as usize];
    let guard = &epoch::pin();
    for step in 0..4000 {
        let cell = random.below(cells.len());
        let old = model[cell as usize];
        let new = match random.below(10) {
            0..5 => old.saturating_add(1),
            5..8 => old.saturating_sub(1),
            8 => 1 << random.below(40),
            _ => 0,
        };
        set(cells, cell, new);
        model[cell as usize] = new;
        assert_eq!(cells.get(cell, guard), new);
        if step % 500 == 0 {
            cells.validate().unwrap();
            let copy = cells.copied(pauses()).unwrap();
            copy.validate().unwrap();
            set(&copy, cell, new + 1_000_000);
            set(&copy, cell, new);
            let held: Vec<u64> = (0..copy.len()).map(|cell| copy.get(cell, guard)).collect();
            assert_eq!(held, model);
            assert!(copy.values(guard).eq(model.iter().copied()));
            let (first, mut some) = (cell as usize, vec![7; (cells.len() - cell) as usize]);
            copy.fill(cell, &mut some, guard);
            assert_eq!(some, model[first..]);
        }
    }
    let held: Vec<u64> = (0..cells.len()).map(|cell| cells.get(cell, guard)).collect();
    assert_eq!(held, model);
    set(cells, 0, STUCK);
    assert_eq!(cells.try_change(0, |_| 5), Ok(STUCK));
    assert_eq!(cells.get(0, guard), STUCK);
    cells.validate().unwrap();
}

/// A writer counts every cell up by different steps while readers look: they never see less than what
/// was there before they looked, nor more than what is there after.
pub(crate) fn readers_see_whole_values(cells: &impl GrowingCells) {
    const STEPS: [u64; 4] = [1, 7, 255, 70_001];
    let rounds = AtomicU64::new(0);
    let value = |cell: u64, round: u64| round * STEPS[(cell % 4) as usize];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..400 {
                for cell in 0..cells.len() {
                    set(cells, cell, value(cell, round));
                }
                rounds.store(round, Ordering::Release);
            }
        });
        let mut random = Random(99);
        loop {
            let cell = random.below(cells.len());
            let before = rounds.load(Ordering::Acquire);
            let seen = cells.get(cell, &epoch::pin());
            let after = rounds.load(Ordering::Acquire);
            let possible = value(cell, before)..=value(cell, after + 1);
            assert!(possible.contains(&seen), "{seen} is not in {possible:?}");
            if after == 399 {
                break;
            }
        }
    });
}
