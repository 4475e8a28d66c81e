//! What a page is, by hand. That pages are what other writers wrote is tested from Python.

use super::*;

#[test]
fn a_block_is_unpacked_to_what_its_pieces_say() {
    // 26 bytes: four, a copy of them that overlaps itself, and one more.
    let block = [26, 3 << 2, b'a', b'b', b'c', b'd', (20 << 2) | 2, 4, 0, 0, b'z'];
    let mut out = vec![0; 26 + snappy::ROOM];
    assert_eq!(snappy::unpack(&block, &mut out), Some(26));
    assert_eq!(&out[..26], b"abcdabcdabcdabcdabcdabcdaz");
}

#[test]
fn a_block_that_is_cut_or_points_before_its_start_is_refused() {
    let block = [26, 3 << 2, b'a', b'b', b'c', b'd', (20 << 2) | 2, 4, 0, 0, b'z'];
    let mut out = vec![0; 26 + snappy::ROOM];
    for end in 0..block.len() {
        assert_eq!(snappy::unpack(&block[..end], &mut out), None, "{end}");
    }
    let mut other = block;
    other[7] = 5;
    assert_eq!(snappy::unpack(&other, &mut out), None);
    assert_eq!(snappy::unpack(&block, &mut out[1..]), None);
}

#[test]
fn numbers_of_a_few_bits_come_as_runs_and_packed() {
    // Three times 2, then eight numbers of two bits.
    let data = [6, 2, 3, 0b11_10_01_00, 0b00_01_10_11];
    let expected = [2, 2, 2, 0, 1, 2, 3, 3, 2, 1, 0];
    assert_eq!(hybrid::read(&data, 2, 11, 4).as_deref(), Some(&expected[..]));
    assert_eq!(hybrid::read(&data, 2, 11, 3), None);
    assert_eq!(hybrid::read(&data, 2, 12, 4), None);
    assert_eq!(hybrid::read(&data, 33, 1, 4), None);
    assert_eq!(hybrid::read(&[0, 2], 2, 1, 4), None);
}

#[test]
fn bytes_that_are_no_header_are_refused() {
    let form = Form { physical: Physical::Int64, codec: Codec::Plain, optional: false };
    for data in [&[][..], &[0xff; 40], &[0x15; 40], &[0x19, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        assert!(Pages::new(form, 1).next(data).is_err());
    }
    assert!(Pages::new(form, 0).next(&[]).is_ok_and(|page| page.is_none()));
}
