// Buy: offers for a model as a staircase with what each reaches, what just misses and the limit that admits it, and the
// models of a machine by their use. All numbers are those of the answer.
import { factors, field, graph, label, line, lines, menu, named, segments, sums } from "./chart.mjs";
import { digits, element, drawn, percent, plain, short, time } from "./figures.mjs";

const GIB = 2 ** 30;
/** A build that takes more than this multiple of the budget, or of the dearest step, is not drawn. */
const FAR = 4;
const [MISSES, EACH, ROWS] = [7, 3, 15];
/** Axes to the right: what a build costs, its range, and the budget on it. */
const COSTS = {
  buy: { name: "to buy, USD", of: ({ money }) => money.buy_usd, range: ({ money }) => money.buy_usd_range, limit: (sought) => sought.budget_usd, unit: "USD" },
  hour: { name: "USD/h", of: ({ money }) => money.usd_per_hour, range: ({ money }) => money.usd_per_hour_range, limit: (sought) => sought.budget_usd_per_hour, unit: "USD/h" },
};
/** Axes upwards: what a build reaches. */
const REACHED = {
  speed: { name: "tok/s for each user", of: (build) => build.tok_s_per_user, words: (value) => `${plain(value)} tok/s to each user`, unit: "tok/s" },
  users: { name: "users at most", of: (build) => build.most_users, words: (value) => `up to ${plain(value)} users`, unit: "users" },
  output: { name: "tok/s in all at most", of: (build) => build.most_output_tok_s, words: (value) => `${plain(value)} tok/s in all`, unit: "tok/s" },
};
/** Uses by a word in the name of a model; the rest is general. */
const USES = [["code", /cod(e|er)\b|coder|devstral|starcoder|codellama/i], ["vision", /\bvl\b|-vl-|vision|llava|4\.1v|omni/i]];

const same = (a, b) => Boolean(a && b) && a.name === b.name && a.each.weight_format === b.each.weight_format;
/** The name of a build without the words that its neighbours have too. */
export const called = (name) => name.replaceAll(/NVIDIA (GeForce )?|AMD (Radeon |Instinct )?| workstation\b/g, "").replaceAll(" x ", " × ").replaceAll("copies of ", "× ").replace(/^1 × /, "");
/** The system of a build, without the number of its nodes or copies. */
const alone = (name) => called(name).replace(/^(\d+ (of|nodes of)|\d+ × ) ?/, "").replace(/^\d+ in /, "");
const usd = (value) => (value >= 1e3 ? Math.round(value).toLocaleString("en") : plain(value));
const plainly = (model) => short(model).split("/").pop();
const users = (number) => (number === 1 ? "1 user" : `${number} users`);
const span = ([low, high]) => `${usd(low)}–${usd(high)}`;
const button = (text, onclick, className = "plain") => element("button", { type: "button", className, textContent: text, onclick });

/** Whether a build is within every limit and has a price. */
const counts = ({ standing }) => standing === "front" || standing === "dominated";

/** The offers with their names: the cheapest, the best value, the fastest, the lowest power, further steps. */
function offered(answer) {
  const within = answer.builds.filter(counts);
  const most = (of) => within.reduce((best, one) => (of(one) > (best ? of(best) : -Infinity) ? one : best), null);
  const roles = [
    ["Cheapest", answer.minimum],
    [`Cheapest in ${answer.cheapest?.each.weight_format}`, answer.cheapest],
    ["Best value", answer.value],
    [answer.sought.budget_usd || answer.sought.budget_usd_per_hour ? "Fastest in budget" : "Fastest", most(({ tok_s_per_user: speed }) => speed)],
    ["Lowest power", most(({ watts }) => (watts ? -watts : -Infinity))],
    ...answer.tiers.map((tier) => ["Next step", tier]),
  ];
  const all = [];
  for (const [name, build] of roles) {
    if (!build) continue;
    const known = all.find((one) => same(one.build, build));
    if (!known) all.push({ names: [name], build });
    else if (name !== "Next step") known.names.push(name);
  }
  return all;
}

/** The requirements in words. */
function required({ sought }) {
  const { limits } = sought;
  return [
    `${users(sought.users)} at ≥ ${plain(sought.target_tok_s)} tok/s`,
    `${sought.isl.toLocaleString("en")} tokens in, ${sought.osl.toLocaleString("en")} out`,
    ...(limits.ttft && !String(limits.ttft).startsWith("none") ? [`TTFT ≤ ${limits.ttft}`] : []),
    ...(sought.budget_usd ? [`≤ ${usd(sought.budget_usd)} USD`] : []),
    ...(sought.budget_usd_per_hour ? [`≤ ${usd(sought.budget_usd_per_hour)} USD/h`] : []),
    ...(sought.max_watts ? [`≤ ${plain(sought.max_watts)} W`] : []),
  ].join(" · ");
}

const assumed = (answer) => `${required(answer)}. Assumed: ${answer.sought.assumed.join("; ").replaceAll("`", "") || "nothing"}`;

function head(answer, act) {
  const { sought, looked, builds } = answer;
  const first = answer.minimum ?? answer.cheapest;
  const sub = element("p", { className: "sub" });
  const title = element("h1", {});
  const acts = element("div", { className: "row actions" }, ...(first ? [button("Open the plan", () => act.open(first), "primary")] : []), element("button", { type: "button", className: "plain", textContent: "Copy link", attributes: { "data-action": "link" } }));
  if (first) {
    const { money } = first;
    const price = money.buy_usd ? `for about ${usd(money.buy_usd)} USD` : `for ${usd(money.usd_per_hour)} USD/h`;
    title.append(money.buy_usd ? "Buy " : "Rent ", element("em", { textContent: called(first.name) }), ` ${price}: ${plain(first.tok_s_per_user)} tok/s for ${sought.users === 1 ? "one user" : `each of ${sought.users} users`}, ${first.most_users} at most`);
    const range = money.buy_usd_range && money.buy_usd_range[0] < money.buy_usd_range[1] ? [`price seen from ${usd(money.buy_usd_range[0])} to ${usd(money.buy_usd_range[1])} USD`] : [];
    sub.textContent = [`${plainly(first.model)} in ${first.each.weight_format}`, ...range, `${looked.serve} of ${looked.systems} systems can serve it`, ...(money.dated?.length ? [`prices of ${[...new Set(money.dated)].join(" to ")}`] : [])].join(" · ");
  } else {
    const [nearest] = builds;
    title.textContent = nearest ? `No offer within the limits: the cheapest that serves ${plainly(sought.model)} is ${called(nearest.name)}` : `No system of the catalogue serves ${plainly(sought.model)} so`;
    sub.textContent = nearest?.because ?? "";
  }
  return element("div", { className: "head" }, element("div", {}, title, sub, element("p", { className: "proof", textContent: assumed(answer) })), acts);
}

function card({ names, build }, first, chosen, choose) {
  const { money } = build;
  const range = money.buy_usd ? money.buy_usd_range : money.usd_per_hour_range;
  const price = money.buy_usd ? `${usd(money.buy_usd)} USD` : `${usd(money.usd_per_hour)} USD/h`;
  const [role, ...roles] = names;
  const more = [`${plain(build.tok_s_per_user)} tok/s a user`, `up to ${users(build.most_users)}`, ...(build.watts ? [`${digits(build.watts)} W`] : [])].map((text) => text.replaceAll(" ", "\u00a0"));
  const plan = [build.each.weight_format, build.runtime, build.each.plan.label, ...(money.buy_usd && money.usd_per_month ? [`${usd(money.usd_per_month)} USD a month`] : [])].map((text) => text?.replaceAll(" ", "\u00a0"));
  return element("article", { className: `card offer${chosen ? " chosen" : ""}` },
    element("h3", {}, [role, ...roles.map((one) => one.toLowerCase())].join(", "), ...(build.keeps_quality ? [] : [" ", element("span", { className: "tag warn", textContent: "below the checkpoint’s quality" })])),
    element("button", { type: "button", className: "big", textContent: called(build.name), title: build.name, onclick: choose, attributes: { "aria-pressed": String(chosen) } }),
    element("p", {}, element("b", { textContent: price }), " ", element("span", { className: "soft", textContent: range && range[0] < range[1] ? span(range) : "" })),
    element("p", { className: "facts-line" }, more.join(" · "), element("br"), plan.filter(Boolean).join(" · ")));
}

/** The card of a point of the chart. */
function tip(build, act) {
  const { money, each } = build;
  const odds = each.slo_odds?.all;
  const cost = (value, range, unit) => (value ? [`${usd(value)} ${unit}${range && range[0] < range[1] ? ` (${span(range)})` : ""}`] : []);
  return [
    element("h3", {}, element("span", { textContent: called(build.name) }), ...(build.standing === "front" ? [] : [element("span", { className: "tag", textContent: build.standing })])),
    element("dl", {},
      ...cost(money.buy_usd, money.buy_usd_range, "USD").flatMap((words) => line("to buy", words)),
      ...cost(money.usd_per_hour, money.usd_per_hour_range, "USD/h").flatMap((words) => line("an hour", words)),
      ...line("each user", `${plain(build.tok_s_per_user)} tok/s`),
      ...line("at most", users(build.most_users)),
      ...(build.watts ? line("power", `${digits(build.watts)} W`) : []),
      ...line("context", `${digits(build.max_context_tokens)} tokens`),
      ...(Number.isFinite(odds) ? line("meets the SLOs", percent(odds), odds >= 0.8 ? "good" : odds >= 0.5 ? "warn" : "bad") : []),
      ...line("plan", `${each.plan.label}, ${each.weight_format}, ${build.runtime}`)),
    ...(build.because ? [element("p", { className: "soft", textContent: build.because })] : []),
    element("div", { className: "row" }, button("Open", () => act.open(build))),
  ];
}

/** The builds that none beats in cost and in what they reach, the cheapest first. */
function stairs(builds, x, y) {
  const sorted = builds.toSorted((a, b) => x.of(a) - x.of(b) || y.of(b) - y.of(a));
  const kept = [];
  for (const one of sorted) if (!kept.length || y.of(one) > y.of(kept.at(-1)) * 1.0001) kept.push(one);
  return kept;
}

function finding(steps, x, y, limit) {
  if (!steps.length) return limit ? "No build is within the budget" : "No build with this price is within the limits";
  const [first, last] = [steps[0], steps.at(-1)];
  const begin = `${usd(x.of(first))} ${x.unit} gives ${y.words(y.of(first))}`;
  if (steps.length === 1) return `${begin}; more money buys no more${limit ? " within the budget" : ""}`;
  return `${begin}, ${usd(x.of(last))} ${x.unit} gives ${plain(y.of(last))}${limit ? ", and more money no more within the budget" : ""}`;
}

/** Cost to the right, what is reached upwards: the steps with their names, other builds in grey, over budget tinted. */
function chart(answer, offers, chosen, act, picks) {
  const { sought, builds } = answer;
  const known = Object.keys(COSTS).filter((key) => builds.some((build) => COSTS[key].of(build) > 0));
  const usual = sought.budget_usd && known.includes("buy") ? "buy" : known.includes("hour") ? "hour" : known[0];
  const [cost, reach] = [known.includes(picks.x) ? picks.x : usual, REACHED[picks.y] ? picks.y : "speed"];
  if (!cost) return { figure: element("figure", { className: "card", hidden: true }), placed: () => {} };
  const [x, y] = [COSTS[cost], REACHED[reach]];
  const priced = builds.filter((build) => x.of(build) > 0 && y.of(build) > 0);
  const within = priced.filter(counts);
  const steps = stairs(within, x, y);
  const limit = x.limit(sought);
  const most = Math.max(limit ?? 0, ...offers.map(({ build }) => x.of(build) ?? 0)) * FAR || Infinity;
  const shown = priced.filter((build) => x.of(build) <= most);
  if (!shown.length) return { figure: element("figure", { className: "card chart-frame" }, element("h2", { textContent: "Every build that serves is far above the budget" })), placed: () => {} };
  const ends = (build) => x.range(build) ?? [x.of(build), x.of(build)];
  const across = factors([...shown.map(x.of), ...steps.flatMap(ends), ...(limit ? [limit] : [])], 1.15);
  across.spell = usd;
  const { svg, px, py } = field(across, sums(shown.map(y.of)));
  if (limit) {
    svg.append(drawn("rect", { class: "missed", x: `${px(limit)}%`, width: `${100 - px(limit)}%`, y: "0", height: "100%" }), drawn("line", { class: "edge", x1: `${px(limit)}%`, x2: `${px(limit)}%`, y1: "0", y2: "100%" }));
    const left = px(limit) > 60;
    svg.append(label(px(limit), 0, `budget ${usd(limit)}`, { class: "limit", dx: left ? -6 : 6, dy: 12, "text-anchor": left ? "end" : "start" }));
  }
  const place = (build) => [px(x.of(build)), py(y.of(build))];
  for (const build of shown.filter((one) => !steps.includes(one))) {
    const [left, top] = place(build);
    svg.append(drawn("circle", { class: `other ${build.standing.replace(" ", "-")}`, cx: `${left}%`, cy: `${top}%`, r: counts(build) ? 4.5 : 3.5 }));
  }
  for (const build of steps) {
    const [[low, high], top] = [ends(build).map(px), py(y.of(build))];
    svg.append(drawn("line", { class: "range-x", x1: `${low}%`, x2: `${Math.min(high, 100)}%`, y1: `${top}%`, y2: `${top}%` }));
  }
  const path = steps.length && steps.map((build, at) => (at ? `H${px(x.of(build)) * 10}V${py(y.of(build)) * 10}` : `M${px(x.of(build)) * 10} 1000V${py(y.of(build)) * 10}`)).join("") + `H${px(limit ?? across.high) * 10}`;
  if (path) svg.append(lines(drawn("path", { class: "stairs", d: path })));
  for (const build of steps) svg.append(drawn("circle", { class: "point", cx: `${place(build)[0]}%`, cy: `${place(build)[1]}%`, r: 5 }));
  if (chosen && x.of(chosen)) svg.append(drawn("circle", { class: "ring", cx: `${place(chosen)[0]}%`, cy: `${place(chosen)[1]}%`, r: 9 }));
  const labelled = [...steps, ...offers.map(({ build }) => build).filter((build) => x.of(build) && !steps.some((one) => same(one, build)))];
  const names = labelled.map((build, at) => {
    const [name, reaches] = [called(build.name), `${plain(y.of(build))} ${y.unit}`];
    return { text: label(0, 0, name, { class: at < steps.length ? "name f1" : "name soft" }), place: place(build), words: [`${name} · ${reaches}`, `${name} · ${plain(y.of(build))}`, name, reaches] };
  });
  svg.append(...names.map(({ text }) => text));
  const made = graph(svg, `${steps.length} steps of ${shown.length} builds by cost and ${y.name}. Arrows walk, Enter opens a plan.`, shown, { place, card: (build) => tip(build, act), enter: act.open, begin: steps[0] });
  const words = finding(steps, x, y, limit);
  const far = priced.length - shown.length;
  const notes = [`${priced.length} builds meet the SLO and have this price`, ...(far ? [`${far} far above are not drawn`] : []), "bars: prices seen"].join(" · ");
  const figure = element("figure", { className: "card chart-frame" },
    element("h2", {}, element("span", { textContent: words, title: words })),
    element("p", { className: "soft", textContent: notes }),
    element("div", { className: "axis-y" }, menu("axis upwards", Object.entries(REACHED).map(([key, { name }]) => [key, name]), reach, (key) => act.pick({ y: key === "speed" ? undefined : key }))),
    made,
    element("div", { className: "axis-x" }, menu("axis to the right", known.map((key) => [key, COSTS[key].name]), cost, (key) => act.pick({ x: key === usual ? undefined : key }))));
  // The line of the steps, and the budget.
  const thick = 0.5;
  const treads = steps.flatMap((build, at) => {
    const [[left, top], [right, next]] = [place(build), steps[at + 1] ? place(steps[at + 1]) : [px(limit ?? across.high), place(build)[1]]];
    return [[left, top - thick, right, top + thick], [right - thick / 2, next, right + thick / 2, top]];
  });
  if (steps.length) treads.push([place(steps[0])[0] - thick / 2, place(steps[0])[1], place(steps[0])[0] + thick / 2, 100]);
  return { figure, placed: () => named(made, names, labelled.map(place), [...treads, ...(limit ? [[px(limit), 0, px(limit) + 20, 6]] : [])], limit ? [[px(limit) - 0.2, 0, px(limit) + 0.2, 100]] : []) };
}

/** A limit that a system misses, and the change that admits it; undefined where no limit alone does. */
function missed({ name, kind, reason }) {
  const [, odds, wanted] = reason.match(/ are (\d+) % at best, (\d+) % are required/)?.map(Number) ?? [];
  if (odds >= 50) return { name, kind, above: wanted / odds, words: `odds ${odds} %`, act: `allow ${odds} %`, question: { risk: `p${odds}` } };
  const [, value, limit] = reason.match(/is ([\d.,]+) ms.* the SLO is ([\d.,]+) ms/)?.map((text) => Number(text.replaceAll(",", ""))) ?? [];
  if (!value || !limit) return undefined;
  const above = value / limit;
  if (kind === "tpot") {
    const speed = Math.floor(1e4 / value) / 10;
    return speed > 0 && { name, kind, above, words: `TPOT ${time(value)}`, act: `allow ${plain(speed)} tok/s`, form: { target_tok_s: String(speed) } };
  }
  if (kind !== "ttft") return undefined;
  const seconds = Math.ceil(value / 100) / 10;
  return above > 5 ? { name, kind, above, words: `TTFT ${time(value)}`, act: "no TTFT limit", question: { ttft: "none" } } : { name, kind, above, words: `TTFT ${time(value)}`, act: `allow ${plain(seconds)} s`, question: { ttft: `${seconds}s` } };
}

/** The limit of money or power that a build exceeds. */
function over(build, sought) {
  const high = (range, value) => range?.[1] ?? value;
  const rows = [
    ["budget", sought.budget_usd, high(build.money.buy_usd_range, build.money.buy_usd), "USD", "usd", 100],
    ["budget_hour", sought.budget_usd_per_hour, high(build.money.usd_per_hour_range, build.money.usd_per_hour), "USD/h", "usd", 0.1],
    ["max_watts", sought.max_watts, build.watts, "W", "", 10],
  ];
  const [key, limit, value, unit, suffix, step] = rows.find(([, limit, value]) => limit && value > limit) ?? [];
  if (!key) return undefined;
  const allowed = Number((Math.ceil(value / step) * step).toPrecision(12));
  return { name: build.name, kind: "money", above: value / limit, words: `${key === "max_watts" ? "" : "up to "}${usd(value)} ${unit}`, act: `allow ${usd(allowed)}`, form: { [key]: `${allowed}${suffix}` } };
}

/** Systems that nearly meet the limits, each with the limit to relax. */
function misses(answer, act) {
  const all = [...answer.missed.map(missed), ...answer.builds.filter(({ standing }) => standing === "over budget").map((build) => over(build, answer.sought))].filter(Boolean).sort((a, b) => a.above - b.above);
  const kept = [];
  for (const one of all) {
    const taken = kept.filter(({ kind }) => kind === one.kind).length;
    if (kept.length < MISSES && taken < EACH && !kept.some(({ name }) => alone(name) === alone(one.name))) kept.push(one);
  }
  const { missed: counted } = answer.looked;
  const dear = answer.builds.filter(({ standing }) => standing === "over budget").length;
  const words = [["ttft", "by TTFT"], ["tpot", "by TPOT"], ["out_of_memory", "by memory"]].filter(([key]) => counted[key]).map(([key, name]) => `${counted[key]} ${name}`);
  const rows = kept.map((one) => element("tr", {}, element("th", { scope: "row", textContent: called(one.name), title: one.name }), element("td", { className: "n", textContent: one.words }), element("td", { className: "n" }, button(one.act, () => act.relax(one), "link"))));
  return element("article", { className: "card misses" }, element("h2", {}, element("span", { textContent: "Just misses" }), element("span", { className: "soft", textContent: [...words, ...(dear ? [`${dear} over the budget`] : [])].join(", ") })), ...(rows.length ? [element("table", {}, element("tbody", {}, ...rows))] : [element("p", { className: "soft", textContent: "No limit alone would admit another system." })]));
}

/** The running costs of the chosen offer. */
function running(offers, chosen, choose) {
  const { money, watts } = chosen;
  if (!money.usd_per_hour) return element("div", { hidden: true });
  const hours = money.hours_per_day ?? 24;
  const month = money.usd_per_month / money.usd_per_day;
  const row = (name, hour) => element("tr", {}, element("th", { scope: "row", textContent: name }), ...[hour, hour * hours, hour * hours * month].map((value) => element("td", { className: "n", textContent: `${usd(value)} USD` })));
  const basis = money.basis === "owned" ? `owned over ${plain(money.amortization_months)} months` : "rented";
  return element("article", { className: "card misses" },
    element("h2", {}, element("span", { textContent: "To run it" }), element("span", { className: "soft", textContent: `${basis}${hours < 24 ? `, ${plain(hours)} h a day` : ""}` })),
    menu("offer", offers.map(({ build }, at) => [String(at), `${called(build.name)}, ${build.each.weight_format}`]), String(offers.findIndex(({ build }) => same(build, chosen))), (at) => choose(offers[Number(at)].build)),
    element("table", {}, element("thead", {}, element("tr", {}, ...["", "an hour", "a day", "a month"].map((text, at) => element(at ? "th" : "td", { className: at ? "n" : "", textContent: text })))),
      element("tbody", {}, row("All costs", money.usd_per_hour), ...(money.electricity_usd_per_hour ? [row(`of it electricity${watts ? `, ${digits(watts)} W` : ""}`, money.electricity_usd_per_hour)] : []))),
    element("p", { className: "soft", textContent: `${plain(money.usd_per_mtok)} USD/Mtok with these users, ${plain(money.usd_per_mtok_full)} at full load` }));
}

const COLUMNS = ["plan", "weights", "tok/s/user", "SLO odds", "users", "context", "USD to buy", "USD/h", "power", "note"];
/** A row of the table behind the picture. */
function row(build, name, act) {
  const { each, money } = build;
  const number = (value, spell = digits) => element("td", { className: "n", textContent: Number.isFinite(value) ? spell(value) : "" });
  return element("tr", {}, element("th", { scope: "row" }, button(name, () => act.open(build), "link")),
    element("td", { textContent: `${each.plan.label}, ${build.runtime}` }), element("td", { textContent: each.weight_format }),
    number(build.tok_s_per_user), number(each.slo_odds?.all, percent), number(build.most_users), number(build.max_context_tokens), number(money.buy_usd, usd), number(money.usd_per_hour, usd), number(build.watts, (watts) => `${digits(watts)} W`),
    element("td", { textContent: build.because ?? build.standing ?? "" }));
}

const table = (name, words, rows) => element("div", { className: "scroll tall", tabIndex: 0, attributes: { role: "region", "aria-label": words } }, element("table", { attributes: { "data-sort": "" } }, element("thead", {}, element("tr", {}, element("th", { textContent: name }), ...COLUMNS.map((text, at) => element("th", { className: at > 1 && at < 9 ? "n" : "", textContent: text })))), element("tbody", {}, ...rows)));

/** A part that stays closed until it is wanted; the address knows. */
function behind(key, summary, fill, act, picks) {
  const box = element("details", { className: "box", open: picks[key] === "open" }, element("summary", { textContent: summary }));
  const filled = () => box.open && box.children.length === 1 && box.append(fill());
  box.addEventListener("toggle", () => {
    filled();
    act.keep({ [key]: box.open ? "open" : undefined });
  });
  filled();
  return box;
}

const rejected = (all) => element("dl", { className: "facts" }, ...all.flatMap(({ name, reason }) => [element("dt", { textContent: name }), element("dd", { textContent: reason })]));

function hardware(place, answer, act, picks) {
  const offers = offered(answer);
  const first = answer.minimum ?? answer.cheapest;
  const chosen = offers.find(({ build }) => `${build.name}, ${build.each.weight_format}` === picks.offer)?.build ?? first;
  const choose = (build) => act.pick({ offer: same(build, first) ? undefined : `${build.name}, ${build.each.weight_format}` });
  const { figure, placed } = chart(answer, offers, chosen, act, picks);
  place.replaceChildren(element("section", { className: "buy", attributes: { "data-view": "buy" } },
    head(answer, act),
    element("div", { className: "offers" }, ...offers.slice(0, 4).map((one) => card(one, same(one.build, first), same(one.build, chosen), () => choose(one.build)))),
    element("div", { className: "grid-2" }, figure, element("div", { className: "stack" }, misses(answer, act), ...(chosen ? [running(offers, chosen, choose)] : []))),
    behind("table", `All ${answer.builds.length} builds as a table`, () => table("build", "builds", answer.builds.map((build) => row(build, build.name, act))), act, picks),
    ...(answer.missed.length ? [behind("rejected", `Rejected: ${answer.missed.length}`, () => rejected(answer.missed), act, picks)] : [])));
  placed();
}

const used = ({ build, family }) => USES.find(([, words]) => words.test(`${plainly(build.model)} ${family}`))?.[0] ?? "general";

/** The models of a machine, by use; chips choose a use and the order. */
function models(place, answer, act, picks) {
  const all = answer.models.map((one) => ({ ...one, use: used(one) }));
  const kinds = ["general", "code", "vision"].filter((use) => all.some((one) => one.use === use));
  const use = kinds.includes(picks.use) ? picks.use : "all";
  const order = ["speed", "size"].includes(picks.order) ? picks.order : "use";
  const by = { use: (a, b) => kinds.indexOf(a.use) - kinds.indexOf(b.use), speed: (a, b) => b.build.tok_s_per_user - a.build.tok_s_per_user, size: (a, b) => b.parameters - a.parameters }[order];
  const wanted = all.filter((one) => use === "all" || one.use === use).toSorted(by);
  // Of each use the first ones, in the order of size and age that the answer has.
  const few = order === "use" && use === "all" ? kinds.flatMap((kind) => wanted.filter((one) => one.use === kind).slice(0, ROWS / 3)) : wanted.slice(0, ROWS);
  const shown = picks.all ? wanted : few;
  const fastest = Math.max(...all.map(({ build }) => build.tok_s_per_user));
  const cell = (text, className = "n") => element("td", { className, textContent: text });
  const rows = shown.map(({ build, released, parameters, use: kind }, at) => {
    const bar = element("span", { className: "bar-of speed" }, element("span", {}));
    bar.firstChild.style.width = `${(build.tok_s_per_user / fastest) * 100}%`;
    const { memory, metrics } = build.each;
    return element("tr", {}, cell(at && shown[at - 1].use === kind && order === "use" ? "" : kind, "soft"), element("th", { scope: "row" }, button(plainly(build.model), () => act.open(build), "link")), cell(`${build.each.weight_format}, ${build.runtime}`, "soft"), cell(released ?? "", "soft"), cell(`${plain(parameters / 1e9)} B`), cell(memory ? `${plain(memory.total_bytes / GIB)}${memory.host_bytes ? ` + ${plain(memory.host_bytes / GIB)}` : ""} GiB` : ""), element("td", { className: "bar-cell" }, bar), cell(plain(build.tok_s_per_user)), cell(metrics ? time(metrics.ttft_ms) : ""), cell(String(build.most_users)), cell(`${plain(build.max_context_tokens / 1024)}k`));
  });
  const heads = [["use"], ["model"], ["weights, runtime"], ["released"], ["size", 1], ["memory (+ host)", 1], [""], ["tok/s", 1], ["TTFT", 1], ["users", 1], ["context", 1]];
  const { sought } = answer;
  place.replaceChildren(element("section", { className: "buy", attributes: { "data-view": "buy" } },
    element("div", { className: "head" }, element("div", {}, element("h1", {}, `${all.length} models run on `, element("em", { textContent: sought.hardware }), ` at ≥ ${plain(sought.target_tok_s)} tok/s${sought.users > 1 ? ` for each of ${sought.users} users` : ""}`), element("p", { className: "proof", textContent: assumed(answer) })), element("div", { className: "row actions" }, element("button", { type: "button", className: "plain", textContent: "Copy link", attributes: { "data-action": "link" } }))),
    element("article", { className: "card models" },
      element("h2", {}, element("span", { textContent: `Models for this machine: ${sought.hardware}` }), element("span", { className: "row" },
        segments("use", [["all", `all ${all.length}`], ...kinds.map((kind) => [kind, kind])], use, (key) => act.pick({ use: key === "all" ? undefined : key, all: undefined })),
        segments("order", ["use", "speed", "size"].map((key) => [key, key]), order, (key) => act.pick({ order: key === "use" ? undefined : key })))),
      element("div", { className: "wide-table", tabIndex: 0, attributes: { role: "region", "aria-label": "models" } }, element("table", {}, element("thead", {}, element("tr", {}, ...heads.map(([text, right]) => (text ? element("th", { className: right ? "n" : "", textContent: text }) : element("td", {}))))), element("tbody", {}, ...rows))),
      element("p", { className: "soft" }, `Use by the name of the model; quality is not compared. `, ...(wanted.length > few.length ? [button(picks.all ? "Show fewer" : `Show all ${wanted.length}`, () => act.pick({ all: picks.all ? undefined : "yes" }), "link")] : []))),
    behind("table", `All ${all.length} models as a table`, () => table("model", "all models", all.map(({ build }) => row(build, build.model, act))), act, picks),
    ...(answer.missed.length ? [behind("rejected", `Rejected: ${answer.missed.length}`, () => rejected(answer.missed), act, picks)] : [])));
}

/** The answer of `recommend` as pictures. `act` opens a build, relaxes a limit and keeps what is picked. */
export const buy = (place, answer, act, picks) => (answer.models ? models : hardware)(place, answer, act, picks);
