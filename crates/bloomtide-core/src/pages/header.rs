//! The header of a page: a struct of Thrift's compact protocol, of which a few numbers matter.

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Values, with their levels among the packed bytes.
    Data,
    /// The entries that other pages point to.
    Dictionary,
    /// Values, with their levels before the packed bytes.
    DataV2,
    /// Something that holds no values.
    Other,
}

/// The numbers of a header that matter.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) unpacked: usize,
    pub(super) packed: usize,
    pub(super) values: usize,
    pub(super) encoding: i64,
    /// How the definition levels of a first-version page are written.
    pub(super) levels: i64,
    /// Bytes of levels before a second-version page's values.
    pub(super) level_bytes: usize,
    pub(super) nulls: usize,
    pub(super) is_packed: bool,
}

/// Structs in structs and lists that are looked into; a header has three.
const DEPTH: usize = 8;

impl Header {
    /// The header at the front of `data`, and its length.
    pub(super) fn parse(data: &[u8]) -> Option<(Self, usize)> {
        let mut reader = Reader { data, at: 0 };
        // The outer fields by number; of the struct inside that tells of the page, its fields.
        let (mut outer, mut inner) = ([0; 4], [0; 8]);
        (inner[2], inner[7]) = (-1, 1);
        let mut last = 0;
        while let Some((field, kind)) = reader.field(last)? {
            match field {
                5 | 7 | 8 if kind == STRUCT => {
                    let mut last = 0;
                    while let Some((field, kind)) = reader.field(last)? {
                        let value = reader.value(kind, DEPTH)?;
                        if let Some(place) = inner.get_mut(field as usize) {
                            *place = value;
                        }
                        last = field;
                    }
                }
                _ => {
                    let value = reader.value(kind, DEPTH)?;
                    if let Some(place) = outer.get_mut(field as usize) {
                        *place = value;
                    }
                }
            }
            last = field;
        }
        let size = |value: i64| usize::try_from(value).ok().filter(|size| *size <= i32::MAX as _);
        let kind = match outer[1] {
            0 => Kind::Data,
            2 => Kind::Dictionary,
            3 => Kind::DataV2,
            _ => Kind::Other,
        };
        let second = kind == Kind::DataV2;
        let header = Header {
            kind,
            unpacked: size(outer[2])?,
            packed: size(outer[3])?,
            values: size(inner[1])?,
            encoding: inner[if second { 4 } else { 2 }],
            levels: inner[3],
            level_bytes: if second { size(inner[5])? + size(inner[6])? } else { 0 },
            nulls: if second { size(inner[2])? } else { 0 },
            is_packed: !second || inner[7] == 1,
        };
        Some((header, reader.at))
    }
}

const STRUCT: u8 = 12;

/// A whole number of seven bits a byte, which may be spelled longer than it must.
pub(super) fn unsigned(data: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *data.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.data.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        unsigned(self.data, &mut self.at)
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The number and type of a struct's next field; Some(None) at its end.
    fn field(&mut self, last: i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        let field = match byte >> 4 {
            0 => self.signed()?,
            step => last + i64::from(step),
        };
        (0..=i64::from(i16::MAX)).contains(&field).then_some(Some((field, byte & 15)))
    }

    /// A number or a truth; 0 for anything else, which is passed over.
    fn value(&mut self, kind: u8, depth: usize) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 => return Some(1),
            2 => (),
            3 => self.at += 1,
            4..=6 => return self.signed(),
            7 => self.at += 8,
            8 => {
                let len = usize::try_from(self.unsigned()?).ok()?;
                self.at = self.at.checked_add(len).filter(|end| *end <= self.data.len())?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
                for _ in 0..len {
                    // Truths in a list take a byte each.
                    self.value(if head & 15 <= 2 { 3 } else { head & 15 }, depth)?;
                    self.data.get(self.at - 1)?;
                }
            }
            STRUCT => {
                let mut last = 0;
                while let Some((field, kind)) = self.field(last)? {
                    self.value(kind, depth)?;
                    last = field;
                }
            }
            _ => return None, // a map: no header has one
        }
        Some(0)
    }
}
