// How every column is read and why: folded, asked for when it is opened.

import { byId, count, el, forgetOne, idText, refresh, table } from "./dom.js";
import { address, ask } from "./service.js";

let shown = "";

// Asked again where another recommender is shown, or its tables have changed (`mark`).
export async function showFeatures(name, mark) {
  const part = byId("features-part");
  const wanted = JSON.stringify([name, mark]);
  if (!part.open || wanted === shown) return;
  shown = wanted;
  try {
    const found = await ask(address(name, "features"));
    if (wanted === shown) refresh("features", [name, found], () => drawn(found));
  } catch (error) {
    shown = "";
    refresh("features", [name, error.message], () => el("p", { class: "problem" }, `They could not be read: ${error.message}`));
  }
}

export function forgetFeatures() {
  shown = "";
  forgetOne("features");
  byId("features").replaceChildren();
}

function drawn({ frozen, settled, columns, crossed }) {
  const state = !frozen ? "A draft: the first request fixes it." : settled ? "Fixed by the first request, and settled." : "Fixed by the first request; the scales of some numbers still move.";
  if (!columns.length) return el("p", { class: "todo" }, "No columns yet: items and users bring them.");
  const rows = columns.map((each) => [idText(each.column, 40), each.table, each.kind, count(each.width), each.how || "–", each.why, frozen && !each.settled ? "moving" : frozen ? "fixed" : "draft"]);
  return [
    el("p", { class: "note" }, state),
    table("How columns are read", ["column", "table", "kind", "numbers", "how", "why", "state"], rows),
    ...crossed.map((each) => el("p", { class: "note" }, each)),
  ];
}
