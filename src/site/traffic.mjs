// Traffic: the plan of the answer request by request. Latencies over time against the SLOs, requests and KV cache, goodput
// over the rate, the slowest requests, and the traffic itself as controls.
import { field, graph, label, line, lines, segments, slider, ticks } from "./chart.mjs";
import { digits, drawn, element, percent, plain, redrawn, seconds, time } from "./figures.mjs";
import { playhead, replay } from "./replay.mjs";

/** Coefficients of variation of the gaps between arrivals. */
const ARRIVALS = { constant: ["Constant", 0, "arrivals at even gaps"], poisson: ["Poisson", undefined, "Poisson arrivals"], bursts: ["Bursts", 3, "arrivals in bursts"] };
/** Coefficient of variation of lengths that are spread. */
const SPREAD = 0.5;
/** Rates of the curve, over the capacity by the formulas. */
const RATES = [0.25, 0.5, 0.7, 0.85, 0.93, 1, 1.15, 1.4, 1.8];
/** Speeds of a trace in the curve. */
const SPEEDS = [0.25, 0.5, 1, 1.5, 2, 3, 4];
/** Times of a request that a run lasts where the number of requests is not set: queues are as long as they get by then.
 * And the fewest and the most requests that follow from it. */
const [LASTS, FEWEST, MOST] = [8, 2000, 8000];
/** A run that lasts fewer times of a request is too short. */
const SHORT = 3;
/** Points of a line that are walked; an SLO farther off than this many times the values is named, and not drawn. */
const [WALKED, FAR] = [80, 6];
/** The parts of a request: key, words, tone, and what it is in a sentence. */
const PARTS = [["queue_ms", "queue", "host", "waited"], ["prefill_ms", "prefill", "prefill", "computed its prompt"], ["transfer_ms", "transfer", "wire", "moved its KV cache"], ["decode_ms", "decode", "decode", "wrote its output"], ["preempted_ms", "preempted", "lost", "waited after preemptions"]];
const LATENCIES = [["ttft", "TTFT", "prefill"], ["tpot", "TPOT", "decode"]];
const TAILS = ["p99", "p90", "p50"];

const many = (value) => Math.round(value).toLocaleString("en");
const at = (s) => `${plain(Number(s.toFixed(s < 10 ? 1 : 0)))} s`;
/** A limit, or a step of an axis. */
const round = (ms) => (ms >= 1e3 ? `${plain(ms / 1e3)} s` : `${plain(ms)} ms`);
const rated = (rate) => plain(Number(rate.toPrecision(3)));
/** A number of an address; what is none is refused by the engine. */
const given = (text) => (text === undefined || !Number.isFinite(Number(text)) ? text : Number(text));
const limitsOf = ({ question: { limits } }) => Object.fromEntries(Object.entries(limits).map(([name, text]) => [name, seconds(text) * 1e3]).filter(([, ms]) => ms > 0));
const titled = (text, ...more) => element("h2", {}, element("span", { textContent: text, title: text }), ...more);
const cell = (value, at) => element(at ? "td" : "th", { textContent: value, className: at ? "n" : "", ...(at ? {} : { scope: "row" }) });

/** The table behind a picture. */
const behind = (words, heads, rows) => element("details", { className: "behind" }, element("summary", { textContent: "as a table" }),
  element("div", { className: "wide-table tall", tabIndex: 0, attributes: { role: "region", "aria-label": words } }, element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((text, place) => element("th", { textContent: text, scope: "col", className: place ? "n" : "" })))), element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell)))))));

/** The requests of the view: the scenario with its rate, and the traffic around it; of a trace, that of its file. */
function posed(scenario, own, picks, trace) {
  const { concurrency: _, ...rest } = scenario;
  if (trace) {
    const { rate: __, isl: ___, osl: ____, prefix: _____, ...plan } = rest;
    return { scenario: plan, traffic: { trace_text: trace.text, seed: given(picks.seed) } };
  }
  const { arrivals, lengths, requests, seed } = picks;
  const variation = lengths === "spread" ? SPREAD : undefined;
  const rate = scenario.rate ?? Number((own.metrics?.requests_per_s ?? 1).toPrecision(3));
  const usual = Math.min(Math.max(Math.ceil((rate * (own.metrics?.e2e_ms ?? 0) * LASTS) / 1e6) * 1e3, FEWEST), MOST);
  const traffic = { arrival_variation: (ARRIVALS[arrivals] ?? ARRIVALS.poisson)[1], isl_variation: variation, osl_variation: variation, requests: given(requests) ?? usual, seed: given(seed) };
  return { scenario: { ...rest, rate }, traffic };
}

/** A plan without its load: the engine finds the load that its SLOs allow. */
const unloaded = ({ rate: _, concurrency: __, ...rest }) => ({ ...rest, deployment: { plan: rest.deployment.plan.replace(/ @[\d.]+/g, "") } });

/** Rates from a quarter of the capacity to beyond it; with the present one. */
function rates(capacity, now) {
  const all = RATES.map((factor) => Number((capacity * factor).toPrecision(2))).filter((rate) => Math.abs(rate / now - 1) > 0.04);
  return [...all, now].sort((a, b) => a - b);
}

/** Points that are walked: as many as can be, evenly. */
const thinned = (all) => all.filter((_, place) => place % Math.ceil(all.length / WALKED) === 0);
const path = (points, px, py) => points.map(([x, y], place) => `${place ? "L" : "M"}${(px(x) * 10).toFixed(1)} ${(py(y) * 10).toFixed(1)}`).join("");
const upTo = (most) => ({ of: (value) => value / (most * 1.08), ticks: ticks(0, most * 1.08) });
const timed = (from, to) => ({ of: (s) => (s - from) / (to - from), ticks: ticks(from, to), spell: (s) => `${plain(s)} s` });

/** What happened to the p90 of a latency over time. */
function kept(name, windows, limit) {
  if (!limit) return `${name} over time`;
  const over = windows.filter(({ p90 }) => p90 > limit);
  const spent = (some) => some.reduce((sum, { from, to }) => sum + to - from, 0);
  if (!over.length) return `${name}: the p90 keeps ${round(limit)} all the time`;
  return over.length === windows.length ? `${name}: the p90 is above ${round(limit)} all the time` : `${name}: the p90 is above ${round(limit)} for ${at(spent(over))} of ${at(spent(windows))}`;
}

/** p50, p90 and p99 of a latency over the time, with its SLO. */
function latency([key, name, tone], report, limit, heads) {
  const windows = report.windows.filter((one) => one[key]).map(({ from_s: from, to_s: to, requests, [key]: tails }) => ({ from, to, requests, middle: (from + to) / 2, p50: tails.p50_ms, p90: tails.p90_ms, p99: tails.p99_ms }));
  if (!windows.length) return element("figure", { className: "card chart-frame" }, titled(`${name}: no request has one`));
  const most = Math.max(...windows.map(({ p99 }) => p99));
  const drawnLimit = limit && limit <= most * FAR;
  const y = Object.assign(upTo(Math.max(most, drawnLimit ? limit * 1.05 : 0)), { spell: (ms) => (ms ? round(ms) : "0") });
  const { svg, px, py } = field(timed(windows[0].from, windows.at(-1).to), y);
  heads[key] = playhead(svg, px);
  const of = (tail) => windows.map((one) => [one.middle, one[tail]]);
  if (drawnLimit) svg.append(drawn("rect", { class: "missed", x: "0", width: "100%", y: "0", height: `${py(limit)}%` }));
  svg.append(lines(drawn("path", { class: `band ${tone}`, d: `${path(of("p90"), px, py)}${path(of("p50").reverse(), px, py).replace("M", "L")}Z` }), ...TAILS.map((tail) => drawn("path", { class: `tail ${tail} ${tone}`, d: path(of(tail), px, py) }))));
  if (drawnLimit) svg.append(drawn("line", { class: "edge", x1: "0", x2: "100%", y1: `${py(limit)}%`, y2: `${py(limit)}%` }), label(0, py(limit), `SLO ${round(limit)}`, { class: "limit", dx: 4, dy: py(limit) < 12 ? 14 : -5 }));
  const made = graph(svg, `${name} of requests by their arrival: p50, p90 and p99 of ${windows.length} windows. Arrows walk.`, windows, {
    place: ({ middle, p90 }) => [px(middle), py(p90)],
    card: ({ from, to, requests, ...tails }) => [element("h3", { textContent: `${at(from)} to ${at(to)}` }), element("dl", {}, ...TAILS.toReversed().flatMap((tail) => line(tail, time(tails[tail]), limit && tails[tail] > limit ? "bad" : "")), ...line("requests", many(requests)))],
  });
  const legend = element("span", { className: "legend soft" }, ...TAILS.toReversed().map((tail) => element("span", {}, drawn("svg", { width: 18, height: 8, "aria-hidden": "true", class: "graph-key" }, drawn("path", { class: `tail ${tail} ${tone}`, d: "M0 4H18" })), tail)));
  return element("figure", { className: "card chart-frame" }, titled(kept(name, windows, limit), legend), made,
    ...(limit && !drawnLimit ? [element("p", { className: "soft", textContent: `The SLO, ${round(limit)}, is far above.` })] : []),
    behind(`${name} over time`, ["arrived", "requests", ...TAILS.toReversed()], windows.map((one) => [`${at(one.from)} to ${at(one.to)}`, many(one.requests), ...TAILS.toReversed().map((tail) => time(one[tail]))])));
}

/** Requests that run and wait, or the KV cache in use, over the time. */
function load(report, picks, act, heads) {
  const { timeline } = report;
  const isKv = picks.show === "kv";
  const most = (key) => Math.max(...timeline.map((one) => one[key]));
  const series = isKv ? [["kv_used", "f1"]] : [["running", "f1"], ["waiting", "lost"]];
  const y = isKv ? { of: (share) => share, ticks: [0, 0.2, 0.4, 0.6, 0.8, 1], spell: percent } : upTo(Math.max(most("running"), most("waiting"), 1));
  const { svg, px, py } = field(timed(timeline[0].time_s, timeline.at(-1).time_s), y);
  heads.load = playhead(svg, px);
  svg.append(lines(...series.flatMap(([key, tone]) => {
    const d = path(timeline.map((one) => [one.time_s, one[key]]), px, py);
    return [drawn("path", { class: `band ${tone}`, d: `${d}L1000 1000L0 1000Z` }), drawn("path", { class: `tail ${tone}`, d })];
  })));
  const waits = report.timeline.filter(({ waiting }) => waiting > 0).length / timeline.length;
  const title = isKv ? `KV cache: at most ${percent(most("kv_used"))} in use` : most("waiting") ? `Up to ${many(most("waiting"))} ${most("waiting") === 1 ? "request waits" : "requests wait"}; at ${percent(waits)} of the times some do` : `No request waits; up to ${many(most("running"))} run`;
  const walked = thinned(timeline);
  const made = graph(svg, `${isKv ? "KV cache in use" : "Requests that run and wait"} over the time. Arrows walk.`, walked, {
    place: (one) => [px(one.time_s), py(one[series[0][0]])],
    card: (one) => [element("h3", { textContent: at(one.time_s) }), element("dl", {}, ...line("running", many(one.running)), ...line("waiting", many(one.waiting), one.waiting ? "bad" : ""), ...line("KV cache", percent(one.kv_used)))],
  });
  const choice = segments("over time", [["requests", "Requests"], ["kv", "KV cache"]], isKv ? "kv" : "requests", (key) => act.show({ show: key === "kv" ? key : undefined }));
  const words = isKv ? "share of the KV cache in use, all replicas" : "requests: the line is those that run, red those that wait";
  return element("figure", { className: "card chart-frame state" }, titled(title, choice), element("p", { className: "soft", textContent: words }), made, behind("the state over time", ["time", "running", "waiting", "KV cache"], walked.map((one) => [at(one.time_s), many(one.running), many(one.waiting), percent(one.kv_used)])));
}

/** The rate of the question in the curve: dragged, or moved by arrows, and set on release or by Enter. */
function rateMark(now, most, px, act) {
  const words = element("span", {});
  const made = element("button", { type: "button", className: "slo-handle rate", attributes: { role: "slider", "aria-label": "requests/s of the question", "data-pick": "rate", "aria-valuemin": 0, "aria-valuemax": rated(most) } }, words);
  let value = now;
  const moved = (next) => {
    value = Number(Math.min(Math.max(next, most / 100), most).toPrecision(2));
    if (Math.abs(value / now - 1) < 0.005) value = now;
    made.style.left = `${px(value)}%`;
    made.classList.toggle("right", px(value) > 60);
    words.textContent = value === now ? `now ${rated(now)}` : `${rated(value)}/s`;
    made.setAttribute("aria-valuenow", rated(value));
    made.setAttribute("aria-valuetext", `${rated(value)} requests/s`);
  };
  moved(now);
  slider(made, { value: () => value, along: (of, share) => of + (share * most) / px(most) * 100, moved, set: () => value !== now && act.rate(value), back: () => value !== now && (moved(now), true), ends: [0, most] });
  return made;
}

/** Requests within the SLOs over those that are sent, each rate or speed of a trace simulated. */
function goodput(report, swept, act) {
  const now = report.scenario.rate;
  const frame = (...parts) => element("figure", { className: "card chart-frame goodput" }, ...parts);
  const trace = act.trace();
  const over = trace ? "Goodput over the speed of the trace" : "Goodput over the rate";
  if (report.goodput === null) return frame(titled("Goodput needs an SLO"), element("p", { className: "soft", textContent: "Without a limit on TTFT, TPOT or E2E every request counts: set one in the question." }));
  if (!swept) return frame(titled(over), element("p", { className: "soft", textContent: `Simulating further ${trace ? "speeds" : "rates"} …` }));
  if (swept.fault) return frame(titled(over), element("p", { className: "warning", textContent: swept.fault }));
  const rows = swept.rows.map(({ vary: { rate }, simulated }) => ({ rate, share: simulated?.goodput })).filter(({ share }) => Number.isFinite(share)).map((one) => ({ ...one, good: one.rate * one.share }));
  const best = rows.reduce((most, one) => (one.good > most.good * 1.001 ? one : most));
  const most = Math.max(...rows.map(({ rate }) => rate));
  const { svg, px, py } = field(upTo(most), upTo(Math.max(best.good * 1.3, 1e-9)));
  const place = ({ rate, good }) => [px(rate), py(good)];
  const end = Math.min(most, best.good * 1.3);
  svg.append(lines(drawn("path", { class: "factor", d: path([[0, 0], [end, end]], px, py) }), drawn("path", { class: "stairs", d: path([[0, 0], ...rows.map(({ rate, good }) => [rate, good])], px, py) })),
    label(px(end), py(end), "all of them", { class: "name soft", dx: -8, dy: 4, "text-anchor": "end" }),
    ...rows.map((one) => drawn("circle", { class: "point", cx: `${place(one)[0]}%`, cy: `${place(one)[1]}%`, r: 4.5 })), drawn("circle", { class: "ring", cx: `${place(best)[0]}%`, cy: `${place(best)[1]}%`, r: 9 }));
  const last = rows.at(-1);
  const title = best === last ? `${rated(best.good)} requests/s meet the SLOs at ${rated(best.rate)}; more were not tried` : `At most ${rated(best.good)} requests/s meet the SLOs, at ${rated(best.rate)}${last.good < best.good * 0.9 ? `; of ${rated(last.rate)} ${last.share ? `only ${percent(last.share)}` : "none"} do` : ""}`;
  const take = ({ rate }) => element("div", { className: "row" }, element("button", { type: "button", className: "plain", textContent: rate === now ? "The rate now" : "Take this rate", disabled: rate === now, onclick: () => act.rate(rate) }));
  const made = graph(svg, trace ? `${over}, ${rows.length} simulated speeds. Arrows walk.` : `${over}, ${rows.length} simulated rates. Arrows walk, Enter sets the rate of the question.`, rows, {
    place, begin: rows.find(({ rate }) => rate === now), ...(trace ? {} : { enter: ({ rate }) => act.rate(rate), direct: true }),
    card: (one) => [element("h3", { textContent: `${rated(one.rate)} requests/s` }), element("dl", {}, ...(trace ? line("speed", `${rated(one.rate / now)} x`) : []), ...line("SLOs met", percent(one.share)), ...line("goodput", `${rated(one.good)}/s`)), ...(trace ? [] : [take(one)])],
  });
  if (!trace) made.append(rateMark(now, most, px, act));
  return frame(titled(title), element("p", { className: "soft", textContent: trace ? `requests/s within the SLOs, the trace at ${SPEEDS[0]} to ${SPEEDS.at(-1)} times its speed` : "requests/s within the SLOs; a click, or the mark, sets the rate" }), made, element("p", { className: "axis-x soft", textContent: "requests/s sent" }),
    behind(over.toLowerCase(), ["requests/s", "within the SLOs", "goodput"], rows.map(({ rate, share, good }) => [rated(rate), percent(share), rated(good)])));
}

/** The slowest requests as stacked bars, and one of them in words. */
function stories({ slowest }, picks, act) {
  if (!slowest.length) return element("article", { className: "card stories" }, titled("No request was answered"));
  const chosen = slowest.find(({ id }) => String(id) === picks.request) ?? slowest[0];
  const parts = (one) => PARTS.filter(([key]) => one[key] > 0);
  const [, longest] = parts(chosen).toSorted(([a], [b]) => chosen[b] - chosen[a])[0];
  const rows = slowest.map((one) => {
    const bar = element("span", { className: "stacked", attributes: { "aria-hidden": "true" } }, ...parts(one).map(([key, , tone]) => {
      const piece = element("span", { className: `of-${tone}` });
      piece.style.width = `${(one[key] / slowest[0].e2e_ms) * 100}%`;
      return piece;
    }));
    return element("button", { type: "button", className: "story", attributes: { "aria-pressed": String(one === chosen), "data-pick": String(one.id) }, onclick: () => act.show({ request: one === slowest[0] ? undefined : String(one.id) }) }, element("span", { textContent: `No. ${many(one.id + 1)}` }), bar, element("span", { className: "n", textContent: time(one.e2e_ms) }));
  });
  const words = parts(chosen).map(([key, , , did]) => `${did} for ${time(chosen[key])}`);
  const story = `Request ${many(chosen.id + 1)} came at ${at(chosen.arrived_s)} with ${many(chosen.isl)} tokens. It ${[words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ")} (${many(chosen.osl)} tokens)${chosen.preemptions ? `; it lost its place in the KV cache ${chosen.preemptions} times` : ""}${chosen.cached_tokens ? `; ${many(chosen.cached_tokens)} tokens were cached` : ""}.`;
  const shown = PARTS.filter(([key]) => slowest.some((one) => one[key] > 0));
  return element("article", { className: "card stories" }, titled(`The slowest: ${percent(chosen[PARTS.find(([, name]) => name === longest)[0]] / chosen.e2e_ms)} of ${time(chosen.e2e_ms)} is ${longest}`), ...rows, element("p", { textContent: story, attributes: { role: "status" } }),
    element("p", { className: "soft legend" }, ...shown.map(([, name, tone]) => element("span", {}, element("span", { className: `key-of of-${tone}` }), name))),
    behind("the slowest requests", ["request", "came", "in", "out", "in all", ...shown.map(([, name]) => name)], slowest.map((one) => [many(one.id + 1), at(one.arrived_s), many(one.isl), many(one.osl), time(one.e2e_ms), ...shown.map(([key]) => time(one[key]))])));
}

/** The file of a trace, in place of drawn traffic. */
function traced(act) {
  const trace = act.trace();
  const remove = element("button", { type: "button", className: "plain", textContent: "Remove", attributes: { "aria-label": "remove the trace", "data-pick": "untraced" }, onclick: () => act.take() });
  const input = element("input", { type: "file", attributes: { "data-pick": "trace" }, onchange: ({ target }) => target.files[0] && act.take(target.files[0]) });
  return [...(trace ? [element("span", { textContent: trace.name }), remove] : []), element("label", { className: "plain add-file", textContent: trace ? "Another file" : "Use a trace", title: "CSV with arrival (seconds), isl, osl; Azure, BurstGPT, Mooncake, vLLM bench; sessions of agents" }, input)];
}

/** The traffic, each part of it a control. */
function controls(report, own, picks, act) {
  const row = (name, ...parts) => element("div", { className: "setting" }, element("span", { textContent: name }), element("span", { className: "row" }, ...parts));
  const number = (name, value, least, change, more = {}) => element("input", { type: "number", value, min: least, attributes: { "aria-label": name, "data-pick": name, step: least ? "1" : "any", ...more }, onchange: ({ target }) => target.reportValidity() && change(target.value) });
  const { isl, osl, prefix } = own.question;
  const seed = report.traffic.seed;
  const stated = () => [
    row("Requests/s", number("requests/s", rated(report.scenario.rate).replaceAll(",", ""), 0, (text) => act.rate(Number(text)))),
    row("Arrivals", segments("arrivals", Object.entries(ARRIVALS).map(([key, [name]]) => [key, name]), ARRIVALS[picks.arrivals] ? picks.arrivals : "poisson", (key) => act.pick({ arrivals: key === "poisson" ? undefined : key }))),
    row("Lengths", element("button", { type: "button", className: "plain", textContent: `${many(isl)} in, ${many(osl)} out${prefix ? `, ${many(prefix)} shared` : ""}`, attributes: { "data-open": "traffic" } }), segments("lengths", [["equal", "Equal"], ["spread", "Spread"]], picks.lengths === "spread" ? "spread" : "equal", (key) => act.pick({ lengths: key === "spread" ? key : undefined }))),
    row("Requests", number("requests", report.traffic.requests, 1, (text) => act.pick({ requests: text }), { max: 100000 })),
  ];
  return element("article", { className: "card settings" }, titled("The traffic", element("span", { className: "soft", textContent: "a change is simulated at once" })),
    ...(act.trace() ? [] : stated()),
    row("Trace", ...traced(act)),
    row("Seed", number("seed", seed, 0, (text) => act.pick({ seed: text }), { step: "1" }), element("button", { type: "button", className: "plain", textContent: "Next", attributes: { "aria-label": "next seed", "data-pick": "next" }, onclick: () => act.pick({ seed: String(seed + 1) }) })));
}

/** A figure of the run with its mark: p50 to p99 as a band, the p90 as a point, the SLO as an edge. */
function metric(name, about, value, ends, { low = 0, high = low, mark = high, limit, most = Math.max(high, limit ?? 0) * 1.2 || 1 } = {}, tone = "") {
  const x = (one) => `${(one / most) * 100}%`;
  const edge = limit ? [drawn("rect", { class: "missed", x: x(limit), y: 5, width: x(most - limit), height: 8 }), drawn("svg", { x: x(limit), overflow: "visible" }, drawn("rect", { class: "slo", x: -0.75, y: 0, width: 1.5, height: 18 }))] : [];
  const band = drawn("svg", { class: `interval${limit ? "" : " neutral"}`, "aria-hidden": "true" }, drawn("rect", { class: "rail", x: 0, y: 8.5, width: "100%", height: 1 }), drawn("rect", { class: "range", x: x(low), y: 6, width: x(high - low), height: 6, rx: 3 }), ...edge, drawn("svg", { x: x(mark), overflow: "visible" }, drawn("rect", { class: "point", x: -1.5, y: 2, width: 3, height: 14, rx: 1.5 })));
  return element("article", { className: "card" }, element("h3", {}, element("span", { textContent: name }), element("span", { textContent: about })), element("p", { className: `big ${tone}`, textContent: value }), band, element("p", { className: "ends" }, element("span", { textContent: ends, title: ends })));
}

/** The row of figures of the run. */
function figures(report, limits) {
  const most = (key) => Math.max(...report.timeline.map((one) => one[key]));
  const rows = LATENCIES.flatMap(([key, name]) => {
    const { p50_ms: low, p90_ms: mark, p99_ms: high } = report.latencies.find(({ metric: one }) => one === key);
    const limit = limits[key];
    return mark === null ? [] : [metric(`${name} p90`, limit ? `≤ ${round(limit)}` : "no SLO", time(mark), `p50 ${time(low).replace(time(high).replace(/^\S+/, ""), "")} · p99 ${time(high)}`, { low, mark, high, limit }, limit && mark > limit ? "bad" : "")];
  });
  const slots = report.pools.reduce((sum, { role, replicas, attention_ranks: ranks, scheduler: one }) => sum + (role === "prefill" ? 0 : replicas * ranks * (one.max_sequences ?? one.max_requests ?? one.slots ?? NaN)), 0);
  const [running, waiting, kv] = ["running", "waiting", "kv_used"].map(most);
  const made = element("div", { className: "metrics" }, ...rows,
    ...(report.goodput === null ? [] : [metric("Goodput", "within the SLOs", percent(report.goodput), report.scenario.rate ? `${rated(report.goodput * report.scenario.rate)} requests/s` : "of all requests", { high: report.goodput, most: 1 })]),
    metric("Waiting", "most at a time", many(waiting), report.traffic.refused ? `${many(report.traffic.refused)} refused` : "requests", { high: waiting, most: (running + waiting) * 1.2 }, waiting ? "warn" : ""),
    metric("Running", Number.isFinite(slots) ? `of ${many(slots)}` : "most at a time", many(running), `${digits(report.concurrency)} in flight on average`, { high: running, most: slots || undefined }),
    metric("Preempted", "by KV cache", many(report.preemptions), `KV cache at most ${percent(kv)}`, { high: kv, most: 1 }, report.preemptions ? "bad" : ""));
  made.style.setProperty("--cells", made.children.length);
  return made;
}

function head(report, own, limits, posed, picks, act) {
  const set = Object.keys(limits).length;
  const trace = act.trace();
  const rate = `${trace ? "Under the trace" : "At"} ${report.scenario.rate ? `${trace ? "of " : ""}${rated(report.scenario.rate)} requests/s` : ""}`.trim();
  const row = (key) => report.latencies.find(({ metric: one }) => one === key);
  const title = element("h1", {});
  const tight = LATENCIES.filter(([key]) => limits[key]).sort(([a], [b]) => row(b).p99_ms / limits[b] - row(a).p99_ms / limits[a])[0];
  if (report.goodput === null) title.append(`${rate}, TTFT is ${time(row("ttft").p90_ms)} at p90`);
  else title.append(`${rate}, `, element("em", { textContent: percent(report.goodput) }), ` of requests meet ${set === 1 ? "the SLO" : set === 2 ? "both SLOs" : "all SLOs"}`, ...(report.goodput < 0.995 && set > 1 && tight ? [`; ${tight[1]} is the tighter one`] : []));
  const { isl, osl, runtime } = own.question;
  const traffic = trace ? [trace.name] : [(ARRIVALS[picks.arrivals] ?? ARRIVALS.poisson)[2], `${many(isl)} in and ${many(osl)} out${picks.lengths === "spread" ? `, spread by ${percent(SPREAD)}` : ""}`];
  const sub = [...traffic, `seed ${report.traffic.seed}`, report.notation, `router ${report.router}`, `scheduler of ${runtime}`, ...(posed.rate || trace ? [] : ["no rate is set: the throughput of the answer"]), `${many(report.traffic.measured)} of ${many(report.traffic.requests)} simulated requests count`].join(" · ");
  const [lasts, each] = [report.traffic.requests / report.scenario.rate, own.metrics?.e2e_ms / 1e3];
  const note = !trace && lasts < each * SHORT ? [element("p", { className: "paper", textContent: `All requests come within ${at(lasts)}, and one takes ${at(each)}: queues and batches still grow. Send more requests for a steady state.` })] : [];
  return element("div", { className: "head" }, element("div", {}, title, element("p", { className: "sub", textContent: sub.replace(/^./, (first) => first.toUpperCase()) }), ...note), element("div", { className: "row actions" }, element("button", { type: "button", className: "plain", textContent: "Copy link", attributes: { "data-action": "link" } })));
}

/** Why nothing is simulated, in place of the view. */
export const without = (words, ...more) => element("section", { className: "traffic" }, element("h1", { textContent: "This answer is not simulated" }), element("p", { textContent: words }), ...more);

function draw(target, found, picks, act) {
  const { report, own, swept } = found;
  const limits = limitsOf(own);
  // What only one picture shows is drawn there alone: the others keep their open tables.
  const heads = {};
  const chosen = { ".state": () => load(report, act.picks(), { show }, heads), ".stories": () => stories(report, act.picks(), { show }) };
  const show = (change) => {
    act.keep(change);
    redrawn(target, () => Object.entries(chosen).forEach(([name, make]) => target.querySelector(name).replaceWith(make())));
    played.again();
  };
  const pictures = [...LATENCIES.map((one) => latency(one, report, limits[one[0]], heads)), chosen[".state"]()];
  const [begin, kept] = [report.timeline[0].time_s, act.picks().at];
  const played = replay(report, kept === undefined ? undefined : Number(kept), () => Object.values(heads), (s) => act.keep({ at: Number(s) > begin ? s : undefined }));
  target.replaceChildren(element("section", { className: "traffic" }, head(report, own, limits, found.posed, picks, act), figures(report, limits), played,
    element("div", { className: "grid-2" },
      element("div", { className: "stack" }, ...pictures),
      element("div", { className: "stack" }, goodput(report, swept, act), controls(report, own, picks, act), chosen[".stories"]()))));
}

/** Simulates a plan and draws it, then further rates. `act` has what the page can do. */
export async function traffic(target, scenario, files, act) {
  const { show: _, request: __, at: ___, trace: ____, ...picks } = act.picks();
  const key = JSON.stringify([scenario, picks, files, act.trace()]);
  const parsed = async (name, body) => JSON.parse(await act.answer(name, body, "json"));
  const caught = (fault) => (fault.key === undefined ? Promise.reject(fault) : { fault: fault.message });
  if (target.dataset.answered !== key || !target.found) {
    const found = await act.search([target], async () => {
      const own = await parsed("estimate", { scenario });
      const body = posed(scenario, own, picks, act.trace());
      return { own, body, posed: scenario, report: await parsed("simulate", body) };
    }, caught);
    if (!found) return;
    target.dataset.answered = key;
    target.found = found;
  }
  const { found } = target;
  if (found.fault) return target.replaceChildren(without(found.fault, ...(Object.keys(picks).length || act.trace() ? [element("button", { type: "button", className: "plain", textContent: "Use the usual traffic", onclick: () => act.take(undefined, Object.fromEntries(Object.keys(picks).map((name) => [name, undefined]))) })] : [])));
  redrawn(target, () => draw(target, found, act.picks(), act));
  if (found.swept || found.report.goodput === null) return;
  const { scenario: { rate, ...rest }, traffic: sent } = found.body;
  const sped = async (speed) => {
    const { scenario: under, goodput: good } = speed === 1 ? found.report : await parsed("simulate", { ...found.body, traffic: { ...sent, speed_up: speed } });
    return { vary: { rate: under.rate }, simulated: { goodput: good } };
  };
  const swept = await act.search([], async () => {
    if (act.trace()) {
      const rows = [];
      for (const speed of SPEEDS) rows.push(await sped(speed));
      return { rows };
    }
    const { metrics } = await parsed("estimate", { scenario: unloaded(scenario) });
    const vary = [`rate=${rates(metrics?.requests_per_s ?? rate, rate).join(",")}`];
    return parsed("sweep", { scenario: rest, vary, traffic: { ...sent, requests: Math.min(sent.requests, MOST) } });
  }, caught);
  if (!swept || target.found !== found) return;
  found.swept = swept;
  target.querySelector(".goodput").replaceWith(goodput(found.report, swept, act));
}
