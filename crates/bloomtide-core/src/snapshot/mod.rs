//! Filters as bytes: one format for byte strings, files and shared mapped files.
//!
//! `docs/formats/snapshot.md` is the specification:
//!
//! ```text
//! common header | state, lengths | parameters | section table | zeros | header checksum: a multiple of 64
//! section 0 | section 1 | ...      each a whole number of 64-byte lines: the cells
//! checksum table | end             a running CRC-32C after every 64 KiB block of every section
//! ```
//!
//! Rules
//! R1  Nothing is believed before its checksum was seen; nothing is allocated that the real length
//!     of the input does not justify.
//! R2  A value that passed its checksum still goes through the same checks as a constructor's.
//! R3  The state word is outside the header checksum, so that it can change in one atomic store:
//!     SEALED (checksums valid) or LIVE (a writer has it mapped, or died). Any other value is damage.

mod checksums;
mod count;
mod decaying;
mod file;
mod header;
mod hot;
mod lock;
mod read;
mod record;
mod scalable;
mod shared;
mod unfinished;
mod url;
mod write;

pub use count::ShapeRecord;
pub use file::{Disk, DurableWrite, RealDisk, replace};
pub use header::{Kind, VERSION};
pub use lock::Replacing;
pub use read::{Loaded, load, read};
pub use shared::{Access, SharedFile};
pub use write::{Frozen, Snapshot, encoded_len, save, to_bytes, write_to};
