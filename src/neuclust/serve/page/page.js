// The page: which recommender, its stream of overviews, the connection's state, colours, keys and questions.

import { forgetDecisions, showDecisions, showVersions } from "./decisions.js";
import { byId, el, forget } from "./dom.js";
import { forgetFeatures, showFeatures } from "./features.js";
import { showClicks, showComparison, showExploring, showHealth, showMap, showNow, showSlots, todo } from "./sections.js";
import { address, ask, keepKey, keptKey, stream } from "./service.js";

const LONGEST = 15000; // milliseconds between two tries
const state = { name: "", listed: [], overview: null, following: null, wake: null };

// --- what is shown ----------------------------------------------------------------------------------------------

function show() {
  const { overview, name } = state;
  if (!overview) return;
  byId("overview").hidden = false;
  const items = overview.map?.total ?? overview.health.items ?? state.listed.find((each) => each.name === name)?.items;
  showNow(overview);
  showComparison(overview, name);
  showClicks(overview, name);
  showExploring(overview);
  showSlots(overview);
  showMap(overview, name, items);
  showDecisions(overview, name);
  showVersions(overview, name, promote);
  showHealth(overview);
  showFeatures(name, [overview.health.items, overview.health.users, overview.versions[0]?.version]);
  showEmpty(items);
}

function showEmpty(items) {
  const place = byId("empty");
  place.hidden = items !== 0 || state.overview.totals.decisions > 0;
  const base = `/v1/recommenders/${state.name}`;
  if (!place.hidden) place.replaceChildren(el("h2", {}, "No items yet"), ...todo("Add items, one by one or as a table:", `PUT ${base}/items/ITEM\n{"category": "books", "price": 12.5}\n\nPOST ${base}/items:batch`));
}

function say(text, kind = "") {
  byId("message").hidden = !text;
  byId("message").dataset.kind = kind;
  byId("message").textContent = text;
}

function connection(kind, text) {
  const pill = byId("connection");
  if (pill.dataset.state !== kind || pill.textContent !== text) {
    pill.dataset.state = kind;
    pill.textContent = text;
  }
  byId("retry").hidden = kind !== "lost";
}

// --- which recommender ------------------------------------------------------------------------------------------

async function list() {
  state.listed = (await ask("v1/recommenders")).recommenders;
  const chooser = byId("chooser");
  chooser.replaceChildren(...state.listed.map(({ name }) => el("option", { value: name }, name)));
  chooser.disabled = !state.listed.length;
  const wanted = decodeURIComponent(location.hash.slice(1));
  return state.listed.some(({ name }) => name === wanted) ? wanted : state.listed[0]?.name ?? "";
}

function choose(name) {
  if (name === state.name) return;
  Object.assign(state, { name, overview: null });
  forget();
  forgetDecisions();
  forgetFeatures();
  byId("decisions").replaceChildren();
  byId("overview").hidden = true;
  byId("chooser").value = name;
  document.title = name ? `${name} · neuclust` : "neuclust";
  history.replaceState(null, "", name ? `#${encodeURIComponent(name)}` : location.pathname);
  state.following?.abort();
}

function noRecommenders() {
  const place = byId("empty");
  place.hidden = false;
  place.replaceChildren(el("h2", {}, "No recommenders yet"), ...todo("Make one, and it appears here:", "PUT /v1/recommenders/shop", '{"slate_size": 3}'));
  connection("live", "Connected");
}

// --- following --------------------------------------------------------------------------------------------------

function heard(name, overview) {
  if (name !== state.name) return;
  state.overview = overview;
  connection("live", "Live");
  if (byId("message").dataset.kind === "bad") say("");
  show();
}

async function followOnce() {
  const name = await list();
  if (!name) {
    choose("");
    noRecommenders();
    await pause(3000);
    return;
  }
  byId("empty").hidden = true;
  if (!state.listed.some((each) => each.name === state.name)) choose(name);
  else byId("chooser").value = state.name;
  const following = new AbortController();
  state.following = following;
  const chosen = state.name;
  heard(chosen, await ask(address(chosen, "overview"), { signal: following.signal }));
  await stream(address(chosen, "stream"), following.signal, (kind, overview) => {
    if (kind === "overview") heard(chosen, overview);
  });
}

async function follow() {
  for (let wait = 1000; ; ) {
    try {
      await followOnce();
      wait = 1000;
      await pause(200);
    } catch (error) {
      if (state.following?.signal.aborted) {
        state.following = null;
        continue;
      }
      if (error.status === 401 || error.status === 403) {
        connection("lost", error.status === 401 ? "A key is needed" : "This key may not read it");
        await askKey(error.message);
        continue;
      }
      if (error.status === 404) choose("");
      await lost(wait, error);
      wait = Math.min(2 * wait, LONGEST);
    }
  }
}

async function lost(wait, error) {
  const until = Date.now() + wait;
  if (error.status) say(`The service answered: ${error.message}`, "bad");
  while (Date.now() < until) {
    connection("lost", `Connection lost; next try in ${Math.ceil((until - Date.now()) / 1000)} s`);
    if (await pause(Math.min(1000, until - Date.now()))) return;
  }
}

// True where it was ended by the button.
function pause(milliseconds) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), milliseconds);
    state.wake = () => {
      clearTimeout(timer);
      resolve(true);
    };
  });
}

// --- questions --------------------------------------------------------------------------------------------------

function answered(dialog) {
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

async function askKey(detail = "") {
  const input = byId("key-input");
  byId("key-text").textContent = `${detail ? `${detail} ` : ""}The key is kept in this tab until you close it, and sent to this service alone.`;
  input.value = keptKey();
  const given = await answered(byId("ask-key"));
  if (given) keepKey(input.value.trim());
  input.value = "";
  if (!given && detail) await pause(LONGEST);
  return given;
}

async function promote(version) {
  const latest = version === "latest";
  byId("ask-title").textContent = latest ? "Serve the latest version?" : `Serve version ${version}?`;
  byId("ask-text").textContent = latest
    ? "Slates come from the newest model again, and from every one that is published after it."
    : `All slates come from version ${version} until you choose another. Learning goes on, and nothing is deleted.`;
  byId("ask-yes").textContent = latest ? "Serve the latest" : `Serve version ${version}`;
  if (!(await answered(byId("ask")))) return;
  const name = state.name;
  try {
    await ask(`${address(name, "versions")}/${encodeURIComponent(version)}:promote`, { method: "POST" });
    heard(name, await ask(address(name, "overview")));
    say(latest ? "The latest version is served." : `Version ${version} is served.`, "good");
    setTimeout(() => byId("message").dataset.kind === "good" && say(""), 8000);
  } catch (error) {
    say(`Not promoted: ${error.message}`, "bad");
  }
}

// --- colours ----------------------------------------------------------------------------------------------------

const THEMES = ["system", "light", "dark"];

function colour(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Colours: ${theme}`;
  localStorage.setItem("neuclust-theme", theme);
}

function start() {
  const kept = localStorage.getItem("neuclust-theme");
  let theme = THEMES.includes(kept) ? kept : "system";
  colour(theme);
  byId("theme").addEventListener("click", () => colour((theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length])));
  byId("chooser").addEventListener("change", (event) => choose(event.target.value));
  window.addEventListener("hashchange", () => {
    const name = decodeURIComponent(location.hash.slice(1));
    if (state.listed.some((each) => each.name === name)) choose(name);
  });
  byId("features-part").addEventListener("toggle", show);
  byId("retry").addEventListener("click", () => state.wake?.());
  byId("key").addEventListener("click", async () => {
    if (await askKey()) state.following?.abort();
    state.wake?.();
  });
  for (const button of document.querySelectorAll("button.cancel")) button.addEventListener("click", () => button.closest("dialog").close("no"));
  new ResizeObserver(() => requestAnimationFrame(show)).observe(byId("main"));
  follow();
}

start();
