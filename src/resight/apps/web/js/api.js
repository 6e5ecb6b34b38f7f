// The HTTP API: paths and fields in, parsed answers out. Failures are ApiError with problem, expected, actual and fix.
//
// Too many requests (429) are waited for and sent again; while the server does not answer, requests that only
// read wait until it does. `events` reports both to the page.

import { emit } from "./events.js";

const PATIENCE = 6; // how often a request is sent again before its error is shown
const LONGEST_WAIT = 30; // seconds; a server that asks for more is not waited for

export class ApiError extends Error {
  constructor(status, { problem, expected = "", actual = "", fix = "" }, { requestId = "", wait = 0 } = {}) {
    super(problem);
    Object.assign(this, { name: "ApiError", status, problem, expected, actual, fix, requestId, wait });
  }
}

// get("/api/images", { limit: 60, where: ["year>=1900"] }): lists are repeated, null is left out.
export async function get(path, parameters = {}, { signal } = {}) {
  return (await send("GET", address(path, parameters), null, { signal, patient: true })).json();
}

export async function post(path, body, { signal, patient = false } = {}) {
  return parse(await send("POST", path, body, { signal, patient }));
}

export async function put(path, parameters, body) {
  return parse(await send("PUT", address(path, parameters), body, {}));
}

export async function remove(path, parameters = {}) {
  return parse(await send("DELETE", address(path, parameters), null, {}));
}

// The objects of an answer in application/x-ndjson, one a line, as they arrive.
export async function* postForLines(path, body, { signal } = {}) {
  const response = await send("POST", path, body, { signal, patient: true });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += value ?? "";
    const lines = rest.split("\n");
    rest = done ? "" : lines.pop();
    yield* lines.filter((line) => line.trim()).map((line) => JSON.parse(line));
    if (done) {
      return;
    }
  }
}

export function address(path, parameters = {}) {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const query = new URLSearchParams(pairs.filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return query.size ? `${path}?${query}` : path;
}

// A form of fields: files, texts, lists of them (repeated) and null (left out).
export function form(fields) {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined && one !== "") {
        made.append(name, one instanceof Blob ? one : String(one));
      }
    }
  }
  return made;
}

async function send(method, url, body, { signal, patient = false }) {
  for (let turn = 0; ; turn += 1) {
    let response;
    try {
      response = await fetch(url, { method, signal, ...encode(body) });
    } catch (error) {
      if (error.name === "AbortError") {
        throw error;
      }
      if (!patient) {
        throw silence();
      }
      await serverIsBack(signal);
      continue;
    }
    if (response.ok) {
      return response;
    }
    const error = await readError(response);
    const again = response.status === 429 || (patient && response.status === 503);
    if (!again || turn >= PATIENCE || error.wait > LONGEST_WAIT) {
      if (response.status === 401 && !url.startsWith("/api/session")) {
        emit("signed-out");
      }
      throw error;
    }
    await countDown(Math.max(error.wait, 1), signal);
  }
}

function encode(body) {
  if (body === null || body === undefined) {
    return {};
  }
  return body instanceof FormData
    ? { body }
    : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
}

async function parse(response) {
  return response.status === 204 ? null : response.json();
}

async function readError(response) {
  const told = await response.json().catch(() => null);
  const about = {
    requestId: response.headers.get("X-Request-ID") ?? "",
    wait: Number(response.headers.get("Retry-After") ?? 0),
  };
  return new ApiError(
    response.status,
    told?.error ?? { problem: `The server answered ${response.status} ${response.statusText}` },
    about,
  );
}

function silence() {
  return new ApiError(0, {
    problem: "The server does not answer",
    fix: "Check that resight serve is running, then try again",
  });
}

async function countDown(seconds, signal) {
  for (let left = Math.ceil(seconds); left > 0; left -= 1) {
    emit("waiting", left);
    await pause(1000, signal);
  }
  emit("waiting", 0);
}

let outage = null; // one loop for all waiting requests

async function serverIsBack(signal) {
  outage ??= askUntilAnswered().finally(() => {
    outage = null;
  });
  await outage;
  signal?.throwIfAborted();
}

async function askUntilAnswered() {
  emit("offline", true);
  for (;;) {
    await pause(1500);
    const answered = await fetch("/api/health").then(
      (response) => response.ok,
      () => false,
    );
    if (answered) {
      emit("offline", false);
      return;
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
