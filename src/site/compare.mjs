// Pinned answers side by side: what they say in a sentence, a column each with bars and changes from the base, why one
// differs, and all of them over cost and throughput.
import { field, graph, label, line, menu, named as placedNames, segments, sums } from "./chart.mjs";
import { caused, waterfall } from "./causes.mjs";
import { drawn, element, percent, plain, seconds } from "./figures.mjs";
import { behind, metersOf, middle, read, signed, spelled } from "./meters.mjs";
import { keyed, MOST, named } from "./pins.mjs";

/** A change below this is none. */
const SAME = 0.005;
/** Odds that a comparison warns of. */
const POOR = 0.5;

/** What is compared of an answer; of a scenario that is refused, the reason. */
async function slim(scenario, answer) {
  try {
    const found = JSON.parse(scenario.deployment ? await answer("estimate", { scenario }, "json") : await answer("optimize", { scenario, max_front_points: 1 }, "json"));
    const { metrics, intervals, slo_odds, notation, plan, weight_format, kv_format, violations = [] } = found.best ?? (found.answer === "estimate" ? found : {});
    const reason = metrics ? undefined : found.nearest?.misses ?? violations[0] ?? "no plan meets the limits";
    return { metrics: metrics ?? undefined, intervals, slo_odds, notation, label: plan?.label, weight_format, kv_format, question: found.question, reason };
  } catch (fault) {
    if (fault.key === undefined) throw fault;
    return { reason: `${fault.key}: ${fault.found}`, refused: true };
  }
}

const known = new Map();
/** The answers to scenarios, and the steps from the first to number `pin`; what was computed is kept. */
export async function found(scenarios, pin, files, answer, list) {
  const kept = async (name, key, work) => {
    const all = JSON.stringify([name, key, files]);
    if (!known.has(all)) known.set(all, await work());
    return known.get(all);
  };
  const estimated = (scenario) => kept("answer", scenario, () => slim(scenario, answer));
  const entry = (kind, name) => kept(kind, name, async () => {
    const listed = (await list(kind)).find(({ id, aliases }) => [id, ...aliases].some((one) => one.toLowerCase() === name.toLowerCase()));
    return listed && JSON.parse(await answer("catalog", { kind, name: listed.id }, "json"));
  });
  const answers = [];
  // One at a time: a server may answer few at once.
  for (const scenario of scenarios) answers.push(await estimated(scenario));
  const full = (at) => ({ ...scenarios[at], deployment: { plan: answers[at].notation } });
  const runs = answers[0].metrics && answers[pin]?.metrics;
  return { answers, steps: runs ? await caused(full(0), full(pin), estimated, entry) : [], pin };
}

/** How many times a value is another, in words. */
const factor = (ratio, than) => (Math.abs(ratio - 1) < SAME ? `as much as ${than}` : ratio >= 1.495 ? `${ratio.toFixed(ratio < 9.95 ? 1 : 0).replace(/\.0$/, "")} × the ${than}` : `${Math.round(Math.abs(ratio - 1) * 100) || "<1"} % ${ratio > 1 ? "more" : "less"} than ${than}`);

/** What the pins say. */
function sentence(answers, names, [output, ...others]) {
  const cost = others.find(({ key }) => key === "usd_per_mtok");
  const ratio = (one, meter) => read(one, meter) / read(answers[0], meter);
  const rest = answers.map((one, at) => ({ name: names[at], gives: ratio(one, output), costs: ratio(one, cost) })).slice(1).filter(({ gives }) => Number.isFinite(gives)).sort((a, b) => b.gives - a.gives);
  if (!rest.length) return answers[0].metrics ? `Only ${names[0]} runs` : `${names[0]}, the base, does not run`;
  const price = (one, long) => {
    if (!Number.isFinite(one.costs)) return "";
    if (Math.abs(one.costs - 1) < SAME) return " at the same cost per token";
    if (one.costs >= 1.995) return ` at ${plain(Number(one.costs.toPrecision(2)))} × the cost`;
    return long ? ` at ${Math.round(Math.abs(one.costs - 1) * 100) || "<1"} % ${one.costs < 1 ? "less" : "more"} per token` : ` at ${signed(one.costs - 1)}`;
  };
  const [first, second] = rest;
  const more = second ? `; ${second.name} gives ${second.gives >= 1.495 ? `${plain(second.gives)} ×` : Math.abs(second.gives - 1) < SAME ? "as much" : signed(second.gives - 1)}${price(second, false)}` : "";
  return `${first.name} gives ${factor(first.gives, names[0])}${price(first, true)}${more}`;
}

const NUMBERS = ["No", "One", "Two", "Three", "Four"];

/** The sentence, what it rests on, and what can be done with the whole comparison. */
function head({ answers, own }, names, meters, act) {
  const doubtful = answers.flatMap(({ slo_odds: odds, metrics }, at) => (metrics && odds && odds.all < POOR ? [`${percent(odds.all)} on ${names[at]}`] : []));
  const button = (textContent, onclick, more = {}) => element("button", { type: "button", className: "plain", textContent, onclick, attributes: more });
  const note = own >= 2 ? `${NUMBERS[own]} pins; ${names[0]} is the base. The link holds all pins.` : own ? "An example: one answer is pinned, and a comparison takes two. Pin another one." : "An example: the question on three systems. Pin answers, and they are compared here.";
  return element("div", { className: "head" },
    element("div", {}, element("h1", { textContent: sentence(answers, names, meters) }), element("p", { className: own >= 2 ? "sub" : "sub paper", textContent: note }),
      ...(doubtful.length ? [element("p", { className: "warning", textContent: `Odds of the SLOs: ${doubtful.join(", ")}` })] : []),
      ...answers.flatMap(({ reason, refused }, at) => (reason ? [element("p", { className: "warning", textContent: `${names[at]} ${refused ? "is refused" : "does not run"}: ${reason}` })] : []))),
    element("div", { className: "row actions" }, button("Copy link", undefined, { "data-action": "link" }), ...(own ? [button("Forget all", undefined, { "data-action": "unpin" })] : [])));
}

/** Inputs as rows: name, and the words of an answer. */
const limit = (name) => ({ question }) => {
  const value = seconds(question?.limits?.[name]);
  return value === undefined ? "none" : value >= 1 ? `${plain(value)} s` : `${plain(value * 1e3)} ms`;
};
const INPUTS = [
  ["Model", ({ question }) => question?.model.replace(/^.*\//, "")],
  ["Hardware", ({ question }) => question?.hardware],
  ["Plan", ({ notation }) => notation?.split(", ")[0]],
  ["Weights", ({ weight_format: format }) => format],
  ["KV cache", ({ kv_format: format }) => format],
  ["Runtime", ({ question }) => question?.runtime],
  ["Prompt", ({ question }) => question && `${plain(question.isl)} tokens`],
  ["Output", ({ question }) => question && `${plain(question.osl)} tokens`],
  ["TTFT SLO", limit("ttft")],
  ["TPOT SLO", limit("tpot")],
  ["Odds required", ({ question }) => question?.risk],
  ["Objective", ({ question }) => question?.objective],
  ["Prices", ({ question }) => question?.price_basis],
];
/** Inputs that the columns' heads have. */
const HEADED = ["Model", "Hardware", "Plan"];

/** The rows of the table: inputs and measures, with whether all pins are equal in them. */
function rowsOf(answers, meters) {
  const run = answers.filter(({ metrics }) => metrics);
  const inputs = INPUTS.map(([name, of]) => ({ name, texts: answers.map((one) => of(one) ?? "–") })).filter(({ texts }) => texts.some((text) => text !== "–")).map((row) => ({ ...row, equal: new Set(row.texts).size === 1, headed: HEADED.includes(row.name) }));
  const near = (a, b) => a === b || Math.abs(a / b - 1) < SAME;
  const measures = meters.map((meter) => {
    const values = answers.map((one) => read(one, meter));
    const own = run.map((one) => read(one, meter));
    const leader = meter.follow && run.map((one) => read(one, meters.find(({ key }) => key === meter.follow)));
    const follows = Boolean(leader) && own.every((value, at) => near(value / own[0], leader[at] / leader[0]));
    return { meter, name: meter.sure ? `${meter.name} ${meter.sure}` : meter.name, values, equal: own.length === values.length && own.every((value) => near(value, own[0])), follows };
  }).filter(({ values }) => values.some(Number.isFinite));
  return { inputs, measures };
}

/** The change of a value from the base, with its colour. */
function delta(value, base, { key, more }) {
  if (key === "odds") {
    const points = Math.round(value) - Math.round(base);
    return element("span", points ? { className: points > 0 ? "good" : "bad", textContent: `${points > 0 ? "+" : "−"}${Math.abs(points)} point${Math.abs(points) === 1 ? "" : "s"}` } : { className: "soft", textContent: "same" });
  }
  const share = value / base - 1;
  if (Math.abs(share) < SAME) return element("span", { className: "soft", textContent: "same" });
  return element("span", { className: share > 0 === more ? "good" : "bad", textContent: share > 9.99 ? `× ${plain(value / base)}` : signed(share) });
}

/** A cell: the value, its median, its change, and a bar on the scale of its row. The median opens its formula. */
function cell({ meter, values }, answers, at, act) {
  const value = values[at];
  if (!Number.isFinite(value)) return element("td", { textContent: "–" });
  const bar = element("span", { className: "bar-of" }, element("span", {}));
  bar.firstChild.style.width = `${(value / (meter.key === "odds" ? 100 : Math.max(...values.filter(Number.isFinite)) || 1)) * 100}%`;
  const [number, unit] = spelled(meter, value).split(/ (?=[^ ]*$)/);
  const door = (text) => element("button", { type: "button", className: "number", textContent: text, title: "its formula, with values and sources", onclick: () => act.explain(meter.key.replace(/_ms$|_tokens$/, ""), at) });
  const amount = element("b", {}, ...(meter.sure || meter.key === "odds" ? [number] : [door(number)]));
  const median = meter.sure ? [element("span", { className: "soft median" }, "median ", door(spelled(meter, middle(answers[at], meter)).replace(/ (?=[^ ]*$).*/, "")))] : [];
  const base = values[0];
  return element("td", {}, element("span", { className: "amount" }, element("span", {}, amount, ` ${unit ?? ""} `, ...median), ...(at && Number.isFinite(base) && base > 0 ? [delta(value, base, meter)] : [])), bar);
}

/** What differs, as a heading. */
function differing(differ) {
  const words = differ.map(keyed);
  if (!words.length) return "Nothing differs";
  if (words.length === 1) return `Only the ${words[0]} differs`;
  const text = `${words.slice(0, -1).join(", ")} and ${words.at(-1)} differ`;
  return text[0].toUpperCase() + text.slice(1);
}

/** The heads of the columns: a pin opens, becomes the base, and leaves. */
function heads({ answers, own }, names, act) {
  const button = (textContent, words, onclick, className = "link") => element("button", { type: "button", className, textContent, title: words, onclick, attributes: { "aria-label": words, "data-pick": words } });
  const pins = answers.map((one, at) => element("th", { scope: "col" },
    element("span", { className: "pin-head" }, element("span", { className: "pin-name", textContent: names[at], title: names[at] }),
      at ? button("make base", `make base: compare with ${names[at]}`, () => act.base(at)) : element("span", { className: "tag", textContent: "base" }),
      ...(own >= 2 ? [button("×", `× take ${names[at]} away`, () => act.drop(at), "quiet unpin")] : [])),
    one.notation ? button(one.notation.split(", ")[0], `Open ${one.notation}`, () => act.open(at), "link plan") : element("span", { className: "soft", textContent: "no plan" })));
  const more = own < MOST ? [element("th", { className: "more" }, element("button", { type: "button", className: "plain", textContent: "+ same, but …", title: `pins ${names[0]} with one change`, attributes: { "data-action": "clone" } }))] : [];
  return [...pins, ...more];
}

/** The table: rows that differ, and one line for the others, which opens. */
function table(data, names, differ, meters, act, picks) {
  const { answers } = data;
  const { inputs, measures } = rowsOf(answers, meters);
  const all = picks.rows === "all";
  const columns = answers.length + 1 + (data.own < MOST ? 1 : 0);
  const end = () => (data.own < MOST ? [element("td", {})] : []);
  const input = (row) => element("tr", { className: "input-row" }, element("th", { scope: "row", textContent: row.name }), ...row.texts.map((text) => element("td", { textContent: text })), ...end());
  const measured = (row) => element("tr", { className: row.equal ? "equal" : "" }, element("th", { scope: "row", textContent: row.name }), ...answers.map((_, at) => cell(row, answers, at, act)), ...end());
  const folds = [...inputs.filter(({ equal }) => equal), ...measures.filter(({ equal, follows }) => equal || follows)];
  const drawnRow = (row) => (row.meter ? measured(row) : input(row));
  const open = picks.equal === "open";
  const lower = (name) => (/^[A-Z]{2}/.test(name) ? name : name[0].toLowerCase() + name.slice(1));
  const first = (row) => `${lower(row.name)} ${row.meter ? spelled(row.meter, row.values.find(Number.isFinite)) : row.texts[0]}`;
  const equals = folds.filter(({ equal }) => equal);
  const follow = folds.filter(({ equal }) => !equal);
  const words = [equals.length ? `${equals.length} rows are equal: ${equals.map(first).join(", ")}` : "", follow.length ? `as the throughput: ${follow.map(({ name }) => lower(name)).join(", ")}` : ""].filter(Boolean).join(" · ");
  const fold = folds.length && !all ? [element("tr", { className: "fold-row" }, element("td", { colSpan: columns }, element("button", { type: "button", textContent: `${open ? "▾" : "▸"} ${words}`, attributes: { "aria-expanded": String(open), "data-pick": "equal" }, onclick: () => act.pick({ equal: open ? undefined : "open" }) }))), ...(open ? folds.map(drawnRow) : [])] : [];
  const body = all ? [...inputs, ...measures].map(drawnRow) : [...inputs.filter(({ equal, headed }) => !equal && !headed).map(input), ...measures.filter(({ equal, follows }) => !equal && !follows).map(measured), ...fold];
  const made = element("table", { className: "comparison" }, element("thead", {}, element("tr", {}, element("td", {}), ...heads(data, names, act))), element("tbody", {}, ...body));
  return element("article", { className: `card compared-card pins-${answers.length}` },
    element("h2", {}, element("span", { textContent: differing(differ) }), element("span", { className: "row" }, segments("rows", [["differences", "differences"], ["all", "all rows"]], all ? "all" : "differences", (key) => act.pick({ rows: key === "all" ? "all" : undefined })), element("button", { type: "button", className: "plain", textContent: "CSV", title: "save the table", onclick: () => act.save(csv(answers, names, meters)) }))),
    element("div", { className: "wide-table", tabIndex: 0, attributes: { role: "region", "aria-label": "comparison" } }, made));
}

/** All rows as CSV: values of every pin, medians, and ratios to the base. */
function csv(answers, names, meters) {
  const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const { inputs } = rowsOf(answers, meters);
  const ratio = (value, base) => (Number.isFinite(value / base) ? value / base : "");
  const rows = [
    ["row", "unit", ...names, ...names.slice(1).map((name) => `${name} / ${names[0]}`)],
    ...inputs.map(({ name, texts }) => [name, "", ...texts, ...names.slice(1).map(() => "")]),
    ...meters.flatMap((meter) => [[meter.sure ? `${meter.name} ${meter.sure}` : meter.name, read], ...(meter.sure ? [[`${meter.name} median`, middle]] : [])].map(([name, of]) => {
      const values = answers.map((one) => of(one, meter));
      return [name, meter.unit, ...values.map((value) => (Number.isFinite(value) ? value : "")), ...values.slice(1).map((value) => ratio(value, values[0]))];
    })),
  ];
  return `${rows.map((row) => row.map(quoted).join(",")).join("\n")}\n`;
}

/** Measures that an axis can have, and the verb of a pin that has more of it. */
const ACROSS = { usd_per_hour: ["USD/h", "costs"], usd_per_mtok: ["USD/Mtok", "costs per token"], watts: ["W", "draws"] };
const UPWARDS = { output_tok_s: "tok/s", output_tok_s_per_user: "tok/s for each user", output_tok_s_per_device: "tok/s for each device" };
const times = (ratio) => (ratio >= 1.495 ? `${plain(Number(ratio.toPrecision(2)))} ×` : Math.abs(ratio - 1) < SAME ? "as much" : `${Math.round(Math.abs(ratio - 1) * 100) || "<1"} % ${ratio > 1 ? "more" : "less"}`);

/** What the pin with the most gives for what it costs. */
function trade(points, verb) {
  const [base, ...rest] = points;
  const best = base?.at === 0 && rest.toSorted((a, b) => b.y - a.y)[0];
  if (!best) return "Cost against throughput";
  const width = ({ low, high, middle: mid }) => (high - low) / mid;
  const widest = points.every(({ low }) => low !== undefined) && points.every((one) => one === best || width(best) > width(one) * 1.1);
  return `${best.name} ${verb} ${times(best.x / base.x)} and gives ${times(best.y / base.y)}${widest ? ", with the widest interval" : ""}`;
}

/** The pins over cost and throughput: a dot is what one can count on, a tick the median, a line the interval. */
function scatter(answers, names, meters, act, picks) {
  const options = Object.keys(ACROSS).filter((key) => answers.some(({ metrics }) => Number.isFinite(metrics?.[key])));
  const xKey = options.includes(picks.x) ? picks.x : options[0];
  const yKey = UPWARDS[picks.y] ? picks.y : "output_tok_s";
  const meter = meters.find(({ key }) => key === yKey);
  const across = meters.find(({ key }) => key === xKey);
  const points = answers.flatMap((one, at) => {
    const { p10: low, p90: high } = one.intervals?.[yKey] ?? {};
    const point = { at, name: names[at], x: one.metrics?.[xKey], y: read(one, meter), middle: middle(one, meter), low, high };
    return Number.isFinite(point.x) && Number.isFinite(point.y) ? [point] : [];
  });
  const heading = (words) => element("h2", {}, element("span", { textContent: words, title: words }));
  if (!points.length) return { figure: element("figure", { className: "card chart-frame" }, heading("Nothing to draw")), placed: () => {} };
  const x = sums(points.map((point) => point.x));
  const y = sums([0, ...points.flatMap((point) => [point.y, point.middle, point.high ?? point.y])]);
  const { svg, px, py } = field(x, y);
  const place = (point) => [px(point.x), py(point.y)];
  for (const point of points) {
    const [left, top] = place(point);
    const kind = point.at ? "pinned" : "base";
    if (point.low !== undefined) svg.append(drawn("line", { class: `range-y ${kind}`, x1: `${left}%`, x2: `${left}%`, y1: `${py(point.low)}%`, y2: `${py(point.high)}%` }), drawn("svg", { x: `${left}%`, y: `${py(point.middle)}%`, overflow: "visible" }, drawn("rect", { class: `cause ${kind}`, x: -6, y: -1, width: 12, height: 2 })));
    svg.append(drawn("circle", { class: `cause ${kind}`, cx: `${left}%`, cy: `${top}%`, r: 6 }));
  }
  const labels = points.map((point) => ({ text: label(0, 0, point.name, { class: "name" }), place: place(point), words: [point.name, `${point.name.slice(0, 18)}…`, String(point.at + 1)] }));
  const sure = meter.sure ? "dot: to count on, tick: median, line: p10 to p90" : "no interval";
  const card = (point) => [element("h3", {}, element("span", { textContent: point.name })), element("dl", {}, ...line(across.name, spelled(across, point.x)), ...line(meter.sure ? `${meter.name} ${meter.sure}` : meter.name, spelled(meter, point.y)), ...line("median", spelled(meter, point.middle)), ...(point.high ? line("p10 to p90", `${plain(point.low)}–${plain(point.high)}`) : []))];
  const made = graph(svg, `${points.length} pins: ${UPWARDS[yKey]} over ${ACROSS[xKey][0]}. Arrows walk, Enter opens a pin.`, points, { place, card, enter: ({ at }) => act.open(at) });
  const rows = points.map((point) => [point.name, spelled(across, point.x), spelled(meter, point.y), spelled(meter, point.middle)]);
  const figure = element("figure", { className: "card chart-frame pin-scatter" }, heading(trade(points, ACROSS[xKey][1])),
    element("div", { className: "row axis-y" }, menu("axis upwards", Object.entries(UPWARDS), yKey, (key) => act.pick({ y: key === "output_tok_s" ? undefined : key })), element("span", { className: "soft", textContent: sure })),
    made,
    element("div", { className: "axis-x" }, menu("axis to the right", options.map((key) => [key, ACROSS[key][0]]), xKey, (key) => act.pick({ x: key === options[0] ? undefined : key }))),
    behind("table", "As a table", ["pin", across.name, meter.sure ? meter.sure : meter.name, "median"], rows, act, picks));
  const lines = points.flatMap((point) => (point.high ? [[px(point.x) - 0.6, py(point.high), px(point.x) + 0.6, py(point.low)]] : []));
  const placed = () => {
    // Those that found no place before may have one at another width.
    svg.append(...labels.map(({ text }) => text));
    placedNames(made, labels, points.map(place), lines);
  };
  return { figure, placed };
}

/** The comparison of `data`, the answers to `scenarios`. `act` opens, drops, makes one the base, explains and picks. */
export function compare(target, data, scenarios, act, picks) {
  const { answers, steps, pin } = data;
  const { names, differ } = named(scenarios);
  const meters = metersOf(answers);
  const meter = meters.find(({ key, causes }) => causes && key === picks.by) ?? meters[0];
  const pins = names.slice(1).map((name, at) => [String(at + 1), name]);
  const why = waterfall({ base: answers[0], last: answers[pin] ?? {}, steps, names: [names[0], names[pin] ?? ""], pins, pin, meter }, act, picks);
  const { figure, placed } = scatter(answers, names, meters, act, picks);
  target.replaceChildren(head(data, names, meters, act), table(data, names, differ, meters, act, picks), element("div", { className: "grid-2 even" }, why, figure));
  // A formula that opens takes width from the picture.
  new ResizeObserver(() => figure.isConnected && placed()).observe(figure);
}
