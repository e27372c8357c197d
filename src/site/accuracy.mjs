// Accuracy: measured against predicted as a scatter, held-out errors with their intervals, the reader's own measurements
// with their class, and the errors of a store of runs over time.
import { FAMILIES, entry, factors, field, graph, label, line, lines, menu, named, segments, shape } from "./chart.mjs";
import { refused } from "./engine.mjs";
import { digits, drawn, element, percent, plain, short, time } from "./figures.mjs";

/** Lines next to the diagonal, as factors. */
const OFF = 1.25;
/** A measurement is close to its prediction where measured / predicted is between these. */
export const CLOSE = [0.7, 1.4];
/** Share of the rows that the interval p10 to p90 should hold, and from which on it is much less. */
const [WANTED, POOR] = [0.8, 0.7];
const DAY = 864e5;
const METRICS = { tpot: { name: "TPOT", measured: "tpot_ms", predicted: "predicted_tpot_ms" }, ttft: { name: "TTFT", measured: "ttft_ms", predicted: "predicted_ttft_ms" } };
/** Families of measurements: a name, and the family of a row. */
const BY = { runtime: ["runtime", ({ runtime }) => runtime.split(" ")[0]], hardware: ["device", ({ hardware }) => hardware], model: ["model", ({ model }) => plainly(model)], mode: ["mode", ({ mode }) => mode] };
const DRIFT = { decode: "TPOT", ttft: "TTFT", memory: "memory" };

const plainly = (model) => short(model).split("/").pop();
const median = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
const tenth = (share) => `${(share * 100).toFixed(1)} %`;
const change = (measured, predicted) => `${predicted >= measured ? "+" : "−"}${digits(Math.abs(predicted / measured - 1) * 100)} %`;

/** The class of a measurement: measured over predicted. */
export function classed(measured, predicted) {
  const ratio = measured / predicted;
  if (!Number.isFinite(ratio)) return { words: "no prediction", tone: "soft", ratio };
  if (ratio < CLOSE[0]) return { words: "far below", tone: "bad", ratio };
  return ratio > CLOSE[1] ? { words: "far above", tone: "bad", ratio } : { words: "close", tone: "good", ratio };
}

const heading = (text, more = "") => element("h2", {}, element("span", { textContent: text, title: text }), ...(more ? [element("span", { className: "soft", textContent: more })] : []));

/** Measured to the right, predicted upwards, both as factors; own measurements as rings. */
export function scatter(rows, own, picks, act) {
  const metric = METRICS[picks.metric] ?? METRICS.tpot;
  const key = BY[picks.by] ? picks.by : "runtime";
  const positive = (value) => Number.isFinite(value) && value > 0;
  const points = rows.filter((row) => positive(row[metric.measured]) && positive(row[metric.predicted])).map((row) => ({ row, measured: row[metric.measured], predicted: row[metric.predicted], family: BY[key][1](row) }));
  const yours = own.flatMap((row) => (row[metric.name] ? [{ row, ...row[metric.name], family: "yours", own: true }] : []));
  const controls = element("span", { className: "row" },
    segments("metric", Object.entries(METRICS).map(([id, { name }]) => [id, name]), picks.metric ?? "tpot", (id) => act.pick({ metric: id === "tpot" ? undefined : id })),
    menu("families", Object.entries(BY).map(([id, [name]]) => [id, `by ${name}`]), key, (id) => act.pick({ by: id === "runtime" ? undefined : id })));
  if (!points.length) return { figure: element("figure", { className: "card chart-frame" }, element("h2", {}, element("span", { textContent: `No measured ${metric.name}` }), controls)), placed: () => {} };
  const sizes = [...Map.groupBy(points, ({ family }) => family)].map(([name, all]) => [name, all.length]).sort((a, b) => b[1] - a[1]);
  const place = new Map(sizes.map(([name], at) => [name, Math.min(at, FAMILIES - 1)]));
  const all = [...points, ...yours];
  const axis = () => Object.assign(factors(all.flatMap(({ measured, predicted }) => [measured, predicted])), { spell: (ms) => (ms >= 1e3 ? `${plain(ms / 1e3)} s` : `${plain(ms)}`) });
  const scale = axis();
  const { svg, px, py } = field(scale, scale);
  const diagonal = (factor, name) => {
    const [from, to] = factor >= 1 ? [[scale.low, scale.low * factor], [scale.high / factor, scale.high]] : [[scale.low / factor, scale.low], [scale.high, scale.high * factor]];
    return drawn("path", { class: name, d: `M${px(from[0]) * 10} ${py(from[1]) * 10}L${px(to[0]) * 10} ${py(to[1]) * 10}` });
  };
  svg.append(lines(diagonal(1, "diagonal"), diagonal(OFF, "factor"), diagonal(1 / OFF, "factor")));
  const at = ({ measured, predicted }) => [px(measured), py(predicted)];
  for (const point of points) svg.append(shape(place.get(point.family), ...at(point), "faint"));
  for (const point of yours) svg.append(drawn("circle", { class: "yours", cx: `${at(point)[0]}%`, cy: `${at(point)[1]}%`, r: 6 }));
  const near = points.reduce((best, one) => (one.row.distance < (best?.row.distance ?? Infinity) ? one : best), undefined);
  const names = [
    { text: label(0, 0, "nearest to your plan", { class: "name f1" }), place: at(near) },
    { text: label(0, 0, `× ${OFF}`, { class: "name soft" }), place: [px(scale.high / OFF / 1.3), py(scale.high / 1.3)] },
    ...yours.map((point) => ({ text: label(0, 0, "yours", { class: "name decode" }), place: at(point) })),
  ];
  svg.append(drawn("circle", { class: "ring", cx: `${at(near)[0]}%`, cy: `${at(near)[1]}%`, r: 9 }), ...names.map(({ text }) => text));
  const off = median(points.map(({ measured, predicted }) => Math.abs(predicted / measured - 1)));
  const made = graph(svg, `Predicted against measured ${metric.name} of ${points.length} published runs; on the diagonal both are equal. Arrows walk.`, all, { place: at, card: (point) => tip(point, metric), begin: near });
  const shown = sizes.slice(0, sizes.length > FAMILIES ? FAMILIES - 1 : FAMILIES);
  const others = sizes.slice(shown.length).reduce((sum, [, number]) => sum + number, 0);
  const legend = element("p", { className: "soft legend" }, ...shown.map(([name, number], index) => entry(index, `${name} ${number}`)), ...(others ? [entry(FAMILIES - 1, `others ${others}`)] : []));
  const figure = element("figure", { className: "card chart-frame tall-chart" },
    element("h2", {}, element("span", { textContent: `Half of ${points.length} predictions are within ${tenth(off)} of the measured ${metric.name}` }), controls),
    element("p", { className: "soft", textContent: `predicted ${metric.name} upwards, ms · dashed: a factor of ${OFF}. Most of these runs were fitted; errors of runs that were not are in the table.` }),
    made, element("p", { className: "axis-x soft", textContent: `measured ${metric.name}, ms` }), legend);
  return { figure, placed: () => named(made, names, [at(near)]) };
}

/** The card of a measurement. */
function tip({ row, measured, predicted, own }, metric) {
  const { words, tone } = classed(measured, predicted);
  const facts = own ? [] : [...line("model", plainly(row.model)), ...line("on", `${row.devices} × ${row.hardware}`), ...line("runtime", `${row.runtime}, ${row.weight_format}`), ...(row.plan ? line("plan", row.plan) : []), ...line("ISL / OSL", `${row.isl} / ${row.osl}`), ...(row.concurrency ? line("concurrency", String(row.concurrency)) : [])];
  return [
    element("h3", {}, element("span", { textContent: own ? row.id : `${metric.name} ${time(measured)}` }), element("span", { className: `tag ${tone}`, textContent: change(measured, predicted) })),
    element("dl", {}, ...line("measured", time(measured)), ...line("predicted", time(predicted)), ...(own ? line("class", words, tone) : []), ...facts),
    ...(row.source ? [element("p", { className: "soft", textContent: row.source })] : []),
  ];
}

/** The interval of predictions that are as far from the fit as a held-out group: that whose source names the group. */
const interval = (profile, { name }) => profile?.serving_fit?.intervals?.find(({ source }) => source.includes(`each predicted from ${name}`));

/** Held-out errors of a runtime: medians as bars, and how many rows the interval holds next to how wide it is. */
export function held(rows, profile, runtimes, runtime, act) {
  const most = Math.max(...rows.flatMap(({ tpot, ttft }) => [tpot?.[0] ?? 0, ttft?.[0] ?? 0])) * 1.05;
  const cell = (text, more = "") => element("td", { className: `n ${more}`, textContent: text });
  const body = rows.map((one) => {
    const bar = drawn("svg", { class: "held-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, drawn("rect", { class: "rail", width: 100, height: 8, rx: 2 }), drawn("rect", { class: "amount", width: ((one.tpot?.[0] ?? 0) / most) * 100, height: 8, rx: 2 }), ...(one.ttft ? [drawn("rect", { class: "mark", x: (one.ttft[0] / most) * 100 - 1, width: 2, height: 8 })] : []));
    const width = interval(profile, one)?.tpot;
    const poor = Number.isFinite(one.tpot_covered) && one.tpot_covered < POOR;
    const odds = one.at_odds?.find(({ odds: share }) => share === 0.9)?.limit_met ?? one.limit_met;
    return element("tr", {}, element("th", { scope: "row", textContent: one.name.replace(/ \(.*\)$/, ""), title: one.name }), element("td", { className: "bar-cell" }, bar), cell(one.tpot ? tenth(one.tpot[0]) : ""), cell(one.ttft ? tenth(one.ttft[0]) : ""), cell(width ? `× ${width[0].toFixed(2)}–${width[2].toFixed(2)}` : ""), cell(Number.isFinite(one.tpot_covered) ? percent(one.tpot_covered) : "", poor ? "bad" : ""), cell(Number.isFinite(odds) ? percent(odds) : ""));
  });
  const control = menu("runtime", runtimes.map((id) => [id, id]), runtime, (id) => act.pick({ runtime: id === "vllm" ? undefined : id }));
  if (!rows.length) return element("article", { className: "card" }, element("h2", {}, element("span", { textContent: `The constants of ${runtime} are not fitted` }), control), element("p", { className: "soft", textContent: "So it has no held-out errors: its constants are those of datasheets, or borrowed from another runtime." }));
  const heads = [["predict …"], [""], ["TPOT", 1], ["TTFT", 1], ["interval", 1], [`holds`, 1], ["SLO met", 1]];
  return element("article", { className: "card" },
    element("h2", {}, element("span", { textContent: "Held out: median error" }), control),
    element("div", { className: "wide-table", tabIndex: 0, attributes: { role: "region", "aria-label": "held-out errors" } }, element("table", {}, element("thead", {}, element("tr", {}, ...heads.map(([text, right]) => (text ? element("th", { className: right ? "n" : "", textContent: text }) : element("td", {}))))), element("tbody", {}, ...body))),
    element("p", { className: "soft", textContent: `Bar: TPOT, tick: TTFT. Interval: p10 to p90 of measured / predicted TPOT; it should hold ${percent(WANTED)} of the rows. SLO met: choices at odds of 90 % that meet it when measured.` }));
}

/** The held-out errors in one line. */
export function finding(rows) {
  const of = (words) => rows.find(({ name }) => name.includes(words));
  const [load, maker] = [of("lighter and heavier loads"), of("another maker")];
  if (!load?.tpot || !load.ttft) return "Accuracy";
  const whole = (share) => `${Math.round(share * 100)} %`;
  return `At a new load TPOT is off by ${whole(load.tpot[0])}, TTFT by ${whole(load.ttft[0])}${maker?.tpot ? `; on another maker’s hardware TPOT by ${whole(maker.tpot[0])}` : ""}`;
}

/** The records of runs in a text, a line each: those that a server takes. */
export const records = (text = "") => text.split("\n").filter((line) => /^\s*\{/.test(line) && /"run_id"\s*:/.test(line));

/** The reader's own measurements with the class of each. `rows`: id, and for each metric measured and predicted. */
export function yours(rows, summary, fault, act) {
  const shown = rows.flatMap((row) => ["TPOT", "TTFT", "tok/s"].filter((name) => row[name]).map((name) => [row, name, row[name]]));
  const body = shown.map(([row, name, { measured, predicted }]) => {
    const { words, tone, ratio } = classed(measured, predicted);
    const spell = name === "tok/s" ? digits : time;
    return element("tr", {}, element("th", { scope: "row", textContent: row.id }), element("td", { textContent: name }), element("td", { className: "n", textContent: spell(measured) }), element("td", { className: "n", textContent: spell(predicted) }), element("td", { className: "n", textContent: ratio.toFixed(2) }), element("td", { className: tone }, element("b", { textContent: words })));
  });
  const input = element("input", { type: "file", id: "own-runs", onchange: ({ target }) => target.files[0] && act.add(target.files[0]) });
  const far = shown.filter(([, , one]) => classed(one.measured, one.predicted).words !== "close").length;
  const title = !shown.length ? "Your measurements" : shown.length === 1 ? `Your number is ${far ? "not " : ""}close` : far ? `${far} of your ${shown.length} numbers ${far === 1 ? "is" : "are"} not close` : `Your ${shown.length} numbers are close`;
  return element("article", { className: "card" }, heading(title, "measured / predicted"),
    ...(shown.length ? [element("div", { className: "wide-table", tabIndex: 0, attributes: { role: "region", "aria-label": "your measurements" } }, element("table", {}, element("thead", {}, element("tr", {}, ...["run", "", "measured", "predicted", "ratio", "class"].map((text, at) => (text ? element("th", { className: at > 1 && at < 5 ? "n" : "", textContent: text }) : element("td", {}))))), element("tbody", {}, ...body)))] : []),
    ...(summary ? [element("p", { textContent: summary })] : []),
    ...(fault ? [element("p", { className: "warning", textContent: fault })] : []),
    element("div", { className: "row" }, element("label", { className: "plain add-file", textContent: "Add a file of runs" }, input), ...(rows.length || summary || fault ? [element("button", { type: "button", className: "plain", textContent: "Remove", onclick: act.clear })] : []), ...(act.submit ? [element("button", { type: "button", className: "plain", id: "submit-runs", textContent: "Submit to this server", onclick: act.submit })] : [])),
    ...(act.submitted ? [element("p", { className: act.submitted.fault ? "warning" : "soft", attributes: { role: "status" }, textContent: `${act.submitted.taken} ${act.submitted.taken === 1 ? "run" : "runs"} submitted${act.submitted.fault ? `; refused: ${act.submitted.fault}` : ""}.` })] : []),
    element("p", { className: "soft", textContent: `Runs of mantile-opt bench, a table, or what another benchmark tool wrote; facts that it lacks are those of the question. Close: measured / predicted from ${CLOSE[0]} to ${CLOSE[1]}.` }));
}

/** Rows of an answer of `validate` as own measurements, and a sentence where they are too many to list. */
export function listed({ rows = [], overall, unsupported = [] }, name) {
  const of = (figure) => figure && { measured: figure.measured, predicted: figure.predicted };
  const own = rows.map((row) => ({ id: row.id || name, TPOT: of(row.tpot_ms), TTFT: of(row.ttft_ms), "tok/s": of(row.figures?.find(({ figure }) => /^output/.test(figure))) })).filter((row) => row.TPOT || row.TTFT || row["tok/s"]);
  const errors = [["TPOT", overall?.tpot], ["TTFT", overall?.ttft]].filter(([, score]) => score).map(([metric, score]) => `${metric} is off by ${tenth(score.mdape)} (median of ${score.n})`);
  const without = unsupported.map(({ reason, rows: number }) => `${number} without a prediction: ${reason}`);
  return { own, summary: [...(own.length ? [] : [`${overall?.n ?? 0} rows of ${name}${errors.length ? `: ${errors.join(", ")}` : ""}`]), ...without].join("; ") };
}

const code = (textContent) => element("code", { textContent });
/** How to get stored runs. */
const how = () => element("p", { className: "soft" }, "Drift needs stored runs: start the server with ", code("mantile-opt serve --store runs.sqlite"), " and add runs with ", code("mantile-opt bench --store runs.sqlite"), "; alarms and the accuracy over time then appear here.");

/** Alarms of the groups of a store, and predicted / observed of its runs by date; else how to get them. */
export function drift(found, picks, act) {
  const stored = found?.stored;
  if (!stored?.report.runs) return { figure: element("article", { className: "card" }, heading(stored ? "The store has no run yet" : "Drift and accuracy over time"), how()), placed: () => {} };
  const { report, dated = [], versions, retraining, retraining_fault: fault } = stored;
  const figures = Object.keys(DRIFT).filter((id) => dated.some(({ errors }) => Number.isFinite(errors[id])));
  const figure = figures.includes(picks.drift) ? picks.drift : figures[0];
  const alarms = report.groups.flatMap((group) => group.figures.filter(({ alarm }) => alarm).map((one) => ({ group, ...one })));
  const title = alarms.length ? `${alarms.length} ${alarms.length === 1 ? "alarm" : "alarms"}: ${DRIFT[alarms[0].figure]} of ${alarms[0].group.runtime} on ${alarms[0].group.hardware} is off by ${tenth(alarms[0].median_error)}` : `No drift in ${report.runs} stored runs`;
  const controls = figures.length > 1 ? [segments("figure", figures.map((id) => [id, DRIFT[id]]), figure, (id) => act.pick({ drift: id === figures[0] ? undefined : id }))] : [];
  const rows = report.groups.flatMap((group) => group.figures.map((one) => element("tr", {}, element("th", { scope: "row", textContent: `${group.runtime} on ${group.hardware}, ${group.model_class}` }), element("td", { textContent: DRIFT[one.figure] }), element("td", { className: "n", textContent: String(one.n) }), element("td", { className: "n", textContent: tenth(one.median_error) }), element("td", { className: "n", textContent: tenth(one.limit) }), element("td", { className: one.alarm ? "bad" : "good", textContent: one.alarm ? "alarm" : one.n < report.least_runs ? "few runs" : "none" }))));
  const table = element("div", { className: "wide-table", tabIndex: 0, attributes: { role: "region", "aria-label": "drift" } }, element("table", {}, element("thead", {}, element("tr", {}, ...["group", "", "runs", "median error", "limit", "alarm"].map((text, at) => (text ? element("th", { className: at > 1 && at < 5 ? "n" : "", textContent: text }) : element("td", {}))))), element("tbody", {}, ...rows)));
  const state = [`alarms from ${report.least_runs} runs on, by the newest ${report.window} of a group`, ...(versions.length ? [`${versions.length} learned ${versions.length === 1 ? "calibration" : "calibrations"}, the last of ${versions.at(-1).created_utc.slice(0, 10)}`] : []), ...(retraining ? ["a retraining runs"] : []), ...(fault ? [`the last retraining failed: ${fault}`] : [])].join(" · ");
  const { chart, placed } = overTime(dated, figure, versions);
  return { figure: element("figure", { className: "card chart-frame drift" }, element("h2", {}, element("span", { textContent: title, title }), ...controls), ...chart, table, element("p", { className: "soft", textContent: state })), placed };
}

/** Predicted / observed of runs by date, with the band that is close. */
function overTime(dated, figure, versions) {
  const points = dated.filter(({ errors }) => Number.isFinite(errors[figure]) && errors[figure] > -1).map((run) => ({ run, at: Date.parse(run.timestamp_utc), ratio: 1 + run.errors[figure], family: run.runtime })).filter(({ at }) => Number.isFinite(at));
  if (!points.length) return { chart: [element("p", { className: "soft", textContent: "No stored run has a figure and a prediction." })], placed: () => {} };
  const dates = points.map(({ at }) => at);
  const [from, to] = [Math.min(...dates), Math.max(...dates)];
  const spare = Math.max((to - from) * 0.04, DAY / 24);
  const days = (to - from) / DAY;
  const spelled = (at) => new Date(at).toISOString().slice(...(days > 3 ? [5, 10] : [11, 16]));
  const x = { of: (at) => (at - from + spare) / (to - from + 2 * spare), ticks: Array.from({ length: 5 }, (_, step) => from + ((to - from) * step) / 4).filter((at, step) => to > from || !step), spell: spelled };
  const [low, high] = [1 / CLOSE[1], 1 / CLOSE[0]];
  const y = Object.assign(factors([...points.map(({ ratio }) => ratio), low, high], 1.08), { spell: (ratio) => ratio.toFixed(ratio < 1 || ratio % 1 ? 2 : 0) });
  y.ticks = [...new Set([...y.ticks, 1])].filter((tick) => [0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 5, 10].includes(tick));
  const { svg, px, py } = field(x, y);
  svg.append(drawn("rect", { class: "close-band", x: "0", width: "100%", y: `${py(high)}%`, height: `${py(low) - py(high)}%` }), drawn("line", { class: "one", x1: "0", x2: "100%", y1: `${py(1)}%`, y2: `${py(1)}%` }));
  for (const { created_utc: made } of versions) {
    const at = x.of(Date.parse(made)) * 100;
    if (at >= 0 && at <= 100) svg.append(drawn("line", { class: "version", x1: `${at}%`, x2: `${at}%`, y1: "0", y2: "100%" }));
  }
  const families = [...new Set(points.map(({ family }) => family))];
  const place = ({ at, ratio }) => [px(at), py(ratio)];
  for (const point of points) svg.append(shape(Math.min(families.indexOf(point.family), FAMILIES - 1), ...place(point)));
  const card = ({ run, ratio }) => [element("h3", {}, element("span", { textContent: run.timestamp_utc.slice(0, 16).replace("T", " ") }), element("span", { className: `tag ${classed(1, ratio).tone}`, textContent: ratio.toFixed(2) })), element("dl", {}, ...line("predicted / observed", ratio.toFixed(3)), ...line("model", plainly(run.model)), ...line("on", run.hardware), ...line("runtime", run.runtime))];
  const made = graph(svg, `Predicted over observed ${DRIFT[figure]} of ${points.length} stored runs by date; 1 is equal. Arrows walk.`, points, { place, card });
  return {
    chart: [element("p", { className: "soft", textContent: `${DRIFT[figure]}: predicted / observed by the calibration in force · shaded: close` }), made, element("p", { className: "soft legend" }, ...families.slice(0, FAMILIES).map((name, at) => entry(at, name)))],
    placed: () => {},
  };
}

/** Own runs with their predictions; facts that their file lacks are those of the question. */
export async function owned({ name, csv }, { scenario, plan, hardware }, answer) {
  const { model, runtime = "vllm", weight_format: format, isl, osl, concurrency } = scenario;
  const degree = (pattern) => Number(plan.match(pattern)?.[1]) || undefined;
  const given = { model, hardware: scenario.hardware ?? hardware, runtime, weight_format: format, isl, osl, concurrency, tp: degree(/tp(\d+)/), pp: degree(/pp(\d+)/), replicas: degree(/^(\d+) x/) };
  const validated = async (more) => listed(JSON.parse(await answer("validate", { tables: [{ name, csv }], ...more }, "json")), name);
  try {
    return await validated({}).catch(refused(() => validated({ given })));
  } catch (fault) {
    return refused(() => ({ own: [], summary: "", fault: fault.message }))(fault);
  }
}
