// What the page asks of the service: JSON by fetch, and its stream of overviews, both with the key of this tab.

const KEPT = "neuclust-key";
const SILENCE = 45000; // milliseconds without a byte, after which the stream is opened anew

export const keptKey = () => sessionStorage.getItem(KEPT) ?? "";
export const keepKey = (key) => (key ? sessionStorage.setItem(KEPT, key) : sessionStorage.removeItem(KEPT));
export const address = (name, ...parts) => ["v1/recommenders", name, ...parts].map((part, at) => (at ? encodeURIComponent(part) : part)).join("/");

export class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

function headers() {
  return keptKey() ? { Authorization: `Bearer ${keptKey()}` } : {};
}

async function refusal(response) {
  let detail = `${response.status} ${response.statusText}`;
  try {
    const body = await response.json();
    detail = body.detail || body.title || detail;
  } catch {
    // not a problem document: the status says all there is
  }
  return new Refusal(response.status, String(detail));
}

export async function ask(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headers(), cache: "no-store" });
  if (!response.ok) throw await refusal(response);
  return response.status === 204 ? null : response.json();
}

// Server-sent events by fetch, since EventSource cannot send a key. Ends by an error or when the service ends it.
export async function stream(path, signal, heard) {
  const response = await fetch(path, { headers: { ...headers(), Accept: "text/event-stream" }, signal, cache: "no-store" });
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await timed(reader.read(), reader);
    if (done) return;
    rest += value.replaceAll("\r", "");
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) tell(block, heard);
  }
}

function tell(block, heard) {
  let kind = "message";
  const data = [];
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (name === "event") kind = value;
    if (name === "data") data.push(value);
  }
  if (data.length) heard(kind, JSON.parse(data.join("\n")));
}

function timed(promise, reader) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reader.cancel().catch(() => {});
      resolve({ done: true });
    }, SILENCE);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
