// Small charts in SVG, drawn at their real width so that nothing is stretched.

import { el, short, svg, time } from "./words.js";

const LOWER = 18; // room for the times
const STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 604800, 2592000];

export class Chart {
  // `paint(data, box)` gives SVG nodes; `tell(data, i)` says what lies under the cursor, of `data.count` places.
  constructor(host, label, paint, tell) {
    this.paint = paint;
    this.tell = tell;
    this.svg = svg("svg", { role: "img", "aria-label": label, tabindex: tell ? 0 : null });
    this.over = svg("g");
    this.label = el("div", { class: "tell", hidden: true });
    this.plot = el("div", { class: "plot" }, this.svg, this.label);
    host.append(this.plot);
    host.style.height = host.dataset.height === "grow" ? "calc(100% - .6rem)" : `${host.dataset.height}px`;
    new ResizeObserver(() => this.draw()).observe(this.plot);
    if (tell) this.follow();
  }

  show(data) { this.data = data; this.draw(); }

  draw() {
    const { clientWidth: width, clientHeight: full } = this.plot;
    if (!width || !full || !this.data) return;
    this.box = { width, height: full - LOWER, full };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${full}`);
    this.svg.replaceChildren(...this.paint(this.data, this.box), this.over);
    if (this.at != null) this.point(this.at);
  }

  place(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    return Math.max(0, Math.min(this.data.count - 1, Math.floor((x / this.box.width) * this.data.count)));
  }

  follow() {
    this.svg.addEventListener("pointermove", (event) => this.data && this.point(this.place(event)));
    for (const name of ["pointerleave", "blur"]) this.svg.addEventListener(name, () => this.point(null));
    this.svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move || !this.data?.count) return;
      event.preventDefault();
      this.point(Math.max(0, Math.min(this.data.count - 1, (this.at ?? this.data.count) + move)));
    });
  }

  point(at) {
    this.at = at;
    const text = at == null ? null : this.tell(this.data, Math.min(at, this.data.count - 1));
    this.label.hidden = text == null;
    this.over.replaceChildren();
    if (text == null) return;
    const x = Math.round(((at + 0.5) / this.data.count) * this.box.width);
    this.over.append(svg("line", { class: "cursor", x1: x, x2: x, y1: 0, y2: this.box.height }));
    this.label.textContent = text;
    const room = this.box.width - this.label.offsetWidth;
    this.label.style.left = `${Math.max(0, Math.min(room, x - this.label.offsetWidth / 2))}px`;
  }
}

// A round number not below the largest value, and not far above.
export function ceiling(values) {
  const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
  const size = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * size >= most * 0.999) * size;
}

export function axes(box, top, start, end, ago) {
  const nodes = [];
  for (const share of [0.5, 1]) {
    const y = Math.round(box.height * (1 - share)) + 0.5;
    nodes.push(svg("line", { class: "grid", x1: 0, x2: box.width, y1: y, y2: y }));
    nodes.push(svg("text", { x: -8, y: y + 4, "text-anchor": "end" }, short(top * share)));
  }
  const y = box.height + 0.5;
  nodes.push(svg("line", { class: "base", x1: 0, x2: box.width, y1: y, y2: y }));
  const few = Math.max(2, Math.floor(box.width / 88));
  const step = STEPS.find((size) => (end - start) / size <= few) || STEPS.at(-1);
  const shift = ago ? end : new Date(start * 1000).getTimezoneOffset() * 60;
  for (let at = Math.ceil((start - shift) / step) * step + shift; at <= end; at += step) {
    const x = ((at - start) / (end - start)) * box.width;
    const anchor = x < 24 ? "start" : x > box.width - 24 ? "end" : "middle";
    nodes.push(svg("line", { class: "base", x1: Math.round(x), x2: Math.round(x), y1: y, y2: y + 3 }));
    nodes.push(svg("text", { x, y: box.full - 1, "text-anchor": anchor }, ago ? ago(end - at) : time(at, step)));
  }
  return nodes;
}

// Bars from one row of heights to another, as one path.
export function bars(box, low, high, top, name) {
  const wide = box.width / high.length;
  const gap = wide > 5 ? 1 : wide > 2.5 ? 0.5 : 0;
  let path = "";
  high.forEach((value, i) => {
    if (value <= low[i]) return;
    const y = box.height * (1 - value / top), down = box.height * (1 - low[i] / top);
    path += `M${(i * wide).toFixed(2)} ${y.toFixed(2)}h${(wide - gap).toFixed(2)}V${down.toFixed(2)}h${(gap - wide).toFixed(2)}z`;
  });
  return svg("path", { class: name, d: path });
}

const points = (values, box, top) => {
  const wide = box.width / values.length;
  return values.map((value, i) => `${((i + 0.5) * wide).toFixed(2)} ${(box.height * (1 - value / top)).toFixed(2)}`);
};
// The last step may still be going on: the line to it is dashed.
export function curve(box, values, top, open = false) {
  const all = points(values, box, top);
  const line = (some, name) => svg("path", { class: name, d: some.length ? `M${some.join("L")}` : "" });
  return open ? [line(all.slice(0, -1), "stroke"), line(all.slice(-2), "stroke open")] : [line(all, "stroke")];
}
export const band = (box, low, high, top) =>
  svg("path", { class: "fill-band", d: high.length ? `M${points(high, box, top).join("L")}L${points(low, box, top).reverse().join("L")}z` : "" });

export function spark(values) {
  const box = { width: 100, height: 18 };
  const node = svg("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (values.length > 1) {
    // Three steps together: single ones are mostly chance.
    const smooth = values.map((_, i) => {
      const some = values.slice(Math.max(0, i - 1), i + 2);
      return some.reduce((a, b) => a + b) / some.length;
    });
    const [line] = curve({ ...box, width: (box.width * values.length) / 60 }, smooth, Math.max(1, ...smooth));
    line.setAttribute("vector-effect", "non-scaling-stroke");
    line.setAttribute("transform", `translate(${box.width * (1 - values.length / 60)} 1)`);
    node.append(line);
  }
  return node;
}
