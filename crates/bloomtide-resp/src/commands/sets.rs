//! What BF.* and CF.* do alike: asking, and filters by chunks.
//!
//! SCANDUMP key 0 gives the head and the number 1; with that number it gives the first chunk and the next number, and so
//! on until the number 0. LOADCHUNK takes each chunk with the number that came with it. A dump that was
//! changed on the way, or taken while keys came in, is refused at its last chunk.

use super::words::{self, NOT_FOUND, note};
use crate::command::Call;
use crate::failure::{Answer, Failure};
use crate::store::Store;
use crate::structure::{self, Kind, Structure};
use crate::structures::{Arriving, Membership};
use crate::wire::number;
use crate::wire::reply::Reply;
use std::any::TypeId;
use std::io::{self, Write};

/// Bytes of a chunk at most, but for the head.
const CHUNK: usize = 16 << 20;
const BAD: Failure = Failure::new("ERR received bad data");
const NOT_A_NUMBER: Failure = Failure::new("ERR Second argument must be numeric");

/// The filter to ask. A key of another kind is a filter without keys, as RedisBloom has it; one that is still
/// arriving is an error: of its keys nothing is known yet.
pub(super) fn asked<'a, T: Structure>(
    store: &'a mut Store,
    name: &[u8],
) -> Result<Option<&'a T>, Failure> {
    match store.get::<T>(name) {
        Err(failure) if failure != Failure::ARRIVING => Ok(None),
        found => found,
    }
}

pub(super) fn exists<T: Membership>(call: &mut Call<'_>) -> Answer {
    let filter = asked::<T>(call.store, call.args.at(1))?;
    call.reply.bool(filter.is_some_and(|filter| filter.contains(call.args.at(2))));
    Ok(())
}

pub(super) fn mexists<T: Membership>(call: &mut Call<'_>) -> Answer {
    let filter = asked::<T>(call.store, call.args.at(1))?;
    let keys = call.args.from(2);
    call.reply.array(keys.len());
    for key in keys.iter() {
        call.reply.bool(filter.is_some_and(|filter| filter.contains(key)));
    }
    Ok(())
}

/// Answers the next chunk of a structure of type T; the end is written by `end`.
pub(super) fn dump<T: Structure>(call: &mut Call<'_>, end: impl FnOnce(&mut Reply)) -> Answer {
    let structure = call.store.get::<T>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let iterator = number::whole(call.args.at(2)).ok_or(NOT_A_NUMBER)?;
    let failed = |error: io::Error| Failure::said(format!("ERR {error}"));
    let reply = &mut *call.reply;
    reply.array(2);
    if iterator == 0 {
        reply.int(1);
        reply.bulk(&Arriving::head(structure).map_err(failed)?);
        return Ok(());
    }
    let window = Window { skip: iterator - 1, bytes: Vec::new() };
    let bytes = structure::write(structure, window).map_err(failed)?.bytes;
    if bytes.is_empty() {
        reply.int(0);
        end(reply);
    } else {
        reply.count(iterator + bytes.len() as u64);
        reply.bulk(&bytes);
    }
    Ok(())
}

/// Keeps a chunk of what is written.
struct Window {
    skip: u64,
    bytes: Vec<u8>,
}

impl Write for Window {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.skip.min(bytes.len() as u64) as usize;
        self.skip -= skipped as u64;
        let rest = &bytes[skipped..];
        let room = CHUNK - self.bytes.len();
        self.bytes.extend_from_slice(&rest[..rest.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes a chunk of a structure of type T.
pub(super) fn load<T: Structure>(call: &mut Call<'_>) -> Answer {
    let tag = Kind::of_type(TypeId::of::<T>()).tag;
    let (name, data) = (call.args.at(1), call.args.at(3));
    let iterator = number::whole(call.args.at(2)).ok_or(NOT_A_NUMBER)?;
    match call.store.find(name) {
        None if iterator == 1 => {
            let arriving = Arriving::new(data).filter(|it| it.tag == tag).ok_or(BAD)?;
            call.store.admit_as(name, arriving.admitted())?;
            call.store.insert(name, Box::new(arriving));
        }
        None => return Err(NOT_FOUND),
        Some(slot) => {
            // RedisBloom's words for a key that is there already.
            let arriving = call.store.at_mut::<Arriving>(slot).map_err(|_| BAD)?;
            if iterator != 1 + arriving.bytes() + data.len() as u64 {
                return Err(BAD);
            }
            let (admitted, taken) = (arriving.admitted(), arriving.take(data));
            // Larger than was admitted it is only if somebody made the chunks up.
            let more = |structure: &dyn Structure| structure.admitted().saturating_sub(admitted);
            match taken {
                Some(None) => {}
                Some(Some(structure)) if call.store.admit(more(&*structure)).is_ok() => {
                    call.store.insert(name, structure);
                }
                _ => {
                    call.store.remove(name);
                    call.changes.note(call.now, &[b"DEL", name]);
                    return Err(BAD);
                }
            }
        }
    }
    note(call);
    words::ok(call)
}
