//! Times as people write them: a length of time, and a moment.
//!
//! No clock here. Which moment a date and time without a zone means depends on where the program runs, so such
//! a one is none.

use crate::logs::time;

/// Seconds of `90s`, `1.5h`, `1h30m`, or of a plain number of seconds.
pub fn duration(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse() {
        return Some(seconds);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * unit;
        rest = tail.trim_start();
    }
    Some(sum)
}

/// Seconds since 1970 of a plain number of them, or of ISO 8601 with its zone; up to the year 9999.
pub fn instant(text: &[u8]) -> Option<f64> {
    if let Some(seconds) = time::seconds(text) {
        return Some(seconds);
    }
    let clock = text.get(11..)?;
    let zoned = clock.ends_with(b"Z") || clock.iter().any(|byte| matches!(byte, b'+' | b'-'));
    time::iso(text).filter(|_| zoned)
}
