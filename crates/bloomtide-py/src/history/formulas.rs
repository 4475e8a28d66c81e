//! The paper's formulas and sizes, for experiments.

use crate::errors::OrRaise;
use bloomtide_core::history::{Formulas, Sizes, formulas, paper_sizes};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The paper's sizes for rows of so many arrivals, and errors of the gate and of a row.
#[pyfunction]
#[pyo3(signature = (row_elements, rows, *, gate_error=0.01, row_error=0.01))]
pub(crate) fn history_paper_sizes<'py>(
    py: Python<'py>,
    row_elements: u64,
    rows: u32,
    gate_error: f64,
    row_error: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let sizes = paper_sizes(row_elements, rows, gate_error, row_error).or_raise(py)?;
    let out = PyDict::new(py);
    out.set_item("gate_hashes", sizes.gate_hashes)?;
    out.set_item("gate_bits", sizes.gate_bits)?;
    out.set_item("hashes", sizes.hashes)?;
    out.set_item("columns", sizes.columns)?;
    Ok(out)
}

/// What the paper predicts for these sizes and this load.
#[pyfunction]
#[pyo3(signature = (*, elements, row_elements, rows, gate_hashes, gate_bits, hashes, columns))]
#[allow(clippy::too_many_arguments)] // each is a symbol of the paper
pub(crate) fn history_formulas<'py>(
    py: Python<'py>,
    elements: f64,
    row_elements: f64,
    rows: u32,
    gate_hashes: u32,
    gate_bits: u64,
    hashes: u32,
    columns: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let sizes = Sizes { gate_hashes, gate_bits, hashes, columns };
    let predicted = formulas(&sizes, elements, row_elements, rows).or_raise(py)?;
    let Formulas { p_bf, p_cbf, p_cm, p_fp, p_ff, p_cbf_merged, p_ff_merged, p_bf_joined } =
        predicted;
    let out = PyDict::new(py);
    out.set_item("p_bf", p_bf)?;
    out.set_item("p_cbf", p_cbf)?;
    out.set_item("p_cm", p_cm)?;
    out.set_item("p_fp", p_fp)?;
    out.set_item("p_ff", p_ff)?;
    out.set_item("p_cbf_merged", p_cbf_merged)?;
    out.set_item("p_ff_merged", p_ff_merged)?;
    out.set_item("p_bf_joined", p_bf_joined)?;
    Ok(out)
}
