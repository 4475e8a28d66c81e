//! Numbers as the protocol writes them, read strictly and written without a formatter.

/// A decimal integer: digits with at most one minus in front, no sign of plus, no leading zeros.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // Nineteen digits fit without overflow; a leading zero stands only for zero itself.
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    if digits[0] == b'0' && (digits.len() > 1 || negative) {
        return None;
    }
    let mut value = 0u64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    match negative {
        false => i64::try_from(value).ok(),
        true => 0i64.checked_sub_unsigned(value),
    }
}

/// A decimal integer from zero up.
#[inline]
pub fn whole(text: &[u8]) -> Option<u64> {
    integer(text).and_then(|value| u64::try_from(value).ok())
}

/// A finite number.
pub fn float(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// A byte of two hexadecimal digits.
pub fn hex(two: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(*two.first()?)? * 16 + digit(*two.get(1)?)?) as u8)
}

/// Appends the decimal digits.
#[inline]
pub fn write(out: &mut Vec<u8>, value: i64) {
    if (0..10).contains(&value) {
        out.push(b'0' + value as u8);
        return;
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}
