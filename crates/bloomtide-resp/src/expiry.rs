//! Names that have expired: forgotten when somebody asks for them, and a few more each time.
//!
//! # Invariants
//! I1  No command sees a name whose time has come: `before` forgets those that a request names, and whoever looks
//!     at all names forgets those it passes.
//! I2  What was forgotten is noted as a DEL before anything else is done, so a clock that jumps back, or a
//!     replay, does not bring it back. A replay itself forgets by these notes alone.

use crate::changes::Changes;
use crate::store::{Store, Time};
use crate::wire::request::Args;

/// Names that a command forgets beside its own: more come with the next one, or with the host's clock.
const FEW: usize = 32;

/// The time in milliseconds; 0 before 1970.
#[inline]
pub fn millis(now: f64) -> Time {
    (now * 1000.0) as Time
}

/// Forgets what a request names that has expired, and some that it does not name.
#[cold]
pub fn before(args: Args<'_>, store: &mut Store, changes: &mut Changes, now: f64) {
    // Any element may be a name. One that is not meant as a name has expired all the same.
    for name in args.from(1).iter() {
        let expires = store.look(name).and_then(|slot| store.expires(slot));
        if expires.is_some_and(|time| time <= millis(now)) {
            forget(name, store, changes, now);
        }
    }
    forget_due(FEW, store, changes, now);
}

/// Forgets at most so many names that have expired, the first ones first; how many it were.
pub fn forget_due(most: usize, store: &mut Store, changes: &mut Changes, now: f64) -> usize {
    let mut forgotten = 0;
    while forgotten < most
        && let Some(name) = store.due(millis(now)).map(<[u8]>::to_vec)
    {
        forget(&name, store, changes, now);
        forgotten += 1;
    }
    forgotten
}

/// Forgets a name that has expired, if nobody did before.
pub fn forget(name: &[u8], store: &mut Store, changes: &mut Changes, now: f64) {
    if store.remove(name).is_some() {
        store.expired += 1;
        changes.note(now, &[b"DEL", name]);
    }
}
