//! Times as logs write them, to Unix seconds. All are checked: no such day, no such time.
//!
//! A time without a zone is UTC, as W3C and CloudFront define it.

/// The end of the year 9999: later times are typing mistakes or milliseconds.
const END: f64 = 253_402_300_800.0;

/// `1066036250.129`: plain seconds.
pub fn seconds(text: &[u8]) -> Option<f64> {
    let plain = text.len() <= 32 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
    let value: f64 = if plain { str::from_utf8(text).ok()?.parse().ok()? } else { return None };
    checked(value)
}

/// A time in whatever writing JSON logs have: a number of seconds, milli-, micro- or nanoseconds
/// (told apart by their size: as seconds all but the first are beyond the year 5000), ISO 8601, the
/// time of COMMON, or `2024/05/01 12:00:00`.
pub fn any(text: &[u8]) -> Option<f64> {
    if text.len() <= 32
        && let Some(value) = str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok())
        && value >= 0.0
        && text[0].is_ascii_digit()
    {
        let scaled = match value {
            _ if value < 1e11 => value,
            _ if value < 1e14 => value / 1e3,
            _ if value < 1e17 => value / 1e6,
            _ => value / 1e9,
        };
        return checked(scaled);
    }
    let inner = text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(text);
    match inner.first_chunk::<26>() {
        Some(clf_text) if inner.len() == 26 && clf_text[2] == b'/' => clf(clf_text),
        _ => iso(inner),
    }
}

/// The time of COMMON, remembered: the lines of one second stand together.
#[derive(Debug, Default)]
pub struct ClfClock {
    text: [u8; 26],
    seconds: Option<f64>,
}

impl ClfClock {
    /// `17/Apr/2018:06:25:06 +0000`
    pub fn read(&mut self, text: &[u8; 26]) -> Option<f64> {
        if self.text != *text {
            self.seconds = clf(text);
            self.text = *text;
        }
        self.seconds
    }
}

fn clf(text: &[u8; 26]) -> Option<f64> {
    let marks = [(11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let days = clf_day(&text[..11])?;
    let clock = clock(number(&text[12..14])?, number(&text[15..17])?, number(&text[18..20])?)?;
    checked((days * 86_400 + clock - zone(&text[21..])?) as f64)
}

/// Days since 1970 of `17/Apr/2018`.
pub fn clf_day(text: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    if text.len() != 11 || text[2] != b'/' || text[6] != b'/' {
        return None;
    }
    let month = MONTHS.iter().position(|name| name[..] == text[3..6])? as i64 + 1;
    date(number(&text[7..])?, month, number(&text[..2])?)
}

/// `2024-05-01T12:00:00.5+02:00`; also with a blank for the T, slashes in the date, and no zone.
pub fn iso(text: &[u8]) -> Option<f64> {
    let days = day(text.get(..10)?)?;
    if !matches!(text.get(10)?, b'T' | b't' | b' ') {
        return None;
    }
    let (clock, rest) = time_of_day(&text[11..])?;
    let offset = match rest.strip_prefix(b" ").unwrap_or(rest) {
        b"" | b"Z" | b"z" | b"UTC" => 0,
        offset => zone(offset)?,
    };
    checked((days * 86_400 - offset) as f64 + clock)
}

/// Days since 1970 of `2024-05-01` or `2024/05/01`.
pub fn day(text: &[u8]) -> Option<i64> {
    let mark = *text.get(4)?;
    if text.len() != 10 || text[7] != mark || !matches!(mark, b'-' | b'/') {
        return None;
    }
    date(number(&text[..4])?, number(&text[5..7])?, number(&text[8..])?)
}

/// Seconds since midnight of `12:00:00.5`, and what follows.
pub fn time_of_day(text: &[u8]) -> Option<(f64, &[u8])> {
    let hms = text.get(..8)?;
    if hms[2] != b':' || hms[5] != b':' {
        return None;
    }
    let whole = clock(number(&hms[..2])?, number(&hms[3..5])?, number(&hms[6..])?)? as f64;
    let rest = &text[8..];
    // Some locales write the fraction after a comma.
    let Some(digits) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) else {
        return Some((whole, rest));
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    // Nine digits are nanoseconds; what is beyond them does not show in an f64.
    let shown = length.min(9);
    let fraction = number(&digits[..shown])? as f64 / 10f64.powi(shown as i32);
    Some((whole + fraction, &digits[length..]))
}

/// Seconds east of Greenwich: `+0200`, `+02:00` or `+02`.
pub fn zone(text: &[u8]) -> Option<i64> {
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let minutes = match text.len() {
        3 => 0,
        5 => number(&text[3..])?,
        6 if text[3] == b':' => number(&text[4..])?,
        _ => return None,
    };
    let hours = number(&text[1..3])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Digits only, few enough not to overflow.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

/// Second 60 is a leap second, told as the first of the next minute.
fn clock(hour: i64, minute: i64, second: i64) -> Option<i64> {
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Days since 1970 in the Gregorian calendar: whole years up to March 1st of the year, in which leap
/// days come last, and then the days of its months.
fn date(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // March is month 0; January and February belong to the year before.
    let years = if month < 3 { year - 1 } else { year };
    let months = (month + 9) % 12;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    // Months from March on have 31, 30, 31, 30, 31 days, over and over: 153 in five.
    let days = years * 365 + leap_days + (153 * months + 2) / 5 + day - 1;
    // Days from March 1st of year 0 to the start of 1970.
    Some(days - 719_468)
}

/// Nothing before 1970, nothing after 9999.
pub fn checked(seconds: f64) -> Option<f64> {
    (0.0..END).contains(&seconds).then_some(seconds)
}
