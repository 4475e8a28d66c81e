//! What a page is, by hand. That pages are what other writers wrote is tested from Python.

use super::*;
use crate::history::varint::put_signed;

#[test]
fn bytes_that_are_no_header_are_refused() {
    let form = Form { physical: Physical::Int64, codec: Codec::Plain, optional: false };
    for data in [&[][..], &[0xff; 40], &[0x15; 40], &[0x19, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        assert!(Pages::new(form, 1).next(data).is_err());
    }
    assert!(Pages::new(form, 0).next(&[]).is_ok_and(|page| page.is_none()));
}

/// A page of plain whole numbers that claims `unpacked` bytes and holds `block`.
fn page(unpacked: u32, block: &[u8]) -> Vec<u8> {
    let mut page = vec![0x15, 0, 0x15];
    put_signed(unpacked.into(), &mut page);
    page.push(0x15);
    put_signed(block.len() as i64, &mut page);
    page.extend([0x2c, 0x15]);
    put_signed((unpacked / 8).into(), &mut page);
    page.extend([0x15, 0, 0x15, 6, 0x15, 6, 0, 0]);
    page.extend(block);
    page
}

#[test]
fn a_block_that_lies_about_its_length_is_refused_before_memory_is_reserved() {
    let form = Form { physical: Physical::Int64, codec: Codec::Snappy, optional: false };
    let keys = |data: &[u8], values| Pages::new(form, values).next(data);
    // Eight bytes, and a copy of them.
    let block = [16, 7 << 2, 1, 2, 3, 4, 5, 6, 7, 8, (7 << 2) | 2, 8, 0];
    assert!(keys(&page(16, &block), 2).is_ok_and(|page| page.is_some_and(|page| page.len() == 2)));
    for end in 0..block.len() {
        assert!(keys(&page(16, &block[..end]), 2).is_err(), "{end}");
    }
    assert!(keys(&page(24, &block), 3).is_err());
    let mut other = block;
    other[11] = 9;
    assert!(keys(&page(16, &other), 2).is_err());
    let huge = [0x80, 0x80, 0x80, 0x80, 0x04, 0];
    let refused = keys(&page(1 << 30, &huge), 1 << 27).unwrap_err().to_string();
    assert!(refused.contains("size"), "{refused}");
}
