// The map of the items: a point per item, its colour the cluster, its size how often it was chosen lately.

import { asTable, count, el, idText, number, percent, plural, svg, table } from "./dom.js";

const COLOURS = 8;
const NEAR = 28; // pixels around the pointer

const tone = (cluster) => `tone-${((cluster % COLOURS) + COLOURS) % COLOURS}`;

// `earned`: what items earned, in words.
export function itemMap(place, map, earned) {
  const width = Math.max(280, Math.round(place.clientWidth || 520));
  const height = Math.min(Math.round(width * 0.72), 380);
  const most = Math.max(...map.points.map((point) => point.chosen), 1);
  const spots = map.points.map((point) => ({
    ...point, cx: 20 + ((point.x + 1) / 2) * (width - 40), cy: 20 + ((1 - point.y) / 2) * (height - 40),
    r: point.chosen > 0 ? 3.5 + 9 * Math.sqrt(point.chosen / most) : 2.5,
  })).sort((a, b) => b.r - a.r);
  const label = `Map of ${plural(spots.length, "item")} in ${plural(map.clusters, "cluster")}; larger points were chosen more often`;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart map", role: "img", "aria-label": label });
  for (const spot of spots) {
    root.append(svg("circle", { class: `spot ${tone(spot.cluster)}${spot.chosen > 0 ? "" : " never"}`, cx: spot.cx.toFixed(1), cy: spot.cy.toFixed(1), r: spot.r.toFixed(1), "data-item": spot.item, "data-cluster": spot.cluster, "data-chosen": spot.chosen }));
  }
  const ring = svg("circle", { class: "ring", visibility: "hidden" });
  root.append(ring);
  return watched(root, ring, spots, label, width, map, earned);
}

function watched(root, ring, spots, label, width, map, earned) {
  const readout = el("p", { class: "readout", "aria-live": "polite" }, "Point at an item, or use the arrow keys: from the most chosen on.");
  let at = -1;
  const show = (index) => {
    at = Math.min(Math.max(index, 0), spots.length - 1);
    const spot = spots[at];
    for (const [name, value] of [["cx", spot.cx], ["cy", spot.cy], ["r", spot.r + 3], ["visibility", "visible"]]) ring.setAttribute(name, value);
    const times = spot.chosen > 0 ? `chosen ${plural(spot.chosen, "time")} lately, ${earned(spot.clicks)}` : "not chosen lately";
    readout.replaceChildren(idText(spot.item), ` · cluster ${spot.cluster + 1} · ${times}`);
  };
  const figure = el("div", { class: "focusable", tabindex: 0, role: "group", "data-focus": "map", "aria-label": `${label}. Arrow keys go from item to item.` }, root);
  const point = (event) => {
    const box = root.getBoundingClientRect();
    const scale = width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const distances = spots.map((spot) => Math.hypot(spot.cx - x, spot.cy - y) - spot.r);
    const best = distances.indexOf(Math.min(...distances));
    if (distances[best] < NEAR) show(best);
  };
  figure.addEventListener("pointermove", point);
  figure.addEventListener("pointerdown", point);
  figure.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: spots.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key]);
  });
  return [figure, readout, notes(map), asTable("map", clusterTable(spots), itemTable(spots, earned))];
}

function notes(map) {
  const whose = map.own ? "the policy's own clusters" : "clusters found by k-means; the policy has none of its own";
  const part = map.points.length < map.total ? `${count(map.points.length)} of ${count(map.total)} items; ` : "";
  const share = typeof map.explained === "number" ? `; both axes hold ${percent(map.explained, 0)} of what tells items apart` : "";
  return el("p", { class: "note" }, `${part}colours are ${whose}${share}.`);
}

function clusterTable(spots) {
  const found = new Map();
  for (const spot of spots) {
    const [items, chosen, clicks] = found.get(spot.cluster) ?? [0, 0, 0];
    found.set(spot.cluster, [items + 1, chosen + spot.chosen, clicks + spot.clicks]);
  }
  const rows = [...found].sort((a, b) => b[1][1] - a[1][1]);
  const total = Math.max(rows.reduce((sum, [, [, chosen]]) => sum + chosen, 0), 1);
  return table("Clusters", ["cluster", "items", "chosen lately", "share of choices"],
    rows.map(([cluster, [items, chosen]]) => [String(cluster + 1), count(items), number(chosen, 0), percent(chosen / total)]));
}

function itemTable(spots, earned) {
  return table("Items chosen most lately", ["item", "cluster", "chosen", "earned"],
    spots.filter((spot) => spot.chosen > 0).slice(0, 20).map((spot) => [idText(spot.item, 40), String(spot.cluster + 1), number(spot.chosen, 0), earned(spot.clicks)]));
}
