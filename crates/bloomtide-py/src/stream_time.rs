//! `StreamTime` for Python: the rule of `event_time`, for stores that keep each event at its own time.

use crate::errors::parameter;
use crate::keys::to_numpy;
use crate::python::*;
use crate::structure::getters;
use crate::weights::contiguous;
use bloomtide_core::event_time::{ClockView, Event, Kept, Oddities, StreamTime as Core};
use std::sync::Mutex;

/// The time of a stream of events, in whole microseconds since 1970, and which times are believed.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct StreamTime {
    core: Mutex<Core>,
}

#[pymethods]
impl StreamTime {
    /// `far`: how much one event may move the time on. `kept`: goes on with what another one kept.
    #[new]
    #[pyo3(signature = (far, kept=None))]
    fn py_new(py: Python<'_>, far: f64, kept: Option<KeptTime>) -> PyResult<Self> {
        Ok(StreamTime { core: Mutex::new(restored(py, far, kept)?) })
    }

    /// The clock's time: what is later by more than a day counts as of it.
    fn clock_is_at(&self, now: i64) {
        let clock = ClockView::at(now as f64 / 1e6, |seconds| (seconds * 1e6).round());
        locked(&self.core).clock_is_at(clock);
    }

    /// Notes events of one instant; the instant that they count at.
    #[pyo3(signature = (at, events=1))]
    fn note(&self, at: i64, events: usize) -> i64 {
        let mut core = locked(&self.core);
        (0..events).fold(at, |_, _| core.note(at as f64) as i64)
    }

    /// Notes an event that happens now, by a clock; the instant that it counts at.
    fn note_now(&self, now: i64) -> i64 {
        locked(&self.core).note_by_clock(now as f64) as i64
    }

    /// Notes events in order; the instants that they count at, and after each the stream's time and the earliest
    /// that it may turn out to be.
    fn note_many<'py>(
        &self,
        at: &Object<'py>,
    ) -> PyResult<(Object<'py>, Object<'py>, Object<'py>)> {
        let py = at.py();
        let mut core = locked(&self.core);
        let mut noted: Vec<i64> = contiguous(at)?;
        let after = noted.iter_mut().map(|at| {
            *at = core.note(*at as f64) as i64;
            let or_at = |time: Option<f64>| time.map_or(*at, |time| time as i64);
            (or_at(core.now()), or_at(core.earliest()))
        });
        let (after, earliest): (Vec<i64>, Vec<i64>) = after.unzip();
        Ok((to_numpy(py, &noted)?, to_numpy(py, &after)?, to_numpy(py, &earliest)?))
    }

    /// Lets the time be at least this.
    fn advance(&self, now: i64) {
        locked(&self.core).advance(now as f64, false);
    }
}

/// What goes on as it was: the time; late, clock jumps and ahead; times of events aside, of first events and of
/// votes. Whole numbers, so that JSON can hold them.
pub(crate) type KeptTime = (Option<i64>, [u64; 3], Vec<i64>, Vec<i64>, Vec<i64>);

pub(crate) fn kept(core: &Core) -> KeptTime {
    let Kept { now, odd, aside, first, votes } = core.kept();
    let times = |events: Vec<Event<()>>| events.iter().map(|event| event.at as i64).collect();
    let odd = [odd.late, odd.clock_jumps, odd.ahead];
    let votes = votes.iter().map(|at| *at as i64).collect();
    (now.map(|now| now as i64), odd, times(aside), times(first), votes)
}

pub(crate) fn restored(py: Python<'_>, far: f64, kept: Option<KeptTime>) -> PyResult<Core> {
    let Some((now, [late, clock_jumps, ahead], aside, first, votes)) = kept else {
        return Ok(Core::new(far));
    };
    let events = |times: Vec<i64>| {
        times.iter().map(|at| Event { at: *at as f64, what: () }).collect::<Vec<_>>()
    };
    let kept = Kept {
        now: now.map(|now| now as f64),
        odd: Oddities { late, clock_jumps, ahead },
        aside: events(aside),
        first: events(first),
        votes: votes.iter().map(|at| *at as f64).collect(),
    };
    if !kept.is_sound(|_| true) {
        let hint = "give what `kept` of another one was";
        return Err(parameter(py, "kept", "times that cannot have been", "what was kept", hint));
    }
    Ok(Core::restored(far, kept))
}

getters!(StreamTime, this =>
    /// What another one goes on with.
    kept: KeptTime = kept(&locked(&this.core));
    /// The stream's time; None before the first event.
    now: Option<i64> = locked(&this.core).now().map(|now| now as i64);
    /// The same, later if some of the last events agree on a later time.
    presumed: Option<i64> = locked(&this.core).presumed().map(|now| now as i64);
    /// The earliest time that the stream may turn out to have: before its own while the first events decide.
    earliest: Option<i64> = locked(&this.core).earliest().map(|at| at as i64);
    late: u64 = locked(&this.core).odd().late;
    clock_jumps: u64 = locked(&this.core).odd().clock_jumps;
    ahead: u64 = locked(&this.core).odd().ahead;
    aside: usize = locked(&this.core).aside();
);
