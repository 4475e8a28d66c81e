//! Structures by chunks: SCANDUMP and LOADCHUNK of BF.* and CF.*.
//!
//! SCANDUMP key 0 gives the head and the number 1; with that number it gives the first chunk and the next number, and so
//! on until the number 0. LOADCHUNK takes each chunk with the number that came with it. A dump that was
//! changed on the way, or taken while keys came in, is refused at its last chunk.

use crate::command::Call;
use crate::failure::{Answer, Failure};
use crate::structure::{Kind, Structure};
use crate::structures::Arriving;
use crate::structures::chunking::{chunk, head};
use crate::wire::number;
use crate::wire::reply::Reply;

const NOT_FOUND: Failure = Failure::new("ERR not found");
const BAD: Failure = Failure::new("ERR received bad data");
const NOT_A_NUMBER: Failure = Failure::new("ERR Second argument must be numeric");

/// Answers the next chunk; the end is written by `end`.
pub fn dump(call: &mut Call<'_>, end: impl FnOnce(&mut Reply)) -> Answer {
    let iterator = number::integer(call.args.at(2)).ok_or(NOT_A_NUMBER)?;
    let structure = call.store.get_any(call.args.at(1)).ok_or(NOT_FOUND)?;
    let failed = |error: std::io::Error| Failure::said(format!("ERR {error}"));
    let reply = &mut *call.reply;
    reply.array(2);
    match u64::try_from(iterator).map_err(|_| NOT_A_NUMBER)? {
        0 => {
            let head = head(structure).map_err(failed)?;
            reply.int(1);
            reply.bulk(&head);
        }
        iterator => {
            let bytes = chunk(structure, iterator - 1).map_err(failed)?;
            if bytes.is_empty() {
                reply.int(0);
                end(reply);
            } else {
                reply.count(iterator + bytes.len() as u64);
                reply.bulk(&bytes);
            }
        }
    }
    Ok(())
}

/// Takes a chunk of a structure of kind T.
pub fn load<T: Kind>(call: &mut Call<'_>) -> Answer {
    let (args, now) = (call.args, call.now);
    let (name, data) = (args.at(1), args.at(3));
    let iterator = number::whole(args.at(2)).ok_or(NOT_A_NUMBER)?;
    match call.store.find(name) {
        None if iterator == 1 => {
            let arriving = Arriving::new(data).ok_or(BAD)?;
            if arriving.tag() != T::TAG {
                return Err(BAD);
            }
            // Both the chunks and what they become must fit at the end.
            call.store.admit_as(name, arriving.total().saturating_mul(2))?;
            call.store.insert(name, Structure::Arriving(arriving));
        }
        None => return Err(NOT_FOUND),
        Some(slot) => {
            // RedisBloom's words for a key that is there already.
            let arriving = call.store.at_mut::<Arriving>(slot).map_err(|_| BAD)?;
            if iterator != 1 + arriving.come() + data.len() as u64 {
                return Err(BAD);
            }
            match arriving.take(data) {
                Ok(None) => call.store.recount(slot),
                Ok(Some(structure)) => {
                    call.store.insert(name, structure);
                }
                Err(failure) => {
                    call.store.remove(name);
                    call.changes.note(now, &[b"DEL", name]);
                    return Err(failure);
                }
            }
        }
    }
    call.changes.note_all(now, args.len(), args.iter());
    call.reply.ok();
    Ok(())
}
