//! When the rows of a batch happened.

use crate::keys::Part;
use crate::weights;
use bloomtide_core::filters::{Epochs, When};
use pyo3::prelude::*;

/// One time for all rows, or one for each.
pub(crate) enum RowTimes {
    One(When),
    Each(Vec<i64>),
}

impl RowTimes {
    /// The keys, with as many rows as there are instants.
    pub(crate) fn fit<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            RowTimes::One(_) => Ok(keys.clone()),
            RowTimes::Each(all) => weights::beside("at", keys, all.len()),
        }
    }

    /// Runs `work` with the times of these rows.
    pub(crate) fn with<T>(&self, part: &Part<'_>, work: impl FnOnce(Epochs<'_>) -> T) -> T {
        match self {
            RowTimes::One(when) => work(Epochs::One(*when)),
            RowTimes::Each(all) => work(Epochs::Each(&part.of(all))),
        }
    }
}
