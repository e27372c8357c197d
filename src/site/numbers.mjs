// The numbers of a plan: a timeline, a tree of operators and a roofline, which select together.
import { digits, element, percent, plain, time } from "./figures.mjs";
import { ticks } from "./chart.mjs";
import { roofline } from "./roofline.mjs";

const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
/** A part of a phase is open at first where it takes this share of it. */
const OPEN = 0.25;
/** Width of a letter on a segment, in pixels. */
const LETTER = 6.6;

/** An amount with the prefix that reads best; nothing where there is none. */
export function amount(value, unit) {
  if (!(value > 0)) return "";
  const [size, prefix] = PREFIXES.find(([one]) => value >= one * 0.9995) ?? PREFIXES.at(-1);
  return `${digits(value / size)} ${prefix}${unit}`;
}

const named = (text) => text.replaceAll("_", " ");
const title = (phase) => (phase === "decode" ? "Decode step" : named(phase).replace(/^./, (first) => first.toUpperCase()));

/** The sums of operators. */
function summed(all) {
  const sum = (key) => all.reduce((total, one) => total + one[key], 0);
  const classes = Map.groupBy(all, (one) => one.class);
  const spent = (part) => part.reduce((total, one) => total + one.time_ms, 0);
  const [bound = ""] = [...classes].sort(([, a], [, b]) => spent(b) - spent(a))[0] ?? [];
  const [ms, best] = [sum("time_ms"), sum("speed_of_light_ms")];
  return { ms, bound, flops: sum("flops"), bytes: sum("bytes"), wire: sum("wire_bytes"), light: best / ms };
}

/** The phases of an answer as trees: parts by their time, operators in their order. */
export function trees(phases) {
  const all = phases.map((phase, number) => {
    const kind = phase.phase === "prefill" ? "prefill" : "decode";
    const blocks = new Set(phase.operators.filter(({ layers }) => layers > 1).map(({ block }) => block));
    blocks.delete("step");
    const operators = phase.operators.flatMap((one, at) => (one.time_ms > 0 ? [{ ...one, kind, key: `${number}/${one.part_of}/${at}`, of: blocks.size > 1 && one.layers > 1 ? named(one.block).replace(/ layer$/, "") : "" }] : []));
    const parts = [...Map.groupBy(operators, (one) => one.part_of)].map(([name, own]) => ({ name: named(name), key: `${number}/${name}`, operators: own, ...summed(own) }));
    return { phase: phase.phase, kind, key: `${number}`, name: title(phase.phase), whole: phase.time_ms, parts: parts.sort((a, b) => b.ms - a.ms), operators, ...summed(operators) };
  });
  return all.sort((a, b) => Number(b.phase === "decode") - Number(a.phase === "decode"));
}

const cell = (text) => element("td", { className: "n", textContent: text });
const HEADS = ["phase › part › operator × layers", "FLOP", "memory", "wire", "FLOP/B", "bound by", "time", "of light", "share", ""];

/** The tree as a table: groups fold by a click and by arrows, and have the sums of their rows. */
function table(all, act) {
  const open = new Set(all.flatMap((one) => [one.key, ...one.parts.filter(({ ms }) => ms >= one.ms * OPEN).map(({ key }) => key)]));
  const rows = all.flatMap((one) => [
    row(one, one, 1, one.parts.length),
    ...one.parts.flatMap((part) => [row(one, part, 2, part.operators.length), ...part.operators.map((operator) => row(one, { ...operator, ...summed([operator]), name: operator.module }, 3, 0))]),
  ]);
  const body = element("tbody", {}, ...rows);
  const made = element("table", { className: "tree", attributes: { role: "treegrid", "aria-label": "operators as a tree; arrows walk, right opens, left closes, Enter opens the formula" } }, element("thead", {}, element("tr", {}, ...HEADS.map((text, at) => element(text ? "th" : "td", { className: at && at !== 5 ? "n" : "", textContent: text })))), body);

  function row(phase, one, level, children) {
    const share = one.ms / phase.ms;
    const bar = element("span", { className: `bar-of ${phase.kind}`, attributes: { "aria-hidden": "true" } }, element("span", {}));
    bar.firstChild.style.width = `${Math.min(share, 1) * 100}%`;
    const opens = formula(phase, one, level);
    const spent = opens ? element("button", { type: "button", className: "number", textContent: time(one.ms), tabIndex: -1, onclick: (event) => (event.stopPropagation(), opens()) }) : time(one.ms);
    const head = element("th", { scope: "row", className: `level-${level}` }, element("span", { className: "twist", attributes: { "aria-hidden": "true" } }), one.name, ...(one.layers > 1 ? [element("span", { className: "soft", textContent: ` × ${one.layers} ${one.of}`.trimEnd() })] : []));
    const made = element("tr", { tabIndex: -1, attributes: { "data-op": one.key, "aria-level": level } }, head, cell(amount(one.flops, "FLOP")), cell(amount(one.bytes, "B")), cell(amount(one.wire, "B")), cell(one.flops && one.bytes ? plain(one.flops / one.bytes) : ""), element("td", { textContent: one.bound }), element("td", { className: "n" }, spent), cell(one.light > 0 ? percent(one.light) : ""), cell(percent(share)), element("td", { className: "in" }, bar));
    Object.assign(made, { enter: opens });
    if (children) made.setAttribute("aria-expanded", "false");
    return made;
  }

  /** Opens the formula of a row that has one. */
  function formula(phase, one, level) {
    const number = { decode: "tpot", prefill: "ttft" }[phase.phase];
    if (!number || level === 2 || one.part_of === "overhead") return undefined;
    return () => act.explain(number, level === 1 ? phase.phase : `${phase.phase}/${one.block}/${one.module}`);
  }

  const above = (key) => (key.includes("/") ? key.slice(0, key.lastIndexOf("/")) : null);
  const rowOf = (key) => rows.find(({ dataset }) => dataset.op === key);
  function draw() {
    for (const one of rows) {
      const { op } = one.dataset;
      one.hidden = [above(op), above(above(op) ?? "")].some((key) => key && !open.has(key));
      if (one.hasAttribute("aria-expanded")) one.setAttribute("aria-expanded", String(open.has(op)));
    }
  }
  function fold(key, wanted) {
    open[wanted ? "add" : "delete"](key);
    draw();
  }
  function focus(one) {
    if (!one) return;
    rows.forEach((other) => (other.tabIndex = other === one ? 0 : -1));
    one.focus();
    act.choose(one.dataset.op, made);
  }
  body.onclick = ({ target }) => {
    const one = target.closest("tr");
    if (!one || target.closest("button")) return;
    if (one.hasAttribute("aria-expanded")) fold(one.dataset.op, !open.has(one.dataset.op));
    focus(one);
  };
  body.onkeydown = (event) => {
    const one = event.target.closest("tr");
    if (event.target !== one) return;
    const seen = rows.filter(({ hidden }) => !hidden);
    const at = seen.indexOf(one);
    const [key, group] = [one.dataset.op, one.hasAttribute("aria-expanded")];
    const acts = {
      ArrowDown: () => focus(seen[at + 1]),
      ArrowUp: () => focus(seen[at - 1]),
      Home: () => focus(seen[0]),
      End: () => focus(seen.at(-1)),
      ArrowRight: () => group && (open.has(key) ? focus(seen[at + 1]) : fold(key, true)),
      ArrowLeft: () => (group && open.has(key) ? fold(key, false) : focus(rowOf(above(key)))),
      Enter: () => (one.enter ? one.enter() : group && fold(key, !open.has(key))),
      " ": () => group && fold(key, !open.has(key)),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  };
  rows[0].tabIndex = 0;
  draw();
  return {
    made,
    /** Opens the groups of a key and shows its row. */
    reveal: (key) => {
      for (let up = above(key); up; up = above(up)) open.add(up);
      draw();
      const [one, box] = [rowOf(key), made.parentElement];
      if (!one) return;
      rows.forEach((other) => (other.tabIndex = other === one ? 0 : -1));
      const [top, head] = [one.offsetTop, made.tHead.offsetHeight];
      if (top - head < box.scrollTop) box.scrollTop = top - head;
      else if (top + one.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + one.offsetHeight - box.clientHeight;
    },
  };
}

/** Times as segments of one bar: a pointer or arrows choose. */
function strip(label, name, parts, act) {
  const whole = parts.reduce((sum, { ms }) => sum + ms, 0);
  const id = (at) => `${name}-${at}`;
  const segments = parts.map((part, at) => {
    const made = element("span", { className: `piece ${part.tone}`, id: id(at), title: `${part.name} ${time(part.ms)}`, attributes: { role: "option", "aria-selected": "false", "aria-label": `${part.name} ${time(part.ms)}, ${percent(part.ms / whole)}`, "data-op": part.key } });
    made.style.width = `${(part.ms / whole) * 100}%`;
    return made;
  });
  const box = element("div", { className: "strip", tabIndex: 0, attributes: { role: "listbox", "aria-orientation": "horizontal", "aria-label": label } }, ...segments);
  const choose = (at) => {
    box.setAttribute("aria-activedescendant", id(at));
    act.choose(parts[at].key, box);
  };
  box.onclick = ({ clientX }) => {
    // A thin segment is taken from near it.
    const far = segments.map((one) => one.getBoundingClientRect()).map(({ left, right }) => Math.max(left - clientX, clientX - right, 0));
    choose(far.indexOf(Math.min(...far)));
  };
  box.onkeydown = (event) => {
    const at = segments.findIndex((one) => one.id === box.getAttribute("aria-activedescendant"));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: parts.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(Math.min(Math.max(to, 0), parts.length - 1));
  };
  /** The longest words that fit. */
  const fitted = () => segments.forEach((made, at) => {
    const letters = (made.clientWidth - 10) / LETTER;
    made.textContent = [`${parts[at].name} ${time(parts[at].ms)}`, parts[at].name, parts[at].short ?? parts[at].name].find((text) => text.length <= letters) ?? "";
  });
  return { box, fitted };
}

const TONES = { attention: "pale", communication: "wire", overhead: "host", residual: "free", vocabulary: "free" };

/** A step and one of its layers, each as a bar, for a phase at a time. */
function timeline(all, act) {
  const place = element("div", {});
  const heading = element("span", {});
  const buttons = all.map((one) => element("button", { type: "button", textContent: one.phase.replaceAll("_", " "), onclick: () => draw(one) }));
  function draw(one) {
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(all[at] === one)));
    heading.textContent = finding(one);
    const tone = (part) => `${one.kind} ${TONES[part] ?? "full"}`;
    const whole = strip(`${one.name}, ${time(one.ms)}, by part`, "part", one.parts.map((part) => ({ ...part, tone: tone(part.operators[0].part_of) })), act);
    const layered = one.operators.filter(({ layers, block }) => layers > 1 && block !== "step");
    const [block, own] = [...Map.groupBy(layered, (operator) => operator.block)].sort(([, a], [, b]) => summed(b).ms - summed(a).ms)[0] ?? [];
    const layer = own && strip("one layer, by operator", "operator", own.map((operator) => ({ key: operator.key, name: operator.module.replace(/_proj$/, ""), short: { all_reduce: "AR", all_gather: "AG", attention: "attn" }[operator.module], ms: operator.time_ms / operator.layers, tone: tone(operator.part_of) })), act);
    const note = (text) => element("p", { className: "soft tick", textContent: text });
    place.replaceChildren(note(`${one.name.toLowerCase()}, ${time(one.ms)}`), whole.box, ...(layer ? [note(`one of ${own[0].layers} layers${new Set(layered.map((each) => each.block)).size > 1 ? `, ${named(block)}` : ""}, ${time(own.reduce((sum, { time_ms: ms, layers }) => sum + ms / layers, 0))}`), layer.box, scale(own.reduce((sum, { time_ms: ms, layers }) => sum + ms / layers, 0))] : []));
    whole.fitted();
    layer?.fitted();
  }
  const made = element("article", { className: "card timeline" }, element("h2", {}, heading, element("span", { className: "seg", attributes: { role: "group", "aria-label": "phase of the timeline" } }, ...buttons)), place);
  return { made, placed: () => draw(all[0]) };
}

/** Times under a bar, in the unit of its whole. */
function scale(whole) {
  const [unit, name] = whole >= 1 ? [1, "ms"] : [1e-3, "µs"];
  const all = ticks(0, whole / unit).filter((at) => at * unit < whole * 0.97);
  return element("div", { className: "scale soft", attributes: { "aria-hidden": "true" } }, ...all.map((at, number) => {
    const made = element("span", { textContent: number === all.length - 1 ? `${plain(at)} ${name}` : plain(at) });
    made.style.left = `${((at * unit) / whole) * 100}%`;
    return made;
  }));
}

/** The largest part of a phase, in words. */
function finding({ name, ms, parts }) {
  const [first] = parts;
  return `${name}: ${time(ms)}, ${percent(first.ms / ms)} of it ${first.name}`;
}

/** The largest part of a step, from the report of its phase. */
function headline(phases) {
  const step = phases.find(({ phase }) => phase === "decode") ?? phases[0];
  const kinds = { compute_ms: "computing", memory_ms: "reading memory", communication_ms: "on links", overhead_ms: "overhead" };
  const [most] = Object.keys(kinds).sort((a, b) => step[b] - step[a]);
  return `A ${step.phase === "decode" ? "decode step" : named(step.phase)} takes ${time(step.time_ms)}, ${percent(step[most] / step.operators_ms)} of it ${kinds[most]}`;
}

/** Draws the numbers of an answer over its tables. `act.explain(number, path)` opens a formula; `peaks` are named roofs. */
export function numbers(section, { detail, notation }, peaks, act) {
  const phases = detail?.phases ?? [];
  const flat = section.querySelector("#operators")?.parentElement;
  if (!phases.length || !flat || section.querySelector(".numbers")) return;
  const all = trees(phases);
  const heading = section.querySelector("h1");
  const about = element("p", { className: "sub", textContent: `All numbers of ${notation}, of one device. The timeline, the tree and the roofline select together; an underlined time opens its formula.` });
  heading.textContent = headline(phases);
  heading.after(about);
  const line = element("p", { className: "token-line", attributes: { role: "status" } });
  const every = new Map(all.flatMap((one) => [one, ...one.parts, ...one.operators.map((operator) => ({ ...operator, ...summed([operator]), name: `${operator.module}${operator.layers > 1 ? ` × ${operator.layers}` : ""}` }))].map((each) => [each.key, { ...each, phase: one }])));
  function choose(key, from) {
    for (const one of place.querySelectorAll("[data-op]")) {
      const own = one.dataset.op;
      const on = own === key || (own.startsWith(`${key}/`) && one.tagName !== "TR");
      one.classList.toggle("chosen", on);
      if (one.getAttribute("role") === "option") one.setAttribute("aria-selected", String(on));
    }
    const one = every.get(key);
    line.textContent = `${one.phase === one ? "" : `${one.phase.name} · `}${[one.name, `${time(one.ms)}, ${percent(one.ms / one.phase.ms)}`, `bound by ${one.bound}`, one.light > 0 && `${percent(one.light)} of light`, one.flops && one.bytes && `${plain(one.flops / one.bytes)} FLOP/B`].filter(Boolean).join(" · ")}`;
    if (from !== tree.made) tree.reveal(key);
    if (from !== roofs?.plot) roofs?.mark(key);
  }
  const own = { ...act, choose };
  const tree = table(all, own);
  const times = timeline(all, own);
  const roofs = roofline(all, peaks, own);
  const scroll = element("div", { className: "scroll tall", tabIndex: 0, attributes: { role: "region", "aria-label": "tree of operators" } }, tree.made);
  const filter = section.querySelector("[data-filter=operators]").parentElement;
  const show = (kind) => {
    views.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === kind)));
    [scroll.hidden, flat.hidden, filter.hidden] = [kind !== "tree", kind === "tree", kind === "tree"];
  };
  const views = ["tree", "flat"].map((kind) => element("button", { type: "button", textContent: kind, onclick: () => show(kind) }));
  // The heading and the lines of the flat table are those of the card.
  for (let one = filter.previousElementSibling; one && one.tagName !== "DIV"; one = filter.previousElementSibling) one.remove();
  const card = element("article", { className: "card" }, element("h2", {}, element("span", { textContent: "Every operator of one device" }), element("span", { className: "seg", attributes: { role: "group", "aria-label": "operators as" } }, ...views)), filter, scroll, flat);
  const place = element("div", { className: "numbers" }, element("div", { className: "stack" }, times.made, card), element("div", { className: "stack" }, ...(roofs ? [roofs.made] : []), element("article", { className: "card" }, element("h2", {}, element("span", { textContent: "Chosen" })), line)));
  line.textContent = "Nothing yet: choose a row, a segment or a dot.";
  about.after(place);
  show("tree");
  times.placed();
  roofs?.placed();
}
