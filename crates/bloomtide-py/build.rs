//! Gives the crate the `Py_GIL_DISABLED` configuration of the Python it is built for.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
