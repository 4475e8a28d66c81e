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

            fn __deepcopy__(&self, py: Python<'_>, memo: &Object<'_>) -> PyResult<Py<PyAny>> {
                let _ = memo;
                self.copy(py)
            }

            /// Forgets every key, and the time if there is one.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.require_writable(py)?;
                let _registered = self.register();
                py.detach(|| Done::done(self.write().clear())).or_raise(py)?;
                self.reset_watch();
                self.require_whole().or_raise(py)
            }

            fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
                let other = other.get();
                self.require_open(py)?;
                other.require_open(py)?;
                let same = |theirs: &_| Ok(self.read().same_as(theirs));
                let same =
                    std::ptr::eq(self, other) || py.detach(|| other.aside(same)).or_raise(py)?;
                self.require_whole().and_then(|()| other.require_whole()).or_raise(py)?;
                Ok(same)
            }

            /// Checks every invariant.
            fn validate(&self, py: Python<'_>) -> PyResult<()> {
                self.require_open(py)?;
                py.detach(|| self.read().validate()).or_raise(py)
            }

            /// Replaces the file by a snapshot, atomically and durably.
            fn save(&self, path: &Object<'_>) -> PyResult<()> {
                let py = path.py();
                self.require_open(py)?;
                let path = params::path(path)?;
                py.detach(|| self.frozen(|core| snapshot::save(core, &path, &RealDisk)))
                    .or_raise(py)?;
                self.look(py)
            }

            /// The snapshot as bytes.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                self.require_open(py)?;
                let bytes = py.detach(|| self.frozen(|core| snapshot::to_bytes(core)));
                Ok(PyBytes::new(py, &bytes.or_raise(py)?))
            }

            fn __reduce__<'py>(
                this: &Bound<'py, Self>,
            ) -> PyResult<(Object<'py>, (Bound<'py, PyBytes>,))> {
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
            fn merge(&self, other: &Object<'_>) -> PyResult<()> {
                let (py, other) = (other.py(), same_class::<Self>(other)?.get());
                self.require_writable(py)?;
                other.require_open(py)?;
                let _registered = self.register();
                py.detach(|| other.aside(|theirs| self.write().merge(theirs))).or_raise(py)?;
                self.look(py)
            }

            fn __ior__(&self, other: &Bound<'_, Self>) -> PyResult<()> {
                self.merge(other)
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
                files::looked_at(py, self.like(py, made.or_raise(py)?)?)
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
                path: &Object<'_>,
                $($clock: Option<&Object<'_>>)?
            ) -> PyResult<Py<PyAny>> {
                let loaded = files::load(path, Some(Kind::$kind))?;
                let object = files::to_object(cls.py(), loaded, None$(.or($clock))?)?;
                files::looked_at(cls.py(), object)
            }

            /// Reads what `to_bytes` returned.
            #[classmethod]
            #[pyo3(signature = (data $(, *, $clock=None)?))]
            fn from_bytes(
                cls: &Bound<'_, PyType>,
                data: &Object<'_>,
                $($clock: Option<&Object<'_>>)?
            ) -> PyResult<Py<PyAny>> {
                let loaded = files::from_bytes(data, Some(Kind::$kind))?;
                files::to_object(cls.py(), loaded, None$(.or($clock))?)
            }
        }
    };
}
pub(crate) use loaded;

/// A class method, or the constructor as `#[new]`, that reads its arguments by the literal: `inspect.signature` shows it.
macro_rules! by_words {
    ($class:ident, $(#[$attribute:meta])* $name:ident, $signature:tt, |$cls:ident, $words:ident| $do:expr) => {
        #[pymethods]
        impl $class {
            $(#[$attribute])*
            #[classmethod]
            #[pyo3(signature = (*places, **words), text_signature = $signature)]
            fn $name<'py>(
                $cls: &Bound<'py, PyType>,
                places: &Bound<'py, PyTuple>,
                words: Option<&Dict<'py>>,
            ) -> PyResult<Py<PyAny>> {
                let $words = Words::new($signature, places, words)?;
                $do
            }
        }
    };
}
pub(crate) use by_words;

/// The file has `plan_of` a class and its words, and `plan_record`. The literals belong to the constructor, to
/// `plan` and to `from_plan`.
macro_rules! planned {
    ($class:ident, $core:ident, $new:tt, $plan:tt, $from:tt) => {
        by_words!($class, #[new] py_new, $new, |cls, words| Self::made(cls, &words));
        by_words!(
            $class,
            /// Sizes, memory and predicted error for a goal; allocates nothing.
            plan, $plan, |cls, words| plan_record(words.py, &plan_of(cls, &words)?).map(Bound::unbind)
        );
        by_words!(
            $class,
            /// An empty filter of a plan's sizes.
            from_plan, $from, |cls, words| Self::made(cls, &words)
        );

        impl $class {
            fn made(cls: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<Py<PyAny>> {
                let made = $core::new(plan_of(cls, words)?, words.hasher()?).or_raise(words.py)?;
                files::to_object(words.py, Self::loaded(made), words.word("clock")?.as_ref())
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
            #[pyo3(signature = (keys, **options))]
            #[pyo3(text_signature = "($self, keys, *, nulls='refuse', threads=1)")]
            fn contains_many<'py>(
                &self,
                keys: &Object<'py>,
                options: Option<&Dict<'py>>,
            ) -> Answer<'py> {
                self.require_open(keys.py())?;
                let answers = keys::ask(self.hasher(), keys, options, |keys, out, crew| {
                    self.read().contains_many(keys, out, crew);
                })?;
                self.require_whole().or_raise(keys.py())?;
                Ok(answers)
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
            pub(crate) fn add_one(&self, key: &Object<'_>) -> PyResult<bool> {
                self.add_times(key, 1)
            }
        }

        #[pymethods]
        impl $class {
            /// Adds `count` occurrences of the key; True iff it was certainly absent before.
            ///
            /// Calls with the key alone take a shorter way, see `short_calls.rs`.
            #[pyo3(signature = (key, count=params::Times::ONCE), text_signature = "($self, key, count=1)")]
            fn add(&self, key: &Object<'_>, count: params::Times<'_>) -> PyResult<bool> {
                self.add_times(key, count.number())
            }

            /// Adds every key, once or as often as `counts` says, in order; a NumPy array of what `add`
            /// would have answered.
            #[pyo3(signature = (keys, counts=None, **options))]
            #[pyo3(text_signature = "($self, keys, counts=None, *, nulls='refuse', threads=1)")]
            fn add_many<'py>(
                &self,
                keys: &Object<'py>,
                counts: Option<&Object<'py>>,
                options: Option<&Dict<'py>>,
            ) -> Answer<'py> {
                let options = Options::of(keys.py(), options)?;
                let (keys, counts) = weights::of(keys, counts)?;
                let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
                    let counts = counts.as_deref().map(|all| part.of(all));
                    Done::done(self.core.add_many(part.keys, counts.as_deref(), out, crew))
                };
                let verb = Verb::new(self.hasher(), &add).writers(&self.writers);
                let answers = keys::run(&verb, &keys, options)?;
                self.look_after(keys.py(), answers.len()?)?;
                Ok(answers)
            }

            /// Takes `count` occurrences away again, from all of the key's counters or from none.
            #[pyo3(signature = (key, count=params::Times::ONCE), text_signature = "($self, key, count=1)")]
            fn remove(&self, key: &Object<'_>, count: params::Times<'_>) -> PyResult<()> {
                let hash = hash_key(self.hasher(), key, None)?;
                let removed = self.core.remove(hash, count.number());
                removed.map_err(|error| removal_refused(key.py(), error, &count))
            }

            /// Removes every key, once or as often as `counts` says, in order, until one is absent.
            #[pyo3(signature = (keys, counts=None, *, nulls="refuse"))]
            fn remove_many(
                &self,
                keys: &Object<'_>,
                counts: Option<&Object<'_>>,
                nulls: &str,
            ) -> PyResult<()> {
                let options = Options::parse(keys.py(), nulls)?;
                let (keys, counts) = weights::of(keys, counts)?;
                if self.policy() == "conservative" {
                    let error = Error::Unsupported { verb: "remove", policy: "conservative" };
                    return Err(with_added(keys.py(), to_python(keys.py(), error), 0));
                }
                let remove = |part: Part<'_>, _: &mut [()], _: &mut Crew| {
                    let counts = counts.as_deref().map(|all| part.of(all));
                    self.core.remove_many(part.keys, counts.as_deref())
                };
                let verb = Verb::new(self.hasher(), &remove).writers(&self.writers);
                keys::answers(&verb, &keys, options).map(drop)
            }

            fn __contains__(&self, key: &Object<'_>) -> PyResult<bool> {
                Ok(self.count_one(key)? != 0)
            }

            /// How often the key was added: never too small, unless a counter is stuck, see `estimate`.
            fn count(&self, key: &Object<'_>) -> PyResult<u64> {
                self.count_one(key)
            }

            /// `count` for every key, as a NumPy array.
            #[pyo3(signature = (keys, **options))]
            #[pyo3(text_signature = "($self, keys, *, nulls='refuse', threads=1)")]
            fn count_many<'py>(
                &self,
                keys: &Object<'py>,
                options: Option<&Dict<'py>>,
            ) -> Answer<'py> {
                keys::ask(self.hasher(), keys, options, |keys, out: &mut [$count], crew| {
                    self.core.count_many(keys, out, crew);
                })
            }

            /// The count with its bounds: at most `upper` for certain, at least `lower` with `confidence`.
            #[pyo3(signature = (key, *, confidence=0.95))]
            fn estimate<'py>(&self, key: &Object<'py>, confidence: f64) -> Answer<'py> {
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
            fn positions(&self, key: &Object<'_>) -> PyResult<Vec<u64>> {
                Ok(self.core.positions(hash_key(self.hasher(), key, None)?))
            }

            /// Every counter's value, as a NumPy array.
            fn cells<'py>(&self, py: Python<'py>) -> Answer<'py> {
                let values: Vec<$count> = py.detach(|| self.core.values());
                keys::to_numpy(py, &values)
            }
        }
    };
}
pub(crate) use counted;
