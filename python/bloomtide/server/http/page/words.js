// Numbers, times and elements as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

const units = (value, names, size) => {
  let i = 0;
  while (Math.abs(value) >= size * 0.9995 && i < names.length - 1) { value /= size; i += 1; }
  return i ? `${Number(value).toPrecision(3)} ${names[i]}` : `${whole.format(value)} ${names[0]}`.trim();
};

export const exact = (value) => new Intl.NumberFormat("en", { maximumFractionDigits: 6 }).format(value);
export const number = (value) =>
  value == null ? "–" : Math.abs(value) >= 1e8 ? units(value, ["", "k", "M", "G", "T"], 1000)
    : Number.isInteger(value) || Math.abs(value) >= 100 ? whole.format(value) : tenth.format(value);
export const short = (value) => (value < 10000 ? number(value) : units(value, ["", "k", "M", "G", "T"], 1000).replace(/\.0+(?= )|(\.\d)0(?= )/, "$1"));
export const bytes = (value) => (value == null ? "–" : units(value, ["B", "kB", "MB", "GB", "TB"], 1000));
export const percent = (value) => {
  if (value == null) return "–";
  if (value > 0 && value < 1e-6) return value.toExponential(1);
  const shown = value * 100;
  return `${shown === 0 || shown >= 99.995 ? shown.toFixed(0) : shown >= 10 ? shown.toFixed(1) : shown >= 0.01 ? shown.toFixed(2) : shown.toFixed(4)} %`;
};

const when = (options) => {
  const format = new Intl.DateTimeFormat("en-GB", options);
  return (seconds) => format.format(seconds * 1000);
};
const clock = when({ hour: "2-digit", minute: "2-digit" });
const clockSeconds = when({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayMonth = when({ day: "numeric", month: "short" });
const dayYear = when({ day: "numeric", month: "short", year: "numeric" });
const year = when({ year: "numeric" });
const now = () => Date.now() / 1000;
const day = (seconds) => (year(seconds) === year(now()) ? dayMonth : dayYear)(seconds);
const clockOf = (seconds, step) => (step < 60 ? clockSeconds : clock)(seconds);
// At the edge of a chart: the day where one begins, and else the clock.
export const time = (seconds, step = 60) =>
  step >= 86400 || (step >= 60 && clock(seconds) === "00:00") ? day(seconds) : clockOf(seconds, step);
export const moment = (seconds, step = 60) =>
  step >= 86400 ? day(seconds) : day(seconds) === day(now()) ? clockOf(seconds, step) : `${day(seconds)} ${clockOf(seconds, step)}`;
export const range = (from, to) => {
  const [first, last] = [day(from), day(to)];
  const today = first === last && first === day(now());
  return `${today ? "" : `${first}, `}${clock(from)} to ${first === last ? "" : `${last}, `}${clock(to)}`;
};
export const span = (seconds) => {
  for (const [size, name] of [[86400, "d"], [3600, "h"], [60, "min"]])
    if (seconds >= size) return `${+(seconds / size).toFixed(1)} ${name}`;
  return `${Math.round(seconds)} s`;
};

// A key may have marks that turn the text around it, or that nobody sees: they are shown by their names.
export const visible = (text) =>
  text.replace(/[\p{Cc}\p{Bidi_Control}\u200b\u2028\u2029\ufeff]/gu, (mark) => `⟨U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

const build = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes))
    if (value != null && value !== false) node.setAttribute(name, value === true ? "" : value);
  node.append(...children.flat().filter((child) => child != null));
  return node;
};
// Text only ever becomes a text node: a key may be anything that a stranger sent.
export const el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
export const $ = (id) => document.getElementById(id);
export const say = (id, text) => { const node = $(id); if (node.textContent !== text) node.textContent = text; };
export const part = (node, share) => { node.style.setProperty("--part", Math.max(0, Math.min(1, share || 0))); return node; };
export const gauge = (share) => el("span", { class: "gauge" }, part(el("i"), share));
