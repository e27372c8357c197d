// Words that set fields of the question: `tp 4`, `8xh100`, `ttft 500ms`, `isl 4k`, `rate 5`.

import { short } from "./figures.mjs";

/** Devices of a name such as `2x8xh100`. */
export const devices = (hardware) => [...(hardware.match(/^(\d+x)+/)?.[0] ?? "1x").matchAll(/\d+/g)].reduce((all, [number]) => all * Number(number), 1);

const tokens = (text) => String(Math.round(Number.parseFloat(text) * (/k$/i.test(text) ? 1024 : 1)));
/** A number without a unit is in milliseconds. */
const time = (text) => (/[a-zµ]$/i.test(text) ? text : `${text}ms`);

/** Names of settings, their field, and how the value is written. */
const SETTINGS = [
  [/^ttft$/, "ttft", "TTFT", time],
  [/^tpot$/, "tpot", "TPOT", time],
  [/^e2e$/, "e2e", "E2E", time],
  [/^(isl|in|prompt)$/, "isl", "ISL", tokens],
  [/^(osl|out|output)$/, "osl", "OSL", tokens],
  [/^(concurrency|concurrent|conc|users)$/, "concurrency", "Concurrency", tokens],
  [/^(rate|rps|qps)$/, "rate", "Requests per second", String],
  [/^prefix$/, "prefix", "Cached prefix", tokens],
  [/^(risk|odds)$/, "risk", "Odds of the SLOs", String],
];
const SETTING = /\b(e2e|[a-z]+)\s*[=:≤<]*\s*([\d.]+\s?(?:ms|s|us|µs|k)?|none)(?=\s|$)/g;
const DEGREE = /\b(tp|pp|ep|dp|cp)\s*=?\s*(\d{1,4})\b/g;

/** The degrees of a text as a plan that fills the devices: `tp 4 pp2` of 8 devices is `1 x tp4 pp2`. */
function plan(text, hardware) {
  const found = [...text.matchAll(DEGREE)].map(([, name, degree]) => [name, Number(degree)]);
  if (!found.length) return undefined;
  // Experts are divided over the devices of the other degrees.
  const each = found.filter(([name]) => name !== "ep").reduce((all, [, degree]) => all * degree, 1);
  const replicas = Math.floor(devices(hardware) / each);
  return replicas >= 1 ? { label: found.map(([name, degree]) => `${name.toUpperCase()}${degree}`).join(" "), notation: `${replicas} x ${found.map(([name, degree]) => name + degree).join(" ")}` } : undefined;
}

/** The fields that a phrase sets, the entries for that, and its other words. */
export function phrases(text, actions) {
  const fields = actions.fields();
  const words = text.toLowerCase().replaceAll("×", "x").replace(/(\d)\s*x\s*(?=[a-z\d])/g, "$1x");
  const changes = {};
  const entries = [];
  const add = (line, hint, more) => {
    Object.assign(changes, more);
    entries.push({ group: "Set in this question", text: line, hint, choose: () => actions.ask(more) });
  };
  const hardware = words.match(/(?:^|\s)((?:\d+x)+[a-z][a-z0-9.-]+)(?=\s|$)/)?.[1];
  const given = plan(words, hardware ?? fields.hardware ?? actions.hardware());
  if (given) add(`Plan: ${given.notation}`, "estimates this plan", { ...(hardware ? { hardware } : {}), plan: given.notation });
  else if (hardware) add(`Hardware: ${hardware}`, "the best plan on it", { hardware, plan: "" });
  for (const [, name, value] of words.matchAll(SETTING)) {
    const setting = SETTINGS.find(([pattern]) => pattern.test(name));
    if (setting) add(`${setting[2]}: ${setting[3](value.replace(/\s/g, ""))}`, "the best plan with it", { [setting[1]]: setting[3](value.replace(/\s/g, "")) });
  }
  const rest = entries.length ? words.replace(hardware ?? "", " ").replace(DEGREE, " ").replace(SETTING, " ") : words;
  return { changes, entries, rest: rest.split(/\s+/).filter(Boolean) };
}

const options = (id) => [...document.querySelectorAll(`#${id} option`)].map(({ value }) => value);
/** Words without which a question means the same. */
const FILLERS = new Set(["on", "with", "at", "and", "for", "a", "an", "the", "serve", "run", "of", "under", "within"]);

/** A question in words, such as `Llama-3.3-70B on 8 H100, TPOT 50 ms`; throws where a word is not known. */
export function worded(text, actions) {
  const names = options("models").map((id) => [short(id).toLowerCase(), id]);
  const systems = new Set(options("systems"));
  // `8 H100` is a number of devices; one that is not known is refused with those that are near.
  const joined = text.toLowerCase().replace(/[,;]/g, " ").replace(/\brtx (?=\d)/g, "rtx-").replace(/(^|\s)(\d+)\s*[x×]?\s+(?!(?:tp|pp|ep|dp|cp)\d)([a-z]+[a-z-]*\d[\w.-]*)/g, "$1$2x$3");
  const { changes, rest } = phrases(joined, actions);
  const unknown = [];
  for (const word of rest.filter((one) => !FILLERS.has(one))) {
    const found = names.find(([name]) => name === word) ?? names.find(([name]) => name.startsWith(word) || name.endsWith(word));
    if (found && word.length > 3) changes.model = short(found[1]);
    else if (systems.has(word)) Object.assign(changes, { hardware: word, plan: "" });
    else unknown.push(word);
  }
  if (unknown.length || !Object.keys(changes).length) throw new Error(`"${unknown.join(" ") || text}" is no model, system or setting that is known; Search finds names`);
  return { changes: { plan: "", ...changes }, what: "a question" };
}
