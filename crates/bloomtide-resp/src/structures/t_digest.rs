//! The merging t-digest: quantiles and ranks of a stream of numbers, sharpest at both ends.
//!
//! Paper    Dunning & Ertl 2019, "Computing extremely accurate quantiles using t-digests": the merging variant under
//!          the scale function k2.
//! Idea     Centroids, each the mean of a run of neighbours. One at the quantile q may hold a share of all values
//!          that is proportional to q (1 - q), so those at the ends hold one value each. Values wait in a buffer; once it
//!          is full, buffer and centroids are sorted together, and neighbours that fit under the limit are merged.
//! Prefer   Nothing here: no other structure of this product knows an order.
//!
//! # Invariants
//! I1  Centroids are sorted, and centroids and buffer together are at most `capacity` many.
//! I2  Every mean lies between `min` and `max`, which were values themselves; all of them are finite.
//! I3  What was added in the same order has the same bytes: a question folds the buffer into a copy.
//!
//! # Errors in answers
//! None as long as no two values were merged, which a compression above 3 n excludes for n values.

use crate::fields::{put, take};
use crate::structure::{Structure, Summary};
use bloomtide_core::history::varint::Reader;
use bloomtide_core::{Error, Result};
use std::borrow::Cow;
use std::io::{self, Write};

/// The largest compression: beyond it the places cannot be numbered by 31 bits, as RedisBloom does.
const MOST_COMPRESSION: u64 = (i32::MAX as u64 - 10) / 6;
/// Numbers in front of the centroids.
const HEAD: u64 = 6;

/// The mean of a run of neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Centroid {
    mean: f64,
    weight: u64,
}

impl Centroid {
    /// Takes another one in, without leaving what lies between both.
    fn absorb(&mut self, other: Centroid) {
        let share = other.weight as f64 / (self.weight + other.weight) as f64;
        self.mean = between(self.mean, other.mean, share);
        self.weight += other.weight;
    }
}

/// The point at a share of the way from `a` to `b`, never outside of both. No step of it overflows.
fn between(a: f64, b: f64, share: f64) -> f64 {
    let point = a * (1.0 - share) + b * share;
    point.clamp(a.min(b), a.max(b))
}

/// A t-digest.
#[derive(Clone, Debug)]
pub struct TDigest {
    compression: u64,
    centroids: Vec<Centroid>,
    buffer: Vec<Centroid>,
    /// The smallest value; infinite if there is none.
    pub min: f64,
    /// The largest value; infinite below zero if there is none.
    pub max: f64,
    merged: u64,
    buffered: u64,
    compressions: u64,
}

/// A t-digest's state in numbers.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// As it was made.
    pub compression: u64,
    /// Places for centroids.
    pub capacity: u64,
    /// Centroids, and values that wait.
    pub nodes: (u64, u64),
    /// The values in both.
    pub weights: (u64, u64),
    /// How often the buffer was merged.
    pub compressions: u64,
}

impl TDigest {
    /// An empty digest; None if the compression is 0 or too large.
    pub fn new(compression: u64) -> Option<Self> {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        let (centroids, buffer) = (Vec::new(), Vec::new());
        let (merged, buffered, compressions) = (0, 0, 0);
        let this =
            TDigest { compression, centroids, buffer, min, max, merged, buffered, compressions };
        (1..=MOST_COMPRESSION).contains(&compression).then_some(this)
    }

    /// Memory of a digest of that compression, however full it is.
    pub fn bytes_of(compression: u64) -> u64 {
        let places = compression.saturating_mul(6).saturating_add(10);
        places.saturating_mul(size_of::<Centroid>() as u64)
    }

    /// As it was made.
    pub fn compression(&self) -> u64 {
        self.compression
    }

    /// Values that were added.
    pub fn values(&self) -> u64 {
        self.merged + self.buffered
    }

    /// Its state in numbers.
    pub fn state(&self) -> State {
        State {
            compression: self.compression,
            capacity: self.compression * 6 + 10,
            nodes: (self.centroids.len() as u64, self.buffer.len() as u64),
            weights: (self.merged, self.buffered),
            compressions: self.compressions,
        }
    }

    /// Whether so many values more can be counted.
    pub fn has_room(&self, values: u64) -> bool {
        self.values().checked_add(values).is_some_and(|all| i64::try_from(all).is_ok())
    }

    /// Adds a finite value; the caller has asked `has_room`.
    pub fn add(&mut self, value: f64) {
        self.put(Centroid { mean: value, weight: 1 });
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }

    /// Adds all values of another digest; the caller has asked `has_room`.
    pub fn merge(&mut self, other: &TDigest) {
        let other = other.folded();
        other.centroids.iter().for_each(|centroid| self.put(*centroid));
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }

    fn put(&mut self, centroid: Centroid) {
        if (self.centroids.len() + self.buffer.len()) as u64 + 1 >= self.state().capacity {
            self.fold();
        }
        self.buffered += centroid.weight;
        self.buffer.push(centroid);
    }

    /// Merges the buffer into the centroids.
    fn fold(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        self.merged += std::mem::take(&mut self.buffered);
        self.compressions += 1;
        let all = &mut self.centroids;
        all.append(&mut self.buffer);
        all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        // k2 with its normalizer, such that there are at most `compression` centroids.
        let (n, compression) = (self.merged as f64, self.compression as f64);
        let limit = n * (4.0 * (n / compression).max(1.0).ln() + 24.0) / compression;
        let (mut last, mut before) = (0, 0u64);
        for next in 1..all.len() {
            let (current, other) = (all[last], all[next]);
            let weight = current.weight + other.weight;
            let [q0, q1] = [before, before + weight].map(|at| at as f64 / n);
            let most = limit * (q0 * (1.0 - q0)).min(q1 * (1.0 - q1));
            if weight as f64 <= most {
                all[last].absorb(other);
            } else {
                before += current.weight;
                last += 1;
                all[last] = other;
            }
        }
        all.truncate(last + 1);
    }

    /// The same with an empty buffer.
    fn folded(&self) -> Cow<'_, TDigest> {
        if self.buffer.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut copy = self.clone();
        copy.fold();
        Cow::Owned(copy)
    }

    /// A digest that questions are asked.
    pub fn view(&self) -> View<'_> {
        View(self.folded())
    }
}

/// A digest whose buffer is empty.
///
/// Its answers are read off one line through points of (number of values below, value). A single value has two points,
/// at both ends of its place; the mean of several has one, in their middle. The smallest and the largest value are singles.
#[derive(Debug)]
pub struct View<'a>(Cow<'a, TDigest>);

impl View<'_> {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let TDigest { centroids, min, max, merged, .. } = &*self.0;
        let (n, mut below) = (*merged as f64, 0u64);
        let ends = |there: bool, points: [(f64, f64); 2]| points.into_iter().filter(move |_| there);
        let any = !centroids.is_empty();
        let middle = centroids.iter().flat_map(move |Centroid { mean, weight }| {
            let (from, half) = (below as f64, *weight as f64 / 2.0);
            below += weight;
            let single = *weight == 1;
            let first = if single { from } else { from + half };
            [(first, *mean), (from + 1.0, *mean)].into_iter().take(1 + usize::from(single))
        });
        let first = ends(any, [(0.0, *min), (1.0, *min)]);
        let last = ends(any, [(n - 1.0, *max), (n, *max)]);
        // A first or last centroid that is a single has its two points from the middle too, which changes no line.
        first.chain(middle).chain(last)
    }

    /// The value that so many lie below; NaN if there is none.
    pub fn value_at(&self, index: f64) -> f64 {
        let mut left = (0.0, f64::NAN);
        for right in self.points() {
            if right.0 > index {
                let share = (index - left.0) / (right.0 - left.0);
                return between(left.1, right.1, share);
            }
            left = right;
        }
        left.1
    }

    /// The value at a quantile of 0 to 1; NaN if there is none.
    pub fn quantile(&self, q: f64) -> f64 {
        self.value_at(q * self.0.merged as f64)
    }

    /// How many values lie below, those that are equal by half; NaN if there is none.
    pub fn below(&self, value: f64) -> f64 {
        let TDigest { min, max, merged, .. } = *self.0;
        if merged == 0 {
            return f64::NAN;
        }
        if value < min || value > max {
            return if value < min { 0.0 } else { merged as f64 };
        }
        let mut left = (0.0, f64::NEG_INFINITY);
        let mut equal: Option<(f64, f64)> = None;
        for right in self.points() {
            if right.1 == value {
                equal = Some((equal.map_or(right.0, |equal| equal.0), right.0));
            } else if right.1 > value {
                // Halves, because the whole distance may not be a number.
                let share = (value / 2.0 - left.1 / 2.0) / (right.1 / 2.0 - left.1 / 2.0);
                return equal.map_or_else(
                    || between(left.0, right.0, share),
                    |(first, last)| (first + last) / 2.0,
                );
            }
            left = right;
        }
        equal.map_or(merged as f64, |(first, last)| (first + last) / 2.0)
    }

    /// The mean of the values between two quantiles, in whole values outward; NaN if there is none.
    pub fn trimmed_mean(&self, low: f64, high: f64) -> f64 {
        let n = self.0.merged as f64;
        let (low, high) = ((n * low).floor(), (n * high).ceil());
        let (mut mean, mut weight, mut from) = (f64::NAN, 0.0, 0.0);
        for centroid in &self.0.centroids {
            let to = from + centroid.weight as f64;
            let inside = to.min(high) - f64::max(from, low);
            if inside > 0.0 {
                weight += inside;
                let before = if mean.is_nan() { centroid.mean } else { mean };
                mean = between(before, centroid.mean, inside / weight);
            }
            from = to;
        }
        mean
    }
}

impl Structure for TDigest {
    fn kind(&self) -> &'static str {
        "t_digest"
    }

    fn bytes(&self) -> u64 {
        TDigest::bytes_of(self.compression)
    }

    fn summary(&self) -> Summary {
        let places = self.centroids.len() + self.buffer.len();
        let fill = places as f64 / self.state().capacity as f64;
        Summary { items: self.values() as f64, fill, error: 0.0 }
    }

    /// Six numbers; then mean and weight of each centroid, and of each that waits.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let State { compression, nodes, compressions, .. } = self.state();
        let [min, max] = [self.min, self.max].map(f64::to_bits);
        put(out, &[compression, compressions, min, max, nodes.0, nodes.1])?;
        let all = self.centroids.iter().chain(&self.buffer);
        all.into_iter().try_for_each(|it| put(out, &[it.mean.to_bits(), it.weight]))
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |got: String| Error::Field { name: "t_digest", got };
        let mut from = Reader::new(bytes, "t_digest");
        let head: [u64; HEAD as usize] = take(&mut from)?;
        let [compression, compressions, min, max, merged, buffered] = head;
        let empty = TDigest::new(compression);
        let mut this = empty.ok_or_else(|| wrong(format!("compression {compression}")))?;
        let most = this.state().capacity;
        if merged.checked_add(buffered).is_none_or(|count| count > most) {
            return Err(wrong(format!("{merged} and {buffered} of {most} places")));
        }
        let (lowest, highest) = (this.min.to_bits(), this.max.to_bits());
        for place in 0..merged + buffered {
            let [mean, weight] = take(&mut from)?;
            let centroid = Centroid { mean: f64::from_bits(mean), weight };
            let within =
                f64::from_bits(min) <= centroid.mean && centroid.mean <= f64::from_bits(max);
            let ordered = place >= merged
                || this.centroids.last().is_none_or(|it| it.mean.total_cmp(&centroid.mean).is_le());
            if !within || !ordered || weight == 0 || !this.has_room(weight) {
                return Err(wrong(format!("place {place} is {centroid:?}")));
            }
            if place < merged {
                this.merged += weight;
                this.centroids.push(centroid);
            } else {
                this.buffered += weight;
                this.buffer.push(centroid);
            }
        }
        from.end()?;
        (this.min, this.max) = (f64::from_bits(min), f64::from_bits(max));
        let finite = this.min.is_finite() && this.max.is_finite();
        let nothing = (min, max) == (lowest, highest);
        if if this.values() == 0 { !nothing } else { !finite } {
            return Err(wrong(format!("{} to {}", this.min, this.max)));
        }
        this.compressions = compressions;
        Ok(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(compression: u64, values: impl IntoIterator<Item = f64>) -> TDigest {
        let mut digest = TDigest::new(compression).expect("a compression");
        values.into_iter().for_each(|value| digest.add(value));
        digest
    }

    #[test]
    fn few_values_are_known_exactly() {
        let digest = of(1000, [5, 3, 1, 4, 2, 3, 5, 4, 5, 4, 5, 4, 5, 3, 2].map(f64::from));
        let view = digest.view();
        let sorted = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5].map(f64::from);
        for (place, value) in sorted.iter().enumerate() {
            assert_eq!(view.value_at(place as f64), *value);
            assert_eq!(view.value_at(place as f64 + 0.99), *value);
        }
        for value in 0..7 {
            let value = f64::from(value);
            let below = sorted.iter().filter(|it| **it < value).count() as f64;
            let equal = sorted.iter().filter(|it| **it == value).count() as f64;
            assert_eq!(view.below(value), below + equal / 2.0, "{value}");
        }
        assert_eq!(view.below(2.5), 3.0);
        let mean = sorted.iter().sum::<f64>() / 15.0;
        assert!((view.trimmed_mean(0.0, 1.0) - mean).abs() < 1e-12);
        assert!(of(100, []).view().quantile(0.5).is_nan());
        assert!(of(100, []).view().below(0.5).is_nan());
        assert_eq!(of(100, [7.0]).view().quantile(0.5), 7.0);
        assert_eq!(of(100, [7.0]).view().below(7.0), 0.5);
    }

    #[test]
    fn many_values_are_known_best_at_the_ends() {
        let n = 100_000u64;
        // In an order that is not theirs.
        let digest = of(100, (0..n).map(|i| (i * 7919 % n) as f64));
        let view = digest.view();
        assert!(view.0.centroids.len() <= 100, "{}", view.0.centroids.len());
        assert_eq!(view.0.centroids.iter().map(|it| it.weight).sum::<u64>(), n);
        for (q, allowed) in
            [(0.0001, 5e-5), (0.01, 1e-3), (0.5, 0.01), (0.99, 1e-3), (0.9999, 5e-5)]
        {
            let got = view.quantile(q);
            assert!((got / n as f64 - q).abs() <= allowed, "{q}: {got}");
            assert!((view.below(q * n as f64) / n as f64 - q).abs() <= allowed, "{q}");
        }
        assert_eq!((view.quantile(0.0), view.quantile(1.0)), (0.0, (n - 1) as f64));
        assert!((view.trimmed_mean(0.1, 0.9) - n as f64 / 2.0).abs() < n as f64 / 1000.0);
        let mut last = f64::NEG_INFINITY;
        for step in 0..=1000 {
            let value = view.quantile(f64::from(step) / 1000.0);
            assert!(value >= last, "{step}");
            last = value;
        }
    }

    #[test]
    fn merged_digests_know_all_values_and_both_ends() {
        let whole = of(200, (0..20_000).map(f64::from));
        let mut merged = TDigest::new(200).expect("a compression");
        for part in 0..4 {
            merged.merge(&of(100, (0..5_000).map(|i| f64::from(i * 4 + part))));
        }
        assert_eq!(merged.values(), whole.values());
        assert_eq!((merged.min, merged.max), (0.0, 19_999.0));
        for q in [0.001, 0.1, 0.5, 0.9, 0.999] {
            assert!((merged.view().quantile(q) / 20_000.0 - q).abs() < 0.01, "{q}");
        }
    }

    #[test]
    fn no_value_is_too_large() {
        let digest = of(5, (0..500).map(|i| if i % 2 == 0 { f64::MAX } else { f64::MIN }));
        let view = digest.view();
        for step in 0..=100 {
            assert!(view.quantile(f64::from(step) / 100.0).is_finite());
        }
        for value in [f64::MIN, -1e300, -1.0, 0.0, 1.0, 1e300, f64::MAX] {
            assert!((0.0..=500.0).contains(&view.below(value)), "{value}");
        }
        assert!(view.trimmed_mean(0.2, 0.8).is_finite());
    }

    #[test]
    fn every_order_of_adds_and_questions_leaves_the_same_bytes() {
        let written =
            |digest: &TDigest| crate::structure::write(digest, Vec::new()).expect("memory");
        let (mut asked, mut silent) = (of(10, []), of(10, []));
        for value in 0..1000 {
            asked.add(f64::from(value));
            asked.view().quantile(0.5);
            silent.add(f64::from(value));
        }
        assert_eq!(written(&asked), written(&silent));
        let mut again = TDigest::read(&written(&asked)).expect("its own");
        asked.add(1.5);
        again.add(1.5);
        assert_eq!(written(&asked), written(&again));
    }
}
