//! Which epoch a call means: an instant that is given, one for each row, or the clock.

use super::TimeDecayingBloomFilter;
use crate::errors::parameter;
use crate::instants::{self, Instants};
use crate::keys::{self, Item, Options, Part, Verb};
use crate::python::*;
use crate::weights;
use bloomtide_core::Crew;
use bloomtide_core::filters::{Epochs, When};
use pyo3::types::PyDict;

/// When the rows of a batch happened: one epoch for all of them, or one for each.
pub(super) enum RowTimes {
    One(When),
    Each(Vec<i64>),
}

impl RowTimes {
    /// The keys, with as many rows as there are instants.
    pub(super) fn fit<'py>(&self, keys: &Object<'py>) -> Answer<'py> {
        match self {
            RowTimes::One(_) => Ok(keys.clone()),
            RowTimes::Each(all) => weights::beside("at", keys, all.len()),
        }
    }

    /// Runs `work` with the times of these rows.
    pub(super) fn with<T>(&self, part: &Part<'_>, work: impl FnOnce(Epochs<'_>) -> T) -> T {
        match self {
            RowTimes::One(when) => work(Epochs::One(*when)),
            RowTimes::Each(all) => work(Epochs::Each(&part.of(all))),
        }
    }
}

impl TimeDecayingBloomFilter {
    #[inline(always)]
    pub(super) fn by_clock(&self, py: Python<'_>) -> PyResult<When> {
        let epoch = self.core.plan().fade.epoch_of(self.clock.now(py)?);
        Ok(When { epoch, by_clock: true })
    }

    /// The filter's own time in seconds; the clock's before the first event.
    pub(super) fn own_time(&self, py: Python<'_>) -> PyResult<f64> {
        match self.core.now() {
            Some(epoch) => Ok(self.core.plan().fade.begin_of(epoch)),
            None => self.clock.now(py),
        }
    }

    /// Looks at the clock if an event of this epoch wants it.
    #[inline(always)]
    pub(super) fn see_clock(&self, py: Python<'_>, epoch: i64) -> PyResult<()> {
        if self.core.wants_clock(epoch) {
            self.core.clock_is_at(self.clock.now(py)?);
        }
        Ok(())
    }

    /// Looks at the clock, before events come that Python does not see.
    pub(crate) fn look_at_clock(&self, py: Python<'_>) -> PyResult<()> {
        self.core.clock_is_at(self.clock.now(py)?);
        Ok(())
    }

    pub(super) fn when(
        &self,
        py: Python<'_>,
        name: &str,
        at: Option<&Object<'_>>,
    ) -> PyResult<When> {
        let Some(at) = at else { return self.by_clock(py) };
        let seconds = instants::instant(at, name)?;
        instants::require_near(py, name, None, seconds, self.own_time(py)?)?;
        let epoch = self.core.plan().fade.epoch_of(seconds);
        self.see_clock(py, epoch)?;
        Ok(When { epoch, by_clock: false })
    }

    pub(super) fn row_times(&self, py: Python<'_>, at: Option<&Object<'_>>) -> PyResult<RowTimes> {
        let Some(at) = at else { return Ok(RowTimes::One(self.by_clock(py)?)) };
        let seconds = match instants::instants(at, "at")? {
            Instants::One(_) => return Ok(RowTimes::One(self.when(py, "at", Some(at))?)),
            Instants::Each(seconds) => seconds,
        };
        let own = self.own_time(py)?;
        let fade = self.core.plan().fade;
        let epoch = |(row, seconds): (usize, &f64)| {
            instants::require_near(py, "at", Some(row), *seconds, own)?;
            Ok(fade.epoch_of(*seconds))
        };
        let epochs: Vec<i64> = seconds.iter().enumerate().map(epoch).collect::<PyResult<_>>()?;
        self.see_clock(py, epochs.iter().copied().max().unwrap_or(i64::MIN))?;
        Ok(RowTimes::Each(epochs))
    }

    /// The epoch of a question. What was before the filter's time is gone.
    pub(super) fn asked(&self, py: Python<'_>, at: Option<&Object<'_>>) -> PyResult<i64> {
        let when = self.when(py, "at", at)?;
        self.require_present(py, when.epoch, when.by_clock, None)?;
        Ok(when.epoch)
    }

    pub(super) fn asked_rows(&self, py: Python<'_>, at: Option<&Object<'_>>) -> PyResult<RowTimes> {
        let times = self.row_times(py, at)?;
        match &times {
            RowTimes::One(when) => self.require_present(py, when.epoch, when.by_clock, None)?,
            RowTimes::Each(all) => {
                for (row, epoch) in all.iter().enumerate() {
                    self.require_present(py, *epoch, false, Some(row))?;
                }
            }
        }
        Ok(times)
    }

    pub(super) fn require_present(
        &self,
        py: Python<'_>,
        epoch: i64,
        by_clock: bool,
        row: Option<usize>,
    ) -> PyResult<()> {
        let Some(now) = self.core.now().filter(|now| epoch < *now && !by_clock) else {
            return Ok(());
        };
        let fade = self.core.plan().fade;
        let begin = fade.begin_of(epoch);
        let place = row.map_or(String::new(), |row| format!(" in row {row}"));
        let got = format!("the epoch of {begin}{place}, the filter is at {}", fade.begin_of(now));
        let hint =
            "a faded count does not come back: save copies, or ask before you add later events";
        Err(parameter(py, "at", got, "not before the filter's own time", hint))
    }

    /// What a count is multiplied by to become a rate.
    pub(super) fn rate_scale(&self, py: Python<'_>, per: Option<&Object<'_>>) -> PyResult<f64> {
        const HOUR: f64 = 3600.0;
        let per = per.map_or(Ok(HOUR), |per| instants::duration(per, "per"))?;
        let fade = self.core.plan().fade;
        if fade.decay == 1.0 {
            let hint = "counts that never fade have no rate: use count(), or a decay below 1";
            return Err(parameter(py, "decay", 1, "below 1 for a rate", hint));
        }
        // Equation (4): the average count of an epoch.
        Ok((1.0 - fade.decay) / fade.epoch * per)
    }

    /// What `answer` makes of the counters of many keys.
    pub(super) fn ask_many<'py, T: Item + Default + Send>(
        &self,
        keys: &Object<'py>,
        at: Option<&Object<'py>>,
        options: Option<&Dict<'py>>,
        answer: impl Fn(u64) -> T + Copy + Sync,
    ) -> Answer<'py> {
        let options = Options::of(keys.py(), options)?;
        let times = self.asked_rows(keys.py(), at)?;
        let keys = times.fit(keys)?;
        let ask = |part: Part<'_>, out: &mut [T], crew: &mut Crew| {
            times.with(&part, |times| self.core.ask_many(part.keys, times, out, crew, answer));
            Ok(())
        };
        keys::run(&Verb::new(self.core.hasher(), &ask), &keys, options)
    }
}

/// The filter and a hot list that fades as fast, by the same clock.
pub(super) fn beside_hot_list<'py>(
    this: &Bound<'py, TimeDecayingBloomFilter>,
    k: &Object<'py>,
) -> Answer<'py> {
    let py = this.py();
    let fade = this.get().core.plan().fade;
    if fade.decay == 0.0 {
        let hint = "counts of one epoch alone have no half-life: give a decay above 0";
        return Err(parameter(py, "decay", 0, "above 0 for a hot list", hint));
    }
    let words = PyDict::new(py);
    words.set_item("half_life", fade.halving())?;
    words.set_item("epoch", fade.epoch)?;
    words.set_item("origin", fade.origin)?;
    words.set_item("max_jump", fade.max_jump)?;
    words.set_item("clock", this.get().clock.given(py))?;
    let list = py.import("bloomtide")?.getattr("HotList")?.call((k,), Some(&words))?;
    py.import("bloomtide.hot")?.getattr("HotFilter")?.call1((this, list))
}
