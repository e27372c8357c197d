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

/** Names of scenarios by what differs, and what they have in common. */
export function named(scenarios) {
  const keys = [...new Set(scenarios.flatMap(Object.keys))];
  // Of plans, only the parts that are not in all of them: `4 x tp2 @64`, without the formats.
  const plans = scenarios.map((one) => one.deployment?.plan?.split(", ") ?? []);
  const shared = (part) => scenarios.length > 1 && plans.every((parts) => parts.includes(part));
  const text = (one, key) => {
    if (one[key] === undefined) return undefined;
    const whole = said(one[key]);
    const short = key === "deployment" ? whole.split(", ").filter((part) => !shared(part)).join(", ") : whole.replace(/^.*--/, "");
    return short || whole;
  };
  const differ = keys.filter((key) => new Set(scenarios.map((one) => text(one, key))).size > 1);
  const plain = ["model", "hardware", "deployment", "runtime", "weight_format"];
  const spelled = (one, key) => (text(one, key) === undefined ? (key === "deployment" ? "best plan" : `default ${key.replaceAll("_", " ")}`) : plain.includes(key) ? text(one, key) : `${key.replaceAll("_", " ")} ${text(one, key)}`);
  const names = scenarios.map((one, at) => differ.map((key) => spelled(one, key)).join(" · ") || `pin ${at + 1}`);
  // Names differ, even where two pins are the same.
  return { names: names.map((name, at) => (names.indexOf(name) === at ? name : `${name} (${at + 1})`)), common: keys.filter((key) => !differ.includes(key)).map((key) => spelled(scenarios[0], key)).join(" · ") };
}
