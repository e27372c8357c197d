// Charts whose marks are placed in percent, so that texts and strokes keep their size at any width: scales, shapes of
// families, names that cover nothing, and a cursor for pointer and keys with a card.
import { drawn, element, plain } from "./figures.mjs";

/** Farthest place that a pointer takes a point from, in pixels, and a finger. */
const [NEAR, TOUCH] = [24, 32];
/** Families with a shape and a colour of their own. */
export const FAMILIES = 6;
/** Half of a shape, in pixels. */
const R = 4;
const SHAPES = [
  `M${-R} 0A${R} ${R} 0 1 1 ${R} 0A${R} ${R} 0 1 1 ${-R} 0Z`,
  `M${-R} ${-R}H${R}V${R}H${-R}Z`,
  `M0 ${-R - 1}L${R + 1} ${R}H${-R - 1}Z`,
  `M0 ${-R - 1.5}L${R + 1.5} 0L0 ${R + 1.5}L${-R - 1.5} 0Z`,
  `M${-R} ${-R}L${R} ${R}M${R} ${-R}L${-R} ${R}`,
  `M0 ${R + 1}L${R + 1} ${-R}H${-R - 1}Z`,
];

/** Steps of an axis: 1, 2 or 5 times a power of ten. */
export function ticks(low, high) {
  const rough = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const all = [];
  for (let at = Math.ceil(low / step) * step; at <= high * 1.0001; at += step) all.push(Number(at.toPrecision(6)));
  return all;
}

/** An axis of factors over some values: their places from 0 to 1, and steps of 1, 2 and 5. */
export function factors(values, margin = 1.12) {
  const [low, high] = [Math.min(...values) / margin, Math.max(...values) * margin];
  const of = (value) => Math.log(value / low) / Math.log(high / low);
  const decades = Array.from({ length: 24 }, (_, at) => 10 ** (at - 9));
  const within = (steps) => decades.flatMap((power) => steps.map((one) => Number((one * power).toPrecision(3)))).filter((one) => one >= low && one <= high);
  const steps = [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7], [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9]].map(within);
  return { of, low, high, ticks: steps.find((all) => all.length >= 4) ?? steps.at(-1) };
}

/** An axis of sums. */
export function sums(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const spare = (most - least || most || 1) * 0.08;
  const [low, high] = [least >= 0 ? Math.max(least - spare, 0) : least - spare, most + spare];
  return { of: (value) => (value - low) / (high - low), low, high, ticks: ticks(low, high) };
}

const worded = (value) => (value >= 1e6 ? `${plain(value / 1e6)}M` : value >= 1e4 ? `${plain(value / 1e3)}k` : plain(value));

/** A text in percent, moved by pixels. */
export function label(left, top, words, more = {}) {
  const made = drawn("text", { x: `${left}%`, y: `${top}%`, ...more });
  made.textContent = words;
  return made;
}

/** Lines in units of a thousandth of the field. */
export const lines = (...children) => drawn("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", width: "100%", height: "100%", overflow: "visible" }, ...children);

/** The mark of a family. */
export const shape = (family, left, top, more = "") => drawn("svg", { x: `${left}%`, y: `${top}%`, overflow: "visible" }, drawn("path", { class: `shape f${family + 1} ${more}`, d: SHAPES[family] }));

/** The entry of a legend: its mark and its words. */
export function entry(family, words) {
  const mark = drawn("svg", { width: 12, height: 12, viewBox: "-6 -6 12 12", "aria-hidden": "true" }, drawn("path", { class: `shape f${family + 1}`, d: SHAPES[family] }));
  return element("span", {}, mark, words);
}

/** A field with a grid, and the places of values on it in percent. */
export function field(x, y, spell = worded) {
  const px = (value) => x.of(value) * 100;
  const py = (value) => 100 - y.of(value) * 100;
  const svg = drawn("svg", { class: "field", width: "100%", height: "100%", overflow: "visible", "aria-hidden": "true" });
  for (const tick of x.ticks) svg.append(drawn("line", { class: "grid", x1: `${px(tick)}%`, x2: `${px(tick)}%`, y1: "0", y2: "100%" }), label(px(tick), 100, (x.spell ?? spell)(tick), { class: "tick across", dy: 16, "text-anchor": "middle" }));
  for (const tick of y.ticks) svg.append(drawn("line", { class: "grid", x1: "0", x2: "100%", y1: `${py(tick)}%`, y2: `${py(tick)}%` }), label(0, py(tick), (y.spell ?? spell)(tick), { class: "tick", dx: -8, dy: 4, "text-anchor": "end" }));
  svg.append(drawn("line", { class: "axis", x1: "0", x2: "100%", y1: "100%", y2: "100%" }));
  return { svg, px, py };
}

/**
 * A field that is walked: the pointer near a point, or arrows, show its card. `place` gives the percents of a point,
 * `card` the parts of its card, `enter` the act of Enter, of a click too where it is `direct`, and arrows start at `begin`.
 */
export function graph(svg, words, points, { place, card, enter, begin, direct = false }) {
  const ring = drawn("circle", { class: "cursor", r: 6, visibility: "hidden" });
  svg.append(ring);
  const tip = element("div", { className: "tip", attributes: { role: "status" } });
  const made = element("div", { className: "graph", tabIndex: 0, attributes: { role: "group", "aria-roledescription": "chart", "aria-label": words } }, svg);
  const state = { at: -1, fixed: false };
  const hide = () => {
    ring.setAttribute("visibility", "hidden");
    tip.remove();
    Object.assign(state, { at: -1, fixed: false });
  };
  const show = (at, fixed) => {
    const [left, top] = place(points[at]);
    Object.entries({ cx: `${left}%`, cy: `${top}%`, visibility: "visible" }).forEach(([name, value]) => ring.setAttribute(name, value));
    Object.assign(state, { at, fixed });
    tip.replaceChildren(...card(points[at]));
    made.append(tip);
    const [width, height] = [made.clientWidth, made.clientHeight];
    const [across, over] = [(left / 100) * width, (top / 100) * height];
    const side = across > width / 2 ? Math.max(across - tip.offsetWidth - 16, -36) : Math.min(across + 16, width - tip.offsetWidth);
    Object.assign(tip.style, { left: `${side}px`, top: `${Math.min(Math.max(over - 40, -24), Math.max(height - tip.offsetHeight + 24, -24))}px` });
  };
  const nearest = (event) => {
    const box = made.getBoundingClientRect();
    const away = (point) => {
      const [left, top] = place(point);
      return Math.hypot(box.left + (left / 100) * box.width - event.clientX, box.top + (top / 100) * box.height - event.clientY);
    };
    const found = points.reduce(([least, at], point, number) => (away(point) < least ? [away(point), number] : [least, at]), [Infinity, -1]);
    return found[0] <= (event.pointerType === "touch" ? TOUCH : NEAR) ? found[1] : -1;
  };
  made.addEventListener("pointermove", (event) => {
    if (state.fixed || event.pointerType === "touch" || event.target.closest(".tip")) return;
    const at = nearest(event);
    if (at < 0) return hide();
    if (at !== state.at) show(at, false);
  });
  made.addEventListener("pointerleave", () => state.fixed || hide());
  made.addEventListener("click", (event) => {
    if (event.target.closest(".tip, [data-dragged]")) return;
    const at = nearest(event);
    if (at < 0) hide();
    else if (direct && event.pointerType !== "touch") enter(points[at]);
    else show(at, true);
  });
  const orders = [0, 1].map((axis) => points.map((_, at) => at).sort((a, b) => (place(points[a])[axis] - place(points[b])[axis]) * (axis ? -1 : 1)));
  made.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.at >= 0) {
      hide();
      made.focus();
    } else if (event.target !== made) return;
    else if (event.key === "Enter" && state.at >= 0) enter?.(points[state.at]);
    else {
      const last = points.length;
      const [order, step] = { ArrowRight: [orders[0], 1], ArrowLeft: [orders[0], -1], ArrowUp: [orders[1], 1], ArrowDown: [orders[1], -1], Home: [orders[0], -last], End: [orders[0], last] }[event.key] ?? [];
      if (!order) return;
      const from = state.at < 0 ? (Math.abs(step) === 1 && begin ? points.indexOf(begin) : -1) : state.at;
      const next = from < 0 ? (step > 0 && Math.abs(step) > 1 ? last - 1 : 0) : Math.min(Math.max(order.indexOf(from) + (state.at < 0 ? 0 : step), 0), last - 1);
      show(order[next], true);
    }
    event.preventDefault();
    event.stopPropagation();
  });
  return made;
}

/**
 * Puts each name next to its point where it covers no other name, none of these points and of these boxes in percent;
 * those without a place leave. A name may have shorter words to try, which may cross the `soft` boxes.
 */
export function named(made, names, points, boxes = [], soft = []) {
  const [width, height] = [made.clientWidth, made.clientHeight];
  const at = ([left, top]) => [(left / 100) * width, (top / 100) * height];
  const boxed = ([a, b, c, d]) => [...at([a, b]), ...at([c, d])];
  const taken = [...points.map(at).map(([left, top]) => [left - 6, top - 6, left + 6, top + 6]), ...boxes.map(boxed)];
  const crossed = soft.map(boxed);
  const tries = names.flatMap(({ text, place, words = [text.textContent] }) => words.map((one, number) => ({ text, place, one, number, last: number === words.length - 1 })));
  const done = new Set();
  for (const { text, place, one: words, number, last } of tries) {
    if (done.has(text)) continue;
    text.textContent = words;
    const size = text.getComputedTextLength();
    const [left, top] = at(place);
    const places = [[-size - 4, -10], [13, 4], [-size - 13, 4], [-size / 2, -12], [-size / 2, 22], [6, -10], [-size - 6, -10], [6, 20], [-size - 6, 20], [8, -26], [-size - 8, -26], [8, 36], [-size - 8, 36], [-size / 2, -28], [-size / 2, 40]].map(([dx, dy]) => [left + dx, top + dy]);
    const box = ([x, y]) => [x - 2, y - 12, x + size + 2, y + 4];
    const free = places.find((one) => {
      const [a, b, c, d] = box(one);
      return a >= -4 && c <= width + 12 && b >= -4 && d <= height - 2 && [...taken, ...(number > 1 ? [] : crossed)].every(([e, f, g, h]) => c < e || a > g || d < f || b > h);
    });
    if (!free) {
      if (last) text.remove();
      continue;
    }
    done.add(text);
    taken.push(box(free));
    text.setAttribute("x", free[0]);
    text.setAttribute("y", free[1]);
  }
}

/**
 * Makes an element a slider: dragged over the width of its parent, or moved by arrows, and set on release or by Enter.
 * `along(value, share)` is the value a share of the width farther, `moved` shows a value, `set` takes the shown one;
 * `back` takes a move back on Escape, and says whether there was one.
 */
export function slider(made, { value, along, moved, set, back = () => false, ends }) {
  const step = (event) => 1 / (event.shiftKey ? 200 : 50);
  let from = null;
  made.addEventListener("pointerdown", (event) => {
    from = { at: event.clientX, value: value() };
    made.setPointerCapture(event.pointerId);
    made.focus();
    event.preventDefault();
  });
  made.addEventListener("pointermove", (event) => from && moved(along(from.value, (event.clientX - from.at) / made.parentElement.clientWidth)));
  made.addEventListener("pointerup", () => {
    const dragged = from !== null && value() !== from.value;
    from = null;
    made.toggleAttribute("data-dragged", dragged);
    if (dragged) set();
  });
  made.addEventListener("pointercancel", () => from && ((from = null), back()));
  made.addEventListener("keydown", (event) => {
    const acts = {
      ArrowRight: () => moved(along(value(), step(event)), 1), ArrowUp: () => acts.ArrowRight(),
      ArrowLeft: () => moved(along(value(), -step(event)), -1), ArrowDown: () => acts.ArrowLeft(),
      ...(ends && { Home: () => moved(ends[0]), End: () => moved(ends[1]) }),
      Enter: set,
    };
    if (event.key === "Escape" ? !back() : !acts[event.key]) return;
    acts[event.key]?.();
    event.preventDefault();
    event.stopPropagation();
  });
}

/** A term and its value in the card of a point. */
export const line = (name, value, more = "") => [element("dt", { textContent: name }), element("dd", { textContent: value, className: more })];

/** Buttons of which one is pressed. */
export const segments = (words, options, chosen, choose) => element("span", { className: "seg", attributes: { role: "group", "aria-label": words } }, ...options.map(([key, name]) => element("button", { type: "button", textContent: name, attributes: { "aria-pressed": String(key === chosen), "data-pick": key }, onclick: () => choose(key) })));

/** A menu of the measures of an axis, or of anything else that is chosen. */
export const menu = (words, options, chosen, choose) => element("select", { className: "pick", attributes: { "aria-label": words }, onchange: ({ target }) => choose(target.value) }, ...options.map(([key, name]) => new Option(name, key, false, key === chosen)));
