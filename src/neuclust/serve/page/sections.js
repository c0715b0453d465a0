// The sections of an overview: figures, comparison, charts, learner and health.

import { barChart, watchedLines } from "./charts.js";
import { asTable, byId, clock, count, duration, el, known, number, percent, plural, range, refresh, table } from "./dom.js";
import { itemMap } from "./map.js";

const TITLES = { live: "live", holdout: "holdout", shadow: "shadow", random: "random (estimated)", fallback: "fallback" };
const whole = (value) => percent(value, 0);

// How rewards are called and written: clicks, or grades and money in their own units.
export function wording({ reward }) {
  if (!reward || reward.clicks) return { request: "Clicks per request", slot: "Click rate by slot", rate: "click rate", form: number, long: (value) => number(value, 3), slotForm: percent, earned: (value) => plural(value, "click") };
  const form = (value) => number(value, reward.digits);
  return { request: "Reward per request", slot: "Reward by slot", rate: "reward", form, long: form, slotForm: form, earned: (value) => `earned ${form(value)}` };
}

function title(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

function figure(title, value, note, state = "") {
  return el("div", { class: "figure", "data-state": state }, el("p", { class: "title" }, title), el("p", { class: "value" }, value), el("p", { class: "note" }, note));
}

export function showNow(overview) {
  const { comparison, learner, totals, series } = overview;
  const { request, form } = wording(overview);
  const live = comparison.find((row) => row.arm === "live")?.clicks;
  const beaten = comparison.find((row) => row.arm === "random" && row.difference) ?? comparison.find((row) => row.difference);
  const exploring = lately(series.exploring);
  const served = overview.versions.find((version) => version.serving);
  const figures = [
    [request, live ? form(live.mean) : "–", live ? range(live, form) : "no feedback yet"],
    [`Live against ${beaten ? beaten.arm : "random"}`, beaten ? signed(beaten.difference.mean, form) : "–", beaten ? range(beaten.difference, (value) => signed(value, form)) : "not known yet"],
    ["Decisions", count(totals.decisions), `${count(totals.answered)} with their reward known`],
    ["Exploring slots", percent(exploring), "lately"],
    ["Learner lag", duration(learner.lag), `${plural(learner.behind, "event")} behind`, learner.lag > 60 ? "bad" : ""],
    ["Serving", served ? `version ${served.version}` : "no model yet", overview.promoted === null ? "the latest" : "pinned"],
  ];
  refresh("now", figures, () => figures.map((each) => figure(...each)));
}

// The share over the last points that hold a thousand slots.
function lately(points) {
  let [slots, explored] = [0, 0];
  for (let at = points.length - 1; at >= 0 && slots < 1000; at -= 1) {
    slots += points[at].count;
    explored += points[at].count * points[at].mean;
  }
  return slots ? explored / slots : null;
}

const signed = (value, form) => (value > 0 ? "+" : "") + form(value);

export function showComparison({ comparison, random, reward }, name) {
  const { request, form, long } = wording({ reward });
  refresh("comparison", [comparison, random, name], () => {
    if (!comparison.length) return todo("No decisions yet. Ask for a slate:", `POST /v1/recommenders/${name}/recommendations`, '{"user": "u1"}');
    const sentences = comparison.map((row) => el("li", { class: row.arm, "data-arm": row.arm }, row.sentence));
    const rows = comparison.map((row) => [TITLES[row.arm], row.decisions === null ? "–" : count(row.decisions), count(row.answered), row.clicks ? long(row.clicks.mean) : "–", range(row.clicks, long) || "–", row.difference ? signed(row.difference.mean, form) : "–", range(row.difference, (value) => signed(value, form)) || "–"]);
    const open = comparison.some((row) => row.provisional);
    return [
      el("ul", { class: "sentences" }, sentences),
      open ? el("p", { class: "note" }, "Provisional: many decisions are still open, and those that nobody clicks are not counted before their window ends.") : null,
      asTable("comparison", table("Arms compared", ["arm", "decisions", "rewards known", request.toLowerCase(), "95 % interval", "live − arm", "95 % interval"], rows)),
    ];
  });
}

export function showClicks({ series, random, totals, reward }, name) {
  const { request, form, long } = wording({ reward });
  title("clicks-title", `${request} over time`);
  const lines = ["live", "random", "holdout", "shadow"].map((arm) => ({ name: arm, title: TITLES[arm], points: series[arm] ?? [] }));
  const shown = lines.filter((line) => line.points.length);
  refresh("clicks", [shown, random.problem, totals.decisions > 0, widthOf("clicks"), name], () => {
    if (!shown.length) {
      return totals.decisions ? todo("No rewards yet. Send what was clicked:", `POST /v1/recommenders/${name}/feedback`, '{"feedback_id": "f1", "decision_id": "…", "items": {"ITEM": 1}}') : todo("Nothing to draw before the first decisions.");
    }
    const rows = shown.flatMap((line) => line.points.map((point) => [line.title, clock(point.from, 86401), long(point.mean), range(point, long) || "–", count(point.count)]));
    const open = shown.some((line) => line.points.some((point) => point.settled === false));
    return [
      ...watchedLines(byId("clicks"), lines, { label: `${request} over time with 95 % intervals`, form, hint: "Bands are 95 % intervals. Point at the chart, or use the arrow keys.", keep: "clicks" }),
      random.problem && totals.decisions ? el("p", { class: "note" }, random.problem) : null,
      open ? el("p", { class: "note" }, "Hollow points: some decisions of that time are still open.") : null,
      asTable("clicks", table(`${request} over time`, ["arm", "from", request.toLowerCase(), "95 % interval", "decisions"], rows)),
    ];
  });
}

export function showExploring({ series }) {
  const points = series.exploring;
  refresh("exploring", [points, widthOf("exploring")], () => {
    if (!points.length) return todo("No live slates yet.");
    const rows = points.map((point) => [clock(point.from, 86401), percent(point.mean), count(point.count)]);
    const none = points.every((point) => point.mean === 0);
    return [
      ...watchedLines(byId("exploring"), [{ name: "exploring", title: "exploring", points }], { label: "Share of exploring slots over time", form: whole, hint: "Slots that show another item than the policy's first choice.", keep: "exploring" }),
      none ? el("p", { class: "note" }, "No slot explores: PATCH this recommender with {\"exploration\": 0.1} to be able to compare with random.") : null,
      asTable("exploring", table("Share of exploring slots", ["from", "share", "slots"], rows)),
    ];
  });
}

export function showSlots({ slots, reward }) {
  const { slot: named, rate: unit, slotForm } = wording({ reward });
  title("slots-title", named);
  refresh("slots", [slots, widthOf("slots")], () => {
    if (!slots.length) return todo("No rewards of live slates yet.");
    const rows = slots.map((slot) => [`slot ${slot.slot}`, slotForm(slot.mean), range(slot, (value) => slotForm(value)) || "–", count(slot.count)]);
    const width = Math.max(280, Math.round(byId("slots").clientWidth || 480));
    return [
      barChart(width, slots, { label: `${named}: ${rows.map(([slot, rate]) => `${slot} ${rate}`).join(", ")}`, form: slotForm === percent ? (value) => percent(value, value < 0.1 && value > 0 ? 1 : 0) : slotForm }),
      el("p", { class: "note" }, "Whiskers are 95 % intervals; slot 1 is shown first."),
      asTable("slots", table(named, ["slot", unit, "95 % interval", "shows"], rows)),
    ];
  });
}

export function showMap({ map, reward }, name, items) {
  refresh("map", [map, items, widthOf("map"), name], () => {
    if (map && map.points.length) return itemMap(byId("map"), map, wording({ reward }).earned);
    if (items === 0) return todo("No items yet. Add some:", `PUT /v1/recommenders/${name}/items/ITEM`, '{"category": "books", "price": 12.5}');
    return todo("The map is drawn once the first slate has fixed how items are read.");
  });
}

export function showHealth({ learner, health, events, time, created }) {
  refresh("health", [learner, health, events], () => {
    const rows = [
      ["events in the log", count(events)], ["applied by the learner", `${count(learner.applied)} (${count(learner.behind)} behind)`],
      ["lag", duration(learner.lag)], ["lessons learned", count(learner.lessons)],
      ["messages refused by learning", count(learner.refused ?? 0)], ["messages after the end of their window", count(learner.late ?? 0)],
      ["learner last heard", clock(learner.said, 86401)], ["last event", clock(time, 86401)], ["made", clock(created, 86401)],
      ...Object.entries(health).filter(([key, value]) => key !== "problem" && value !== null && typeof value !== "object").map(([key, value]) => [key.replaceAll("_", " "), plain(value)]),
    ];
    const list = el("dl", {}, rows.map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))));
    const lost = (learner.refused ?? 0) + (learner.late ?? 0);
    return [
      learner.problem ? el("p", { class: "problem" }, learner.problem) : null,
      health.problem ? el("p", { class: "problem" }, health.problem) : null,
      lost ? el("p", { class: "warning" }, `${plural(lost, "message")} did not count: the decision it is for tells why.`) : null,
      list,
    ];
  });
}

// An empty text is a problem that is not there.
function plain(value) {
  if (value === "") return "no problem";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return known(value) ? number(value, Number.isInteger(value) ? 0 : 3) : String(value);
}

const widthOf = (id) => byId(id).clientWidth;

export function todo(text, line = "", body = "") {
  return [el("p", { class: "todo" }, text), line ? el("pre", { class: "todo" }, body ? `${line}\n${body}` : line) : null];
}
