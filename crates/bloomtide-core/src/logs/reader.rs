//! A log from its first byte to its last: chunks in, records out, the rest counted.
//!
//! Without a format the first [`LOOK`] lines are held back, and the format that reads most of them is
//! taken. If none reads any, they are counted as unknown and the next lines are looked at.

use super::lines::{Lines, MAX_LINE};
use super::parser::{Parsed, Parser};
use super::{Format, Record, bare, w3c};

/// Lines by which a format is found.
const LOOK: usize = 16;

/// Lines that could not be read and are kept to be shown.
const KEPT: usize = 5;

/// Bytes of such a line that are kept.
const SHOWN: usize = 200;

/// A time further than this from the latest one is a mistake: taking it would let all else decay.
const CENTURY: f64 = 100.0 * 365.25 * 86_400.0;

/// Why a line was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is in none of these formats.
    Format(Vec<&'static str>),
    /// It has more than [`MAX_LINE`] bytes.
    TooLong,
    /// Its time is more than a hundred years away from the lines before.
    Time,
}

/// A line that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub number: u64,
    /// How it starts.
    pub text: Vec<u8>,
    /// Why.
    pub reason: Reason,
}

/// What became of the lines so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All lines, the empty ones and the directives too.
    pub lines: u64,
    /// Those that made a record.
    pub parsed: u64,
    /// Those that were not read.
    pub skipped: u64,
    /// The first of them.
    pub bad: Vec<BadLine>,
}

/// Reads one log.
#[derive(Debug)]
pub struct LogReader {
    lines: Lines,
    log: Log,
}

/// All but the bytes of the begun line.
#[derive(Debug)]
struct Log {
    parser: Option<Parser>,
    /// Number and text of the lines by which the format is to be found.
    held: Vec<(u64, Vec<u8>)>,
    latest: Option<f64>,
    report: Report,
}

impl LogReader {
    /// Of the format given, or of the one that the first lines have.
    pub fn new(format: Option<Format>) -> Self {
        let log = Log {
            parser: format.map(Parser::new),
            held: Vec::new(),
            latest: None,
            report: Report::default(),
        };
        LogReader { lines: Lines::default(), log }
    }

    /// Takes the next bytes. `each` gets a record for each line that was read.
    pub fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(&Record<'_>)) {
        self.lines.feed(chunk, |line| self.log.take(line, &mut each));
    }

    /// Finds the format by the lines held back so far, for who does not want to wait for more.
    pub fn settle(&mut self, mut each: impl FnMut(&Record<'_>)) {
        self.log.settle(&mut each);
    }

    /// The bytes have ended: the last line may lack its line end. Another log of the same format may
    /// follow, as after a rotation; its lines are numbered on.
    pub fn finish(&mut self, mut each: impl FnMut(&Record<'_>)) {
        self.lines.finish(|line| self.log.take(line, &mut each));
        self.log.settle(&mut each);
    }

    /// The format, once it is known.
    pub fn format(&self) -> Option<&Format> {
        self.log.parser.as_ref().map(Parser::format)
    }

    /// The latest time of a line so far.
    pub fn latest(&self) -> Option<f64> {
        self.log.latest
    }

    /// What became of the lines so far.
    pub fn report(&self) -> &Report {
        &self.log.report
    }
}

impl Log {
    #[inline]
    fn take(&mut self, line: &[u8], each: &mut impl FnMut(&Record<'_>)) {
        self.report.lines += 1;
        let number = self.report.lines;
        if self.parser.is_some() {
            self.read(number, line, each);
        } else if !line.is_empty() {
            // One byte too many is enough to be refused.
            self.held.push((number, line[..line.len().min(MAX_LINE + 1)].to_vec()));
            if self.held.len() == LOOK {
                self.settle(each);
            }
        }
    }

    /// A line in the known format.
    #[inline]
    fn read(&mut self, number: u64, line: &[u8], each: &mut impl FnMut(&Record<'_>)) {
        let Some(parser) = &mut self.parser else { return };
        if line.is_empty() {
            return;
        }
        if line.len() > MAX_LINE {
            return self.refuse(number, line, Reason::TooLong);
        }
        match parser.parse(line) {
            Parsed::Record(record) => {
                if let Some(time) = record.time {
                    match self.latest {
                        Some(latest) if (time - latest).abs() > CENTURY => {
                            return self.refuse(number, line, Reason::Time);
                        }
                        Some(latest) if time <= latest => {}
                        _ => self.latest = Some(time),
                    }
                }
                self.report.parsed += 1;
                each(&record);
            }
            Parsed::Remark => {}
            Parsed::Unknown => {
                let tried = vec![parser.format().name()];
                self.refuse(number, line, Reason::Format(tried));
            }
        }
    }

    /// Chooses the format that reads most of the lines held back, and reads them.
    fn settle(&mut self, each: &mut impl FnMut(&Record<'_>)) {
        if self.parser.is_some() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let scores = Format::GUESSES.map(|format| score(format, &held));
        let best = scores.iter().copied().max().unwrap_or(0);
        let choice = scores.iter().position(|score| best > 0 && *score == best);
        self.parser = choice.map(|at| Parser::new(Format::GUESSES[at].clone()));
        for (number, line) in held {
            if self.parser.is_some() {
                self.read(number, &line, each);
            } else if line.len() > MAX_LINE {
                self.refuse(number, &line, Reason::TooLong);
            } else {
                let tried = Format::GUESSES.iter().map(Format::name).collect();
                self.refuse(number, &line, Reason::Format(tried));
            }
        }
    }

    #[cold]
    fn refuse(&mut self, number: u64, line: &[u8], reason: Reason) {
        self.report.skipped += 1;
        if self.report.bad.len() < KEPT {
            let text = line[..line.len().min(SHOWN)].to_vec();
            self.report.bad.push(BadLine { number, text, reason });
        }
    }
}

/// How many of the lines the format reads. A line `#Fields:` settles it: the data may be far below.
fn score(format: Format, held: &[(u64, Vec<u8>)]) -> usize {
    if format == Format::W3c && held.iter().any(|(_, line)| w3c::names_fields(line)) {
        return usize::MAX;
    }
    let guessed_bare = format == Format::Bare;
    let mut parser = Parser::new(format);
    held.iter()
        .filter(|(_, line)| line.len() <= MAX_LINE)
        .filter(|(_, line)| !guessed_bare || bare::looks_like_a_page(line))
        .filter(|(_, line)| matches!(parser.parse(line), Parsed::Record(_)))
        .count()
}
