// The time axis: all events, a range chosen by dragging or by the keyboard, and the top of that range.

import { ask } from "./api.js";
import { axes, bars, ceiling, Chart } from "./charts.js";
import { empty, fill, keyCell, keyName, row } from "./tables.js";
import { $, el, moment, number, part, percent, range, say, span, svg } from "./words.js";

const SPANS = [["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 d", 604800], ["All", null]];
const STEPS = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400, 604800];
const TOP = 10;

export class Past {
  constructor({ choose, moved, failed }) {
    Object.assign(this, { choose, moved, failed });
    this.shown = 3600; // seconds up to now; null for all; a pair for a range that stays
    this.range = null; // first and last step, the last one not included; null for all of them
    this.known = null;
    this.asked = 0;
    this.chart = new Chart($("timeline"), "All events by time", (data, box) => this.paint(data, box), (data, i) => this.tell(data, i));
    this.makeButtons();
    this.makeBrush();
  }

  // --- which time is shown

  makeButtons() {
    $("spans").replaceChildren(...SPANS.map(([name, length]) => {
      const button = el("button", { type: "button", "aria-pressed": String(length === this.shown) }, name);
      button.addEventListener("click", () => this.look(length));
      return button;
    }));
    $("zoom").addEventListener("click", () => this.look(this.times()));
  }

  show(shown) {
    this.shown = shown;
    this.range = null;
    [...$("spans").children].forEach((button, i) => button.setAttribute("aria-pressed", String(SPANS[i][1] === shown)));
  }

  look(shown) {
    this.chose = true;
    this.show(shown);
    return this.refresh();
  }

  // Each picture tells what the history has; new events are looked at now and then.
  learn(told) {
    const first = !this.known;
    this.known = told.history;
    if (first && this.known?.last && !this.chose) {
      const length = this.known.last - this.known.first;
      this.show(SPANS.find(([, span]) => span >= Math.min(length, 3600))[1]);
    }
    if (!this.known) return this.showNothing(told.monitor ? "This monitor keeps no history." : "No monitor, so no history.");
    if (this.known.last == null) return this.showNothing("Nothing has happened yet.");
    const due = !this.last || (!Array.isArray(this.shown) && told.time - this.last >= Math.max(5, Math.min(60, (this.view?.step || 60) / 4)));
    if (first || due) { this.last = told.time; this.refresh(); }
  }

  showNothing(text) {
    this.view = null;
    $("top-rows").replaceChildren(empty(4, text));
    say("past-aside", text);
  }

  window() {
    const { first, last, window } = this.known;
    const [from, to] = Array.isArray(this.shown) ? this.shown : this.shown ? [last - this.shown, last] : [first, last];
    const least = Math.max(window || 1, (to - from) / 120);
    const step = STEPS.find((size) => size >= least) || Math.ceil(least / 604800) * 604800;
    const end = Array.isArray(this.shown) ? Math.ceil(to / step) * step : (Math.floor(to / step) + 1) * step;
    const steps = Math.ceil((to - from) / step - 1e-9);
    return { start: typeof this.shown === "number" ? end - steps * step : Math.floor(from / step) * step, end, step, open: end > last };
  }

  async refresh() {
    if (!this.known || this.known.last == null) return;
    const view = this.window();
    const mine = ++this.asked;
    try {
      const { start, end, step } = view;
      const told = await ask("history/total", { start, end, step });
      if (mine !== this.asked) return;
      // A range that was chosen stays where it is in time.
      if (this.range && this.view) {
        const place = (time) => Math.max(0, Math.min(told.start.length, Math.round((time - start) / step)));
        this.range = this.times().map(place);
        if (this.range[0] === this.range[1]) this.range = null;
      }
      this.view = view;
      this.chart.show({ ...told, count: told.start.length, open: view.open });
      this.place();
      this.moved(view);
      await this.askTop();
    } catch (error) { this.failed(error); }
  }

  // --- the brush

  makeBrush() {
    const node = this.chart.svg;
    let anchor = null;
    const edge = (event) => {
      const share = (event.clientX - node.getBoundingClientRect().left) / this.chart.box.width;
      return Math.max(0, Math.min(1, share)) * this.chart.data.count;
    };
    node.addEventListener("pointerdown", (event) => {
      if (!this.view || event.button) return;
      event.preventDefault(); // no text is selected by dragging
      const at = edge(event), near = (8 / this.chart.box.width) * this.chart.data.count;
      const side = this.range ? this.range.findIndex((each) => Math.abs(each - at) < near) : -1;
      anchor = { at: side < 0 ? at : this.range[1 - side], dragged: side >= 0 };
      node.setPointerCapture(event.pointerId);
    });
    node.addEventListener("pointermove", (event) => {
      if (!anchor) return;
      const at = edge(event);
      anchor.dragged ||= Math.abs(at - anchor.at) > this.chart.data.count * 0.004;
      if (anchor.dragged) this.setRange(Math.floor(Math.min(anchor.at, at)), Math.ceil(Math.max(anchor.at, at)));
    });
    const leave = () => {
      if (anchor && !anchor.dragged) this.setRange(null);
      anchor = null;
    };
    node.addEventListener("pointerup", leave);
    node.addEventListener("pointercancel", leave);
    this.handles = ["Start of the range", "End of the range"].map((name, side) => {
      const handle = el("div", { class: "handle", role: "slider", tabindex: 0, "aria-label": name, "aria-orientation": "horizontal", hidden: true });
      handle.addEventListener("keydown", (event) => this.press(event, side));
      this.chart.plot.append(handle);
      return handle;
    });
  }

  edges() { return this.range || [0, this.chart.data?.count || 0]; }
  times() { return this.edges().map((edge) => this.view.start + edge * this.view.step); }

  press(event, side) {
    if (!this.view) return;
    const count = this.chart.data.count;
    const edges = [...this.edges()];
    const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -count, End: count };
    if (event.key === "Escape") this.setRange(null);
    else if (event.key in moves) {
      const [low, high] = side ? [edges[0] + 1, count] : [0, edges[1] - 1];
      edges[side] = Math.max(low, Math.min(high, edges[side] + moves[event.key] * (event.shiftKey ? 10 : 1)));
      this.setRange(...edges);
    } else return;
    event.preventDefault();
  }

  setRange(from, to) {
    const count = this.chart.data.count;
    const range = from == null ? null : [Math.max(0, from), Math.min(count, Math.max(to, from + 1))];
    this.range = range && range[1] - range[0] < count ? range : null;
    this.chart.draw();
    this.place();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.askTop().catch(this.failed), 150);
  }

  // Handles and words beside the chart.
  place() {
    const [from, to] = this.times(), count = this.chart.data.count;
    this.edges().forEach((edge, side) => {
      const handle = this.handles[side];
      handle.hidden = false;
      handle.style.left = `${(edge / count) * 100}%`;
      handle.setAttribute("aria-valuemin", 0);
      handle.setAttribute("aria-valuemax", count);
      handle.setAttribute("aria-valuenow", edge);
      handle.setAttribute("aria-valuetext", moment(side ? to : from));
    });
    $("zoom").disabled = !this.range;
    say("past-aside", `${range(from, to)}: ${span(to - from)}`);
  }

  paint({ start, upper, step, count, open }, box) {
    const top = ceiling(upper);
    const [from, to] = this.edges();
    const none = upper.map(() => 0);
    const only = (wanted) => upper.map((value, i) => (wanted(i) ? value : 0));
    const unfinished = (i) => open && i === count - 1; // still going on, so it is drawn faintly
    const chosen = (i) => this.range && i >= from && i < to;
    const x = (edge) => (edge / count) * box.width;
    const nodes = this.range
      ? [svg("rect", { class: "range", x: x(from), width: x(to) - x(from), y: 0, height: box.height })] : [];
    nodes.push(
      bars(box, none, only((i) => !chosen(i) && !unfinished(i)), top, "fill-seen"), bars(box, none, only(unfinished), top, "fill-open"),
      bars(box, none, only(chosen), top, "fill-on"),
      ...axes(box, top, start[0], start[0] + count * step),
    );
    for (const edge of this.range || []) nodes.push(svg("line", { class: "edge", x1: x(edge), x2: x(edge), y1: 0, y2: box.height }));
    return nodes;
  }

  tell({ start, upper, step }, i) { return `${moment(start[i], step)}: ${number(upper[i])} events in ${span(step)}`; }

  // --- the top

  async askTop() {
    const [start, end] = this.times();
    const mine = (this.topAsked = (this.topAsked || 0) + 1);
    const told = await ask("history/top", { start, end, n: TOP });
    if (mine !== this.topAsked) return;
    say("top-aside", `${number(told.total)} events`);
    say("top-legend", told.items.length ? `Any other key came at most ${number(told.unlisted)} times.` : "");
    if (!told.items.length) return void $("top-rows").replaceChildren(empty(4, "Nothing happened in this range."));
    const most = told.items[0].count;
    fill("top-rows", told.items, keyName,
      (item) => row("rank", keyCell(item, this.choose), "n", "n soft"),
      (line, item, rank) => {
        const [place, name, count, share] = line.cells;
        place.textContent = rank + 1;
        part(name.firstChild, item.count / most);
        count.textContent = number(item.count);
        count.title = `from ${number(item.lower)} to ${number(item.count)}`;
        share.textContent = percent(item.share);
      });
  }
}
