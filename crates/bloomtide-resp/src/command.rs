//! The one table of commands. COMMAND, the access lists and the statistics are made from it.

use crate::acl::Users;
use crate::changes::Changes;
use crate::commands::outer;
use crate::expiry;
use crate::failure::Answer;
use crate::session::State;
use crate::store::{Slot, Store};
use crate::wire::reply::Reply;
use crate::wire::request::Args;

/// What a command gets.
#[derive(Debug)]
pub struct Call<'a> {
    /// The request, its name first.
    pub args: Args<'a>,
    /// Where the answer goes.
    pub reply: &'a mut Reply,
    /// The named structures.
    pub store: &'a mut Store,
    /// Where to note what was changed.
    pub changes: &'a mut Changes,
    /// Who asks.
    pub session: &'a mut State,
    /// Who may ask.
    pub users: &'a Users,
    /// All commands there are here.
    pub table: &'a Table,
    /// Seconds since 1970.
    pub now: f64,
}

impl Call<'_> {
    /// Whether the name at a slot has expired.
    pub(crate) fn is_due(&self, slot: usize) -> bool {
        let expires = self.store.expires(slot as Slot);
        expires.is_some_and(|time| time <= expiry::millis(self.now))
    }

    /// Forgets names that have expired.
    pub(crate) fn forget(&mut self, names: Vec<Vec<u8>>) {
        for name in names {
            expiry::forget(&name, self.store, self.changes, self.now);
        }
    }
}

/// How a command is done.
pub type Run = fn(&mut Call<'_>) -> Answer;

/// Properties and categories of a command, one bit each.
pub mod is {
    /// Changes something.
    pub const WRITE: u32 = 1;
    /// Changes nothing and looks at keys.
    pub const READ: u32 = 1 << 1;
    /// Its work does not grow with what is there.
    pub const FAST: u32 = 1 << 2;
    /// May harm.
    pub const DANGEROUS: u32 = 1 << 3;
    /// For whoever runs the server.
    pub const ADMIN: u32 = 1 << 4;
    /// About the connection.
    pub const CONNECTION: u32 = 1 << 5;
    /// About names, of whatever they stand for.
    pub const KEYSPACE: u32 = 1 << 6;
    /// Small texts.
    pub const STRING: u32 = 1 << 7;
    /// BF.*
    pub const BLOOM: u32 = 1 << 8;
    /// CF.*
    pub const CUCKOO: u32 = 1 << 9;
    /// CMS.*
    pub const CMS: u32 = 1 << 10;
    /// TOPK.*
    pub const TOPK: u32 = 1 << 11;
    /// COUNT.*
    pub const COUNT: u32 = 1 << 12;
    /// DECAY.*
    pub const DECAY: u32 = 1 << 13;
    /// URL.*
    pub const URL: u32 = 1 << 14;
    /// HISTORY.*, MONITOR.*, GUARD.*
    pub const MONITOR: u32 = 1 << 15;
    /// One word `NAME|WORD` of a command: it has rights and statistics of its own, and no request has its name.
    pub const PART: u32 = 1 << 26;
    /// Some of its second words are commands in the table, each a PART.
    pub const PARENT: u32 = 1 << 27;
    /// TDIGEST.*
    pub const TDIGEST: u32 = 1 << 16;
    /// Is done at once between MULTI and EXEC.
    pub const NOW: u32 = 1 << 28;
    /// Works before AUTH.
    pub const OPEN: u32 = 1 << 29;
    /// Works while data is loaded.
    pub const LOADING: u32 = 1 << 30;

    /// The categories that have a name in access lists.
    pub const NAMES: [(&str, u32); 17] = [
        ("write", WRITE),
        ("read", READ),
        ("fast", FAST),
        ("dangerous", DANGEROUS),
        ("admin", ADMIN),
        ("connection", CONNECTION),
        ("keyspace", KEYSPACE),
        ("string", STRING),
        ("bloom", BLOOM),
        ("cuckoo", CUCKOO),
        ("cms", CMS),
        ("topk", TOPK),
        ("tdigest", TDIGEST),
        ("count", COUNT),
        ("decay", DECAY),
        ("url", URL),
        ("monitor", MONITOR),
    ];
}

/// Where a request has its keys: the first, the last (negative: from the end), and the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys(pub i16, pub i16, pub i16);

impl Keys {
    /// No keys.
    pub const NONE: Keys = Keys(0, 0, 0);
    /// The first element after the name.
    pub const FIRST: Keys = Keys(1, 1, 1);
    /// Every element after the name.
    pub const ALL: Keys = Keys(1, -1, 1);

    /// The places of the keys in a request of `len` elements.
    pub fn places(self, len: usize) -> impl Iterator<Item = usize> {
        let last = if self.1 < 0 { len as i64 + i64::from(self.1) } else { i64::from(self.1) };
        let first = usize::try_from(self.0).unwrap_or(0);
        let end = if first == 0 { 0 } else { (last + 1).clamp(0, len as i64) as usize };
        (first..end).step_by(usize::try_from(self.2).unwrap_or(1).max(1))
    }
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name in capitals, at most sixteen bytes.
    pub name: &'static str,
    /// Elements of a request, with the name; negative: at least that many.
    pub arity: i16,
    /// Bits of `is`.
    pub is: u32,
    /// Where its keys are.
    pub keys: Keys,
    /// How it is done; None if the host does it.
    pub run: Option<Run>,
}

impl Command {
    /// A command that is done here.
    pub const fn new(name: &'static str, arity: i16, is: u32, keys: Keys, run: Run) -> Self {
        Command { name, arity, is, keys, run: Some(run) }
    }

    /// A command that the host answers.
    pub const fn foreign(name: &'static str, arity: i16, is: u32, keys: Keys) -> Self {
        Command { name, arity, is, keys, run: None }
    }

    /// Whether it has a bit.
    #[inline]
    pub fn has(&self, bit: u32) -> bool {
        self.is & bit != 0
    }

    /// Whether a request may have that many elements.
    #[inline]
    pub fn takes(&self, len: usize) -> bool {
        let wanted = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { len >= wanted } else { len == wanted }
    }
}

/// The commands of a keyspace, found by name in whatever case.
#[derive(Debug)]
pub struct Table {
    commands: Vec<Command>,
    /// Name in capitals, padded with zeros, and the command's number; open addressing, at most half full.
    places: Vec<(u128, u16)>,
}

const NONE: u16 = u16::MAX;

impl Table {
    /// A table of the commands that are done here, and of those foreign ones that the host names.
    pub fn new(foreign: &[String]) -> Self {
        let mut commands: Vec<Command> =
            crate::commands::FAMILIES.iter().flat_map(|family| family.iter().copied()).collect();
        for name in foreign {
            let upper = name.to_ascii_uppercase();
            let known = outer::TABLE.iter().find(|known| known.name == upper);
            // A name that lives as long as the process: there are few tables, and few such names.
            let command = known.copied().unwrap_or_else(|| {
                let name = Box::leak(upper.clone().into_boxed_str());
                Command::foreign(name, -1, is::ADMIN | is::DANGEROUS, Keys::NONE)
            });
            commands.retain(|command| command.name != upper);
            commands.push(command);
            commands.extend(outer::parts(command.name));
        }
        let size = (commands.len() * 4).next_power_of_two();
        let mut table = Table { commands, places: vec![(0, NONE); size] };
        for number in 0..table.commands.len() {
            if let Some(name) = folded(table.commands[number].name.as_bytes()) {
                let mut place = table.home(name);
                while table.places[place].1 != NONE {
                    place = (place + 1) & (size - 1);
                }
                table.places[place] = (name, number as u16);
            }
        }
        table
    }

    /// All commands, by number.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    #[inline]
    fn home(&self, name: u128) -> usize {
        let mixed = (name as u64 ^ (name >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 40) as usize & (self.places.len() - 1)
    }

    /// The number of the command of that name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let Some(name) = folded(name) else { return self.find_long(name) };
        let mut place = self.home(name);
        loop {
            let (held, number) = self.places[place];
            if number == NONE {
                return None;
            }
            if held == name {
                return Some(number as usize);
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }

    /// The number of the command that a request asks for: for some names the second word decides, too.
    #[inline]
    pub fn find_request(&self, args: Args<'_>) -> Option<usize> {
        let number = self.find(args.at(0))?;
        if !self.commands[number].has(is::PARENT | is::PART) {
            return Some(number);
        }
        self.find_part(number, args)
    }

    #[cold]
    fn find_part(&self, number: usize, args: Args<'_>) -> Option<usize> {
        if self.commands[number].has(is::PART) {
            return None;
        }
        let part = args.get(1).and_then(|word| self.find(&[args.at(0), b"|", word].concat()));
        Some(part.unwrap_or(number))
    }

    /// The parts of a command, `NAME|WORD`.
    pub fn parts(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let name = self.commands[number].name;
        let part = move |other: &Command| {
            other.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('|'))
        };
        (0..self.commands.len()).filter(move |other| part(&self.commands[*other]))
    }

    /// Only the host has names that long.
    #[cold]
    fn find_long(&self, name: &[u8]) -> Option<usize> {
        self.commands.iter().position(|known| known.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// A short name as one number, in capitals.
#[inline]
fn folded(name: &[u8]) -> Option<u128> {
    // Parts that overlap, instead of a copy into sixteen bytes, which would have to be waited for.
    let word = match name {
        [a, .., b] if name.len() < 4 => {
            let (middle, last) = (name.len() / 2, name.len() - 1);
            u128::from(*a)
                | (u128::from(name[middle]) << (8 * middle))
                | (u128::from(*b) << (8 * last))
        }
        [a] => u128::from(*a),
        _ if name.len() < 8 => {
            let (a, b) = (name.first_chunk()?, name.last_chunk()?);
            let shift = 8 * (name.len() - 4);
            u128::from(u32::from_le_bytes(*a)) | (u128::from(u32::from_le_bytes(*b)) << shift)
        }
        _ if name.len() <= 16 => {
            let (a, b) = (name.first_chunk()?, name.last_chunk()?);
            let shift = 8 * (name.len() - 8);
            u128::from(u64::from_le_bytes(*a)) | (u128::from(u64::from_le_bytes(*b)) << shift)
        }
        _ => return None,
    };
    // For each byte: its high bit is set by the sums iff the byte is in a..=z, and becomes the bit 0x20.
    const ONES: u128 = u128::MAX / 255;
    let seven = word & (ONES * 0x7f);
    let lower = (seven + ONES * (0x80 - 0x61)) & !(seven + ONES * (0x80 - 0x7b)) & !word;
    Some(word & !((lower & (ONES * 0x80)) >> 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_is_that_of_ascii() {
        for byte in 0..=255u8 {
            let name = [byte, b'x', byte];
            let mut padded = [0; 16];
            padded[..3].copy_from_slice(&name.to_ascii_uppercase());
            assert_eq!(folded(&name), Some(u128::from_le_bytes(padded)), "{byte}");
        }
        for len in 1..=16 {
            let name: Vec<u8> = (0..len).map(|i| b'a' + i).collect();
            let mut padded = [0; 16];
            padded[..usize::from(len)].copy_from_slice(&name.to_ascii_uppercase());
            assert_eq!(folded(&name), Some(u128::from_le_bytes(padded)), "{len}");
        }
        assert_eq!(folded(b""), None);
        assert_eq!(folded(&[b'a'; 17]), None);
    }

    #[test]
    fn every_command_is_found_in_every_case_and_nothing_else_is() {
        let table = Table::new(&["INFO".to_owned(), "a.very.long.name.of.a.host".to_owned()]);
        for (number, command) in table.commands().iter().enumerate() {
            assert_eq!(table.find(command.name.as_bytes()), Some(number));
            assert_eq!(table.find(command.name.to_lowercase().as_bytes()), Some(number));
            assert_eq!(table.find(&command.name.as_bytes()[1..]).filter(|n| *n == number), None);
        }
        assert_eq!(table.find(b"NO.SUCH"), None);
        assert_eq!(table.find(b""), None);
        let mut names: Vec<_> = table.commands().iter().map(|command| command.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.commands().len(), "a name is there twice");
    }
}
