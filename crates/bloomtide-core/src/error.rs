//! One error enum for the whole core. Every variant has fields, so a binding can show them; no
//! variant is a bare string, and no user input may panic.

use crate::format::noun;
use std::fmt;
use std::path::PathBuf;

/// What went wrong, with the values a caller needs to mend it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is out of range or does not go with another one.
    Parameter {
        /// The parameter as the user spells it.
        name: &'static str,
        /// The value given, as text.
        got: String,
        /// What would have been accepted.
        allowed: &'static str,
        /// A way out.
        hint: &'static str,
    },
    /// One row of a batch is refused.
    Row {
        /// Its place in the batch.
        row: usize,
        /// Why.
        error: Box<Error>,
    },
    /// The cells would not fit this machine's memory.
    Capacity {
        /// Bytes asked for.
        needed: u64,
        /// Bytes this machine has.
        limit: u64,
    },
    /// A layer would need more cells than a digest tells apart.
    Cells {
        /// Cells it would need.
        needed: u64,
        /// Cells that are told apart.
        limit: u64,
    },
    /// Two filters, or a file and the parameters given, do not go together.
    Incompatible {
        /// The first field that differs.
        field: &'static str,
        /// Its value on the left (or in the file).
        expected: String,
        /// Its value on the right (or as given).
        got: String,
    },
    /// Some counter of the key is smaller than the number to remove.
    AbsentKey {
        /// The smallest counter of the key.
        estimate: u64,
        /// How many were to be removed.
        requested: u64,
    },
    /// The policy forbids the verb.
    Unsupported {
        /// What was tried.
        verb: &'static str,
        /// The policy that forbids it.
        policy: &'static str,
    },
    /// This operating system cannot do it.
    Platform {
        /// What was asked for.
        what: &'static str,
    },
    /// A mapped filter was opened for reading only.
    ReadOnly {
        /// Its file.
        path: PathBuf,
    },
    /// A mapped filter was closed.
    Closed {
        /// Its file.
        path: PathBuf,
    },
    /// `validate` found a broken invariant.
    Invariant {
        /// Which one, in words.
        invariant: String,
    },
    /// The bytes do not start with our magic.
    NotASnapshot,
    /// The format version is newer than this code.
    Version {
        /// The newest version this code reads.
        expected: u16,
        /// The version found.
        got: u16,
    },
    /// The header is that of another kind.
    Kind {
        /// The kind wanted.
        expected: &'static str,
        /// The kind found.
        got: String,
    },
    /// The bytes are fewer or more than the header says.
    Truncated {
        /// Bytes it should have.
        expected: u64,
        /// Bytes it has.
        got: u64,
    },
    /// The file was cut, or overwritten, while it was mapped.
    Cut {
        /// The file.
        path: PathBuf,
        /// Bytes it had.
        expected: u64,
        /// Bytes it has.
        got: u64,
    },
    /// Stored and computed checksum differ.
    Checksum {
        /// The checksum stored.
        expected: u32,
        /// The checksum of the bytes found.
        got: u32,
        /// Where the block starts.
        offset: u64,
    },
    /// The header passes its checksum but holds a value this code never writes.
    Field {
        /// The field's name.
        name: &'static str,
        /// The value found, as text.
        got: String,
    },
    /// The file is open for writing elsewhere, or its last writer never closed it.
    Unsealed,
    /// The file cannot be replaced: somebody writes to it.
    InUse {
        /// The file.
        path: PathBuf,
        /// Whether it is open as a shared filter; else another program is about to replace it.
        mapped: bool,
    },
    /// The operating system refused.
    Storage {
        /// The file concerned.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A parameter error.
    pub fn parameter(
        name: &'static str,
        got: impl fmt::Display,
        allowed: &'static str,
        hint: &'static str,
    ) -> Self {
        Error::Parameter { name, got: got.to_string(), allowed, hint }
    }

    /// An incompatibility in one field.
    pub fn incompatible(
        field: &'static str,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Self {
        Error::Incompatible { field, expected: expected.to_string(), got: got.to_string() }
    }

    /// A refusal of the operating system.
    pub fn storage(
        path: &std::path::Path,
        operation: &'static str,
        source: std::io::Error,
    ) -> Self {
        Error::Storage { path: path.to_owned(), operation, source }
    }
}

/// Refuses a parameter unless it is right.
pub(crate) fn require(
    right: bool,
    name: &'static str,
    got: impl fmt::Display,
    allowed: &'static str,
    hint: &'static str,
) -> Result<()> {
    if right { Ok(()) } else { Err(Error::parameter(name, got, allowed, hint)) }
}

/// Refuses to go on where two structures differ in a field.
pub(crate) fn require_same<T: PartialEq + fmt::Display>(
    field: &'static str,
    ours: T,
    theirs: T,
) -> Result<()> {
    if ours == theirs { Ok(()) } else { Err(Error::incompatible(field, ours, theirs)) }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parameter { name, got, allowed, .. } => {
                write!(f, "`{name}` must be {allowed}, got: {got}")
            }
            Error::Row { row, error } => write!(f, "row {row}: {error}"),
            Error::Capacity { needed, limit } => {
                let (needed, limit) = (in_units(*needed), in_units(*limit));
                write!(f, "the filter needs {needed} of memory, this machine has: {limit}")
            }
            Error::Cells { needed, limit } => {
                let (needed, limit) = (*needed as f64, *limit as f64);
                write!(
                    f,
                    "the next layer needs {needed:.1e} cells, a digest tells {limit:.1e} apart"
                )
            }
            Error::Incompatible { field, expected, got } => {
                write!(f, "`{field}` differs: {expected} here, {got} there")
            }
            Error::AbsentKey { estimate, requested } => {
                write!(f, "cannot remove {requested}: the key's smallest counter is {estimate}")
            }
            Error::Unsupported { verb, policy } => {
                write!(f, "policy `{policy}` has no `{verb}`")
            }
            Error::Platform { what } => {
                write!(f, "{what} needs Linux or macOS: this system has no flock")
            }
            Error::ReadOnly { path } => {
                write!(f, "opened for reading only: {}", path.display())
            }
            Error::Closed { path } => write!(f, "the filter was closed: {}", path.display()),
            Error::Invariant { invariant } => write!(f, "broken invariant: {invariant}"),
            Error::NotASnapshot => write!(f, "not a file of bloomtide"),
            Error::Version { expected, got } => {
                write!(f, "format version {got} is newer than this program reads: {expected}")
            }
            Error::Kind { expected, got } => {
                write!(f, "this is {}, not {}", noun(got), noun(expected))
            }
            Error::Truncated { expected, got } => {
                write!(f, "there should be {expected} bytes, there are: {got}")
            }
            Error::Cut { path, expected, got } => {
                let path = path.display();
                let what = if got < expected { "cut" } else { "overwritten" };
                write!(f, "{path} was {what} while it was mapped: of {expected} bytes it has {got}")
            }
            Error::Checksum { expected, got, offset } => write!(
                f,
                "checksum of the block at byte {offset} is {got:#010x}, stored: {expected:#010x}"
            ),
            Error::Field { name, got } => {
                write!(f, "header field `{name}` holds a value that is never written: {got}")
            }
            Error::Unsealed => write!(f, "the shared file was not closed, so it has no checksums"),
            Error::InUse { path, mapped } => {
                let by = if *mapped { "open for writing as a shared filter" } else { "locked" };
                write!(f, "cannot replace {}: it is {by}", path.display())
            }
            Error::Storage { path, operation, source } => {
                let reason = source.to_string();
                // The number is in a field of its own.
                let reason = reason.split(" (os error").next().unwrap_or_default();
                write!(f, "cannot {operation} {}: {reason}", path.display())
            }
        }
    }
}

/// Bytes as people read them.
fn in_units(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["bytes", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", UNITS[unit]) }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Storage { source, .. } => Some(source),
            _ => None,
        }
    }
}
