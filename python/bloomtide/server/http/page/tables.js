// Rows of tables: made once for each name, then only changed.

import { $, el, visible } from "./words.js";

export const empty = (columns, text, code) =>
  el("tr", {}, el("td", { class: "empty", colspan: columns }, text, code ? el("code", {}, code) : null));

// Grey rows, as many as there will be about.
export const ghosts = (columns, rows) =>
  Array.from({ length: rows }, () =>
    el("tr", { class: "ghost", "aria-hidden": "true" }, Array.from({ length: columns }, () => el("td", {}, "–"))));

// The key that is looked at is marked wherever it stands.
let current = null;
const markRow = (row) => row.toggleAttribute("aria-current", row.dataset.name === current);
export function mark(item) {
  current = keyName(item);
  document.querySelectorAll("tr[data-name]").forEach(markRow);
}

// Puts the items into a table body. While somebody points at a row or has the focus in one, all rows
// keep their places; numbers change all the same.
export function fill(id, items, name, make, change) {
  const body = $(id);
  const known = (body.rowsByName ??= new Map());
  const fresh = new Map();
  for (const item of items) {
    const row = known.get(name(item)) || make(item);
    row.dataset.name = name(item);
    markRow(row);
    change(row, item, fresh.size);
    fresh.set(name(item), row);
  }
  body.rowsByName = fresh;
  const rows = [...fresh.values()];
  const held = (body.matches(":hover") || body.querySelector(":focus-visible")) && rows.some((row) => row.parentNode === body);
  if (held) {
    const stay = new Set(rows);
    const free = rows.filter((row) => row.parentNode !== body);
    for (const row of [...body.children])
      if (!stay.has(row)) free.length ? row.replaceWith(free.shift()) : row.remove();
    body.append(...free);
  } else if (rows.length !== body.children.length || rows.some((row, i) => body.children[i] !== row)) {
    body.replaceChildren(...rows);
  }
  return held;
}

// A row of cells: a class for an empty one, or the cell itself.
export const row = (...cells) => el("tr", {}, cells.map((cell) => (typeof cell === "string" ? el("td", { class: cell }) : cell)));
export const put = (cell, ...nodes) => cell.replaceChildren(...nodes.filter((node) => node != null));

// The cell that says a key, and chooses it.
export function keyCell(item, choose) {
  const text = visible(String(item.key_int ?? item.key));
  const button = el("button", { type: "button", title: text }, text || "(empty)");
  button.addEventListener("click", () => choose(item));
  return el("td", { class: "name" }, el("i"), button);
}

export const keyName = (item) => item.key_base64 || item.key_int || `${typeof item.key} ${item.key}`;
export const keyParams = (item) =>
  item.key_base64 ? { key_base64: item.key_base64 }
    : typeof item.key === "number" ? { key_int: item.key_int ?? item.key } : { key: item.key };
