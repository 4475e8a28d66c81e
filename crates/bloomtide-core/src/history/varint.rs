//! Whole numbers in as few bytes as they need: seven bits a byte, the lowest first.

use crate::error::{Error, Result};

/// Appends a number.
#[inline]
pub fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number that may be negative: 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
pub fn put_signed(value: i64, out: &mut Vec<u8>) {
    put(((value << 1) ^ (value >> 63)) as u64, out);
}

/// Takes numbers and bytes off the front of bytes that may be anything.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// What the bytes are, for the error.
    name: &'static str,
}

impl<'a> Reader<'a> {
    /// All of these bytes, which are to be of that name.
    pub fn new(rest: &'a [u8], name: &'static str) -> Self {
        Reader { rest, name }
    }

    /// The refusal of bytes that cannot be right.
    #[cold]
    pub fn wrong(&self) -> Error {
        Error::Field { name: self.name, got: "bytes that say nothing".to_owned() }
    }

    /// A number.
    #[inline]
    pub fn number(&mut self) -> Result<u64> {
        let mut value = 0;
        for (i, byte) in self.rest.iter().take(10).enumerate() {
            let part = u64::from(byte & 0x7F);
            // The tenth byte has room for one bit; and a last byte of zero would be a second spelling.
            if (i == 9 && part > 1) || (i > 0 && *byte == 0) {
                return Err(self.wrong());
            }
            value |= part << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(self.wrong())
    }

    /// A number that may be negative.
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: u64) -> Result<&'a [u8]> {
        let cut = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let (front, rest) = cut.ok_or_else(|| self.wrong())?;
        self.rest = rest;
        Ok(front)
    }

    /// So many bytes, for a number of fixed width.
    #[inline]
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let cut = self.rest.split_first_chunk();
        let (front, rest) = cut.ok_or_else(|| self.wrong())?;
        self.rest = rest;
        Ok(*front)
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Refuses anything that is left.
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were() {
        let mut out = Vec::new();
        let numbers = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, u64::MAX >> bit]);
        numbers.clone().for_each(|number| put(number, &mut out));
        numbers.clone().for_each(|number| put_signed(number as i64, &mut out));
        let mut reader = Reader::new(&out, "test");
        assert!(numbers.clone().all(|number| reader.number().unwrap() == number));
        assert!(numbers.clone().all(|number| reader.signed().unwrap() == number as i64));
        reader.end().unwrap();
    }

    #[test]
    fn a_second_spelling_and_an_open_end_are_refused() {
        for bytes in [
            &[0x80][..],
            &[],
            &[0x80, 0],
            &[0xFF; 11],
            &[255, 255, 255, 255, 255, 255, 255, 255, 255, 2],
        ] {
            assert!(Reader::new(bytes, "test").number().is_err(), "{bytes:?}");
        }
        assert!(Reader::new(&[1], "test").bytes(2).is_err());
        assert!(Reader::new(&[1], "test").end().is_err());
    }
}
