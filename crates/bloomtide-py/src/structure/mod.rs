//! What the classes of several structures have in common, written once.
//!
//! A class implements `Structure`, which says how its core is read and changed. The macros then give it
//! the methods, each as a `#[pymethods]` block of its own:
//!
//!   whole!        copy, clear, equality, validate, save, to_bytes, pickling, hash and seed
//!   merged!       merge, `|` and `|=`
//!   loaded!       load and from_bytes, with a clock where the class has one
//!   by_words!     a class method whose arguments are read by their signature
//!   planned!      the constructor, plan and from_plan
//!   asked!        contains_many
//!   counted!      add, remove, count_many, estimate: for counters without a time
//!   getters!      properties

mod methods;

pub(crate) use methods::by_words;

use crate::writers::Registered;
use bloomtide_core::{Hasher, Result};
use prelude::*;
use pyo3::PyClass;
use std::ops::Deref;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// What the macros name, for the files of the classes.
pub(crate) mod prelude {
    pub(crate) use super::methods::{asked, by_words, counted, loaded, merged, planned, whole};
    pub(crate) use super::{
        Done, Locked, Structure, behind_lock, getters, same_class, shared, watched,
    };
    pub(crate) use crate::errors::{OrRaise, parameter, removal_refused, to_python, with_added};
    pub(crate) use crate::instants::Clock;
    pub(crate) use crate::key::hash_key;
    pub(crate) use crate::keys::{self, Options, Part, Verb};
    pub(crate) use crate::params;
    pub(crate) use crate::python::*;
    pub(crate) use crate::records::{self, Sizes, fields, new_record, shown_goal};
    pub(crate) use crate::watch::Watch;
    pub(crate) use crate::words::Words;
    pub(crate) use crate::{files, weights, writers};
    pub(crate) use bloomtide_core::snapshot::{self, Kind, Loaded, RealDisk, Snapshot};
    pub(crate) use bloomtide_core::{Crew, Error, Hasher, Result};
    pub(crate) use pyo3::types::{PyBytes, PyTuple, PyType};
    pub(crate) use std::ops::Deref;
    pub(crate) use std::sync::RwLockWriteGuard;
    pub(crate) use std::sync::atomic::AtomicUsize;
}

/// A class around one structure of the core.
pub(crate) trait Structure: Sized {
    type Core;

    fn hasher(&self) -> &Hasher;

    /// The core as it is now, for a question.
    fn read(&self) -> impl Deref<Target = Self::Core>;

    /// Runs `work` on the core, holding no lock that another structure may wait for: two structures merged
    /// or compared both ways at once must not wait for each other.
    fn aside<T>(&self, work: impl FnOnce(&Self::Core) -> Result<T>) -> Result<T>;

    /// Runs `work` on what a snapshot of this moment is written from.
    fn frozen<T>(&self, work: impl FnOnce(&(dyn Snapshot + Sync)) -> Result<T>) -> Result<T>;

    /// The core as files are read, which tells its class.
    fn loaded(core: Self::Core) -> Loaded;

    /// The clock, if the class has one.
    fn clock(&self) -> Option<&Clock> {
        None
    }

    /// The Python object of another core, with this one's clock.
    fn like(&self, py: Python<'_>, core: Self::Core) -> PyResult<Py<PyAny>> {
        let clock = self.clock().and_then(|clock| clock.given(py));
        files::to_object(py, Self::loaded(core), clock.as_ref())
    }

    /// Counts those that write without holding the interpreter; None if a lock orders all writers.
    fn writers(&self) -> Option<&AtomicUsize> {
        None
    }

    /// Refuses use after `close`.
    fn require_open(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Refuses changes after `close`, and to what is open for reading.
    fn require_writable(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Refuses what was read from, or added to, a mapped file that was cut before this call. Verbs that the core
    /// cannot fail call it afterwards.
    fn require_whole(&self) -> Result<()> {
        Ok(())
    }

    /// Warns, once, if it holds far more keys than it was made for. Called after additions, by those that look often.
    fn look(&self, py: Python<'_>) -> PyResult<()> {
        let _ = py;
        Ok(())
    }

    /// The same after so many rows of a batch, if it is time.
    fn look_after(&self, py: Python<'_>, rows: usize) -> PyResult<()> {
        let _ = (py, rows);
        Ok(())
    }

    /// It was emptied.
    fn reset_watch(&self) {}

    /// For a caller that changes the structure without holding the interpreter. It still holds it now.
    fn register(&self) -> Option<Registered<'_>> {
        self.writers().map(Registered::new)
    }
}

/// A core behind one lock: many readers or one writer. Nobody asks for the interpreter while holding it, so
/// waiting for it cannot deadlock.
pub(crate) struct Locked<C>(RwLock<C>);

impl<C> Locked<C> {
    pub(crate) fn new(core: C) -> Self {
        Locked(RwLock::new(core))
    }

    // A poisoned lock means a panic inside the core, which has none; its data is still sound.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, C> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, C> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `Structure` for a class whose `core` is `Locked`, with a `hasher` beside it.
macro_rules! behind_lock {
    ($class:ident, $core:ty, $kind:ident $(, $more:item)*) => {
        impl Structure for $class {
            type Core = $core;

            fn hasher(&self) -> &Hasher {
                &self.hasher
            }

            fn read(&self) -> impl Deref<Target = $core> {
                self.core.read()
            }

            fn aside<T>(&self, work: impl FnOnce(&$core) -> Result<T>) -> Result<T> {
                let copy = self.core.read().copy()?;
                work(&copy)
            }

            fn frozen<T>(
                &self,
                work: impl FnOnce(&(dyn Snapshot + Sync)) -> Result<T>,
            ) -> Result<T> {
                self.aside(|core| work(core))
            }

            fn loaded(core: $core) -> Loaded {
                Loaded::$kind(core.into())
            }

            $($more)*
        }

        impl $class {
            pub(crate) fn write(&self) -> RwLockWriteGuard<'_, $core> {
                self.core.write()
            }
        }
    };
}
pub(crate) use behind_lock;

/// `Structure` for a class whose `core` orders its writers itself, with `writers` beside it. What a snapshot
/// is written from is the core, or what its `freeze` answers.
macro_rules! shared {
    ($class:ident, $core:ty, |$made:ident| $loaded:expr, |$own:ident| $frozen:expr $(, $more:item)*) => {
        impl Structure for $class {
            type Core = $core;

            #[inline(always)]
            fn hasher(&self) -> &Hasher {
                self.core.hasher()
            }

            #[inline(always)]
            fn read(&self) -> impl Deref<Target = $core> {
                &self.core
            }

            fn aside<T>(
                &self,
                work: impl FnOnce(&$core) -> Result<T>,
            ) -> Result<T> {
                work(&self.core)
            }

            fn frozen<T>(
                &self,
                work: impl FnOnce(
                    &(dyn Snapshot + Sync),
                ) -> Result<T>,
            ) -> Result<T> {
                let $own = &self.core;
                work(&$frozen)
            }

            fn loaded($made: $core) -> Loaded {
                $loaded
            }

            fn writers(&self) -> Option<&AtomicUsize> {
                Some(&self.writers)
            }

            $($more)*
        }

        impl $class {
            #[inline(always)]
            fn write(&self) -> &$core {
                &self.core
            }
        }
    };
}
pub(crate) use shared;

/// Items of `Structure` for a class with a `watch`, in the macros above.
macro_rules! watched {
    () => {
        fn look(&self, py: Python<'_>) -> PyResult<()> {
            self.watch.look(py, || self.read().overfull())
        }

        fn look_after(&self, py: Python<'_>, rows: usize) -> PyResult<()> {
            if self.watch.is_due_after(rows) { self.look(py) } else { Ok(()) }
        }

        fn reset_watch(&self) {
            self.watch.reset();
        }
    };
}
pub(crate) use watched;

/// The other one of a merge, which must be of this class.
pub(crate) fn same_class<'a, 'py, C: PyClass>(
    other: &'a Object<'py>,
) -> PyResult<&'a Bound<'py, C>> {
    let (own, theirs) = (other.py().get_type::<C>(), other.get_type());
    other.cast::<C>().map_err(|error| match theirs.module() {
        Ok(module) if module == "bloomtide" => {
            let error = Error::incompatible("kind", class_name(&own), class_name(&theirs));
            to_python(other.py(), error)
        }
        _ => error.into(),
    })
}

/// What a verb comes to that fails in some cores and cannot fail in others.
pub(crate) trait Done<E> {
    fn done(self) -> std::result::Result<(), E>;
}

impl<E> Done<E> for () {
    fn done(self) -> std::result::Result<(), E> {
        Ok(())
    }
}

impl<E> Done<E> for std::result::Result<(), E> {
    fn done(self) -> std::result::Result<(), E> {
        self
    }
}

/// Properties: `getters!(Class, this => name: type = expression; ...)`.
macro_rules! getters {
    ($class:ident, $this:ident => $($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        #[pymethods]
        impl $class {
            $(
                $(#[$doc])*
                #[getter]
                fn $name(&self) -> $type {
                    let $this = self;
                    $value
                }
            )*
        }
    };
}
pub(crate) use getters;
