// Elements and numbers. Text from the service only ever becomes text nodes or attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

// An id as people read it: its direction cannot change what stands around it, and it is cut where it is long.
export function idText(id, most = 60) {
  const text = String(id);
  const letters = Array.from(text);
  return el("bdi", { class: "id", title: text }, letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text);
}

export const known = (value) => typeof value === "number" && Number.isFinite(value);
export const number = (value, digits = 2) => (known(value) ? value.toFixed(digits).replace("-", "−") : "–");
export const percent = (value, digits = 1) => (known(value) ? `${number(100 * value, digits)} %` : "–");
export const count = (value) => (known(value) ? Math.round(value).toLocaleString("en") : "–");
export const range = (at, form = number) => (at && known(at.low) && known(at.high) ? `${form(at.low)} to ${form(at.high)}` : "");
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${Math.round(value) === 1 ? one : many}`;

export function clock(seconds, span = 0) {
  if (!known(seconds)) return "–";
  const date = new Date(1000 * seconds);
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(span < 600 ? { second: "2-digit" } : {}) });
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  if (span > 6 * 86400) return day;
  return span > 86400 ? `${day} ${time}` : time;
}

export function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 90) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${number(seconds / 60, 0)} min`;
  return seconds < 172800 ? `${number(seconds / 3600, 1)} h` : `${number(seconds / 86400, 1)} days`;
}

export function table(caption, heads, rows) {
  const body = rows.map((cells) => el("tr", {}, cells.map((cell, at) => el(at ? "td" : "th", at ? {} : { scope: "row" }, cell))));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, el("table", {},
    el("caption", { class: "unseen" }, caption),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, body)));
}

// Fill a place once and again only when its content is another one, so that focus and open parts stay.
const drawn = new Map();
export function refresh(id, content, make) {
  const text = JSON.stringify(content);
  if (drawn.get(id) === text) return;
  drawn.set(id, text);
  const place = byId(id);
  const open = new Set([...place.querySelectorAll("details[data-keep][open]")].map((each) => each.dataset.keep));
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  place.replaceChildren(...[make()].flat().filter(Boolean));
  for (const each of place.querySelectorAll("details[data-keep]")) each.open = open.has(each.dataset.keep);
  if (focused !== undefined) place.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}
export const forget = () => drawn.clear();
export const forgetOne = (id) => drawn.delete(id);

export const asTable = (keep, ...content) =>
  el("details", { "data-keep": keep }, el("summary", { "data-focus": `table-${keep}` }, "As a table"), ...content);
