// The roofline: operators as dots of attained FLOP/s over FLOP per byte, under the roofs of their device.
import { drawn, element, percent, plain, time } from "./figures.mjs";

/** Farthest place that the pointer takes a dot from, in pixels. */
const NEAR = 32;
/** Dots are this large at most and at least, in pixels. */
const [LARGE, SMALL] = [13, 3.5];
/** Roofs that are drawn, and names of each phase, at most. */
const [ROOFS, NAMES] = [3, 2];
/** A rate this close to another is the same one. */
const SAME = 0.02;

const near = (a, b) => Math.abs(a / b - 1) < SAME;
const distinct = (values) => values.reduce((kept, one) => (kept.some((other) => near(one, other)) ? kept : [...kept, one]), []);
const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"]];
const rate = (value, unit) => {
  const [size, prefix] = PREFIXES.find(([one]) => value >= one * 0.9995) ?? PREFIXES.at(-1);
  return `${plain(value / size)} ${prefix}${unit}`;
};

/** Names of a rate, the one of a checkpoint's format first: int8 and fp8 are as fast on many devices. */
const namesOf = (known, each) => known.filter(([, peak]) => near(peak, each)).map(([one]) => one.toUpperCase()).sort((a, b) => Number(/INT|^FP16/.test(a)) - Number(/INT|^FP16/.test(b)));

/** The roofs that the operators are under: their best times are those of one rate. Those without a name are means of others. */
function roofs(operators, known) {
  const lit = operators.filter(({ speed_of_light_ms: ms, flops }) => ms > 0 && flops > 0);
  const of = (key) => (one) => one[key] / (one.speed_of_light_ms / 1e3);
  const bandwidths = distinct([...Map.groupBy(lit, ({ kind }) => kind).values()].map((own) => Math.max(...own.map(of("bytes")))));
  const compute = lit.filter((one) => one.class === "compute" && bandwidths.every((each) => of("bytes")(one) < each * (1 - SAME)));
  const spent = (value) => compute.filter((one) => near(of("flops")(one), value)).reduce((sum, { time_ms: ms }) => sum + ms, 0);
  const all = distinct(compute.map(of("flops")));
  const named = all.filter((each) => namesOf(known, each).length);
  const peaks = (named.length ? named : all).sort((a, b) => spent(b) - spent(a)).slice(0, ROOFS);
  return { bandwidths, peaks: peaks.sort((a, b) => b - a) };
}

/** Where the dots are, in words. */
function finding(dots, { bandwidths, peaks }) {
  if (!bandwidths.length || !peaks.length) return "Attained FLOP/s over FLOP per byte";
  const ridge = peaks[0] / bandwidths[0];
  const side = (kind) => {
    const own = dots.filter((dot) => dot.kind === kind);
    const all = own.reduce((sum, { time_ms: ms }) => sum + ms, 0);
    const right = own.filter(({ x }) => x >= ridge).reduce((sum, { time_ms: ms }) => sum + ms, 0);
    return own.length ? (right > all / 2 ? "under the compute roof" : "on the memory slope") : undefined;
  };
  const [prefill, decode] = [side("prefill"), side("decode")];
  if (!prefill || !decode) return `${prefill ? "Prefill" : "Decode"} is ${prefill ?? decode}`;
  return prefill === decode ? `Prefill and decode are both ${prefill}` : `Prefill is ${prefill}, decode ${decode}`;
}

/** The roofline of trees of operators. `known` are the named peaks of the device: `[name, FLOP/s]`. */
export function roofline(all, known, act) {
  const operators = all.flatMap((one) => one.operators.map((operator) => ({ ...operator, share: operator.time_ms / one.ms, phase: one })));
  const dots = operators.filter(({ flops, bytes }) => flops > 0 && bytes > 0).map((one) => ({ ...one, x: one.flops / one.bytes, y: one.flops / (one.time_ms / 1e3) })).sort((a, b) => a.x - b.x || a.y - b.y);
  if (dots.length < 2) return undefined;
  const { bandwidths, peaks } = roofs(operators, known);
  const top = Math.max(...peaks, ...dots.map(({ y }) => y));
  const [low, high] = [Math.min(...dots.map(({ x }) => x)) / 2, Math.max(...dots.map(({ x }) => x), ...bandwidths.map((each) => top / each)) * 2];
  const floor = Math.min(...dots.map(({ y }) => y)) / 2;
  const log = (value, from, to) => (Math.log(value / from) / Math.log(to / from)) * 100;
  const px = (value) => log(value, low, high);
  const py = (value) => 100 - log(value, floor, top * 1.6);
  const svg = drawn("svg", { class: "field", width: "100%", height: "100%", overflow: "visible", "aria-hidden": "true" });
  const text = (name, left, up, value, more) => {
    const made = drawn("text", { class: name, x: `${left}%`, y: `${up}%`, ...more });
    made.textContent = value;
    svg.append(made);
    return made;
  };
  const decades = (from, to) => {
    const each = Array.from({ length: Math.floor(Math.log10(to)) - Math.ceil(Math.log10(from)) + 1 }, (_, at) => 10 ** (Math.ceil(Math.log10(from)) + at));
    return each.length > 6 ? each.filter((_, at) => at % 2 === 0) : each;
  };
  for (const tick of decades(low, high)) {
    svg.append(drawn("line", { class: "grid", x1: `${px(tick)}%`, x2: `${px(tick)}%`, y1: "0", y2: "100%" }));
    text("tick", px(tick), 100, plain(tick), { dy: 16, "text-anchor": "middle" });
  }
  for (const tick of decades(floor, top * 1.6)) {
    svg.append(drawn("line", { class: "grid", x1: "0", x2: "100%", y1: `${py(tick)}%`, y2: `${py(tick)}%` }));
    text("tick", 0, py(tick), plain(tick / 1e12), { dx: -6, dy: 4, "text-anchor": "end" });
  }
  const field = drawn("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", width: "100%", height: "100%", overflow: "visible" });
  svg.append(drawn("line", { class: "axis", x1: "0", x2: "100%", y1: "100%", y2: "100%" }), field);
  const labels = [];
  const line = (points, more = "") => field.append(drawn("path", { class: `roof ${more}`, d: points.map(([x, y], at) => `${at ? "L" : "M"}${px(x) * 10} ${py(y) * 10}`).join("") }));
  bandwidths.forEach((each, at) => {
    const from = Math.max(low, floor / each);
    line([[from, from * each], [top / each, top]], at ? "lower" : "");
    const [x, y] = [px(from) * 0.45 + px(top / each) * 0.55, py(from * each) * 0.45 + py(top) * 0.55];
    labels.push(text("tick on", x, y, rate(each, "B/s"), { dx: -8, dy: -2, "text-anchor": "end" }));
  });
  peaks.forEach((each, at) => {
    const [start] = bandwidths.length ? [each / Math.max(...bandwidths)] : [low];
    line([[Math.max(start, low), each], [high, each]], at ? "lower" : "");
    const [name] = namesOf(known, each);
    labels.push(text("tick on", 100, py(each), `${name ? `${name} ` : ""}${rate(each, "FLOP/s")}`, { dy: at ? 15 : -5, "text-anchor": "end" }));
  });
  const marks = dots.map((dot) => drawn("circle", { class: `dot ${dot.kind}`, "data-op": dot.key, cx: `${px(dot.x)}%`, cy: `${py(dot.y)}%`, r: Math.max(SMALL, LARGE * Math.sqrt(Math.min(dot.share * 2.5, 1))) }));
  // The large ones first, so that the small ones are over them.
  svg.append(...marks.toSorted((a, b) => Number(b.getAttribute("r")) - Number(a.getAttribute("r"))));
  const names = clusters(dots).map((own) => [own, text(`name ${own[0].kind}`, 0, 0, [...new Set(own.map(({ module }) => module.replace(/_proj$/, "")))].slice(0, 3).join(", "))]);
  const tip = element("div", { className: "tip", hidden: true, attributes: { role: "status" } });
  const plot = element("div", { className: "plot", tabIndex: 0, attributes: { role: "group", "aria-roledescription": "roofline", "aria-label": `Roofline: ${dots.length} operators. Arrows walk by FLOP per byte, Enter opens a formula.` } }, svg, tip);
  const cursor = { at: -1, fixed: false };
  const open = ({ phase, block, module }) => act.explain({ decode: "tpot", prefill: "ttft" }[phase.phase] ?? "tpot", `${phase.phase}/${block}/${module}`);
  const roof = ({ x }) => Math.min(peaks[0] ?? top, x * Math.max(...bandwidths, 0) || top);

  function show(at, fixed) {
    Object.assign(cursor, { at, fixed });
    const dot = dots[at];
    const term = (name, value) => [element("dt", { textContent: name }), element("dd", { textContent: value })];
    const more = dots.filter((other) => other !== dot && near(other.x, dot.x) && near(other.y, dot.y)).length;
    tip.replaceChildren(
      element("h3", {}, element("span", { textContent: `${dot.module}${dot.layers > 1 ? ` × ${dot.layers}` : ""}` }), element("span", { className: "soft", textContent: `${dot.phase.phase}${dot.of ? `, ${dot.of}` : ""}` })),
      element("dl", {}, ...term("attained", rate(dot.y, "FLOP/s")), ...term("intensity", `${plain(dot.x)} FLOP/B`), ...term("of the roof", percent(dot.y / roof(dot))), ...term("time", `${time(dot.time_ms)}, ${percent(dot.share)}`), ...term("bound by", dot.class), ...(more ? term("in the same place", `${more} more`) : [])),
      element("div", { className: "row" }, element("button", { type: "button", className: "plain", textContent: "Formula", onclick: () => open(dot) })));
    tip.hidden = false;
    const [width, height] = [plot.clientWidth, plot.clientHeight];
    const [left, up] = [(px(dot.x) / 100) * width, (py(dot.y) / 100) * height];
    const aside = left > width / 2 ? left - tip.offsetWidth - 18 : left + 18;
    Object.assign(tip.style, { left: `${Math.min(Math.max(aside, -44), width - tip.offsetWidth + 12)}px`, top: `${Math.min(Math.max(up - 40, -24), height - tip.offsetHeight + 40)}px` });
    marks.forEach((mark, number) => mark.classList.toggle("at", number === at));
  }
  function hide() {
    tip.hidden = true;
    marks.forEach((mark) => mark.classList.remove("at"));
    Object.assign(cursor, { at: -1, fixed: false });
  }
  function found({ clientX, clientY }) {
    const all = marks.map((mark, at) => {
      const { x, y, width } = mark.getBoundingClientRect();
      return [Math.max(Math.hypot(x + width / 2 - clientX, y + width / 2 - clientY) - width / 2, 0), at];
    }).sort(([a, first], [b, second]) => a - b || dots[second].share - dots[first].share);
    return all[0][0] <= NEAR ? all[0][1] : -1;
  }
  plot.onpointermove = (event) => {
    if (cursor.fixed || event.pointerType === "touch" || event.target.closest(".tip")) return;
    const at = found(event);
    if (at < 0) return hide();
    if (at !== cursor.at) show(at, false);
  };
  plot.onpointerleave = () => cursor.fixed || hide();
  plot.onclick = (event) => {
    if (event.target.closest(".tip")) return;
    const at = found(event);
    if (at < 0) return hide();
    show(at, true);
    act.choose(dots[at].key, plot);
  };
  plot.onkeydown = (event) => {
    if (event.key === "Escape" && !tip.hidden) {
      event.stopPropagation();
      hide();
      return plot.focus();
    }
    if (event.target !== plot) return undefined;
    const to = { ArrowRight: cursor.at + 1, ArrowUp: cursor.at + 1, ArrowLeft: cursor.at - 1, ArrowDown: cursor.at - 1, Home: 0, End: dots.length - 1 }[event.key];
    if (to !== undefined) {
      show(Math.min(Math.max(to, 0), dots.length - 1), true);
      act.choose(dots[cursor.at].key, plot);
    } else if (event.key === "Enter" && cursor.at >= 0) open(dots[cursor.at]);
    else return undefined;
    event.stopPropagation();
    return event.preventDefault();
  };
  const made = element("figure", { className: "front roofline" }, element("h2", {}, element("span", { textContent: finding(dots, { bandwidths, peaks }) }), element("span", { className: "link", textContent: "area = time" })), element("p", { className: "soft cap", textContent: "TFLOP/s reached" }), plot, element("p", { className: "soft cap right", textContent: "FLOP per byte of memory" }));
  return { made, plot, mark: () => cursor.fixed && hide(), placed: () => placed(names, labels, plot, ({ x, y }) => [px(x), py(y)]) };
}

/** Dots in one place, those with the most time of each phase. */
function clusters(dots) {
  const all = [];
  for (const dot of dots.toSorted((a, b) => b.share - a.share)) {
    const own = all.find(([first]) => first.kind === dot.kind && Math.abs(Math.log10(first.x / dot.x)) < 0.12 && Math.abs(Math.log10(first.y / dot.y)) < 0.12);
    if (own) own.push(dot);
    else all.push([dot]);
  }
  const spent = (own) => own.reduce((sum, { share }) => sum + share, 0);
  return ["prefill", "decode"].flatMap((kind) => all.filter(([first]) => first.kind === kind).sort((a, b) => spent(b) - spent(a)).slice(0, NAMES));
}

/** Puts each name next to its dots, where it is over no other text. */
function placed(names, labels, plot, at) {
  const box = plot.getBoundingClientRect();
  const taken = labels.map((one) => one.getBoundingClientRect()).map(({ left, right, top, bottom }) => [left - box.left, right - box.left, top - box.top, bottom - box.top]);
  const marks = [...plot.querySelectorAll(".dot")].map((one) => one.getBoundingClientRect()).map(({ left, right, top, bottom }) => [left - box.left, right - box.left, top - box.top, bottom - box.top]);
  for (const [[dot], name] of names) {
    const size = name.getComputedTextLength();
    const [left, up] = at(dot).map((value, axis) => (value / 100) * [box.width, box.height][axis]);
    const over = (all, [x, y]) => all.some(([from, to, above, under]) => x + size > from && x < to && y > above && y - 12 < under);
    const places = [[-size - 16, 4], [16, 6], [-size / 2, 26], [-size / 2, -18], [-size - 8, 24], [10, 24], [-size, 40]].map(([dx, dy]) => [left + dx, up + dy]).filter(([x, y]) => x >= 0 && x + size <= box.width && y >= 10 && y <= box.height - 4);
    const free = places.find((one) => !over([...taken, ...marks], one)) ?? places.find((one) => !over(taken, one));
    if (!free) name.remove();
    else {
      taken.push([free[0], free[0] + size, free[1] - 12, free[1] + 2]);
      Object.entries({ x: free[0], y: free[1] }).forEach(([key, value]) => name.setAttribute(key, value));
    }
  }
}

/** The named peaks of a device or system of the catalogue, in FLOP/s; none of others. */
export async function peaks(name, list, answer) {
  const [systems, devices] = await Promise.all([list("systems"), list("devices")]).catch(() => [[], []]);
  const entry = async (kind, all, wanted) => {
    const found = all.find(({ id, aliases }) => [id, ...aliases].some((one) => one.toLowerCase() === wanted));
    return found && JSON.parse(await answer("catalog", { kind, name: found.id }, "json"));
  };
  const wanted = name.toLowerCase();
  const system = await entry("systems", systems, wanted);
  const { peak = {} } = (await entry("devices", devices, system?.device ?? wanted.replace(/^(\d+x)+/, ""))) ?? {};
  return Object.entries(peak).map(([format, { value }]) => [format, Number.parseFloat(value) * ({ G: 1e9, T: 1e12, P: 1e15 }[String(value).match(/([GTP])FLOP/)?.[1]] ?? 1)]);
}
