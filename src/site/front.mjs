// The Pareto front as an instrument: one bold staircase, its families as labelled lines, axes to pick, an SLO to drag.
import { slider, ticks } from "./chart.mjs";
import { digits, drawn, element, percent, plain, seconds, time } from "./figures.mjs";

/** Metrics that an axis can have: heading, whether more is better, the SLO on it, and the limit from its milliseconds. */
const AXES = {
  output_tok_s_per_user: { name: "tok/s for each user", more: true, slo: "tpot", of: (ms) => 1e3 / ms },
  output_tok_s_per_device: { name: "tok/s for each device", more: true },
  output_tok_s: { name: "tok/s in all", more: true },
  ttft_ms: { name: "TTFT, ms", slo: "ttft", of: (ms) => ms },
  tpot_ms: { name: "TPOT, ms", slo: "tpot", of: (ms) => ms },
  e2e_ms: { name: "E2E, ms", slo: "e2e", of: (ms) => ms },
  usd_per_mtok: { name: "USD/Mtok" },
  usd_per_hour: { name: "USD/h" },
  tok_per_joule: { name: "tok/J", more: true },
  watts: { name: "W" },
  max_context_tokens: { name: "longest context, tokens", more: true },
};
const FAMILIES = 5;
/** Farthest place that the pointer takes a point from, in pixels. */
const NEAR = 48;
/** The axes that were picked, for the next answer too. */
const picked = { x: "output_tok_s_per_user", y: "output_tok_s_per_device" };

const better = ({ more }, a, b) => (more ? a > b : a < b);

/** The points that no other one beats on both axes, from the worst x to the best. */
function staircase(points, x, y) {
  const sorted = [...points].sort((a, b) => (AXES[x].more ? b[x] - a[x] : a[x] - b[x]) || (AXES[y].more ? b[y] - a[y] : a[y] - b[y]));
  const kept = [];
  for (const point of sorted) if (!kept.length || better(AXES[y], point[y], kept.at(-1)[y])) kept.push(point);
  return kept.reverse();
}

/** The families along the front, in words. */
function finding(stairs, x) {
  const runs = [];
  for (const point of stairs) {
    if (runs.at(-1)?.family === point.family) runs.at(-1).last = point[x];
    else runs.push({ family: point.family, last: point[x] });
  }
  const [first, second, ...rest] = runs;
  if (!second) return `${first.family} is the best over the whole front`;
  return `${first.family} leads up to ${plain(first.last)} ${AXES[x].name}, then ${second.family}${rest.length ? ` and ${new Set(rest.map(({ family }) => family)).size} more` : ""}`;
}

/** The points of the table of a front. */
function listed(table) {
  const columns = table?.dataset.columns.split(" ") ?? [];
  return [...(table?.querySelectorAll("[data-figures]") ?? [])].map(({ dataset }) => {
    const [plan, family, concurrency, runs, odds, chosen] = JSON.parse(dataset.point);
    const figures = dataset.figures.split(" ").map((text, at) => [columns[at], text === "" ? undefined : Number(text)]);
    return { plan, family, concurrency, runs, odds, chosen, intervals: JSON.parse(dataset.intervals ?? "null"), ...Object.fromEntries(figures) };
  });
}

/** Draws the front of an answer in place of its picture. `act` has what a point can do. */
export function instrument(section, act) {
  const figure = section.querySelector("figure.front");
  const points = listed(section.querySelector("#front-table table"));
  if (!figure || points.length < 2) return;
  const question = JSON.parse(section.dataset.question);
  const known = Object.keys(AXES).filter((key) => points.every((point) => Number.isFinite(point[key])) && new Set(points.map((point) => point[key])).size > 1);
  if (known.length < 2) return;
  const x = known.includes(picked.x) ? picked.x : known[0];
  const y = known.includes(picked.y) && picked.y !== x ? picked.y : known.find((key) => key !== x);
  const again = (axis) => ({ target }) => {
    picked[axis] = target.value;
    if (picked.x === picked.y) picked[axis === "x" ? "y" : "x"] = axis === "x" ? x : y;
    instrument(section, act);
    figure.querySelector(`[data-axis=${axis}]`).focus();
  };
  const picker = (axis, chosen) => element("select", { attributes: { "data-axis": axis, "aria-label": `axis ${axis === "x" ? "to the right" : "upwards"}` }, onchange: again(axis) }, ...known.map((key) => new Option(AXES[key].name, key, false, key === chosen)));
  const chart = draw(points, x, y, question, act);
  const toggle = figure.querySelector("[data-toggle]");
  toggle.textContent = "table";
  figure.replaceChildren(element("h2", {}, element("span", { textContent: finding(chart.stairs, x), title: finding(chart.stairs, x) }), toggle), element("div", { className: "axis-y" }, picker("y", y)), chart.plot, element("div", { className: "axis-x" }, picker("x", x)));
  chart.placed();
}

/** The field with lines, points and labels in percent, so that texts and strokes keep their size at any width. */
function draw(points, x, y, question, act) {
  const stairs = staircase(points, x, y);
  const limit = seconds(question.limits?.[AXES[x].slo]);
  const slo = AXES[x].slo && limit ? AXES[x].of(limit * 1e3) : undefined;
  const best = points.find(({ chosen }) => chosen);
  const span = (key, more) => {
    const values = [...points.map((point) => point[key]), ...more];
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return [Math.max(low - (high - low) * 0.04, low > 0 ? 0 : low), high + (high - low) * 0.06];
  };
  const far = slo === undefined || slo > 3 * Math.max(...points.map((point) => point[x])) ? [] : [slo];
  const [xs, ys] = [span(x, far), span(y, [])];
  const px = (value) => ((value - xs[0]) / (xs[1] - xs[0])) * 100;
  const py = (value) => 100 - ((value - ys[0]) / (ys[1] - ys[0])) * 100;
  const steps = stairs.map((point, at) => (at ? `V${py(point[y]) * 10}H${px(point[x]) * 10}` : `M${px(point[x]) * 10} ${py(point[y]) * 10}`)).join("");
  const field = (...children) => drawn("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", width: "100%", height: "100%", overflow: "visible" }, ...children);
  const families = [...Map.groupBy(points, ({ family }) => family)].map(([name, all]) => ({ name, line: staircase(all, x, y), wins: stairs.filter(({ family }) => family === name).length, chosen: name === best?.family }));
  const shown = families.filter(({ line }) => line.length > 1).sort((a, b) => Number(b.chosen) - Number(a.chosen) || b.wins - a.wins || b.line.length - a.line.length).slice(0, FAMILIES);
  const path = (line) => line.map((point, at) => `${at ? "L" : "M"}${px(point[x]) * 10} ${py(point[y]) * 10}`).join("");
  const svg = drawn("svg", { class: "field", width: "100%", height: "100%", overflow: "visible", "aria-hidden": "true" });
  for (const tick of ticks(...xs)) svg.append(drawn("line", { class: "grid", x1: `${px(tick)}%`, x2: `${px(tick)}%`, y1: "0", y2: "100%" }), text(px(tick), 100, tick, { dy: 16, "text-anchor": "middle" }));
  for (const tick of ticks(...ys)) svg.append(drawn("line", { class: "grid", x1: "0", x2: "100%", y1: `${py(tick)}%`, y2: `${py(tick)}%` }), text(0, py(tick), tick, { dx: -8, dy: 4, "text-anchor": "end" }));
  svg.append(drawn("line", { class: "axis", x1: "0", x2: "100%", y1: "100%", y2: "100%" }));
  if (slo !== undefined && far.length) {
    const [from, to] = AXES[x].more ? [0, px(slo)] : [px(slo), 100];
    svg.append(drawn("rect", { class: "missed", x: `${from}%`, width: `${Math.max(to - from, 0)}%`, y: "0", height: "100%" }));
  }
  shown.forEach((family, at) => svg.append(field(drawn("path", { class: `family f${(at % 6) + 1} dash${at % 4}`, d: path(family.line) }))));
  svg.append(field(drawn("path", { class: "stairs", d: steps })));
  for (const point of stairs) svg.append(drawn("circle", { class: "point", "data-plan-of": point.plan, cx: `${px(point[x])}%`, cy: `${py(point[y])}%`, r: 3.5 }));
  if (best) {
    const ends = best.intervals?.[y];
    if (ends?.p10 !== undefined) svg.append(drawn("line", { class: "whisker-y", x1: `${px(best[x])}%`, x2: `${px(best[x])}%`, y1: `${py(Math.max(ends.p10, ys[0]))}%`, y2: `${py(Math.min(ends.p90, ys[1]))}%` }));
    svg.append(drawn("circle", { class: "ring", cx: `${px(best[x])}%`, cy: `${py(best[y])}%`, r: 8 }));
  }
  const ring = drawn("circle", { class: "cursor", r: 6, visibility: "hidden" });
  const names = shown.map((family, at) => drawn("text", { class: `name f${(at % 6) + 1}` }));
  names.forEach((name, at) => (name.textContent = shown[at].name));
  svg.append(...names, ring);
  const tip = element("div", { className: "tip", hidden: true, attributes: { role: "status" } });
  const plot = element("div", { className: "plot", tabIndex: 0, attributes: { role: "group", "aria-roledescription": "Pareto front", "aria-label": `Pareto front: ${stairs.length} plans. Arrows move along it, Enter opens a plan, p pins it, s makes it the SLO.` } }, svg);
  if (AXES[x].slo) plot.append(handle({ slo: far.length ? slo : undefined, xs, px, axis: AXES[x], act, points: points.map((point) => point[x]) }));
  plot.append(tip);
  const cursor = { at: -1, fixed: false };
  const place = ({ [x]: across, [y]: up }) => [px(across), py(up)];
  const show = (point, fixed) => {
    const [left, top] = place(point);
    Object.entries({ cx: `${left}%`, cy: `${top}%`, visibility: "visible" }).forEach(([name, value]) => ring.setAttribute(name, value));
    cursor.fixed = fixed;
    tip.replaceChildren(...card(point, act));
    tip.hidden = false;
    const [width, height] = [plot.clientWidth, plot.clientHeight];
    const [at, over] = [(left / 100) * width, (top / 100) * height];
    Object.assign(tip.style, { left: `${at > width / 2 ? Math.max(at - tip.offsetWidth - 16, -36) : Math.min(at + 16, width - tip.offsetWidth)}px`, top: `${Math.min(Math.max(over - 40, -24), height - tip.offsetHeight + 24)}px` });
  };
  const hide = () => {
    ring.setAttribute("visibility", "hidden");
    tip.hidden = true;
    Object.assign(cursor, { at: -1, fixed: false });
  };
  const nearest = (event) => {
    const box = plot.getBoundingClientRect();
    const all = stairs.map((point, at) => {
      const [left, top] = place(point);
      return [Math.hypot(box.left + (left / 100) * box.width - event.clientX, box.top + (top / 100) * box.height - event.clientY), at];
    });
    const [distance, at] = all.sort(([a], [b]) => a - b)[0];
    return distance <= NEAR ? at : -1;
  };
  plot.addEventListener("pointermove", (event) => {
    if (cursor.fixed || event.pointerType === "touch" || event.buttons || event.target.closest(".tip")) return;
    const at = nearest(event);
    if (at < 0) return hide();
    if (at !== cursor.at) show(stairs[(cursor.at = at)], false);
  });
  plot.addEventListener("pointerleave", () => cursor.fixed || hide());
  plot.addEventListener("click", (event) => {
    // The edge of the SLO was dragged; a click on it is one on the points below.
    if (event.target.closest(".tip, .slo-handle[data-dragged]")) return;
    const at = nearest(event);
    if (at < 0) return hide();
    show(stairs[(cursor.at = at)], true);
  });
  plot.addEventListener("keydown", (event) => {
    if (event.target !== plot) {
      if (event.key === "Escape" && event.target.closest(".tip")) hide(), plot.focus();
      return;
    }
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, End: stairs.length, Home: -stairs.length };
    const chosen = stairs[cursor.at];
    const acts = { Enter: () => act.open(chosen), p: () => act.pin(chosen), s: () => act.slo(chosen), Escape: hide };
    if (moves[event.key]) {
      const begin = cursor.at < 0 && best ? Math.max(stairs.findIndex(({ plan }) => plan === best.plan), 0) : cursor.at;
      cursor.at = Math.min(Math.max(begin + moves[event.key], 0), stairs.length - 1);
      show(stairs[cursor.at], true);
    } else if (acts[event.key] && (chosen || event.key === "Escape")) acts[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { plot, stairs, placed: () => labelled(names, shown.map(({ line }) => line.map(place)), plot) };
}

function text(left, top, value, more) {
  const made = drawn("text", { class: "tick", x: `${left}%`, y: `${top}%`, ...more });
  made.textContent = value >= 1e4 ? `${plain(value / 1e3)}k` : plain(value);
  return made;
}

/** Puts each name next to its line, where it is over no other name. */
function labelled(names, lines, plot) {
  const [width, height] = [plot.clientWidth, plot.clientHeight];
  const taken = [];
  names.forEach((name, at) => {
    const size = name.getComputedTextLength();
    const places = [...lines[at]].reverse().flatMap(([left, top]) => [[6, 4], [-size - 6, 4], [4, -8], [4, 16], [-size, -10]].map(([dx, dy]) => [(left / 100) * width + dx, (top / 100) * height + dy]));
    const free = places.find(([left, top]) => left >= 0 && left + size <= width && top >= 12 && top <= height - 4 && taken.every((box) => left + size < box[0] || left > box[1] || Math.abs(top - box[2]) > 14));
    if (!free) return name.remove();
    taken.push([free[0], free[0] + size, free[1]]);
    name.setAttribute("x", free[0]);
    name.setAttribute("y", free[1]);
  });
}

/** The card of a point: its metrics, its odds, and what can be done with it. */
function card(point, act) {
  const line = (name, value, more = "") => [element("dt", { textContent: name }), element("dd", { textContent: value, className: more })];
  const { odds } = point;
  const button = (label, choose) => element("button", { type: "button", className: "plain", textContent: label, onclick: choose });
  return [
    element("h3", {}, element("span", { textContent: `${point.family} · ${digits(point.concurrency).replace(/\.0+$/, "")} concurrent` }), ...(point.chosen ? [element("span", { className: "tag", textContent: "chosen" })] : [])),
    element("dl", {},
      ...line("each user", `${digits(point.output_tok_s_per_user)} tok/s`),
      ...line("each device", `${digits(point.output_tok_s_per_device)} tok/s`),
      ...line("TTFT · TPOT", `${time(point.ttft_ms)} · ${time(point.tpot_ms)}`),
      ...(Number.isFinite(point.usd_per_mtok) ? line("output", `${digits(point.usd_per_mtok)} USD/Mtok`) : []),
      ...(odds === undefined || odds === null ? [] : line("meets the SLOs", percent(odds), odds >= 0.8 ? "good" : odds >= 0.5 ? "warn" : "bad")),
      ...line("measured runs", point.runs ? String(point.runs) : "none of its kind")),
    element("div", { className: "row" }, button("Open", () => act.open(point)), button("Pin", () => act.pin(point)), button("Set as SLO", () => act.slo(point)), button("Launch", () => act.launch(point))),
  ];
}

/** The edge of the SLO: dragged, or moved by arrows and set by Enter. */
function handle({ slo, xs, px, axis, act, points }) {
  const worst = axis.more ? Math.min(...points) : Math.max(...points);
  let value = slo ?? (axis.more ? Math.max(xs[0], worst * 0.98) : Math.min(xs[1], worst * 1.02));
  const name = axis.slo.toUpperCase();
  const ms = () => axis.of(value);
  const label = element("span", {});
  const made = element("button", { type: "button", className: `slo-handle${slo === undefined ? " unset" : ""}`, attributes: { role: "slider", "aria-label": `${name} SLO`, "aria-orientation": "horizontal" } }, label);
  const draw = () => {
    made.style.left = `${Math.min(Math.max(px(value), 0), 100)}%`;
    label.textContent = slo === undefined && !made.classList.contains("moved") ? `set a ${name} SLO` : `${name} ${time(ms())}`;
    Object.entries({ valuenow: ms().toPrecision(4), valuemin: 0, valuemax: Math.max(axis.of(xs[0] || xs[1] / 1e3), axis.of(xs[1])).toPrecision(4), valuetext: label.textContent }).forEach(([key, text]) => made.setAttribute(`aria-${key}`, text));
    made.classList.toggle("right", px(value) > 70);
  };
  const moved = (next) => {
    value = Math.min(Math.max(next, xs[0] + (xs[1] - xs[0]) * 0.002), xs[1]);
    made.classList.add("moved");
    draw();
  };
  const set = () => act.limit(axis.slo, ms());
  slider(made, { value: () => value, along: (of, share) => of + share * (xs[1] - xs[0]), moved, set });
  draw();
  return made;
}
