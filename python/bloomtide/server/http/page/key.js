// One key: was it seen, how often, how hot, and its history as a line within its error band.

import { ask } from "./api.js";
import { axes, band, ceiling, Chart, curve } from "./charts.js";
import { keyParams, mark } from "./tables.js";
import { $, el, exact, moment, number, say, span, svg, visible } from "./words.js";

let chosen = null;
let chart;
let asked = 0;

const shownAs = (item) => visible(String(item.key_int ?? item.key));
// What stands in the field is the chosen key itself until somebody changes it.
export const written = (text) => (chosen && text === shownAs(chosen) ? chosen : { key: text });
export const isChosen = () => chosen !== null;

export function choose(item) {
  chosen = item;
  mark(item);
  // Nobody wants another text where one types.
  if (document.activeElement !== $("key-text")) $("key-text").value = shownAs(item);
  return refresh(true);
}

let view = null;
export function setView(range) {
  view = range;
  return chosen ? refresh() : undefined;
}

const bounds = ({ lower, upper, confidence, saturated }) =>
  (saturated ? "at least: its counters are full"
    : number(lower) === number(upper) ? "exact" : `${number(lower)} to ${number(upper)}`) + (confidence < 1 ? `, in ${+(confidence * 100).toFixed(2)} of 100 answers` : "");

export async function refresh(told = false) {
  const params = keyParams(chosen);
  const mine = ++asked;
  const facts = [ask("seen", params), ask("count", params), ask("heat", params)];
  const range = view && { ...params, start: view.start, end: view.end };
  if (range) facts.push(ask("history/count", range), ask("history/series", { ...range, step: view.step }));
  const answers = await Promise.allSettled(facts);
  if (mine !== asked) return; // another key was chosen meanwhile
  const [seen, count, heat, total, series] = answers.map((answer) => answer.value);
  const failed = answers.find((answer) => answer.status === "rejected")?.reason;
  if (failed && failed.status !== 409) throw failed;
  const rows = [];
  if (seen) rows.push(["Seen", seen.seen ? "yes" : "no", seen.seen ? "almost certainly" : "for certain"]);
  if (count) rows.push(["Count", number(count.value), bounds(count), count.value]);
  if (heat) rows.push(["Heat now", number(heat.value), bounds(heat), heat.value]);
  if (total) rows.push(["In the time below", number(Math.round(total.estimate)), bounds({ lower: total.inner, upper: total.upper, confidence: 1 }), total.estimate]);
  $("facts").replaceChildren(...rows.map(([name, text, note, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", { title: value == null ? null : exact(value) }, text, el("small", { title: note }, note)))));
  if (told) say("said", `${shownAs(chosen)}: ${rows.map(([name, text]) => `${name} ${text}`).join(", ")}`);
  say("key-aside", view ? `${span(view.end - view.start)} in steps of ${span(view.step)}` : "");
  if (series) draw(series);
}

function draw(series) {
  chart ??= new Chart($("series"), "History of the key, with its error band", paint,
    (data, i) => {
      const low = data.inner[i], high = data.upper[i];
      return `${moment(data.start[i], data.step)}: ${number(data.estimate[i])}${low === high ? "" : ` (${number(low)} to ${number(high)})`}`;
    });
  $("series-legend").hidden = false;
  chart.show({ ...series, count: series.start.length, open: view.open });
}

function paint({ start, upper, inner, estimate, missing, step, open }, box) {
  if (!start.length) return [svg("text", { x: box.width / 2, y: box.height / 2, "text-anchor": "middle" }, "no history in this time")];
  const top = ceiling(upper);
  const from = start[0], to = start.at(-1) + step;
  const x = (at) => ((at - from) / (to - from)) * box.width;
  return [
    ...missing.map(([a, b]) => svg("rect", { class: "fill-missing", x: x(a), width: Math.max(1, x(b) - x(a)), y: 0, height: box.height })),
    ...axes(box, top, from, to), band(box, inner, upper, top), ...curve(box, estimate, top, open),
  ];
}
