//! Any bytes as a log of any format, cut into chunks anywhere: the same records as in one piece.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::logs::{Field, FieldMap, Format, LogReader, Pattern, Record, Report};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    format: u8,
    cuts: Vec<u8>,
    text: Vec<u8>,
}

type Row = (Option<u64>, Vec<Option<Vec<u8>>>);

fn row(record: &Record<'_>) -> Row {
    let fields = [Field::Host, Field::Ip, Field::Path, Field::Status, Field::Referer];
    let values = fields.map(|field| record.get(field).map(<[u8]>::to_vec)).to_vec();
    (record.time.map(f64::to_bits), values)
}

fn read(format: Option<Format>, chunks: &[&[u8]]) -> (Vec<Row>, Report) {
    let mut reader = LogReader::new(format);
    let mut rows = Vec::new();
    for chunk in chunks {
        reader.feed(chunk, |record| rows.push(row(record)));
    }
    reader.finish(|record| rows.push(row(record)));
    (rows, reader.report().clone())
}

fn written(text: &[u8]) -> Option<Pattern> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    Pattern::parse(str::from_utf8(line).ok()?).ok().flatten()
}

fuzz_target!(|input: Input| {
    let format = match input.format % 5 {
        0 => None,
        1 => FieldMap::parse("path=a.b|c,time=t,status=s").ok().map(Format::Json),
        // As the first line writes it down, if it does.
        2 => written(&input.text).map(Format::Pattern),
        _ => Some(Format::GUESSES[usize::from(input.format / 5) % 8].clone()),
    };
    let mut chunks = Vec::new();
    let mut rest = input.text.as_slice();
    for cut in &input.cuts {
        let (chunk, next) = rest.split_at(usize::from(*cut).min(rest.len()));
        chunks.push(chunk);
        rest = next;
    }
    chunks.push(rest);
    let whole = read(format.clone(), &[&input.text]);
    assert_eq!(read(format, &chunks), whole);

    let (rows, report) = whole;
    let ends = input.text.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!(report.lines == ends || report.lines == ends + 1);
    assert_eq!(report.parsed, rows.len() as u64);
    assert!(report.parsed + report.skipped <= report.lines);
    for (time, _) in rows {
        let time = time.map(f64::from_bits);
        assert!(time.is_none_or(|time| (0.0..253_402_300_800.0).contains(&time)));
    }
});
