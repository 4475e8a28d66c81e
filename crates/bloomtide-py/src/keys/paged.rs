//! Pages of a Parquet column.

use super::{Answers, Needs, Options, Verb};
use crate::errors;
use crate::python::*;
use bloomtide_core::pages::Page;

/// Runs the verb over a page, which has no nulls.
pub(super) fn run<T: Copy + Default + Send>(
    py: Python<'_>,
    verb: &Verb<'_, T>,
    page: &Page,
    options: Options,
) -> PyResult<Answers<T>> {
    if verb.needs == Needs::Texts && page.has_numbers() {
        return Err(errors::text_column(py, "a Parquet column of integers"));
    }
    let mut answers = Answers::new(page.len(), options);
    answers.extend(py, verb, &*page.rows())?;
    Ok(answers)
}
