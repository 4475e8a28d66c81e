//! Times as people write them: instants, durations, columns of instants, and the clock.
//!
//!   duration   "90s", "15m", "1h30m", "7d", seconds as a number, timedelta
//!   instant    aware datetime, ISO 8601 text with its zone, Unix seconds, NumPy's datetime64 (UTC)
//!   column     NumPy numbers or datetime64, an Arrow column of either, any iterable of instants
//!
//! All become `f64` seconds, instants those since 1970. A date and time without a zone is refused: which
//! instant it means depends on where the program runs.

use crate::buffer::View;
use crate::errors::parameter;
use crate::params::shown;
use bloomtide_core::history::microseconds;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt, PyString, PyTzInfoAccess,
};
use pyo3::{PyTypeInfo, ffi};

/// The last second of the year 9999, where Python's own dates end.
const LAST: f64 = 253_402_300_799.0;

/// Instants farther than this from a filter's own time are slips, such as milliseconds for seconds.
pub(crate) const CENTURY: f64 = 100.0 * 365.25 * 86_400.0;

/// Why a value is no time; the name of its parameter, and its row in a batch, are the caller's to say.
struct Refusal {
    got: String,
    allowed: &'static str,
    hint: &'static str,
}

impl Refusal {
    fn raise(self, py: Python<'_>, name: &str) -> PyErr {
        parameter(py, name, self.got, self.allowed, self.hint)
    }

    fn in_row(self, row: usize) -> Self {
        Refusal { got: format!("{} in row {row}", self.got), ..self }
    }
}

/// What NumPy calls the kind of its numbers: 'M' for dates, 'm' for durations.
fn kind_of(value: &Bound<'_, PyAny>) -> Option<char> {
    value.getattr("dtype").and_then(|dtype| dtype.getattr("kind")?.extract()).ok()
}

// ---- durations

/// A length of time in seconds, above zero.
pub(crate) fn duration(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let seconds = seconds_of(value);
    seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0).ok_or_else(|| {
        let hint = "write \"90s\", \"15m\", \"1h\" or \"7d\", a number of seconds, or a timedelta";
        parameter(value.py(), name, shown(value), "a length of time above zero", hint)
    })
}

fn seconds_of(value: &Bound<'_, PyAny>) -> Option<f64> {
    if value.is_instance_of::<PyBool>() || matches!(kind_of(value), Some('b' | 'M')) {
        return None;
    }
    if let Ok(text) = value.cast::<PyString>() {
        return bloomtide_core::instants::duration(text.to_str().ok()?);
    }
    if let Ok(delta) = value.cast::<PyDelta>() {
        let whole = f64::from(delta.get_days()) * 86_400.0 + f64::from(delta.get_seconds());
        return Some(whole + f64::from(delta.get_microseconds()) / 1e6);
    }
    if kind_of(value) == Some('m') {
        let delta = value.call_method1("astype", ("timedelta64[us]",)).ok()?;
        // NaT, and what is too long for a timedelta, come as something else.
        return seconds_of(delta.call_method0("item").ok()?.cast::<PyDelta>().ok()?);
    }
    value.extract().ok()
}

// ---- one instant

/// A moment as seconds since 1970.
pub(crate) fn instant(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    read(value).map_err(|refusal| refusal.raise(value.py(), name))
}

/// Refuses an instant that lies more than a century from `own`, the filter's own time.
pub(crate) fn require_near(
    py: Python<'_>,
    name: &str,
    row: Option<usize>,
    seconds: f64,
    own: f64,
) -> PyResult<()> {
    if (seconds - own).abs() <= CENTURY {
        return Ok(());
    }
    let refusal = Refusal {
        got: format!("{seconds} while the filter is at {own}"),
        allowed: "within 100 years of the filter's own time",
        hint: "give seconds since 1970, not milliseconds",
    };
    Err(match row {
        Some(row) => refusal.in_row(row).raise(py, name),
        None => refusal.raise(py, name),
    })
}

fn read(value: &Bound<'_, PyAny>) -> Result<f64, Refusal> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return within(number.value());
    }
    // What follows asks for attributes that an int has not, which takes a microsecond.
    if let Ok(number) = value.cast_exact::<PyInt>()
        && let Ok(number) = number.extract::<i64>()
    {
        return within(number as f64);
    }
    let refuse = || Refusal {
        got: shown(value),
        allowed: "an instant",
        hint: "give an aware datetime, ISO 8601 text with its zone, or seconds since 1970",
    };
    if value.is_instance_of::<PyBool>() || matches!(kind_of(value), Some('b' | 'm')) {
        return Err(refuse());
    }
    if let Ok(moment) = value.cast::<PyDateTime>() {
        return of_datetime(moment);
    }
    if let Ok(text) = value.cast::<PyString>() {
        let moment = PyDateTime::type_object(value.py())
            .call_method1("fromisoformat", (text,))
            .ok()
            .and_then(|moment| moment.cast_into::<PyDateTime>().ok());
        // Told as it was written, not as the datetime that it was read into.
        return of_datetime(&moment.ok_or_else(refuse)?)
            .map_err(|refusal| Refusal { got: shown(value), ..refusal });
    }
    if kind_of(value) == Some('M') {
        let array = value.call_method1("reshape", (1,)).map_err(|_| refuse())?;
        let seconds = of_dates(&array).map_err(|_| refuse())?;
        return within(seconds.first().copied().ok_or_else(refuse)?);
    }
    match value.extract::<f64>() {
        Ok(seconds) => within(seconds),
        // An int that no f64 can hold.
        Err(_) if value.is_instance_of::<PyInt>() => within(f64::INFINITY),
        Err(_) => Err(refuse()),
    }
}

fn of_datetime(moment: &Bound<'_, PyDateTime>) -> Result<f64, Refusal> {
    let naive = || Refusal {
        got: shown(moment),
        allowed: "an instant with its time zone",
        hint: "say which zone: tzinfo=timezone.utc, or \"Z\" at the end of the text",
    };
    // A zone that answers no offset is none.
    let offset = moment.call_method0("utcoffset").map_err(|_| naive())?;
    if moment.get_tzinfo().is_none() || offset.is_none() {
        return Err(naive());
    }
    let seconds = moment.call_method0("timestamp").and_then(|seconds| seconds.extract());
    within(seconds.map_err(|_| naive())?)
}

/// Refuses NaN, times before 1970 and those after the year 9999.
#[inline(always)]
fn within(seconds: f64) -> Result<f64, Refusal> {
    if (0.0..=LAST).contains(&seconds) {
        return Ok(seconds);
    }
    Err(Refusal {
        got: seconds.to_string(),
        allowed: "seconds since 1970, before the year 10000",
        hint: "give seconds, not milliseconds; a missing time cannot be counted",
    })
}

// ---- the instants of a batch

/// One instant for a whole batch, or one for each row.
pub(crate) enum Instants {
    One(f64),
    Each(Vec<f64>),
}

/// The instants of a batch: a single one, or a column of them.
pub(crate) fn instants(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Instants> {
    match column(value, name)? {
        Some(column) => seconds_of_column(&column, name).map(Instants::Each),
        None => instant(value, name).map(Instants::One),
    }
}

/// A column of instants as NumPy or Python has it; None for a single instant.
fn column<'py>(value: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let arrow = value.hasattr("__arrow_c_stream__")? || value.hasattr("__arrow_c_array__")?;
    let text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    if !arrow && (text || value.try_iter().is_err()) {
        return Ok(None);
    }
    let wrong = |got: String| {
        let hint = "give seconds or datetime64 as a NumPy array or Arrow column, or a list";
        parameter(py, name, got, "an instant, or a column of them", hint)
    };
    let column = if arrow {
        // Through NumPy, which all of them know; missing values become NaN, NaT or None.
        value.call_method0("to_numpy").map_err(|error| wrong(error.value(py).to_string()))?
    } else {
        value.clone()
    };
    if column.getattr("ndim").and_then(|n| n.extract::<usize>()).is_ok_and(|n| n != 1) {
        return Err(wrong(format!("an array of shape {}", column.getattr("shape")?)));
    }
    Ok(Some(column))
}

fn seconds_of_column(column: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<f64>> {
    let py = column.py();
    let in_row = |row: usize, refusal: Refusal| refusal.in_row(row).raise(py, name);
    if let Some(all) = of_array(column)? {
        let bad = all.iter().enumerate().find_map(|(row, at)| within(*at).err().map(|e| (row, e)));
        return match bad {
            Some((row, refusal)) => Err(in_row(row, refusal)),
            None => Ok(all),
        };
    }
    let each = |(row, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        read(&item?).map_err(|refusal| in_row(row, refusal))
    };
    column.try_iter()?.enumerate().map(each).collect()
}

/// One instant for a whole batch, or one for each row, in microseconds since 1970.
pub(crate) enum Micros {
    One(i64),
    Each(Vec<i64>),
}

/// The same as `instants`, for what counts in microseconds.
pub(crate) fn micros(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Micros> {
    let Some(column) = column(value, name)? else {
        return instant(value, name).map(|at| Micros::One(microseconds(at)));
    };
    // Whole numbers stay whole: an event a nanosecond before midnight is not rounded into the next day.
    if let Some(all) = whole_micros(&column)? {
        return match all.iter().position(|at| !(0..=microseconds(LAST)).contains(at)) {
            None => Ok(Micros::Each(all)),
            // Says which row, and why.
            Some(_) => seconds_of_column(&column, name).map(|_| Micros::Each(all)),
        };
    }
    let all = seconds_of_column(&column, name)?;
    Ok(Micros::Each(all.into_iter().map(microseconds).collect()))
}

/// The microseconds of an array of dates that counts in these or in nanoseconds; None for anything else.
fn whole_micros(column: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    if kind_of(column) != Some('M') || column.hasattr("mask")? {
        return Ok(None);
    }
    let numpy = column.py().import("numpy")?;
    let data = numpy.call_method1("datetime_data", (column.getattr("dtype")?,))?;
    if !matches!(data.extract::<(String, u64)>()?, (unit, 1) if unit == "us" || unit == "ns") {
        return Ok(None);
    }
    let dates = column.call_method1("astype", ("datetime64[us]",))?;
    words(&dates.call_method1("astype", ("int64",))?, |word| word as i64).map(Some)
}

/// The seconds of a NumPy array of numbers or dates; None for anything else.
fn of_array(column: &Bound<'_, PyAny>) -> PyResult<Option<Vec<f64>>> {
    // A masked array shows what is missing only item by item.
    if column.hasattr("mask")? {
        return Ok(None);
    }
    match kind_of(column) {
        Some('M') => of_dates(column).map(Some),
        Some('i' | 'u' | 'f') => {
            let seconds = column.call_method1("astype", ("float64",))?;
            words(&seconds, f64::from_bits).map(Some)
        }
        _ => Ok(None),
    }
}

/// The seconds of an array of `datetime64`, which counts in UTC; what is not a time becomes NaN.
fn of_dates(dates: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let numpy = dates.py().import("numpy")?;
    let (unit, step): (String, f64) =
        numpy.call_method1("datetime_data", (dates.getattr("dtype")?,))?.extract()?;
    let (unit, scale) = match unit.as_str() {
        "s" => (None, step),
        "ms" => (None, step / 1e3),
        "us" => (None, step / 1e6),
        "ns" => (None, step / 1e9),
        // Days and the like; what is finer than nanoseconds loses what nobody can see.
        _ => (Some("datetime64[s]"), 1.0),
    };
    // Always a copy: contiguous, and in this machine's order of bytes.
    let dates = match unit {
        Some(unit) => dates.call_method1("astype", (unit,))?,
        None => dates.call_method0("copy")?,
    };
    let numbers = dates.call_method1("astype", ("int64",))?;
    words(&numbers, |word| match word as i64 {
        i64::MIN => f64::NAN,
        count => count as f64 * scale,
    })
}

/// The 64-bit items of a contiguous array.
fn words<T>(array: &Bound<'_, PyAny>, read: impl Fn(u64) -> T) -> PyResult<Vec<T>> {
    let Some(view) = View::of(array, ffi::PyBUF_C_CONTIGUOUS) else {
        return Err(PyTypeError::new_err("the array of instants is not contiguous"));
    };
    // SAFETY: contiguous 64-bit items, kept in place by the view.
    let words = unsafe {
        std::slice::from_raw_parts(view.data().cast::<u64>().cast_const(), view.bytes() / 8)
    };
    Ok(words.iter().map(|word| read(*word)).collect())
}

// ---- the clock

/// Where a filter takes the time from when a call does not say it.
pub(crate) enum Clock {
    System,
    Given(Py<PyAny>),
}

impl Clock {
    /// The machine's clock, or a callable that answers an instant.
    pub(crate) fn parse(clock: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        match clock {
            None => Ok(Clock::System),
            Some(clock) if clock.is_callable() => Ok(Clock::Given(clock.clone().unbind())),
            Some(other) => {
                let hint = "give a function that answers seconds since 1970, such as time.time";
                Err(parameter(other.py(), "clock", shown(other), "a callable", hint))
            }
        }
    }

    /// The time now.
    #[inline(always)]
    pub(crate) fn now(&self, py: Python<'_>) -> PyResult<f64> {
        match self {
            Clock::System => Ok(system_time()),
            Clock::Given(clock) => instant(&clock.bind(py).call0()?, "clock"),
        }
    }

    /// The function that was given; None is the machine's clock.
    pub(crate) fn given<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Clock::System => None,
            Clock::Given(clock) => Some(clock.bind(py).clone()),
        }
    }

    /// The same clock for a copy.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Clock::System => Clock::System,
            Clock::Given(clock) => Clock::Given(clock.clone_ref(py)),
        }
    }
}

/// Seconds since 1970, by the clock that is cheapest to read: a few milliseconds coarse, and an epoch
/// is never shorter than a hundred.
#[cfg(target_os = "linux")]
#[inline(always)]
fn system_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a timespec of our own.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(not(target_os = "linux"))]
fn system_time() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |time| time.as_secs_f64())
}
