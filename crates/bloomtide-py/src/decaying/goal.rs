//! What a user wants of a time-decaying filter, from Python's words to the core's plan and back.

use crate::errors::{OrRaise, parameter};
use crate::instants;
use crate::params::{self, DEFAULT_ERROR_RATE, field};
use crate::records::record;
use bloomtide_core::cells::Rounding;
use bloomtide_core::filters::{DecayLayout, Fade, PoolPolicy};
use bloomtide_core::{DecayingPlan, Derivation, Hasher, Layout, Placement, Policy};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

/// The keywords that a plan is made from.
pub(crate) const SIZING: &[&str] = &[
    "half_life",
    "decay",
    "epoch",
    "origin",
    "layout",
    "rounding",
    "policy",
    "counter_bits",
    "fraction_bits",
    "pool",
    "pool_cells",
    "placement",
    "cells",
    "hashes",
    "derivation",
];
/// The keywords that only a filter has.
pub(crate) const MAKING: &[&str] = &["clock", "hash", "seed", "secret"];

/// The keywords of a call, each as given or left out.
pub(crate) struct Words<'a, 'py> {
    py: Python<'py>,
    given: Option<&'a Bound<'py, PyDict>>,
}

impl<'a, 'py> Words<'a, 'py> {
    /// Refuses words that the call does not know.
    pub(crate) fn new(
        py: Python<'py>,
        given: Option<&'a Bound<'py, PyDict>>,
        known: &[&[&str]],
    ) -> PyResult<Self> {
        for name in given.iter().flat_map(|given| given.keys()) {
            let name: String = name.extract()?;
            if !known.iter().any(|known| known.contains(&name.as_str())) {
                let message = format!("unexpected keyword argument: {name:?}");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(Words { py, given })
    }

    /// One of them; None counts as left out.
    pub(crate) fn word(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(given) = self.given else { return Ok(None) };
        Ok(given.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn text(&self, name: &str, otherwise: &str) -> PyResult<String> {
        self.word(name)?.map_or_else(|| Ok(otherwise.to_owned()), |value| value.extract())
    }

    pub(crate) fn hasher(&self) -> PyResult<Hasher> {
        let seed = self.word("seed")?.map_or(Ok(0), |seed| seed.extract())?;
        params::hasher(self.py, &self.text("hash", "xxh3")?, seed, self.word("secret")?.as_ref())
    }

    pub(crate) fn plan(
        &self,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<DecayingPlan> {
        let py = self.py;
        let fade = self.fade()?;
        let (placement, capacity, error_rate) = self.placed(capacity, error_rate)?;
        let counter_bits = self.word("counter_bits")?;
        let counter_bits = counter_bits.map(|bits| params::small("counter_bits", &bits));
        DecayingPlan {
            placement,
            layout: DecayLayout::parse(&self.text("layout", "basic")?).or_raise(py)?,
            fade,
            rounding: Rounding::parse(&self.text("rounding", "strict")?).or_raise(py)?,
            policy: Policy::parse(&self.text("policy", "plain")?, &Policy::USUAL).or_raise(py)?,
            counter_bits: counter_bits.transpose()?.unwrap_or(32),
            fraction_bits: self.fraction_bits()?,
            pool: self.pool(placement.cells)?,
            capacity,
            error_rate,
        }
        .checked()
        .or_raise(py)
    }

    fn pool(&self, cells: u64) -> PyResult<PoolPolicy> {
        let digits = self.word("pool_cells")?.map(|digits| params::whole("pool_cells", &digits));
        PoolPolicy::parse(&self.text("pool", "grow")?, digits.transpose()?, cells).or_raise(self.py)
    }

    fn fraction_bits(&self) -> PyResult<u32> {
        let Some(bits) = self.word("fraction_bits")? else { return Ok(8) };
        bits.extract().ok().filter(|_| !bits.is_instance_of::<PyBool>()).ok_or_else(|| {
            let got = bits.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
            let hint = "8 bits behind the point round to 1/256 of an occurrence";
            parameter(self.py, "fraction_bits", got, "a whole number, at least 0", hint)
        })
    }

    /// `half_life`, with or without `epoch`, or `decay` with `epoch`.
    fn fade(&self) -> PyResult<Fade> {
        let py = self.py;
        let epoch = self.word("epoch")?.map(|epoch| instants::duration(&epoch, "epoch"));
        let epoch = epoch.transpose()?;
        let origin = self.word("origin")?.map(|origin| instants::instant(&origin, "origin"));
        let origin = origin.transpose()?.unwrap_or(0.0);
        match (self.word("half_life")?, self.word("decay")?, epoch) {
            (Some(half_life), None, _) => {
                let half_life = instants::duration(&half_life, "half_life")?;
                Fade::from_half_life(half_life, epoch, origin).or_raise(py)
            }
            (None, Some(decay), Some(epoch)) => {
                Fade::from_decay(params::rate("decay", &decay)?, epoch, origin).or_raise(py)
            }
            (None, Some(_), None) => {
                let hint = "epoch=\"1h\" lets counts fade once an hour";
                Err(parameter(py, "epoch", "nothing", "given together with `decay`", hint))
            }
            (None, None, _) => {
                let hint = "half_life=\"1h\": what was counted an hour ago counts half";
                let allowed = "given, or else `decay` and `epoch`";
                Err(parameter(py, "half_life", "nothing", allowed, hint))
            }
            (Some(_), Some(_), _) => {
                let hint = "give either `half_life`, or `decay` and `epoch`";
                let allowed = "left out when `half_life` is given";
                Err(parameter(py, "decay", "both", allowed, hint))
            }
        }
    }

    /// `capacity` and `error_rate`, or `cells` and `hashes`: exactly one of the two ways.
    fn placed(
        &self,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Placement, Option<u64>, Option<f64>)> {
        let py = self.py;
        let layout = self.word("placement")?.map(|name| placement(py, &name.extract::<String>()?));
        let (layout, derivation) =
            (layout.transpose()?, params::derivation(py, &self.text("derivation", "enhanced")?)?);
        match (capacity, self.word("cells")?, self.word("hashes")?) {
            (Some(capacity), None, None) => {
                let capacity = params::whole("capacity", capacity)?;
                let rate = error_rate.map(|rate| params::rate("error_rate", rate));
                let rate = rate.transpose()?.unwrap_or(DEFAULT_ERROR_RATE);
                let placed =
                    Placement::for_goal(capacity, rate, layout, derivation).or_raise(py)?;
                Ok((placed, Some(capacity), Some(rate)))
            }
            (None, Some(cells), Some(hashes)) if error_rate.is_none() => {
                let cells = params::whole("cells", &cells)?;
                let hashes = params::small("hashes", &hashes)?;
                Ok((Placement::for_sizes(cells, hashes, layout, derivation), None, None))
            }
            (None, None, _) => {
                let hint = "capacity=1_000_000, error_rate=0.01 is a good start";
                let allowed = "given, or else `cells` and `hashes`";
                Err(parameter(py, "capacity", "nothing", allowed, hint))
            }
            (None, Some(_), None) => {
                let hint = "about 0.7 times the cells per key is best";
                Err(parameter(py, "hashes", "nothing", "given together with `cells`", hint))
            }
            _ => {
                let hint = "give either `capacity` and `error_rate`, or `cells` and `hashes`";
                let allowed = "left out when `capacity` or `error_rate` is given";
                Err(parameter(py, "cells", "goals and sizes at once", allowed, hint))
            }
        }
    }
}

/// Where the cells of a key lie. The core calls it a layout, which here is something else.
fn placement(py: Python<'_>, name: &str) -> PyResult<Layout> {
    Layout::parse(name).map_err(|_| {
        let hint = "leave it out to have it chosen by the error rate";
        parameter(py, "placement", name, "\"blocked\" or \"classic\"", hint)
    })
}

/// A plan as a `Plan` record.
pub(crate) fn plan_record<'py>(
    py: Python<'py>,
    plan: &DecayingPlan,
) -> PyResult<Bound<'py, PyAny>> {
    let error_at = |factor: f64| plan.capacity.map(|n| plan.error_at(n as f64 * factor));
    record(py, "Plan", |fields| {
        fields.set_item("kind", "tbf")?;
        fields.set_item("capacity", plan.capacity)?;
        fields.set_item("error_rate", plan.error_rate)?;
        fields.set_item("layout", plan.layout.name())?;
        fields.set_item("placement", plan.placement.layout.name())?;
        fields.set_item("derivation", plan.placement.derivation.name())?;
        fields.set_item("cells", plan.cells())?;
        fields.set_item("hashes", plan.hashes())?;
        fields.set_item("counter_bits", plan.counter_bits)?;
        fields.set_item("fraction_bits", plan.fraction_bits)?;
        fields.set_item("pool", plan.pool.name())?;
        fields.set_item("pool_cells", plan.pool.digits())?;
        fields.set_item("bytes", plan.bytes())?;
        fields.set_item("predicted_error", error_at(1.0))?;
        fields.set_item("predicted_error_overfull", error_at(2.0))?;
        fields.set_item("policy", plan.policy.name())?;
        fields.set_item("rounding", plan.rounding.name())?;
        fields.set_item("decay", plan.fade.decay)?;
        fields.set_item("half_life", plan.fade.half_life)?;
        fields.set_item("epoch", plan.fade.epoch)?;
        fields.set_item("origin", plan.fade.origin)
    })
}

/// The plan of a `Plan` record.
pub(crate) fn plan_of(plan: &Bound<'_, PyAny>) -> PyResult<DecayingPlan> {
    let py = plan.py();
    params::require_kind(plan, "tbf")?;
    let text = |name| field::<String>(plan, name);
    DecayingPlan {
        placement: Placement {
            layout: placement(py, &text("placement")?)?,
            derivation: Derivation::parse(&text("derivation")?).or_raise(py)?,
            cells: field(plan, "cells")?,
            hashes: field(plan, "hashes")?,
        },
        layout: DecayLayout::parse(&text("layout")?).or_raise(py)?,
        fade: Fade {
            decay: field(plan, "decay")?,
            epoch: field(plan, "epoch")?,
            origin: field(plan, "origin")?,
            half_life: field(plan, "half_life")?,
        },
        rounding: Rounding::parse(&text("rounding")?).or_raise(py)?,
        policy: Policy::parse(&text("policy")?, &Policy::USUAL).or_raise(py)?,
        counter_bits: field(plan, "counter_bits")?,
        fraction_bits: field(plan, "fraction_bits")?,
        pool: PoolPolicy::parse(&text("pool")?, field(plan, "pool_cells")?, field(plan, "cells")?)
            .or_raise(py)?,
        capacity: field(plan, "capacity")?,
        error_rate: field(plan, "error_rate")?,
    }
    .checked()
    .or_raise(py)
}

/// The filter in one line.
pub(crate) fn repr(plan: &DecayingPlan) -> String {
    let goal = match (plan.capacity, plan.error_rate) {
        (Some(capacity), Some(rate)) => format!("capacity={capacity} error_rate={rate} "),
        _ => String::new(),
    };
    let half_life = plan.fade.half_life.map_or(String::new(), |h| format!("half_life={h} "));
    let pool = plan
        .pool
        .digits()
        .map_or(String::new(), |digits| format!("pool={} pool_cells={digits} ", plan.pool.name()));
    format!(
        "<TimeDecayingBloomFilter {goal}{half_life}decay={} epoch={} layout={} {pool}rounding={} policy={} \
         counter_bits={} fraction_bits={} placement={} cells={} hashes={}>",
        plan.fade.decay,
        plan.fade.epoch,
        plan.layout.name(),
        plan.rounding.name(),
        plan.policy.name(),
        plan.counter_bits,
        plan.fraction_bits,
        plan.placement.layout.name(),
        plan.cells(),
        plan.hashes(),
    )
}
