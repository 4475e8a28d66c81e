//! What a segment holds becomes its file.

use super::columns::Cells;
use super::filled::Filled;
use super::gate::Gate;
use super::header::Header;
use super::plan::{self, Load};
use super::varint;
use super::{Contents, Goal, Named, bits};
use crate::error::Result;

/// The file of a segment.
pub fn build(contents: &Contents, goal: &Goal) -> Result<Vec<u8>> {
    contents.check()?;
    let filled = Filled::of(&contents.rows);
    let load = Load::of(contents);
    let sizes = plan::plan(&load, filled.len() as u32, goal)?;
    let mut gate = Gate::new(sizes.gate_bits)?;
    for one in contents.items.chunk_by(|a, b| a.mark == b.mark) {
        gate.add(one[0].mark, sizes.gate_hashes);
    }
    let cells = Cells::of(filled, sizes.columns, &contents.items, sizes.hashes, goal.policy)?;
    let header = Header {
        level: contents.level,
        policy: goal.policy,
        order: 0,
        hasher: goal.hasher,
        begin: contents.begin,
        end: contents.end,
        sizes,
        keys: load.keys,
        items: contents.items.len() as u64,
        unlisted: contents.unlisted,
        names: 0,
        name_bytes: 0,
        code_bits: 0,
        error_rate: goal.error_rate,
        gate_error: goal.gate_error,
        predicted_error: 0.0,
        predicted_gate_error: 0.0,
        rows: contents.rows.clone(),
    };
    assemble(header, &gate, &cells, &contents.names)
}

/// The file of these parts. What the parts say of themselves is written into the header.
pub(super) fn assemble(
    mut header: Header,
    gate: &Gate,
    cells: &Cells,
    names: &[Named],
) -> Result<Vec<u8>> {
    let encoded = cells.encode()?;
    let mut body = Vec::new();
    bits::to_bytes(&gate.words, gate.bits, &mut body);
    bits::to_bytes(encoded.maps, header.shape().map_bits().unwrap_or(0), &mut body);
    body.extend_from_slice(&encoded.index);
    bits::to_bytes(encoded.codes.words(), encoded.codes.len(), &mut body);
    let before = body.len();
    encode_names(names, &mut body);
    header.order = encoded.order;
    header.code_bits = encoded.codes.len();
    header.names = names.len() as u64;
    header.name_bytes = (body.len() - before) as u64;
    let taken = cells.used_by_row();
    header.predicted_error =
        plan::measured_error(&taken, header.sizes.columns, header.sizes.hashes);
    header.predicted_gate_error = gate.fill().powi(header.sizes.gate_hashes as i32);
    Ok(header.seal(&body))
}

fn encode_names(names: &[Named], out: &mut Vec<u8>) {
    let mut key = Vec::new();
    for name in names {
        key.clear();
        let kind = name.key.encode(&mut key);
        out.push(kind);
        varint::put(key.len() as u64, out);
        out.extend_from_slice(&key);
        varint::put(name.count, out);
    }
}
