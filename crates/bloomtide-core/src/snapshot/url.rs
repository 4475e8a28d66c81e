//! URL filters as snapshots: X and the layers there are, each with its record.
//!
//! ```text
//! parameters  capacity | error rate | layers at most | how segments are bound | how layers are sized
//!             | expected sizes that were given, and these | records of X and of each layer (64 bytes)
//! sections    X, then the layers from the root on
//! ```

use super::header::{Header, Kind, u64_at};
use super::read::{Build, Loaded, require_sections};
use super::record::{RECORD, Record};
use super::write::{Frozen, Section, Snapshot};
use crate::error::{Error, Result};
use crate::filters::{Bind, BloomFilter, LayerSizes, UrlFilter, UrlPlan};

/// Bytes before the expected sizes.
const GOALS: usize = 6 * 8;

impl Snapshot for UrlFilter {
    fn freeze(&self) -> Result<Frozen<'_>> {
        let UrlPlan { capacity, error_rate, max_layers, bind, layer_sizes } = self.plan();
        let (sizing, sizes): (u64, &[u64]) = match layer_sizes {
            LayerSizes::Uniform => (1, &[]),
            LayerSizes::Expected(sizes) => (2, sizes),
        };
        let bind = Bind::ALL.iter().position(|each| each == bind).map_or(0, |at| at as u64 + 1);
        let (layers, count) = (u64::from(*max_layers), sizes.len() as u64);
        let goals = [*capacity, error_rate.to_bits(), layers, bind, sizing, count];
        let words = goals.iter().chain(sizes);
        let mut parameters: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        for part in self.parts() {
            parameters.extend(Record::of_bloom(part.plan(), part.hasher()).encode());
        }
        let sections = self.parts().map(|part| Section::Cells(part.words())).collect();
        Ok(Frozen { kind: Kind::Url, parameters, sections })
    }
}

/// What the parameters promise of the sections.
pub(super) fn promised(header: &Header) -> Result<Build> {
    let bytes = &header.parameters;
    let wrong = |name, got: String| Error::Field { name, got };
    let cut = || wrong("parameters", format!("{} bytes", bytes.len()));
    let (goals, rest) = bytes.split_at_checked(GOALS).ok_or_else(cut)?;
    let word = |i: usize| u64_at(goals, 8 * i);
    let count = usize::try_from(word(5)).ok().and_then(|count| count.checked_mul(8));
    let (sizes, records) = count.and_then(|len| rest.split_at_checked(len)).ok_or_else(cut)?;
    let sizes: Vec<u64> = sizes.chunks_exact(8).map(|size| u64_at(size, 0)).collect();
    let bind = word(3).checked_sub(1).and_then(|at| Bind::ALL.get(usize::try_from(at).ok()?));
    let layer_sizes = match word(4) {
        1 if sizes.is_empty() => LayerSizes::Uniform,
        2 => LayerSizes::Expected(sizes),
        other => return Err(wrong("layer_sizes", other.to_string())),
    };
    let plan = UrlPlan {
        capacity: word(0),
        error_rate: f64::from_bits(word(1)),
        max_layers: u32::try_from(word(2)).unwrap_or(u32::MAX),
        bind: *bind.ok_or_else(|| wrong("bind", word(3).to_string()))?,
        layer_sizes,
    };
    if records.is_empty() || !records.len().is_multiple_of(RECORD) {
        return Err(cut());
    }
    let parts = records.chunks_exact(RECORD).map(|record| Record::decode(record)?.bloom());
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let expected: Vec<u64> = parts.iter().map(|(plan, _)| plan.bytes()).collect();
    require_sections(header, &expected)?;
    let plan = plan.checked()?;
    Ok(Box::new(move |sections| {
        let filters = parts.into_iter().zip(sections);
        let mut filters =
            filters.map(|((plan, hasher), words)| BloomFilter::over(plan, hasher, words, None));
        let missing = || Error::Field { name: "sections", got: "too few".to_owned() };
        let whole = filters.next().ok_or_else(missing)?;
        let filter = UrlFilter::over(plan, whole, filters.collect())?;
        Ok(Loaded::Url(Box::new(filter)))
    }))
}
