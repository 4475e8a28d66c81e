//! Times as people write them: durations, instants, columns of instants, and the clock.
//!
//!   duration   "90s", "15m", "1h30m", "7d", seconds as a number, timedelta
//!   instant    seconds since 1970, and what `bloomtide.columns` reads
//!
//! All become `f64` seconds, instants those since 1970.

use crate::errors::parameter;
use crate::params::shown;
use crate::python::*;
use crate::weights::{contiguous, read_by};
use bloomtide_core::history::microseconds;
use pyo3::types::{PyBool, PyDelta, PyDeltaAccess, PyFloat, PyInt, PyList, PyString};

/// The last second of the year 9999, where Python's own dates end.
const LAST: f64 = 253_402_300_799.0;

/// Instants farther than this from a filter's own time are slips, such as milliseconds for seconds.
pub(crate) const CENTURY: f64 = 100.0 * 365.25 * 86_400.0;

// ---- durations

/// A length of time in seconds, above zero.
pub(crate) fn duration(value: &Object<'_>, name: &str) -> PyResult<f64> {
    let seconds = seconds_of(value);
    seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0).ok_or_else(|| {
        let hint = "write \"90s\", \"15m\", \"1h\" or \"7d\", a number of seconds, or a timedelta";
        parameter(value.py(), name, shown(value), "a length of time above zero", hint)
    })
}

/// How far one event may move a time on; infinity is a length, too.
pub(crate) fn max_jump(value: Option<Object<'_>>) -> PyResult<Option<f64>> {
    let jump = |value: Object<'_>| match value.extract::<f64>() {
        Ok(f64::INFINITY) => Ok(f64::INFINITY),
        _ => duration(&value, "max_jump"),
    };
    value.map(jump).transpose()
}

fn seconds_of(value: &Object<'_>) -> Option<f64> {
    if let Ok(text) = value.cast::<PyString>() {
        return bloomtide_core::instants::duration(text.to_str().ok()?);
    }
    if let Ok(delta) = value.cast::<PyDelta>() {
        let whole = f64::from(delta.get_days()) * 86_400.0 + f64::from(delta.get_seconds());
        return Some(whole + f64::from(delta.get_microseconds()) / 1e6);
    }
    // What NumPy calls the kind of its numbers.
    let kind = value.getattr("dtype").and_then(|dtype| dtype.getattr("kind")?.extract());
    match kind {
        Ok('b' | 'M') => None,
        Ok('m') => {
            let delta = value.call_method1("astype", ("timedelta64[us]",)).ok()?;
            // NaT, and what is too long for a timedelta, come as something else.
            seconds_of(delta.call_method0("item").ok()?.cast::<PyDelta>().ok()?)
        }
        _ if value.is_instance_of::<PyBool>() => None,
        _ => value.extract().ok(),
    }
}

// ---- one instant

/// Seconds since 1970, if that is plain to see.
#[inline(always)]
fn plain(value: &Object<'_>) -> Option<f64> {
    let seconds = match value.cast_exact::<PyFloat>() {
        Ok(number) => number.value(),
        Err(_) => value.cast_exact::<PyInt>().ok()?.extract::<i64>().ok()? as f64,
    };
    (0.0..=LAST).contains(&seconds).then_some(seconds)
}

/// A moment as seconds since 1970.
pub(crate) fn instant(value: &Object<'_>, name: &str) -> PyResult<f64> {
    match plain(value) {
        Some(seconds) => Ok(seconds),
        None => read_by(value.py(), "read_instant", (value, name))?.extract(),
    }
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
    let place = row.map_or(String::new(), |row| format!(" in row {row}"));
    let got = format!("{seconds} while the filter is at {own}{place}");
    let hint = "give seconds since 1970, not milliseconds";
    Err(parameter(py, name, got, "within 100 years of the filter's own time", hint))
}

/// Refuses to advance to a time that the clock does not allow.
pub(crate) fn beyond_clock(py: Python<'_>, now: f64) -> PyErr {
    let hint = "to work with a time of your own, give its `clock`";
    parameter(py, "now", now, "not later than the clock by more than a day", hint)
}

// ---- the instants of a batch

/// One instant for a whole batch, or one for each row.
pub(crate) enum Instants<T = f64> {
    One(T),
    Each(Vec<T>),
}

impl<T: Copy> Instants<T> {
    pub(crate) fn map<U>(self, of: impl Fn(T) -> U) -> Instants<U> {
        match self {
            Instants::One(at) => Instants::One(of(at)),
            Instants::Each(all) => Instants::Each(all.into_iter().map(of).collect()),
        }
    }

    /// The keys, with as many rows as there are instants.
    pub(crate) fn fit<'py>(&self, keys: &Object<'py>) -> Answer<'py> {
        match self {
            Instants::One(_) => Ok(keys.clone()),
            Instants::Each(all) => crate::weights::beside("at", keys, all.len()),
        }
    }
}

/// The instants of a batch: a single one, or a column of them.
pub(crate) fn instants(value: &Object<'_>, name: &str) -> PyResult<Instants> {
    if let Some(seconds) = plain(value) {
        return Ok(Instants::One(seconds));
    }
    if let Ok(list) = value.cast_exact::<PyList>()
        && let Some(all) = list.iter().map(|item| plain(&item)).collect()
    {
        return Ok(Instants::Each(all));
    }
    let read = read_by(value.py(), "read_instants", (value, name))?;
    match read.cast_exact::<PyFloat>() {
        Ok(seconds) => Ok(Instants::One(seconds.value())),
        Err(_) => contiguous(&read).map(Instants::Each),
    }
}

/// The same in microseconds.
pub(crate) fn micros(value: &Object<'_>, name: &str) -> PyResult<Instants<i64>> {
    if plain(value).is_none() && !value.is_exact_instance_of::<PyList>() {
        let whole = read_by(value.py(), "read_whole_micros", (value, name))?;
        if !whole.is_none() {
            return contiguous(&whole).map(Instants::Each);
        }
    }
    instants(value, name).map(|all| all.map(microseconds))
}

// ---- the clock

/// Where a filter takes the time from when a call does not say it.
pub(crate) enum Clock {
    System,
    Given(Py<PyAny>),
}

impl Clock {
    /// The machine's clock, or a callable that answers an instant.
    pub(crate) fn parse(clock: Option<&Object<'_>>) -> PyResult<Self> {
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
    pub(crate) fn given<'py>(&self, py: Python<'py>) -> Option<Object<'py>> {
        match self {
            Clock::System => None,
            Clock::Given(clock) => Some(clock.bind(py).clone()),
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
