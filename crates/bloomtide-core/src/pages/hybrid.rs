//! Parquet's numbers of a few bits: runs of one value, and values packed bit by bit, in turns.

use super::header::unsigned;

/// Reads `count` numbers below `limit`; None if the bytes do not hold them.
pub(super) fn read(data: &[u8], width: u32, count: usize, limit: usize) -> Option<Vec<u32>> {
    if width > 32 {
        return None;
    }
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(count).ok()?;
    let mask = (1u64 << width) - 1;
    let mut at = 0;
    while numbers.len() < count {
        let head = unsigned(data, &mut at)?;
        let left = count - numbers.len();
        let len = usize::try_from(head >> 1).ok()?;
        if head & 1 == 0 {
            let bytes = width.div_ceil(8) as usize;
            let run = data.get(at..at + bytes)?;
            at += bytes;
            let value = run.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            numbers.resize(numbers.len() + len.min(left), value);
            if len == 0 {
                return None;
            }
        } else {
            // The last group may be cut where its values end.
            let packed = data.get(at..)?;
            let take = len.checked_mul(8)?.min(left);
            if (take as u64 * u64::from(width)).div_ceil(8) > packed.len() as u64 || take == 0 {
                return None;
            }
            for i in 0..take {
                let bit = i * width as usize;
                let mut word = [0; 8];
                match packed.get(bit / 8..bit / 8 + 8) {
                    Some(whole) => word.copy_from_slice(whole),
                    None => {
                        let rest = &packed[bit / 8..];
                        word[..rest.len()].copy_from_slice(rest);
                    }
                }
                numbers.push((u64::from_le_bytes(word) >> (bit % 8) & mask) as u32);
            }
            at = at.checked_add(len.checked_mul(width as usize)?)?;
        }
    }
    numbers.iter().all(|number| (*number as usize) < limit).then_some(numbers)
}
