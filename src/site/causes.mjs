// Why a pin differs from the base: its inputs replace those of the base one after another, each step an estimate.
import { field, graph, label, line, menu, ticks } from "./chart.mjs";
import { drawn, element, plain } from "./figures.mjs";
import { behind, METERS, read, signed } from "./meters.mjs";
import { keyed, worded } from "./pins.mjs";

/** A change below this share of the base is no bar. */
const NONE = 0.0005;
/** Steps that are drawn; the smallest others are one bar. */
const STEPS = 6;

const at = (file, path) => path.split(".").reduce((part, key) => part?.[key], file);
/** Paths of a file below some of its keys, down to those with a value. */
const below = (file, roots) => roots.flatMap((root) => {
  const found = at(file, root);
  if (found === undefined || found === null || typeof found !== "object") return [];
  return found.value === undefined ? below(file, Object.keys(found).map((key) => `${root}.${key}`)) : [root];
});

/** Parts of a machine that an override gives another one: those of the device, and those of the system. */
const PARTS = [
  ["memory bandwidth", ["memory.bandwidth"], []],
  ["compute", ["peak"], []],
  ["memory size", ["memory.capacity"], []],
  ["links", ["scale_up.bandwidth", "host_link.bandwidth"], ["tiers"]],
  ["prices", ["price.rent"], ["price.rent", "price.purchase"]],
  ["power limit", ["power.tdp"], ["power.overhead"]],
];

/** The overrides that give machine `a` the figures of `b`, by part: those that both have, and the peaks of any format. */
function parts(a, b) {
  const differs = (own, other, path) => other?.value !== own?.value && (own?.value !== undefined || path.startsWith("peak."));
  const of = (kind, roots) => below(b[kind], roots).filter((path) => differs(at(a[kind], path), at(b[kind], path), path)).map((path) => `${kind}.${path}=${at(b[kind], path).value}`);
  return PARTS.map(([name, device, system]) => [name, [...of("device", device), ...(a.system && b.system ? of("system", system) : [])]]).filter(([, set]) => set.length);
}

/** A machine of the catalogue: its device, and its system where it has one. */
async function machine(name, entry) {
  const system = await entry("systems", name);
  const device = await entry("devices", system?.device ?? name.replace(/^(\d+x)+/, ""));
  return device && { device, system };
}

/** What one change is in words. */
function change(a, b, key) {
  if (key !== "deployment") return worded(b, key);
  const [from, to] = [a, b].map((one) => one.deployment.plan.match(/^(.*?) ?@([\d.]+)/) ?? []);
  return from[1] && from[1] === to[1] ? `load ${from[2]} → ${to[2]}` : `plan ${to[0] ?? b.deployment.plan}`;
}

/** The first overrides of a part in words. */
const short = (set) => set.slice(0, 3).map((one) => one.split("=")).map(([path, value]) => `${path.replace(/^\w+\.(tiers\.\d+\.|memory\.|price\.|peak\.)?/, "").replaceAll(/[._]/g, " ")} ${value}`).join(", ") + (set.length > 3 ? " …" : "");

/** The changes from scenario `a` to `b`, the plan last. A machine changes by its parts, each of which may not run alone. */
async function changes(a, b, entry) {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]));
  const all = [];
  for (const key of keys.toSorted((one, other) => Number(one === "deployment") - Number(other === "deployment"))) {
    const [one, other] = key === "hardware" && a.hardware && b.hardware ? await Promise.all([a, b].map(({ hardware }) => machine(hardware, entry))) : [];
    const split = one && other && one.device.id !== other.device.id ? parts(one, other) : [];
    for (const [name, set] of split) all.push({ name, part: true, to: short(set), next: (now) => ({ ...now, set: [...(now.set ?? []), ...set] }) });
    const isPart = (line) => split.some(([, set]) => set.includes(line));
    // The machine itself replaces the overrides of its parts.
    const without = ({ set, ...rest }) => ({ ...rest, ...(set?.some((line) => !isPart(line)) ? { set: set.filter((line) => !isPart(line)) } : {}) });
    all.push({ name: split.length ? "rest of the device" : change(a, b, key), to: key === "deployment" ? b.deployment.plan : worded(b, key), next: (now) => ({ ...(split.length ? without(now) : now), [key]: b[key] }) });
  }
  return all;
}

/** The estimates from `a` to `b`, change by change. One that does not run is one with the next. */
export async function caused(a, b, estimated, entry) {
  const done = [];
  let now = a;
  let waiting = [];
  for (const { name, part, to, next } of await changes(a, b, entry)) {
    const scenario = next(now);
    const found = await estimated(scenario);
    if (part && !found.metrics) continue;
    now = scenario;
    waiting.push({ name, to });
    if (!found.metrics) continue;
    done.push({ ...joined(waiting), found });
    waiting = [];
  }
  return done;
}

/** Several changes as one. */
const joined = (all) => ({ name: all.map(({ name }) => name).join(" + "), to: all.map(({ to }) => to).filter(Boolean).join(", ") });

/** The bars of a metric: each begins where the one before ends, so that they add up. Small ones are one, none has no bar. */
function bars(base, steps, last, meter) {
  const first = read(base, meter);
  const goal = read(last, meter);
  const known = steps.filter(({ found }) => Number.isFinite(read(found, meter)));
  if (!Number.isFinite(first) || !Number.isFinite(goal)) return undefined;
  const none = [];
  let now = first;
  let made = [];
  for (const step of known) {
    const value = read(step.found, meter);
    if (Math.abs(value - now) < Math.abs(first) * NONE) none.push(step.name);
    else {
      made.push({ ...step, before: now, after: value });
      now = value;
    }
  }
  // Neighbours whose changes are the smallest become one.
  while (made.length > STEPS) {
    const sizes = made.slice(1).map((step, index) => Math.abs(step.after - step.before) + Math.abs(made[index].after - made[index].before));
    const index = sizes.indexOf(Math.min(...sizes));
    const [one, two] = made.slice(index, index + 2);
    made = made.toSpliced(index, 2, { ...two, ...joined([one, two]), before: one.before });
  }
  if (made.length) made.at(-1).after = goal;
  return { first, goal, made, none };
}

const FRACTIONS = [[0.25, "A quarter"], [1 / 3, "A third"], [0.5, "Half"], [2 / 3, "Two thirds"], [0.75, "Three quarters"]];
/** A share in words. */
function fraction(share) {
  if (share > 0.995) return "All";
  if (share > 0.93) return "Nearly all";
  return FRACTIONS.find(([near]) => Math.abs(near - share) < 0.035)?.[1] ?? `${Math.round(share * 100)} %`;
}

/** What most of the difference comes from. */
function finding({ first, goal, made }, meter) {
  const total = goal - first;
  const name = `${meter.name}${meter.sure ? ` ${meter.sure}` : ""}`;
  if (!made.length || Math.abs(total) < Math.abs(first) * NONE * 10) return `${name} is the same`;
  const sorted = made.map((one) => ({ ...one, share: (one.after - one.before) / total })).sort((a, b) => b.share - a.share);
  const [top, second] = sorted;
  const against = sorted.at(-1);
  const of = (one) => signed((one.after - one.before) / Math.abs(first));
  if (against.share < -0.1) return `${top.name[0].toUpperCase()}${top.name.slice(1)}: ${of(top)}; ${against.name}: ${of(against)}`;
  const next = second?.share > 0.1 ? `, ${fraction(second.share).toLowerCase()} from ${second.name}` : "";
  return `${fraction(top.share)} of ${signed(total / Math.abs(first))} ${top.share < 0.6 && !/^(A|Half)/.test(fraction(top.share)) ? "come" : "comes"} from ${top.name}${next}`;
}

/** A scale over bars, which begins at a step near them where zero is far. */
function scale(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const near = least > most * 0.5;
  const steps = ticks(near ? least - (most - least) * 0.6 - most * 0.02 : 0, most * 1.001);
  const size = steps.length > 1 ? steps[1] - steps[0] : most;
  const low = near ? Math.max(steps[0] - (steps[0] > least ? size : 0), 0) : 0;
  const high = most + (most - low) * 0.12;
  return { low, high, of: (value) => (value - low) / (high - low), ticks: steps.filter((one) => one >= low) };
}

/** Numbers of one unit and as many decimals, so that the reader can add them. */
function adding({ first, goal }) {
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(first, goal))));
  return (value) => Math.abs(value).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
const sign = (bar) => (bar.after > bar.before ? "+" : "−");

/** The card of a bar. */
function card(bar, meter, total, spell) {
  const value = (number) => `${spell(number)} ${meter.unit}`;
  const step = bar.before !== undefined;
  const rows = step ? [...line("change", `${sign(bar)}${value(bar.after - bar.before)}`), ...(total ? line("of the difference", `${Math.round(((bar.after - bar.before) / total) * 100)} %`) : []), ...line("after it", value(bar.after)), ...(bar.to ? line("now", bar.to) : [])] : line(meter.name, value(bar.value));
  return [element("h3", {}, element("span", { textContent: bar.name })), element("dl", {}, ...rows)];
}

/** The bars as a picture. */
function picture({ first, goal, made: steps }, names, meter, value) {
  const all = [{ name: names[0], value: first }, ...steps, { name: names[1], value: goal, last: true }];
  const y = scale(all.flatMap((bar) => [bar.value ?? bar.after, bar.before ?? first]));
  const { svg, py } = field({ of: (x) => x, ticks: [] }, y);
  const each = 100 / all.length;
  const middle = (index) => (index + 0.5) * each;
  all.forEach((bar, index) => {
    const step = bar.before !== undefined;
    const [from, to] = step ? [py(bar.before), py(bar.after)] : [100, py(bar.value)];
    const kind = step ? ((bar.after > bar.before) === meter.more ? "better" : "worse") : bar.last ? "pinned" : "base";
    bar.top = Math.min(from, to);
    svg.append(drawn("rect", { class: `cause ${kind}`, x: `${middle(index) - each * 0.32}%`, width: `${each * 0.64}%`, y: `${bar.top}%`, height: `${Math.max(Math.abs(from - to), 0.4)}%` }));
    if (index < all.length - 1) svg.append(drawn("line", { class: "axis", x1: `${middle(index) + each * 0.32}%`, x2: `${middle(index + 1) - each * 0.32}%`, y1: `${to}%`, y2: `${to}%` }));
    svg.append(label(middle(index), bar.top, step ? `${sign(bar)}${value(bar.after - bar.before)}` : value(bar.value), { class: "amount-of", dy: -6, "text-anchor": "middle" }));
  });
  const made = graph(svg, `${meter.name} from ${names[0]} to ${names[1]} by ${steps.length} steps. Arrows walk.`, all.map((bar, index) => ({ ...bar, index })), { place: ({ index, top }) => [middle(index), top], card: (bar) => card(bar, meter, goal - first, value) });
  const under = element("div", { className: "under", attributes: { "aria-hidden": "true" } }, ...all.map(({ name }) => element("span", { textContent: name })));
  return { low: y.low, made: element("div", { className: "wide" }, element("div", { className: "fit" }, made, under)) };
}

/** The steps from the base to a pin as a figure, and as a table behind it. */
export function waterfall({ base, last, steps, names, pins, pin, meter }, act, picks) {
  const found = bars(base, steps, last, meter);
  const controls = element("span", { className: "row" },
    ...(pins.length > 1 ? [menu("pin that is explained", pins, String(pin), (key) => act.pick({ pin: key === "1" ? undefined : key }))] : []),
    menu("measure that is explained", METERS.filter(({ causes }) => causes).map(({ key, name }) => [key, name]), meter.key, (key) => act.pick({ by: key === "output_tok_s" ? undefined : key })));
  const heading = (words) => element("h2", {}, element("span", { textContent: words, title: words }), controls);
  if (!found) return element("figure", { className: "card chart-frame" }, heading("Nothing to explain"), element("p", { className: "soft", textContent: "One of the two does not run." }));
  const spell = adding(found);
  const { low, made } = picture(found, names, meter, spell);
  const value = (number) => `${spell(number)} ${meter.unit}`;
  const rows = [[names[0], "", value(found.first)], ...found.made.map((bar) => [bar.name + (bar.to ? `: ${bar.to}` : ""), `${sign(bar)}${value(bar.after - bar.before)}`, value(bar.after)]), [names[1], "", value(found.goal)]];
  const none = found.none.length ? ` No effect: ${found.none.join(", ")}.` : "";
  return element("figure", { className: "card chart-frame causes" }, heading(finding(found, meter)),
    element("p", { className: "soft axis-y", textContent: `${meter.name}${meter.sure ? ` ${meter.sure}` : ""}, ${meter.unit}${low > 0 ? `, axis starts at ${plain(low)}` : ""}` }),
    made,
    element("p", { className: "soft", textContent: `Inputs are changed one after another from left to right, ${keyed("deployment")} last; each bar is an estimate. Another order has other bars.${none}` }),
    behind("steps", "As a table", ["step", "change", "after it"], rows, act, picks));
}
