// Where answers come from: the module in a worker, or the server.
import { MantileError } from "./mantile.mjs";

/** Media types of the formats. */
const TYPES = {
  json: "application/json",
  text: "text/plain",
  markdown: "text/markdown",
  csv: "text/csv",
  svg: "image/svg+xml",
  html: "text/html",
  section: "application/vnd.mantile.section+html",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

/** A response of the server; where it does not answer, a fault of that name. */
async function reached(address, more) {
  try {
    return await fetch(address, more);
  } catch (fault) {
    throw fault.name === "AbortError" ? fault : Object.assign(new Error("the server is not reachable"), { name: "Unreachable" });
  }
}

/** The header of the token that the reader gave, if any. */
function authorized() {
  const token = sessionStorage.getItem("mantile-token");
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** The response of the server to a request. */
function sent(name, body, format, more, signal) {
  const headers = { ...authorized(), "Content-Type": "application/json", Accept: TYPES[format], ...more };
  return reached(`v2/${name}`, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** The server: a request that is stopped closes its connection, which ends the search. */
function server() {
  let stopping = null;
  return {
    kind: "http",
    formats: Object.keys(TYPES),
    stop: () => stopping?.abort(),
    /** Drift and runs of the server; undefined where it does not give them. */
    async measured() {
      const response = await reached("v1/calibrate", { headers: authorized() });
      return response.ok ? response.json() : undefined;
    },
    /** Hands runs to the server, one after another, until it refuses one: how many it took, and the refusal. */
    async submit(runs) {
      const headers = { ...authorized(), "Content-Type": "application/json" };
      for (const [taken, body] of runs.entries()) {
        const response = await reached("v1/calibrate", { method: "POST", headers, body });
        if (!response.ok) return { taken, fault: (await response.json().catch(() => ({}))).detail ?? `status ${response.status}` };
      }
      return { taken: runs.length };
    },
    /** The best answer that is found within these seconds: RFC 7240. */
    async soFar(name, body, format, seconds, signal) {
      const response = await sent(name, body, format, { Prefer: `wait=${seconds}` }, signal);
      return response.ok ? response.text() : undefined;
    },
    async answer(name, body, format) {
      const own = new AbortController();
      stopping = own;
      const response = await sent(name, body, format, {}, own.signal);
      if (response.ok) return format === "xlsx" ? response.blob() : response.text();
      if (response.status === 401) {
        const given = prompt("Bearer token of this server");
        if (given) {
          sessionStorage.setItem("mantile-token", given);
          return this.answer(name, body, format);
        }
      }
      const problem = await response.json();
      throw new MantileError({ ...problem, key: problem.field ?? "request", found: problem.found ?? problem.detail ?? "", expected: problem.expected ?? "", fix: problem.fix ?? "" });
    },
  };
}

/** The module in a worker: a search that is stopped ends with its worker, and the next one begins in another. */
function module(progress) {
  let worker = null;
  let waiting = new Map();
  let number = 0;
  function begin() {
    worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => {
      if (data.progress) return progress(...data.progress);
      const { resolve, reject } = waiting.get(data.number) ?? {};
      waiting.delete(data.number);
      if (data.problem) reject?.(new MantileError(data.problem));
      else if (data.fault) reject?.(new Error(data.fault));
      else resolve?.(data.text);
    };
    worker.onerror = (event) => stop(event.message ? new Error(event.message) : Object.assign(new Error("the engine could not be loaded"), { name: "Unreachable" }));
  }
  function stop(fault = new DOMException("stopped", "AbortError")) {
    worker.terminate();
    const left = waiting;
    waiting = new Map();
    begin();
    left.forEach(({ reject }) => reject(fault));
  }
  begin();
  return {
    kind: "wasm",
    formats: ["json", "text", "markdown", "csv", "svg", "html", "section"],
    stop: () => stop(),
    measured: async () => undefined,
    /** The best answer that is found within these seconds, by a worker of its own: the other one searches on. */
    soFar: (name, body, format, seconds, signal) =>
      new Promise((resolve) => {
        const other = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
        const end = (text) => {
          other.terminate();
          resolve(text);
        };
        other.onmessage = ({ data }) => data.progress || end(data.text);
        other.onerror = () => end(undefined);
        signal.addEventListener("abort", () => end(undefined));
        other.postMessage({ number: 0, name, body, format, seconds });
      }),
    answer: (name, body, format) =>
      new Promise((resolve, reject) => {
        waiting.set((number += 1), { resolve, reject });
        worker.postMessage({ number, name, body, format });
      }),
  };
}

/** The engine of this page. */
export function engine(progress) {
  return document.documentElement.dataset.engine === "wasm" ? module(progress) : server();
}

/** Does something else where a request was refused; other faults stay faults. */
export const refused = (other) => (fault) => (fault.key === undefined ? Promise.reject(fault) : other());

/** Answers that further changes of the view leave as they are, by their request. */
const known = new Map();
export async function once(name, request, work) {
  const key = JSON.stringify(request);
  if (known.get(name)?.key !== key) known.set(name, { key, value: await work() });
  return known.get(name).value;
}
