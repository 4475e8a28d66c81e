// What changes every second: figures, hot keys, new against seen, structures, guards.

import { axes, bars, ceiling, Chart, spark } from "./charts.js";
import { empty, fill, ghosts, keyCell, keyName, put, row } from "./tables.js";
import { $, bytes, el, exact, gauge, moment, number, part, percent, say, span, time, visible } from "./words.js";

const ARROWS = { up: "↑", down: "↓", flat: "·" };
const KINDS = {
  bloom: "Bloom filter", url: "URL filter", scalable: "scalable Bloom", pdcf: "counts, partitioned",
  dcf: "counts", tbf: "fading counts", hot: "hot list", history: "history", counting: "counting Bloom",
  count_min: "count-min sketch", top_k: "top-k list", decaying: "fading counts",
  dynamic: "counts", partitioned_dynamic: "counts, partitioned", spectral: "counts, spectral",
  partitioned_spectral: "counts, spectral", text: "text", arriving: "arriving in chunks",
};
const PURPOSES = {
  seen: "was it seen?", counts: "how often?", heat: "how hot?", hot: "the hottest keys",
  slow: "the same, fading six times slower, to tell what comes up or cools", history: "how often, when?",
};
const many = (n, name) => `${number(n)} ${name}${n === 1 ? "" : "s"}`;
const sum = (values) => values.reduce((a, b) => a + b, 0);

const count = ({ structures, keyspace }) => structures.filter((each) => each.of === "monitor").length + (keyspace?.keys || 0);

// --- figures

let before = null; // the commands at the last picture

function figures(told) {
  const { monitor, guards, keyspace, pulse } = told;
  const asked = sum(guards.map((guard) => guard.asked || 0));
  const avoided = sum(guards.map((guard) => guard.avoided || 0));
  const recent = pulse ? sum(pulse.events) : 0;
  const rows = [];
  if (monitor) {
    rows.push(["Events per second", monitor.per_second, number(monitor.per_second), "in the last 10 seconds"]);
    rows.push(["Events", monitor.events, number(monitor.events), monitor.since ? `since ${moment(monitor.since)}` : ""]);
    rows.push(["New keys", monitor.new, number(monitor.new), recent ? `${percent(sum(pulse.new) / recent)} of the last 5 min` : "none in the last 5 min"]);
    rows.push(["Late events", monitor.late, number(monitor.late), monitor.events ? `${percent(monitor.late / monitor.events)} of all` : ""]);
    const wrong = monitor.ahead + monitor.aside;
    if (wrong) rows.push(["Wrong times", wrong, number(wrong), `${number(monitor.aside)} far after the others, set aside`]);
  }
  if (keyspace && (keyspace.calls || !monitor)) {
    const rate = before ? Math.max(0, keyspace.calls - before.calls) / Math.max(0.5, told.time - before.time) : 0;
    before = { calls: keyspace.calls, time: told.time };
    rows.push(["Commands per second", rate, number(Math.round(rate)), "over the Redis protocol"]);
    rows.push(["Commands", keyspace.calls, number(keyspace.calls), many(keyspace.errors, "error")]);
  }
  const memory = (monitor?.bytes || 0) + (keyspace?.bytes || 0), all = count(told);
  rows.push(["Memory", memory, bytes(memory), many(all, "structure")]);
  if (asked) rows.push(["Queries avoided", avoided, percent(avoided / asked), `${number(avoided)} of ${number(asked)}`]);
  const list = $("figures");
  if (list.children.length !== rows.length || list.dataset.ghost) {
    delete list.dataset.ghost;
    list.replaceChildren(...rows.map(() => el("div", {}, el("dt"), el("dd"), el("dd", { class: "note" }))));
  }
  rows.forEach(([name, value, text, note], i) => {
    const [title, shown, small] = list.children[i].children;
    title.textContent = name;
    shown.textContent = text;
    shown.title = exact(value ?? 0);
    small.textContent = note;
  });
}

// --- hot keys

function hot(told, choose) {
  const items = told.hot || [];
  if (!items.length) {
    const text = told.hot ? "Nothing has come in yet. Send an event:" : "This monitor keeps no hot list.";
    const code = told.hot ? `curl ${location.origin}/api/events \\\n  -H 'Content-Type: application/x-ndjson' \\\n  -d '{"key": "/hello"}'` : null;
    $("hot-rows").replaceChildren(empty(7, text, code));
    return say("hot-aside", "");
  }
  const most = items[0].share || 1;
  const make = (item) => row("rank", keyCell(item, choose), "spark", "t", "n soft", "n", "n soft");
  const held = fill("hot-rows", items, keyName, make, (line, item, rank) => {
    const [place, name, trail, trend, rate, heat, share] = line.cells;
    place.textContent = rank + 1;
    part(name.firstChild, item.share / most);
    trail.title = `what came in the last ${span(item.every * 60)}`;
    put(trail, spark(item.came));
    trail.dataset.trend = trend.dataset.trend = item.trend;
    put(trend, ARROWS[item.trend] || "", el("span", { class: "unseen" }, item.trend));
    rate.textContent = number(Math.round(item.per_minute));
    heat.textContent = number(item.count);
    heat.title = `from ${exact(item.lower)} to ${exact(item.count)}`;
    share.textContent = percent(item.share);
  });
  say("hot-spark", `Last ${span(items[0].every * 60)}`);
  say("hot-aside", held ? "order held while you point here" : "counts that fade with time");
}

// --- new against seen

const GROUP = 5;
const grouped = (values) => {
  const sums = [];
  // From the end, so that the newest bar is whole.
  for (let end = values.length; end > 0; end -= GROUP) sums.unshift(sum(values.slice(Math.max(0, end - GROUP), end)));
  return sums;
};
// A burst, such as an old log that is read at the start, would flatten all the rest: it is cut.
const usual = (values) => {
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
  const most = sorted.at(-1) || 1, high = sorted[Math.floor(sorted.length * 0.8)] || 1;
  return sorted.length > 4 && most > 5 * high ? 1.5 * high : most;
};
let pulseChart;

function pulse(told) {
  pulseChart ??= new Chart($("pulse"), "Events of the last five minutes: new keys and keys seen before",
    ({ all, fresh, length, most }, box) => {
      const top = ceiling([Math.max(1, most / GROUP)]);
      const rate = (values) => values.map((value) => Math.min(top, value / GROUP));
      const seen = rate(all.map((value, i) => value - fresh[i]));
      return [
        bars(box, seen.map(() => 0), seen, top, "fill-seen"), bars(box, seen, rate(all), top, "fill-new"),
        ...axes(box, top, -length, 0, (ago) => (ago ? `−${span(ago)}` : "now")),
      ];
    },
    ({ all, fresh, end, count }, i) =>
      `${time(end - (count - i) * GROUP, 1)}: ${number(fresh[i] / GROUP)} new, ${number((all[i] - fresh[i]) / GROUP)} seen, a second`);
  // The last second is still going on.
  const events = told.pulse.events.slice(0, -1), fresh = told.pulse.new.slice(0, -1);
  const all = sum(events), news = sum(fresh);
  const data = { all: grouped(events), fresh: grouped(fresh), length: events.length, end: told.time };
  const most = usual(data.all);
  pulseChart.show({ ...data, most, count: data.all.length });
  say("pulse-new", all ? `${percent(news / all)}` : "0");
  say("pulse-seen", all ? `${percent(1 - news / all)}` : "0");
  $("pulse-new").title = number(news);
  $("pulse-seen").title = number(all - news);
  say("pulse-aside", all ? `events a second, by when they came${data.all.some((value) => value > most) ? ", a burst is cut off" : ""}` : "nothing in the last 5 minutes");
}

// --- structures and guards

function structures(told) {
  if (!told.structures.length) return $("structures-rows").replaceChildren(empty(6, "No structure yet. A stream is watched by bloomtide watch; BF.ADD makes a filter."));
  fill("structures-rows", told.structures, (item) => `${item.of} ${item.name}`,
    () => row("", "soft", "n", "n", "n", "n"),
    (line, item) => {
      const [name, kind, keys, full, error, memory] = line.cells;
      const use = item.of === "monitor" && PURPOSES[item.name];
      name.textContent = visible(item.name);
      kind.textContent = `${KINDS[item.kind] || item.kind}${use ? `: ${use}` : ""}`;
      keys.textContent = item.items == null ? "full" : number(Math.round(item.items));
      put(full, item.fill == null ? null : gauge(item.fill), percent(item.fill));
      error.textContent = percent(item.predicted_error);
      memory.textContent = bytes(item.bytes);
      memory.title = `${exact(item.bytes)} bytes`;
    });
  const kept = told.history;
  const all = count(told);
  say("structures-aside", told.structures.length < all ? `the first ${told.structures.length} of ${number(all)}`
    : kept ? `history: ${bytes(kept.bytes)} in ${many(kept.segments, "segment")}${kept.failure ? `, failed: ${kept.failure}` : ""}` : "");
}

function guards(told) {
  $("guards").hidden = !told.guards.length;
  fill("guards-rows", told.guards, (item) => item.name,
    () => row("", "soft", "n", "n", "n"),
    (line, item) => {
      const [name, state, asked, avoided, saved] = line.cells;
      name.textContent = visible(item.name);
      state.textContent = item.state || "–";
      asked.textContent = number(item.asked);
      avoided.textContent = number(item.avoided);
      put(saved, gauge(item.avoided / item.asked), item.asked ? percent(item.avoided / item.asked) : "–");
    });
  say("guards-aside", "queries that no database saw");
}

function sources({ items, problems }) {
  $("sources").hidden = !items.length && !problems.length;
  fill("sources-rows", items, (item) => item.name, () => row("long", "n", "n", "n"), (line, item) => {
    const [name, read, counted, left] = line.cells;
    const notes = [
      item.without && `${many(item.without, "line")} without a ${item.field}`,
      item.skipped && `${number(item.skipped)} not understood, the first:`, ...item.bad,
    ];
    put(name, visible(item.name), ...notes.filter(Boolean).map((note) => el("small", {}, note)));
    [item.lines, item.counted, item.skipped + item.without].forEach((value, i) => { [read, counted, left][i].textContent = number(value); });
  });
  $("sources-problems").replaceChildren(...problems.map((problem) => el("p", { class: "legend" }, problem)));
}

function commands({ keyspace }) {
  const calls = Object.entries(keyspace?.commands || {}).map(([name, [calls, errors]]) => ({ name, calls, errors }));
  if (!calls.length) return $("commands-rows").replaceChildren(empty(3, "No command yet."));
  fill("commands-rows", calls.sort((a, b) => b.calls - a.calls).slice(0, 20), (item) => item.name, () => row("", "n", "n soft"),
    (line, item) => [item.name, number(item.calls), number(item.errors)].forEach((text, i) => { line.cells[i].textContent = text; }));
}

export function showLoading() {
  $("figures").dataset.ghost = "yes";
  $("figures").replaceChildren(...Array.from({ length: 6 }, () => el("div", {}, el("dt", {}, "…"), el("dd", {}, "–"), el("dd", { class: "note" }, " "))));
  $("hot-rows").replaceChildren(...ghosts(7, 20));
  for (const [id, columns] of [["top-rows", 4], ["structures-rows", 6]]) $(id).replaceChildren(...ghosts(columns, 3));
}

export function showLive(told, choose) {
  $("main").classList.toggle("alone", !told.monitor); // named structures, and no stream to show
  figures(told);
  if (told.monitor) {
    hot(told, choose);
    pulse(told);
  } else commands(told);
  structures(told);
  guards(told);
  sources(told.sources);
  $("structures").classList.toggle("wide", $("guards").hidden && $("sources").hidden && !$("main").classList.contains("alone"));
  say("version", `bloomtide ${told.version}`);
}
