// Charts as SVG: lines with bands over time, and bars with intervals. Every mark has the class of its series.

import { clock, count, el, known, number, range, svg } from "./dom.js";

const HEIGHT = 240;
const MARGIN = { top: 12, right: 14, bottom: 28, left: 46 };
let clips = 0;

// Round numbers from `least`, which is 0 or below, to `most`.
export function ticks(least, most, wanted = 4) {
  const rough = (most - least) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(least / step - 1e-4); at * step <= most * 1.0001; at += 1) found.push(Number((at * step).toPrecision(6)));
  return found;
}

function frame(width, height, points, form, label) {
  const [least, most] = reach(points);
  const inner = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const y = (value) => inner.bottom - ((Math.min(Math.max(value, least), most) - least) / (most - least)) * (inner.bottom - inner.top);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" });
  const shown = ticks(least, most);
  const whole = shown.every(Number.isInteger);
  for (const tick of shown) {
    root.append(svg("line", { class: "grid", x1: inner.left, x2: inner.right, y1: y(tick), y2: y(tick) }));
    root.append(svg("text", { class: "tick", x: inner.left - 6, y: y(tick) + 4, "text-anchor": "end" }, whole ? form(tick).replace(/\.0+$/, "") : form(tick)));
  }
  return { root, inner, y };
}

// What an axis shows: 0, all means, and intervals as far as they are not much wider than that.
function reach(points) {
  const means = [...points.map((point) => point.mean), 0];
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const lows = Math.min(...points.map((point) => (known(point.low) ? point.low : point.mean)), 0);
  const highs = Math.max(...points.map((point) => (known(point.high) ? point.high : point.mean)), 0);
  const most = Math.max(Math.min(highs, 2.2 * high) * 1.06, low < 0 ? 0 : 1e-3);
  return [low < 0 ? Math.max(lows, 2.2 * low) * 1.06 : 0, most];
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

// Round times of a clock, so that no two read alike.
function times(from, to, most) {
  const wanted = (to - from) / most;
  const step = STEPS.find((each) => each >= 0.8 * wanted) ?? 86400 * Math.ceil(wanted / 86400);
  const zone = 60 * new Date(1000 * from).getTimezoneOffset();
  const found = [];
  for (let at = Math.ceil((from - zone) / step); at * step + zone <= to; at += 1) found.push(at * step + zone);
  return found.length > 1 ? found : [from, to];
}

function timeAxis(root, inner, height, from, to) {
  const x = (time) => inner.left + ((time - from) / Math.max(to - from, 1e-9)) * (inner.right - inner.left);
  const most = Math.max(1, Math.min(5, Math.floor((inner.right - inner.left) / 110)));
  let before = "";
  for (const time of times(from, to, most)) {
    const [at, text] = [x(time), clock(time, to - from)];
    const anchor = at - inner.left < 30 ? "start" : inner.right - at < 30 ? "end" : "middle";
    if (text !== before) root.append(svg("text", { class: "tick time", x: at, y: height - 8, "text-anchor": anchor }, text));
    before = text;
  }
  return x;
}

const middle = (point) => (point.from + point.to) / 2;
const path = (points) => points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");

function band(points, x, y) {
  const both = points.filter((point) => known(point.low) && known(point.high));
  const edges = (end) => both.flatMap((point) => [[x(point.from), y(point[end])], [x(point.to), y(point[end])]]);
  const line = points.length > 1 ? (end) => both.map((point) => [x(middle(point)), y(point[end])]) : edges;
  return both.length ? `${path(line("high"))}${path(line("low").reverse()).replace("M", "L")}Z` : "";
}

function whisker(x, row, y) {
  return known(row.low) && known(row.high) ? `M${x - 5},${y(row.high)}h10M${x},${y(row.high)}V${y(row.low)}M${x - 5},${y(row.low)}h10` : "";
}

// lines: [{name, title, points}] with points {from, to, mean, low, high, count, settled}.
export function lineChart(width, lines, { label, form = number }) {
  const all = lines.flatMap((line) => line.points);
  const { root, inner, y } = frame(width, HEIGHT, all, form, label);
  const from = Math.min(...all.map((point) => point.from));
  const to = Math.max(...all.map((point) => point.to));
  const x = timeAxis(root, inner, HEIGHT, from, to);
  const clip = `clip-${(clips += 1)}`;
  const marks = svg("g", { "clip-path": `url(#${clip})` });
  root.append(svg("clipPath", { id: clip }, svg("rect", { x: inner.left - 5, y: inner.top - 5, width: inner.right - inner.left + 10, height: inner.bottom - inner.top + 10 })), marks);
  for (const { name, points } of lines) marks.append(svg("path", { class: `band ${name}`, d: band(points, x, y) }));
  for (const { name, points } of lines) {
    const ends = points.length === 1 ? [[x(points[0].from), y(points[0].mean)], [x(points[0].to), y(points[0].mean)]] : points.map((point) => [x(middle(point)), y(point.mean)]);
    marks.append(svg("path", { class: `line ${name}`, d: path(ends) }));
    if (points.length === 1) marks.append(svg("path", { class: `alone ${name}`, d: whisker(x(middle(points[0])), points[0], y) }));
    for (const point of points) {
      marks.append(svg("circle", {
        class: `point ${name}${point.settled === false ? " open" : ""}`, r: points.length > 30 ? 2.2 : 3.2,
        cx: x(middle(point)).toFixed(1), cy: y(point.mean).toFixed(1), "data-series": name, "data-mean": point.mean, "data-count": point.count,
      }));
    }
  }
  return { root, inner, x, y, from, to };
}

// A line chart with a legend and a readout that follows the pointer and the arrow keys.
export function watchedLines(place, lines, options) {
  const shown = lines.filter((line) => line.points.length);
  const width = Math.max(280, Math.round(place.clientWidth || 640));
  const chart = lineChart(width, shown, options);
  const moments = [...new Set(shown.flatMap((line) => line.points.map(middle)))].sort((a, b) => a - b);
  const cursor = svg("line", { class: "cursor", y1: chart.inner.top, y2: chart.inner.bottom, visibility: "hidden" });
  const readout = el("p", { class: "readout", "aria-live": "polite" }, options.hint);
  chart.root.append(cursor);
  let at = moments.length;
  const show = (index) => {
    at = Math.min(Math.max(index, 0), moments.length - 1);
    const time = moments[at];
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, chart.x(time));
    cursor.setAttribute("visibility", "visible");
    readout.textContent = [clock(time, chart.to - chart.from), ...shown.map((line) => said(line, time, options.form ?? number)).filter(Boolean)].join(" · ");
  };
  const figure = el("div", { class: "focusable", tabindex: 0, role: "group", "data-focus": options.keep, "aria-label": `${options.label}. Arrow keys read it point by point.` }, chart.root);
  figure.addEventListener("pointermove", (event) => {
    const box = chart.root.getBoundingClientRect();
    const time = chart.from + (((event.clientX - box.left) * width) / box.width - chart.inner.left) / (chart.inner.right - chart.inner.left) * (chart.to - chart.from);
    show(moments.reduce((best, each, index) => (Math.abs(each - time) < Math.abs(moments[best] - time) ? index : best), 0));
  });
  figure.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: moments.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key]);
  });
  const legend = shown.length > 1 ? el("ul", { class: "legend" }, shown.map((line) => el("li", {}, svg("svg", { class: "sample", viewBox: "0 0 28 10", "aria-hidden": true }, svg("path", { class: `line ${line.name}`, d: "M1,5L27,5" })), line.title))) : null;
  return [legend, figure, readout, alone(shown)].filter(Boolean);
}

// A mark without a line beside it needs a word.
function alone(shown) {
  const lines = shown.filter((line) => line.points.length === 1);
  if (!lines.length) return null;
  const counts = lines.map((line) => `${line.title}, of ${count(line.points[0].count)} decisions`).join("; ");
  return el("p", { class: "note" }, `One point so far, over the whole time: ${counts}. What changes over time shows from the second point on.`);
}

function said(line, time, form) {
  const point = line.points.find((each) => each.from <= time && time <= each.to);
  if (!point) return "";
  const interval = range(point, form);
  return `${line.title} ${form(point.mean)}${interval ? ` (${interval})` : ""}`;
}

// Bars with intervals: rows {slot, mean, low, high, count}.
export function barChart(width, rows, { label, form }) {
  const { root, inner, y } = frame(width, HEIGHT, rows, form, label);
  const step = (inner.right - inner.left) / rows.length;
  rows.forEach((row, at) => {
    const x = inner.left + step * (at + 0.5);
    const half = Math.min(step * 0.32, 32);
    root.append(svg("rect", { class: "bar live", x: x - half, width: 2 * half, y: Math.min(y(row.mean), y(0)), height: Math.abs(y(0) - y(row.mean)), "data-slot": row.slot, "data-mean": row.mean }, svg("title", {}, `slot ${row.slot}: ${form(row.mean)} (${range(row, form)}), ${count(row.count)} shows`)));
    if (known(row.low) && known(row.high)) {
      root.append(svg("path", { class: "whisker", d: whisker(x, row, y) }));
    }
    if (rows.length <= 12 || at % Math.ceil(rows.length / 12) === 0) {
      root.append(svg("text", { class: "tick", x, y: HEIGHT - 8, "text-anchor": "middle" }, rows.length > 6 ? row.slot : `slot ${row.slot}`));
    }
  });
  return root;
}
