//! `Digests`: keys hashed once, to be asked for in many segments.

use crate::errors::OrRaise;
use crate::keys::{self, Options, Part, Verb, to_numpy};
use crate::python::*;
use crate::structure::by_words;
use crate::words::Words;
use bloomtide_core::history::{Mark, mark_rows};
use bloomtide_core::positions::reduce;
use bloomtide_core::{Crew, Hasher};
use pyo3::types::{PyTuple, PyType};

/// Keys as a history knows them. Rows without a key have none, if they were skipped.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct Digests {
    marks: Vec<Option<Mark>>,
    hasher: Hasher,
}

impl Digests {
    /// The marks of a batch of keys, of whatever kind they are.
    pub(crate) fn of(keys: &Object<'_>, hasher: Hasher, options: Options) -> PyResult<Self> {
        let mark = |part: Part<'_>, out: &mut [Option<Mark>], _: &mut Crew| {
            mark_rows(part.keys, &hasher, out);
            Ok(())
        };
        let marks = keys::answers(&Verb::new(&hasher, &mark), keys, options)?.into_values();
        Ok(Digests { marks, hasher })
    }

    /// The digests that were given, or those of keys, for segments of that hash.
    pub(super) fn given_or_made<'py>(
        keys: &Object<'py>,
        hasher: &Hasher,
        nulls: &str,
    ) -> PyResult<Bound<'py, Digests>> {
        let py = keys.py();
        let options = Options::parse(py, nulls)?;
        let digests = match keys.cast::<Digests>() {
            Ok(given) => given.clone(),
            Err(_) => Bound::new(py, Digests::of(keys, *hasher, options)?)?,
        };
        digests.get().require(py, hasher)?;
        Ok(digests)
    }

    pub(crate) fn marks(&self) -> &[Option<Mark>] {
        &self.marks
    }

    /// Refuses digests of another hash function or seed.
    pub(crate) fn require(&self, py: Python<'_>, hasher: &Hasher) -> PyResult<()> {
        hasher.require_same(&self.hasher).or_raise(py)
    }
}

by_words!(
    Digests,
    #[new]
    py_new,
    "(keys, *, hash='xxh3', seed=0, secret=None, nulls='refuse', threads=1)",
    |_cls, words| {
        let threads = words.word("threads")?.map_or(Ok(1), |value| Options::threads(&value))?;
        let options = Options::parse(words.py, &words.text("nulls", "refuse")?)?;
        let options = Options { threads, ..options };
        let made = Digests::of(&words.must("keys")?, words.hasher()?, options)?;
        Ok(Py::new(words.py, made)?.into_any())
    }
);

#[pymethods]
impl Digests {
    /// How many keys, with the rows that have none.
    fn __len__(&self) -> usize {
        self.marks.len()
    }

    /// To which of `count` equal parts of the key space each key belongs; rows without a key to the first.
    fn shards<'py>(&self, py: Python<'py>, count: u32) -> Answer<'py> {
        let count = u64::from(count.max(1));
        let shard = |mark: &Option<Mark>| reduce(mark.unwrap_or(0), count);
        let out: Vec<u32> = self.marks.iter().map(|mark| shard(mark) as u32).collect();
        to_numpy(py, &out)
    }
}
