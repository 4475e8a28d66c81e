//! The methods that the classes of several structures have, as macros; see the parent.

macro_rules! whole {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// A copy in memory, with the same clock if there is one.
            fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.require_open(py)?;
                let made = py.detach(|| self.read().copy()).or_raise(py)?;
                self.like(py, made)
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                let _ = memo;
                self.copy(py)
            }

            /// Forgets every key, and the time if there is one.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.require_writable(py)?;
                let _registered = self.register();
                py.detach(|| Done::done(self.write().clear())).or_raise(py)
            }

            fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
                let other = other.get();
                self.require_open(py)?;
                other.require_open(py)?;
                let same = |theirs: &_| Ok(self.read().same_as(theirs));
                Ok(std::ptr::eq(self, other) || py.detach(|| other.aside(same)).or_raise(py)?)
            }

            /// Checks every invariant.
            fn validate(&self, py: Python<'_>) -> PyResult<()> {
                self.require_open(py)?;
                py.detach(|| self.read().validate()).or_raise(py)
            }

            /// Replaces the file by a snapshot, atomically and durably.
            fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
                let py = path.py();
                self.require_open(py)?;
                let path = params::path(path)?;
                py.detach(|| self.frozen(|core| files::save(core, &path))).or_raise(py)
            }

            /// The snapshot as bytes.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                self.require_open(py)?;
                let bytes = py.detach(|| self.frozen(|core| snapshot::to_bytes(core)));
                Ok(PyBytes::new(py, &bytes.or_raise(py)?))
            }

            fn __reduce__<'py>(
                this: &Bound<'py, Self>,
            ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
                let bytes = this.get().to_bytes(this.py())?;
                Ok((this.get_type().getattr("from_bytes")?, (bytes,)))
            }

            #[getter]
            fn hash(&self) -> &'static str {
                self.hasher().name()
            }

            #[getter]
            fn seed(&self) -> u64 {
                self.hasher().seed()
            }
        }
    };
}
pub(crate) use whole;

macro_rules! merged {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Takes in what the other holds, as if all of it had been added here.
            fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
                let other = other.get();
                self.require_writable(py)?;
                other.require_open(py)?;
                let _registered = self.register();
                py.detach(|| other.aside(|theirs| self.write().merge(theirs))).or_raise(py)
            }

            fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
                self.merge(py, other)
            }

            fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                let other = other.get();
                self.require_open(py)?;
                other.require_open(py)?;
                let made = py.detach(|| {
                    other.aside(|theirs| {
                        self.read().require_compatible(theirs)?;
                        #[allow(unused_mut, reason = "some cores merge through a shared reference")]
                        let mut made = self.read().copy()?;
                        made.merge(theirs).map(|()| made)
                    })
                });
                self.like(py, made.or_raise(py)?)
            }
        }
    };
}
pub(crate) use merged;

macro_rules! loaded {
    ($class:ident, $kind:ident $(, $clock:ident)?) => {
        #[pymethods]
        impl $class {
            /// Reads a file that `save` wrote.
            #[classmethod]
            #[pyo3(signature = (path $(, *, $clock=None)?))]
            fn load(
                cls: &Bound<'_, PyType>,
                path: &Bound<'_, PyAny>,
                $($clock: Option<&Bound<'_, PyAny>>)?
            ) -> PyResult<Py<PyAny>> {
                let loaded = files::load(path, Some(Kind::$kind))?;
                files::to_object(cls.py(), loaded, None$(.or($clock))?)
            }

            /// Reads what `to_bytes` returned.
            #[classmethod]
            #[pyo3(signature = (data $(, *, $clock=None)?))]
            fn from_bytes(
                cls: &Bound<'_, PyType>,
                data: &Bound<'_, PyAny>,
                $($clock: Option<&Bound<'_, PyAny>>)?
            ) -> PyResult<Py<PyAny>> {
                let loaded = files::from_bytes(data, Some(Kind::$kind))?;
                files::to_object(cls.py(), loaded, None$(.or($clock))?)
            }
        }
    };
}
pub(crate) use loaded;

/// The class has the keywords `SIZING`, and `plan_of` them, `plan_record` and `plan_of_record`. Both literals
/// are what `inspect.signature` shows.
macro_rules! planned {
    ($class:ident, $core:ident, $new:tt, $plan:tt) => {
        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (capacity=None, error_rate=None, **words), text_signature = $new)]
            fn py_new<'py>(
                py: Python<'py>,
                capacity: Option<&Bound<'py, PyAny>>,
                error_rate: Option<&Bound<'py, PyAny>>,
                words: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Self> {
                let words = Words::new(py, words, &[SIZING, HASHING])?;
                let plan = plan_of(&words, capacity, error_rate)?;
                Ok(Self::new($core::new(plan, words.hasher()?).or_raise(py)?))
            }

            /// Sizes, memory and predicted error for a goal; allocates nothing.
            #[classmethod]
            #[pyo3(signature = (capacity=None, error_rate=None, **words), text_signature = $plan)]
            fn plan<'py>(
                cls: &Bound<'py, PyType>,
                capacity: Option<&Bound<'py, PyAny>>,
                error_rate: Option<&Bound<'py, PyAny>>,
                words: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let words = Words::new(cls.py(), words, &[SIZING])?;
                plan_record(cls.py(), &plan_of(&words, capacity, error_rate)?)
            }

            /// An empty filter of a plan's sizes.
            #[classmethod]
            #[pyo3(signature = (plan, *, hash="xxh3", seed=0, secret=None))]
            fn from_plan(
                cls: &Bound<'_, PyType>,
                plan: &Bound<'_, PyAny>,
                hash: &str,
                seed: i128,
                secret: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let py = cls.py();
                let plan = plan_of_record(plan)?;
                let hasher = params::hasher(py, hash, seed, secret)?;
                Ok(Self::new($core::new(plan, hasher).or_raise(py)?))
            }
        }
    };
}
pub(crate) use planned;

macro_rules! asked {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// `key in filter` for every key, as a NumPy array.
            #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
            fn contains_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                nulls: &str,
                threads: i64,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.require_open(keys.py())?;
                keys::ask(self.hasher(), keys, nulls, threads, |keys, out, crew| {
                    self.read().contains_many(keys, out, crew);
                })
            }
        }
    };
}
pub(crate) use asked;

/// The class has `add_times` and `count_one`, and its core counts in `$count`.
macro_rules! counted {
    ($class:ident, $count:ty) => {
        impl $class {
            /// `add` of one occurrence, which `short_calls.rs` puts on the class.
            #[inline(always)]
            pub(crate) fn add_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                self.add_times(key, 1)
            }
        }

        #[pymethods]
        impl $class {
            /// Adds `count` occurrences of the key; True iff it was certainly absent before.
            ///
            /// Calls with the key alone take a shorter way, see `short_calls.rs`.
            #[pyo3(signature = (key, count=None), text_signature = "($self, key, count=1)")]
            fn add(
                &self,
                key: &Bound<'_, PyAny>,
                count: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<bool> {
                self.add_times(key, params::maybe_whole("count", count)?.unwrap_or(1))
            }

            /// Adds every key, once or as often as `counts` says, in order; a NumPy array of what `add`
            /// would have answered.
            #[pyo3(signature = (keys, counts=None, *, nulls="refuse", threads=1))]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                counts: Option<&Bound<'py, PyAny>>,
                nulls: &str,
                threads: i64,
            ) -> PyResult<Bound<'py, PyAny>> {
                let options = Options::parse(keys.py(), nulls, threads)?;
                let (keys, counts) = weights::of(keys, counts)?;
                let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
                    let counts = counts.as_deref().map(|all| part.of(all));
                    Done::done(self.core.add_many(part.keys, counts.as_deref(), out, crew))
                };
                let verb = Verb::new(self.hasher(), &add).writers(&self.writers);
                keys::run(&verb, &keys, options)
            }

            /// Takes `count` occurrences away again, from all of the key's counters or from none.
            #[pyo3(signature = (key, count=None), text_signature = "($self, key, count=1)")]
            fn remove(
                &self,
                key: &Bound<'_, PyAny>,
                count: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                let count = params::maybe_whole("count", count)?.unwrap_or(1);
                let hash = hash_key(self.hasher(), key, None)?;
                self.core.remove(hash, count).or_raise(key.py())
            }

            /// Removes every key, once or as often as `counts` says, in order, until one is absent.
            #[pyo3(signature = (keys, counts=None, *, nulls="refuse"))]
            fn remove_many(
                &self,
                keys: &Bound<'_, PyAny>,
                counts: Option<&Bound<'_, PyAny>>,
                nulls: &str,
            ) -> PyResult<()> {
                let options = Options::parse(keys.py(), nulls, 1)?;
                let (keys, counts) = weights::of(keys, counts)?;
                let remove = |part: Part<'_>, _: &mut [()], _: &mut Crew| {
                    let counts = counts.as_deref().map(|all| part.of(all));
                    self.core.remove_many(part.keys, counts.as_deref())
                };
                let verb = Verb::new(self.hasher(), &remove).writers(&self.writers);
                keys::answers(&verb, &keys, options).map(drop)
            }

            fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                Ok(self.count_one(key)? != 0)
            }

            /// How often the key was added: never too small, unless a counter is stuck, see `estimate`.
            fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                self.count_one(key)
            }

            /// `count` for every key, as a NumPy array.
            #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
            fn count_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                nulls: &str,
                threads: i64,
            ) -> PyResult<Bound<'py, PyAny>> {
                keys::ask(self.hasher(), keys, nulls, threads, |keys, out: &mut [$count], crew| {
                    self.core.count_many(keys, out, crew);
                })
            }

            /// The count with its bounds: at most `upper` for certain, at least `lower` with `confidence`.
            #[pyo3(signature = (key, *, confidence=0.95))]
            fn estimate<'py>(
                &self,
                key: &Bound<'py, PyAny>,
                confidence: f64,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = key.py();
                params::check_confidence(py, confidence)?;
                let hash = hash_key(self.hasher(), key, None)?;
                let found = py.detach(|| self.core.estimate(hash, confidence));
                records::estimate_record(py, &found, confidence, |count| count)
            }

            /// Estimated number of distinct keys inside, from the fill; infinite when every counter is set.
            fn estimated_items(&self, py: Python<'_>) -> f64 {
                py.detach(|| self.core.measure().items)
            }

            /// The counters of a key, each once, in the order they are derived.
            fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
                Ok(self.core.positions(hash_key(self.hasher(), key, None)?))
            }

            /// Every counter's value, as a NumPy array.
            fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let values: Vec<$count> = py.detach(|| self.core.values());
                keys::to_numpy(py, &values, <$count as keys::Item>::DTYPE)
            }
        }
    };
}
pub(crate) use counted;
