// Why: the best plan of each strategy as a ladder, the verdict on disaggregation, what more of one thing gives, where the
// leader changes, and how sure the choice is. All numbers are those of the answer; its tables stay behind the pictures.
import { slider, ticks } from "./chart.mjs";
import { element, percent, plain, time } from "./figures.mjs";

const NAMES = { single: "single device", tensor: "TP", pipeline: "PP", context: "CP", data: "DP", expert: "EP", split: "disaggregated" };
const WORDS = { output_tok_s: "output tok/s", output_tok_s_per_device: "output tok/s per device", output_tok_s_per_user: "tok/s per user", ttft_ms: "TTFT", tpot_ms: "TPOT", e2e_ms: "E2E", requests_per_s: "requests/s", usd_per_hour: "USD/h", usd_per_mtok: "USD/Mtok", usd_per_mtok_total: "USD/Mtok in and out", tok_per_usd: "output tok/USD", tok_per_joule: "tok/J" };
/** Parameters with crossovers: their heading, their unit, and the field of the question that has them. */
const ALONG = {
  concurrency: { name: "Concurrent requests", unit: "concurrent requests", field: "concurrency" },
  prompt: { name: "Prompt tokens", unit: "prompt tokens", field: "isl" },
  purchase: { name: "Purchase price of a device, USD", unit: "USD a device" },
};
const VERDICTS = { yes: ["Yes.", "good"], no: ["No.", ""], not_provably: ["Not provably.", "warn"] };
/** A change of less is none, and one of less than a percent has a digit more. */
const [NONE, SMALL] = [0.0005, 0.00995];
/** The highest share of the memory that is proposed to a server. */
const MOST_UTILIZATION = 0.97;
/** The least width of the axis of changes, so that a tiny one is a short bar. */
const LEAST_WIDTH = 0.02;
/** The mark that set the question: it has the focus again in the answer, or the sentence has where there is no such mark. */
let movedMark = null;

const named = (family) => NAMES[family] ?? family;
const number = (value) => value.toLocaleString("en");
const share = (change) => (change < SMALL ? `${(change * 100).toFixed(1)} %` : percent(change)).replace(" ", "\u00a0");
const signed = (change) => `${change > 0 ? "+" : "−"}${share(Math.abs(change))}`;
const rough = (value) => plain(Number(value.toPrecision(2)));
const span = (className, textContent = "") => element("span", { className, textContent });
const at = (made, styles) => (Object.entries(styles).forEach(([name, value]) => (made.style[name] = `${value}%`)), made);
const cased = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const titled = (words, more) => element("h2", {}, element("span", { textContent: cased(words) }), ...(more ? [typeof more === "string" ? span("soft", more) : more] : []));

/** The measure of the answer: its words, its direction, and the end of an interval that one can count on. */
function measure({ metric }, question) {
  const more = question?.optimize?.[0]?.direction !== "minimize";
  return {
    more,
    words: WORDS[metric] ?? metric.replaceAll("_", " "),
    spell: metric.endsWith("_ms") ? time : plain,
    sure: ({ interval }) => interval?.[more ? "p10" : "p90"],
    /** The share by which the second value is behind the first. */
    behind: (first, second) => (more ? 1 - second / first : second / first - 1),
  };
}

function headline(best, runner, of) {
  if (!runner) return `${best.plan} leads; no other strategy is feasible`;
  const behind = of.behind(best.value, runner.value);
  if (behind < -NONE) return `${best.plan} is chosen; ${runner.plan} is ${share(-behind)} ahead by the formulas alone`;
  return `${best.plan} leads; the runner-up, ${runner.plan}, ${behind < NONE ? `equals it in ${of.words}` : `is ${share(behind)} behind`}`;
}

/** Who leads in what one can count on, and who does in the expected value. */
function ranked(best, planned, of) {
  if (planned.length < 2) return `${named(best.family)} is the only strategy with a plan`;
  const sure = planned.filter((one) => Number.isFinite(of.sure(one))).sort((a, b) => (of.sure(b) - of.sure(a)) * (of.more ? 1 : -1));
  if (sure.length < 2) return `${named(best.family)} leads in the expected ${of.words}`;
  const [first, second] = sure;
  const behind = of.behind(of.sure(first), of.sure(second));
  const leads = `${named(first.family)} leads ${behind < NONE ? "narrowly" : `by ${share(behind)}`} in what you can count on`;
  return first === best ? leads : `${leads}; ${named(best.family)} leads only in the expected value`;
}

/** The bar of a plan: up to what one can count on, a tick at the expected value, a pale band over the interval. */
function rung(one, most, of) {
  const { value, interval } = one;
  const to = (figure) => Math.min((figure / most) * 100, 100);
  const sure = of.sure(one) ?? value;
  const words = `${named(one.family)}: ${Number.isFinite(of.sure(one)) ? `${of.spell(sure)} to count on, ` : ""}${of.spell(value)} expected`;
  const made = element("span", { className: "rung", title: words, attributes: { role: "img", "aria-label": words } }, at(span("sure"), { width: to(sure) }));
  if (interval) made.append(at(span(of.more ? "band" : "band within"), { left: to(interval.p10), width: to(interval.p90) - to(interval.p10) }));
  made.append(at(span("tick"), { left: to(value) }));
  return made;
}

/** The share of the memory with which the model fits, where it is only a little short. */
function admitted(reason, utilization) {
  const [, needed, usable] = reason.match(/([\d.]+) GB needed .*?([\d.]+) GB usable/)?.map(Number) ?? [];
  const wanted = Math.ceil(((utilization * needed) / usable) * 100) / 100;
  return wanted > utilization && wanted <= MOST_UTILIZATION ? wanted : undefined;
}

/** A row of each strategy: its plan, which a click opens, or the reason why it has none. */
function ladder(strategies, best, of, act) {
  const planned = strategies.filter(({ plan }) => plan);
  const most = Math.max(...planned.flatMap(({ value, interval }) => [value, interval?.p90 ?? 0]));
  const cell = (className, ...children) => element("td", { className }, ...children);
  const row = (one) => {
    const { plan, notation, value, slo_odds: odds, ttft_ms: ttft, tpot_ms: tpot } = one;
    const opens = notation ? { "data-plan": notation } : {};
    const figures = `${plan}: ${of.spell(value)} ${of.words} expected, TTFT ${time(ttft)}, TPOT ${time(tpot)}`;
    const name = notation ? element("button", { type: "button", className: "link", textContent: plan, title: figures, attributes: opens }) : plan;
    const sure = of.sure(one);
    return element("tr", { className: one === best ? "best" : "", attributes: opens },
      element("th", { scope: "row", textContent: named(one.family) }), cell("plan", name), cell("rungs", rung(one, most, of)),
      cell("n sure-of", Number.isFinite(sure) ? of.spell(sure) : ""), cell("n expected", of.spell(value)),
      cell("n odds-of", ...(Number.isFinite(odds) ? [span(`odds ${odds >= 0.8 ? "good" : odds >= 0.5 ? "warn" : "bad"}`, percent(odds))] : [])));
  };
  const refused = ([none, all]) => {
    const wanted = act.utilization && admitted(none, act.utilization);
    const remedy = wanted ? [" ", element("button", { type: "button", className: "link", textContent: `allow utilization ${wanted}`, onclick: () => act.ask({ gpu_memory_utilization: String(wanted) }) })] : [];
    return element("tr", { className: "without" }, element("th", { scope: "row", textContent: all.map(({ family }) => named(family)).join(", ") }), element("td", { colSpan: 5, className: "reason" }, none, ...remedy));
  };
  const heads = [["strategy", ""], ["best plan of it", ""], ["bar: count on · tick: expected · pale: p10–p90", "rungs"], ["count on", "n"], ["expected", "n"], ["odds", "n"]];
  return element("article", { className: "card" },
    titled(ranked(best, planned, of), element("a", { className: "link", href: "#answer", textContent: "all plans of the front →", attributes: { "data-tab": "answer" } })),
    element("table", { className: "ladder", attributes: { "aria-label": `best plan of each strategy, ${of.words}` } },
      element("thead", {}, element("tr", {}, ...heads.map(([textContent, className]) => element("th", { textContent, className })))),
      element("tbody", {}, ...planned.map(row), ...[...Map.groupBy(strategies.filter(({ plan }) => !plan), ({ none }) => none ?? "no plan")].map(refused))));
}

const term = (name, ...children) => [element("dt", { textContent: name }), element("dd", {}, ...children)];
const range = ([low, high], spell) => `${spell(low)}–${spell(high)}`;

/** The verdict, with the run that would change it. */
function verdict({ worth, sentence }, next, metric, of) {
  const [word, tone] = VERDICTS[worth] ?? [worth, ""];
  const [, said, leads] = sentence.match(/^(?:[^:]*: )?(.*?)(?: It leads with (.*)\.)?$/s);
  const run = next && [
    `the chosen plan on ${next.devices === 1 ? "1 device" : `${next.devices} devices`}, ${rough(next.seconds / 60)} min${Number.isFinite(next.usd) ? `, ${rough(next.usd)} USD` : ""} `,
    element("button", { type: "button", className: "link", textContent: "Copy the benchmark", attributes: { "data-copy": next.command } }),
    ...(next[metric] ? [element("p", { className: "soft", textContent: `narrows ${of.words} from ${range(next[metric].now, of.spell)} to ${range(next[metric].then, of.spell)}` })] : []),
  ];
  return element("article", { className: "card verdict" },
    element("h2", { textContent: "Is disaggregation worth it here?" }), element("p", { className: `word ${tone}`, textContent: word }), element("p", { className: "said", textContent: cased(said) }),
    element("dl", {}, ...(leads ? term("it leads with", leads) : []), ...(run ? term(worth === "not_provably" ? "what would settle it" : "the run that adds most", ...run) : [])));
}

/** The limit that a change sets: a field of the question. */
function limit(what) {
  const [, name, value, unit] = what.match(/^(TTFT|TPOT|E2E) ≤ ([\d.,]+) (µs|ms|s)\b/) ?? [];
  return name && { [name.toLowerCase()]: `${value.replaceAll(",", "")}${unit === "µs" ? "us" : unit}` };
}

/** What changes of one thing give, the largest first; a click on a limit sets it in the question. */
function tornado(worth, now, of, act) {
  const all = worth.map((one) => ({ ...one, change: Number.isFinite(one.value) ? one.value / now - 1 : undefined }));
  const moved = all.filter(({ change }) => Math.abs(change) >= NONE).sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
  const idle = all.filter(({ change }) => Math.abs(change) < NONE).map(({ what }) => what);
  const lost = all.filter(({ change }) => change === undefined).map(({ what }) => what);
  const [first] = moved;
  const words = first ? `${first.what} ${first.helps ? "pays most" : "costs most"}, ${signed(first.change)}` : "No small change of one thing has an effect";
  const ends = [Math.min(0, ...moved.map(({ change }) => change)), Math.max(0, ...moved.map(({ change }) => change))];
  const wide = Math.max(ends[1] - ends[0], LEAST_WIDTH);
  const [low, high] = ends[1] > 0 ? [ends[0], ends[0] + wide] : [-wide, 0];
  const to = (change) => ((change - low) / wide) * 100;
  const settable = moved.some(({ what }) => limit(what));
  const row = ({ what, change, helps, plan, value }) => {
    const fields = limit(what);
    const said = `${what}: ${of.spell(value)} ${of.words}, ${signed(change)}, by ${plan}`;
    const right = change > 0;
    const amount = at(span(`amount ${right ? "" : "left"}`, signed(change)), { left: to(change) });
    const bar = at(span(`grow ${helps ? "helps" : ""}`), { left: to(Math.min(change, 0)), width: Math.abs(to(change) - to(0)) });
    return element(fields ? "button" : "div", { className: "torn-row", title: said, ...(fields && { type: "button", onclick: () => act.ask(fields) }) }, span("name", what), element("span", { className: "track" }, bar, amount));
  };
  const steps = first ? ticks(now * (1 + low), now * (1 + high)).filter((step, place, all) => !place || of.spell(step) !== of.spell(all[place - 1])) : [];
  const grid = element("div", { className: "torn-grid", attributes: { "aria-hidden": "true" } }, ...steps.map((step) => at(element("span", {}, span("at", of.spell(step))), { left: to(step / now - 1) })), at(element("span", { className: "now-line" }, span("present", of.spell(now))), { left: to(0) }));
  const chart = element("div", { className: `torn${low < 0 ? " both" : ""}` }, grid, ...moved.map(row));
  chart.style.setProperty("--rows", moved.length);
  return element("article", { className: "card" },
    titled(words, `re-optimized${settable ? " · click a limit to set it" : ""}`),
    ...(first ? [chart, element("p", { className: "soft cap", textContent: `expected ${of.words}` })] : []),
    ...(idle.length ? [element("p", { className: "soft", textContent: `no effect: ${idle.join("; ")}` })] : []),
    ...(lost.length ? [element("p", { className: "soft", textContent: `infeasible: ${lost.join("; ")}` })] : []));
}

/** The segments of a crossover, from the least value to the most. */
function segments({ least, most, leader, changes }) {
  const ends = [...changes.map(({ at: end }) => end), most];
  return [leader, ...changes.map(({ to }) => to)].map((family, place) => ({ family, from: place ? ends[place - 1] : least, to: ends[place] }));
}
const leads = (parts, value) => (parts.findLast(({ from }) => value >= from) ?? parts[0]).family;

/** The range of the other leader that is nearest to the question, in words. */
function nearest(crossings) {
  const all = crossings.flatMap((one) => one.changes.map((change, place) => ({ ...change, ...one, place, far: Math.abs(Math.log(change.at / one.now)) })));
  const [first] = all.sort((a, b) => a.far - b.far);
  if (!first) return `${named(crossings[0].leader)} leads at every value that was tried`;
  const { place, changes, at: edge, now, from, to, along } = first;
  const { unit } = ALONG[along];
  const [begin, end] = now >= edge ? [changes[place - 1]?.at, first.below] : [edge, changes[place + 1]?.below];
  const words = !begin ? `Up to ${number(end)}` : end ? `From ${number(begin)} to ${number(end)}` : `From ${number(begin)}`;
  return `${words} ${unit}, ${named(now >= edge ? from : to)} leads`;
}

/** The value of the question on a strip: dragged, or moved by arrows, and set on release or by Enter. */
function mark(crossing, parts, scale, head, act) {
  const { along, now, least, most } = crossing;
  const { field, unit, name } = ALONG[along];
  const made = element(field ? "button" : "span", { className: "now", ...(field && { type: "button" }), attributes: field ? { role: "slider", "data-along": along, "aria-label": name, "aria-valuemin": least, "aria-valuemax": most } : {} });
  let value = now;
  const draw = () => {
    at(made, { left: scale.of(value) });
    head.textContent = value === now ? `now ${number(now)}` : `${number(value)}: ${named(leads(parts, value))} leads · Enter to ask`;
    if (field) Object.entries({ valuenow: value, valuetext: `${number(value)} ${unit}, ${named(leads(parts, value))} leads` }).forEach(([key, text]) => made.setAttribute(`aria-${key}`, text));
  };
  draw();
  if (!field) return made;
  const moved = (next) => {
    value = Math.min(Math.max(Math.round(next), least), most);
    draw();
  };
  const ask = () => {
    if (value === now) return;
    movedMark = along;
    act.ask({ [field]: String(value) });
  };
  const back = () => value !== now && (moved(now), true);
  slider(made, { value: () => value, along: (of, share) => Number((of * (most / least) ** share).toPrecision(3)), moved: (next, sign = 0) => moved(sign && Math.round(next) === value ? value + sign : next), set: ask, back, ends: [least, most] });
  return made;
}

/** A parameter on an axis of factors: who leads where, with the value of the question. */
function strip(crossing, best, act) {
  const { along, now, least, most, leader, changes } = crossing;
  const head = span("soft");
  const title = element("p", { className: "strip-head" }, element("b", { textContent: ALONG[along].name }), head);
  if (!leader) return element("div", {}, title, element("p", { className: "soft", textContent: `from ${number(least)} to ${number(most)}, neither strategy is feasible` }));
  const scale = { of: (value) => (most > least ? (Math.log(value / least) / Math.log(most / least)) * 100 : 50) };
  const parts = segments(crossing);
  // The mark would be over a name in the middle.
  const covered = (from, to) => Math.abs((scale.of(from) + scale.of(to)) / 2 - scale.of(now)) < 8;
  const pieces = parts.map(({ family, from, to }) => at(element("span", { className: `part ${family === best.family ? "leads" : "rival"}${covered(from, to) ? " aside" : ""}`, title: `${named(family)} from ${number(from)} to ${number(to)}` }, span("", named(family))), { left: scale.of(from), width: scale.of(to) - scale.of(from) }));
  const tens = Array.from({ length: 12 }, (_, power) => 10 ** power).filter((one) => one > least && one < most);
  // Those that come first keep their place.
  const values = [...new Set([...changes.map(({ at: end }) => end), least, most, ...tens])];
  const labels = values.map((value) => at(span(`at${value === least ? " first" : value === most ? " last" : ""}`, number(value)), { left: scale.of(value) }));
  const axis = element("div", { className: "strip-axis", attributes: { "aria-hidden": "true" } }, ...labels);
  const fitted = () => {
    const kept = [];
    for (const label of labels) {
      label.hidden = false;
      const box = label.getBoundingClientRect();
      label.hidden = kept.some(({ left, right }) => box.left < right + 6 && box.right > left - 6);
      if (!label.hidden) kept.push(box);
    }
  };
  new ResizeObserver(fitted).observe(axis);
  const track = element("div", { className: "ranges", attributes: { role: "group", "aria-label": `${ALONG[along].name}: ${parts.map(({ family, from, to }) => `${named(family)} from ${number(from)} to ${number(to)}`).join(", ")}; now ${number(now)}` } }, ...pieces, mark(crossing, parts, scale, head, act));
  return element("div", {}, title, track, axis);
}

function strips(crossings, best, of, act) {
  const families = [...new Set(crossings.flatMap(({ leader, changes }) => [leader, ...changes.map(({ to }) => to)]))].filter(Boolean).map(named);
  return element("article", { className: "card" },
    titled(nearest(crossings), crossings.some(({ along }) => ALONG[along].field) ? "drag the mark to ask" : undefined),
    ...crossings.map((crossing) => strip(crossing, best, act)),
    element("p", { className: "soft", textContent: `By ${of.words}: the best plan and the runner-up, both re-optimized at each value${families.length === 1 ? `; ${families[0]} leads throughout` : ""}` }));
}

/** The shares of the draws in which the choice holds, next to those of its rival. */
function robustness({ draws, plans, meets_slos: meets, stays_best_common: common, stays_best_independent: own, rival }, best, strategies) {
  const odds = strategies.find(({ plan }) => plan === rival?.plan)?.slo_odds;
  const rows = [["meets the SLOs", meets, odds, true], ["stays the best, errors common to all plans", common], ["stays the best, each plan its own error", own, rival?.wins]];
  const tone = (value) => (value >= 0.8 ? "good" : value >= 0.5 ? "warn" : "bad");
  const cell = (value, toned) => element("td", { className: `n ${toned && Number.isFinite(value) ? tone(value) : ""}`, textContent: Number.isFinite(value) ? percent(value) : "–" });
  const heads = [best.plan, ...(rival ? [rival.plan] : [])];
  return element("article", { className: "card sure-table" },
    titled(`How sure is the choice? ${number(draws)} draws of the prediction errors`, plans === 1 ? "1 plan" : `${number(plans)} plans`),
    element("table", {}, element("thead", {}, element("tr", {}, element("td"), ...heads.map((textContent) => element("th", { className: "n", textContent })))),
      element("tbody", {}, ...rows.map(([name, first, second, toned]) => element("tr", {}, element("th", { scope: "row", textContent: name }), cell(first, toned), ...(rival ? [cell(second, toned)] : []))))),
    ...(rival ? [element("p", { className: "soft", textContent: `The most frequent rival, ${rival.plan}, is the best in ${percent(rival.wins)} where each plan has its own error.` })] : []));
}

/** What the answer says, above its pictures. */
function head(found, best, runner, of, act) {
  const button = (textContent, attributes) => element("button", { type: "button", className: "plain", textContent, attributes });
  return element("div", { className: "head" },
    element("div", {}, element("h1", { tabIndex: -1, textContent: headline(best, runner, of) }), element("p", { className: "sub", textContent: found.sentence })),
    element("div", { className: "row actions" }, ...(act.command ? [button("Copy as command", { "data-copy": `${act.command} --why` })] : []), button("Copy link", { "data-action": "link" })));
}

/** The command of an answer, and the share of memory that its server may use. */
function commands(answer) {
  const copies = [...answer.querySelectorAll("[data-copy]")].map(({ dataset }) => dataset.copy);
  const [, utilization] = copies.join(" ").match(/--gpu-memory-utilization ([\d.]+)/) ?? [];
  return { command: copies.find((text) => text.startsWith("mantile-opt ")), utilization: Number(utilization) || undefined };
}

/** Draws what decided an answer in place of the text. `keep` keeps what is opened, `ask` changes the question. */
export function why(section, answer, picks, { keep, ask }) {
  const found = JSON.parse(section.dataset.why);
  const planned = found.strategies.filter(({ plan }) => plan);
  if (!planned.length || section.querySelector(".decision")) return;
  const act = { ...commands(answer), ask };
  const of = measure(found, JSON.parse(answer.dataset.question));
  const best = planned.find(({ notation }) => notation && notation === answer.dataset.notation) ?? planned[0];
  const runner = planned.find((one) => one !== best);
  const rows = [...section.querySelectorAll(":scope > h2, :scope > h2 ~ *")];
  const tables = element("details", { className: "box", open: picks.table === "open" }, element("summary", { textContent: "The same as tables" }), ...rows);
  tables.addEventListener("toggle", () => keep({ table: tables.open ? "open" : undefined }));
  const card = found.split && verdict(found.split, JSON.parse(section.dataset.next ?? "null"), found.metric, of);
  const right = [...(found.crossovers.length ? [strips(found.crossovers, best, of, act)] : []), ...(found.robustness ? [robustness(found.robustness, best, found.strategies)] : [])];
  const left = found.worth.length ? [tornado(found.worth, best.value, of, act)] : [];
  section.replaceChildren(head(found, best, runner, of, act),
    element("div", { className: `decision${card ? " judged" : ""}` }, ladder(found.strategies, best, of, act), ...(card ? [card] : [])),
    element("div", { className: `decision${left.length && right.length ? " halves" : ""}` }, ...left, ...(right.length ? [element("div", { className: "stack" }, ...right)] : [])), tables);
  if (movedMark && document.activeElement === document.body) (section.querySelector(`.now[data-along=${movedMark}]`) ?? section.querySelector("h1")).focus({ preventScroll: true });
  movedMark = null;
}
