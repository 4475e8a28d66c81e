use super::super::form::{forged, is_refused_when_damaged, written};
use super::*;

const START: f64 = 1_700_000_000.0;

fn fading(top: Option<u64>) -> Fading {
    let fade = Fade::from_half_life(600.0, None, 0.0).unwrap();
    let plan = FadingPlan::for_goal(100, 0.001, fade, DecayStorage::Basic, top).unwrap();
    Fading::new(plan, 0).unwrap()
}

fn add(fading: &mut Fading, item: &str, count: u64, moment: Moment) -> Result<bool> {
    let hash = fading.hasher().bytes(item.as_bytes());
    fading.add(hash, item.as_bytes(), count, moment, START)
}

fn count(fading: &Fading, item: &str, moment: Moment) -> Result<f64> {
    fading.count(fading.hasher().bytes(item.as_bytes()), moment, START)
}

#[test]
fn a_count_halves_in_a_half_life() {
    let mut fading = fading(None);
    assert!(add(&mut fading, "a", 8, Moment::Now(START)).unwrap());
    assert!(!add(&mut fading, "a", 8, Moment::Now(START)).unwrap());
    for (halvings, left) in [(0.0, 16.0), (1.0, 8.0), (2.0, 4.0), (3.0, 2.0)] {
        let now = Moment::Now(START + halvings * 600.0);
        let counted = count(&fading, "a", now).unwrap();
        assert!((counted - left).abs() <= 1.0 / 256.0, "{counted} {left}");
    }
    // One in 600 s, fading as fast: that is 1/600 ln 2 a second, by epochs of 60 s.
    let hash = fading.hasher().bytes(b"a");
    let rate = fading.rate(hash, 3600.0, Moment::Now(START), START).unwrap();
    assert!((rate - 16.0 * (1.0 - 0.5f64.powf(0.1)) / 60.0 * 3600.0).abs() < 1e-6, "{rate}");
}

#[test]
fn the_list_and_the_filter_see_the_same_events() {
    let mut fading = fading(Some(2));
    for (item, n, at) in [("a", 9, 0.0), ("b", 5, 0.0), ("c", 1, 600.0), ("b", 2, 600.0)] {
        add(&mut fading, item, n, Moment::At(START + at)).unwrap();
    }
    let top = fading.top(None, Moment::Now(START + 600.0)).unwrap().unwrap();
    let named: Vec<_> = top.iter().map(|item| (item.key, item.count.round())).collect();
    assert_eq!(named.len(), 2);
    assert!(named.iter().any(|(key, _)| *key == Key::Bytes(b"b")));
    assert!(self::fading(None).top(None, Moment::Now(START)).is_none());
}

#[test]
fn a_clock_that_jumps_back_is_no_error_and_a_question_about_the_past_is_one() {
    let mut fading = fading(Some(2));
    add(&mut fading, "a", 4, Moment::Now(START)).unwrap();
    add(&mut fading, "a", 4, Moment::Now(START - 1e6)).unwrap();
    assert_eq!(count(&fading, "a", Moment::Now(START - 1e6)).unwrap(), 8.0);
    assert!(count(&fading, "a", Moment::At(START - 1e6)).is_err());
    assert!(fading.top(None, Moment::Now(START - 1e6)).unwrap().is_ok());
    let before = written(&fading);
    // Milliseconds for seconds.
    assert!(add(&mut fading, "a", 1, Moment::At(START * 1000.0)).is_err());
    assert!(written(&fading) == before);
}

#[test]
fn a_late_event_counts_what_is_left_of_it() {
    let mut fading = fading(None);
    add(&mut fading, "a", 8, Moment::At(START)).unwrap();
    add(&mut fading, "b", 8, Moment::At(START - 600.0)).unwrap();
    assert!((count(&fading, "b", Moment::At(START)).unwrap() - 4.0).abs() <= 1.0 / 256.0);
}

#[test]
fn bytes_give_the_same_counts_and_damage_is_refused() {
    for top in [None, Some(3)] {
        let mut fading = fading(top);
        for event in 0..50 {
            let item = (event % 7).to_string();
            add(&mut fading, &item, 1, Moment::Now(START + f64::from(event) * 40.0)).unwrap();
        }
        let bytes = written(&fading);
        let mut read = Fading::read(&bytes).unwrap();
        assert!(written(&read) == bytes);
        for event in 0..50 {
            let moment = Moment::Now(START + 2000.0 + f64::from(event) * 70.0);
            for it in [&mut fading, &mut read] {
                add(it, &(event % 5).to_string(), 1, moment).unwrap();
            }
        }
        assert!(written(&read) == written(&fading));
        assert_eq!(read.items(), fading.items());
    }
    let mut small = fading(Some(1));
    add(&mut small, "a", 1, Moment::Now(START)).unwrap();
    let bytes = written(&small);
    is_refused_when_damaged(&bytes, Fading::read);
    // The length of the filter says where the list begins.
    assert!(Fading::read(&forged(&bytes, |body| body[36] ^= 1)).is_err());
}
