//! A small text, for SET and GET: programs use them as flags, and tests to make keys of another kind.

use crate::structure::{Structure, Summary};
use bloomtide_core::Result;
use std::io::{self, Write};

/// A text.
#[derive(Debug, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

impl Structure for Text {
    fn kind(&self) -> &'static str {
        "text"
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn summary(&self) -> Summary {
        Summary { items: 1.0, ..Summary::default() }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.0)
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Text(bytes.to_vec()))
    }
}
