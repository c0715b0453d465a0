// The latest decisions with their reasons, and the versions with what is served.

import { byId, clock, count, el, idText, known, number, percent, refresh, table } from "./dom.js";
import { todo } from "./sections.js";
import { address, ask } from "./service.js";

const kept = new Map(); // decisions that are on the page, by id: an open one stays open

export function forgetDecisions() {
  kept.clear();
}

export function showDecisions({ decisions }, name) {
  const place = byId("decisions");
  const ids = decisions.map((decision) => decision.decision_id);
  if (!ids.length) {
    refresh("decisions", [name], () => todo("No decisions yet."));
    return;
  }
  const list = place.querySelector("ul.decisions") ?? el("ul", { class: "decisions" });
  if (!list.isConnected) place.replaceChildren(list);
  const open = [...kept].filter(([id, node]) => node.querySelector("details").open && !ids.includes(id));
  for (const id of kept.keys()) {
    if (!ids.includes(id) && !open.some(([other]) => other === id)) {
      kept.get(id).remove();
      kept.delete(id);
    }
  }
  const fresh = decisions.filter((decision) => !kept.has(decision.decision_id));
  for (const decision of fresh.reverse()) { // newest first, and nothing that has the focus is moved
    kept.set(decision.decision_id, entry(decision, name));
    list.prepend(kept.get(decision.decision_id));
  }
}

// The policy's own choice has at least the chance that exploration leaves it.
function explores(slot, decision) {
  return slot.explored || (known(decision.exploration) && known(slot.propensity) && slot.propensity < 1 - decision.exploration - 1e-9);
}

function entry(decision, name) {
  const items = decision.slate.map((slot) => el("li", {}, idText(slot.item, 28), explores(slot, decision) ? el("span", { class: "tag" }, "explores") : null));
  const mode = decision.mode && decision.mode !== "live" ? el("span", { class: "tag" }, decision.mode) : null;
  const why = el("div", { class: "why", "aria-live": "polite" }, "Loading…");
  const details = el("details", {}, el("summary", {}, el("ol", { class: "slate" }, items.length ? items : el("li", {}, "an empty slate")), mode), why);
  details.addEventListener("toggle", () => {
    if (details.open) explain(why, decision, name);
  });
  return el("li", { "data-decision": decision.decision_id }, details);
}

async function explain(place, decision, name) {
  try {
    const found = await ask(address(name, "decisions", decision.decision_id));
    place.replaceChildren(...reasons({ ...decision, ...found }));
  } catch (error) {
    place.replaceChildren(el("p", { class: "problem" }, `The reasons could not be read: ${error.message}`));
  }
}

function reasons(decision) {
  const why = Array.isArray(decision.why) ? decision.why : decision.why?.items ?? [];
  const bySlot = new Map(why.map((each) => [each.slot, each]));
  const rows = decision.slate.map((slot) => [
    el("span", {}, `${slot.slot}. `, idText(slot.item, 40)), number(slot.mean, 3), number(slot.bonus, 3),
    known(slot.propensity) ? percent(slot.propensity) : "–", explores(slot, decision) ? "yes" : "no", because(bySlot.get(slot.slot)),
  ]);
  const facts = [typeof decision.time === "string" ? new Date(decision.time).toLocaleString("en-GB") : "", `decision ${decision.decision_id}`, decision.user ? `user ${decision.user}` : "", decision.policy ? `policy ${decision.policy}` : "", known(decision.model_version) ? `model version ${decision.model_version}` : "", decision.reason];
  return [
    el("p", { class: "note" }, facts.filter(Boolean).join(" · ")),
    table("Why each item", ["item", "expected", "bonus", "chance", "explores", "because"], rows),
    decision.why?.note ? el("p", { class: "note" }, decision.why.note) : null,
    cameBack(decision),
  ].filter(Boolean);
}

function because(reason) {
  if (!reason) return "–";
  if (reason.counted) return `shown ${count(reason.counted.shown)} times, ${number(reason.counted.rewards, 1)} rewards`;
  const lines = (reason.contributions ?? []).slice(0, 4).map((each) => el("li", {},
    `${each.amount > 0 ? "+" : ""}${number(each.amount, 3)} `, each.columns.map((column, at) => `${column} = ${each.values[at]}`).join(" with ")));
  return lines.length ? el("ul", { class: "because" }, lines) : "–";
}

function cameBack(decision) {
  const messages = decision.feedback;
  if (!Array.isArray(messages)) return null;
  if (!messages.length) return el("p", { class: "note" }, "No feedback yet.");
  const texts = messages.map((message) => {
    const clicks = Object.entries(message.items ?? {}).filter(([, value]) => value > 0);
    const counts = !message.status || message.status === "learned";
    const fate = counts ? null : el("span", { class: "fate" }, ` – ${message.status}${message.reason ? `: ${message.reason}` : ""}`);
    return el("li", counts ? {} : { "data-status": message.status }, clicks.length ? clicks.flatMap(([item, value], at) => [at ? ", " : "", idText(item, 40), value === 1 ? "" : ` (${number(value)})`]) : "nothing was clicked", fate);
  });
  return el("div", { class: "note" }, "Came back: ", el("ul", {}, texts));
}

// --- versions ---------------------------------------------------------------------------------------------------

export function showVersions({ versions, promoted }, name, promote) {
  refresh("versions", [versions, promoted, name], () => {
    if (!versions.length) return todo("No model yet: the first is published after the first slate.");
    const rows = versions.map((version) => [
      `version ${version.version}`, clock(version.time, 86401), count(version.lessons), version.serving ? el("strong", {}, promoted === null ? "served" : "served, pinned") : button(version, promote),
    ]);
    return [
      table("Versions", ["version", "published", "lessons", "served"], rows),
      promoted === null
        ? el("p", { class: "note" }, "The latest version is served; promoting one pins it, and learning goes on.")
        : el("p", {}, el("button", { type: "button", "data-focus": "latest", onclick: () => promote("latest") }, "Serve the latest again")),
    ];
  });
}

function button(version, promote) {
  if (!version.model) return el("span", { class: "note" }, "no longer kept");
  return el("button", { type: "button", "data-focus": `promote-${version.version}`, "aria-label": `Promote version ${version.version}`, onclick: () => promote(version.version) }, "Promote");
}
