// Answers that the reader pinned, at most four: they stay in this browser, and the address of a comparison carries them.

const KEY = "mantile-pins";
export const MOST = 4;

/** The pinned scenarios, each with its plan. */
export const pinned = () => JSON.parse(localStorage.getItem(KEY) ?? "[]").map((one) => one.scenario ?? one);

export const keep = (scenarios) => localStorage.setItem(KEY, JSON.stringify(scenarios.slice(-MOST)));

/** Pins the plan of a scenario; the result takes it back. */
export function pin(scenario) {
  const before = pinned();
  const same = JSON.stringify(scenario);
  keep([...before.filter((one) => JSON.stringify(one) !== same), scenario]);
  return () => keep(before);
}

/** A value of a scenario as text. */
const said = (value) => (Array.isArray(value) ? value.join(", ") : typeof value === "object" && value ? value.plan ?? JSON.stringify(value) : String(value));

/** Hardware as it is spelled: `8 × H100`. */
const system = (id) => (/^(\d+x)+[a-z]/.test(id) ? id.replace(/^((?:\d+x)+)(.*)$/, (_, counts, device) => `${counts.replaceAll("x", " × ")}${device.toUpperCase().replaceAll("-", " ")}`) : id);

/** Keys whose words are others than their own. */
const WORDS = { deployment: "plan", ttft: "TTFT SLO", tpot: "TPOT SLO", e2e: "E2E SLO", isl: "prompt", osl: "output", risk: "required odds", set: "overrides" };
export const keyed = (key) => WORDS[key] ?? key.replaceAll("_", " ");
/** Keys whose value says what they are. */
const PLAIN = ["model", "hardware", "deployment", "runtime", "weight_format"];

/** A key of a scenario and its value in words. `shared` are parts of plans that need no words. */
export function worded(one, key, shared = () => false) {
  if (one[key] === undefined) return key === "deployment" ? "best plan" : `default ${keyed(key)}`;
  const whole = said(one[key]);
  if (key === "deployment") return whole.split(", ").filter((part) => !shared(part)).join(", ") || whole;
  const value = key === "hardware" ? system(whole) : whole.replace(/^.*--/, "");
  return PLAIN.includes(key) ? value : `${keyed(key)} ${value}`;
}

/** Names of scenarios by what differs, and the keys that differ. A plan is in a name only where nothing else is. */
export function named(scenarios) {
  const keys = [...new Set(scenarios.flatMap(Object.keys))];
  // Of plans, only the parts that are not in all of them: `4 x tp2 @64`, without the formats.
  const plans = scenarios.map((one) => one.deployment?.plan?.split(", ") ?? []);
  const shared = (part) => scenarios.length > 1 && plans.every((parts) => parts.includes(part));
  const differ = keys.filter((key) => new Set(scenarios.map((one) => worded(one, key, shared))).size > 1);
  const by = (of, isShort) => scenarios.map((one) => of.filter((key) => !isShort || one[key] !== undefined).map((key) => worded(one, key, shared)).join(" · "));
  const others = differ.filter((key) => key !== "deployment");
  // The shortest ones that differ: without defaults and plans, without plans, with all.
  const unlike = (names) => names.every((name, at) => name && names.indexOf(name) === at);
  const names = [by(others, true), by(others), by(differ)].find((all, at) => at === 2 || unlike(all)).map((name, at) => name || `pin ${at + 1}`);
  // Names differ, even where two pins are the same.
  return { names: names.map((name, at) => (names.indexOf(name) === at ? name : `${name} (${at + 1})`)), differ };
}
