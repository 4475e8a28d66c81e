//! Pages of a Parquet column.

use super::{Answers, Batch, Options};
use crate::errors;
use bloomtide_core::pages::{Page, Rows};
use pyo3::prelude::*;

/// Runs the batch over a page, which has no nulls.
pub(super) fn run<B: Batch>(
    py: Python<'_>,
    batch: &B,
    page: &Page,
    options: Options,
) -> PyResult<Answers<B>> {
    if B::TEXTS && page.has_numbers() {
        return Err(errors::text_column(py, "a Parquet column of integers"));
    }
    let mut answers = Answers::new(page.len(), options);
    match page.rows() {
        Rows::Numbers(keys) => answers.extend(py, batch, &keys)?,
        Rows::Texts(keys) => answers.extend(py, batch, &keys)?,
        Rows::CodedNumbers(keys) => answers.extend(py, batch, &keys)?,
        Rows::CodedTexts(keys) => answers.extend(py, batch, &keys)?,
    }
    Ok(answers)
}
