// What joins equal devices: the levels of the interconnect with what each carries, as a table and as a scene whose boxes are
// dragged and whose links are edited.
import { digits, drawn, element, percent, time } from "./figures.mjs";
import { passes, player } from "./play.mjs";
import { editor } from "./wire.mjs";

/** The kind of a link by the share of the time in which it sends. */
export const loaded = (share) => (share === undefined ? "idle" : share < 0.4 ? "low" : share < 0.8 ? "middle" : "high");

/** The phases in words. */
const worded = ({ speculation }) => ({ prefill: "a prompt", decode: speculation ? "a step" : "a token" });

/** The levels of the interconnect, innermost first, each with what it carries in the phases in which it does. */
const carried = ({ question, detail }) => question.interconnect.map((tier, at) => ({ ...tier, at, sent: detail.phases.flatMap(({ phase, interconnect = [] }) => (interconnect[at]?.wire_bytes > 0 ? [{ phase, ...interconnect[at] }] : [])) }));

/**
 * What each level of the interconnect carries in a prompt and in a token; one that carries nothing is dashed. The bandwidth
 * of a level is edited: `set` is given its number and the text.
 */
export function fabric({ plan, question, detail }, links, set) {
  const words = worded(question);
  const levels = carried({ question, detail });
  const all = levels.flatMap(({ name, sent }) => sent.map((one) => ({ name, ...one })));
  const most = all.reduce((best, one) => (one.load_share > (best?.load_share ?? 0) ? one : best), undefined);
  const title = most ? `Busiest links: ${most.name}, ${percent(most.load_share)} of ${words[most.phase]}` : "Links between devices";
  const speed = (name, value, at) => {
    const made = element("button", { type: "button", className: "link", textContent: value, attributes: { "aria-haspopup": "dialog", "aria-label": `${value}: edit the links of the ${name}`, "data-pick": `level-${at}` } });
    made.onclick = () => {
      card.querySelector(".pop")?.remove();
      const box = editor(links, { title: name, value, set: (text) => set(at, text), closed: () => made.focus() });
      made.closest("th").append(box);
      box.begin();
    };
    return made;
  };
  const bodies = levels.map(({ name, devices, link, bandwidth_bytes_per_s: rate, sent }, at) => {
    const share = sent.length ? Math.max(...sent.map(({ load_share: one }) => one)) : undefined;
    const mark = element("i", { className: `key ${loaded(share)}`, attributes: { "aria-hidden": "true" } });
    // As wide as the bandwidth, in powers of ten.
    if (sent.length) mark.style.height = `${Math.min(Math.max(2 + 2 * Math.log10(rate / 1e9), 2), 10)}px`;
    const head = element("th", { colSpan: 4, scope: "rowgroup" }, mark, element("strong", { textContent: name }), ` ${devices} devices, ${link}, `, speed(name, `${digits(rate / 1e9)} GB/s`, at), ...(sent.length || !detail.phases.length ? [] : [element("span", { className: "soft", textContent: " · unused by this plan" })]));
    return element("tbody", {}, element("tr", {}, head), ...sent.map((one) => {
      const bar = element("span", { className: `bar-of ${loaded(one.load_share)}`, attributes: { "aria-hidden": "true" } }, element("span", {}));
      bar.firstChild.style.width = `${Math.min(one.load_share, 1) * 100}%`;
      const cell = (textContent) => element("td", { className: "n", textContent });
      return element("tr", {}, element("th", { scope: "row", textContent: words[one.phase] }), element("td", { className: "bar-cell" }, percent(one.load_share), bar), cell(`${digits(one.wire_bytes / one.time_ms / 1e6)} GB/s`), cell(time(one.time_ms)));
    }));
  });
  const head = element("thead", {}, element("tr", {}, ...["in", "busy", "sends at", "time"].map((text, at) => element("th", { scope: "col", className: at > 1 ? "n" : "", textContent: text }))));
  const note = "Each way and device, while its stage works.";
  const card = element("article", { className: "card fabric" }, element("h2", {}, element("span", { textContent: title })), element("table", {}, ...(all.length ? [head] : []), ...bodies), ...(all.length ? [element("p", { className: "soft", textContent: plan.mode === "disaggregated" ? `${note} KV transfers between workers come on top.` : note })] : []));
  return card;
}

/** Sizes of a device, of what joins some, and of the gaps, in pixels; devices of a row. */
const [BOX, HUB, GAP, ROW] = [[90, 48], [188, 44], 8, 4];

/** What joins devices, as a tree: a hub for each group of a level, down to devices. */
function tree(nodes, levels) {
  let parts = nodes.flatMap(({ devices }) => devices.map((device) => ({ device, size: 1 })));
  for (const level of levels) {
    const joined = [];
    for (let begin = 0, size = 0, some = []; begin < parts.length; begin += 1) {
      some.push(parts[begin]);
      size += parts[begin].size;
      if (size < level.devices && begin + 1 < parts.length) continue;
      joined.push(some.length > 1 ? { level, size, parts: some, name: `${level.name} ${joined.length + 1}` } : some[0]);
      [size, some] = [0, []];
    }
    parts = joined;
  }
  return parts;
}
const isBranch = ({ parts }) => parts?.some((part) => part.parts);

/** The places of a tree on a board of a width: domains side by side, their hubs above their devices. */
function placed(roots, width) {
  const spots = new Map();
  const domains = (part) => (isBranch(part) ? part.parts.flatMap(domains) : [part]);
  const above = (part) => (isBranch(part) ? 1 + Math.max(...part.parts.map(above)) : 0);
  const all = roots.flatMap(domains);
  const high = Math.max(...roots.map(above));
  const across = Math.max(...all.map(({ parts = [] }) => Math.min(parts.length, ROW)), 1);
  const row = Math.min(across, Math.max(Math.floor((width - GAP) / (BOX[0] + GAP)), 1));
  const wide = Math.max(row * (BOX[0] + GAP), HUB[0]) + 2 * GAP;
  const columns = Math.min(Math.max(Math.floor(width / wide), 1), all.length);
  const tall = ({ parts = [] }) => (parts.length ? HUB[1] + 28 + Math.ceil(parts.length / row) * (BOX[1] + GAP) : BOX[1]) + 2 * GAP;
  let top = high * (HUB[1] + 34) + GAP;
  for (let begin = 0; begin < all.length; begin += columns) {
    const line = all.slice(begin, begin + columns);
    line.forEach((domain, at) => {
      const middle = (width / line.length) * (at + 0.5);
      if (!domain.parts) return spots.set(domain, [middle - BOX[0] / 2, top]);
      spots.set(domain, [middle - HUB[0] / 2, top]);
      domain.parts.forEach((part, number) => {
        const inRow = Math.min(domain.parts.length - Math.floor(number / row) * row, row);
        spots.set(part, [middle + ((number % row) - inRow / 2) * (BOX[0] + GAP) + GAP / 2, top + HUB[1] + 28 + Math.floor(number / row) * (BOX[1] + GAP)]);
      });
    });
    top += Math.max(...line.map(tall));
  }
  const hub = (part, level) => {
    if (!isBranch(part)) return;
    part.parts.forEach((one) => hub(one, level + 1));
    const middles = part.parts.map((one) => spots.get(one)[0] + (one.parts ? HUB[0] : BOX[0]) / 2);
    spots.set(part, [(Math.min(...middles) + Math.max(...middles)) / 2 - HUB[0] / 2, GAP + level * (HUB[1] + 34)]);
  };
  roots.forEach((root) => hub(root, 0));
  return { spots, height: top + GAP };
}

/**
 * Draws equal devices and what joins them. `spots` has the places of boxes that were moved, `keep` is given them; a link
 * is edited by `set`, which is given its level and the bandwidth; `links` are those of the catalogue.
 */
export const topology = (plan, links, { spots: moved = {}, keep, set }) => (board, { nodes, shade, say, token }) => {
  const words = worded(plan.question);
  const roots = tree(nodes, carried(plan));
  const width = board.clientWidth || 640;
  const { spots, height } = placed(roots, width);
  const wires = drawn("svg", { class: "wires", width: "100%", height: "100%", "aria-hidden": "true" });
  const lines = [];
  const boxes = new Map();
  const own = { ...moved };
  board.classList.add("board");
  board.style.height = `${height}px`;
  board.append(wires);
  const busiest = Math.max(...carried(plan).flatMap(({ sent }) => sent.map(({ load_share: share }) => share)), 0);
  const size = (part) => (part.parts ? HUB : BOX);
  const within = ([x, y], [wide, tall]) => [Math.min(Math.max(x, 0), Math.max(width - wide, 0)), Math.min(Math.max(y, 0), Math.max(height - tall, 0))].map(Math.round);
  const middle = (part) => spots.get(part).map((value, axis) => value + size(part)[axis] / 2);
  const redraw = () => lines.forEach(({ line, ends }) => ends.map(middle).forEach(([x, y], at) => ["x", "y"].forEach((name, axis) => line.setAttribute(`${name}${at + 1}`, [x, y][axis]))));

  function boxed(part, name) {
    const shares = part.level?.sent.map(({ load_share: share }) => share) ?? [];
    const kind = loaded(shares.length ? Math.max(...shares) : undefined);
    const state = part.level && (part.level.sent.map((one) => `${words[one.phase].split(" ")[1]} ${percent(one.load_share)}`).join(", ") || "unused by this plan");
    const rate = part.level && `${digits(part.level.bandwidth_bytes_per_s / 1e9)} GB/s`;
    const full = part.device && (part.device.kind === "idle" ? "unused" : `${percent(part.device.memory)} full`);
    const slowest = shares.some((share) => share === busiest && share > 0.5);
    const made = part.level
      ? element("button", { type: "button", className: `hub ${kind}`, attributes: { "aria-haspopup": "dialog", "aria-label": `${part.level.link} · ${rate} ${state}: ${name}. Enter edits it, arrows move it.` } }, element("b", { textContent: `${part.level.link} · ${rate}` }), " ", ...(slowest ? [element("span", { className: "tag", textContent: "bottleneck" })] : []), element("span", { className: "soft", textContent: state }))
      : element("button", { type: "button", className: "device-box", title: `${part.device.name}: ${part.device.words}`, attributes: { "aria-label": `${part.device.short} ${full}: ${part.device.name}, ${part.device.words}. Arrows move it.` } }, element("i", { className: `cell ${shade(part.device)}`, attributes: { "aria-hidden": "true" } }), element("b", { textContent: part.device.short }), " ", element("span", { className: "soft", textContent: full }));
    made.dataset.box = name;
    const move = (to) => {
      spots.set(part, within(to, size(part)));
      const [x, y] = spots.get(part);
      Object.assign(made.style, { left: `${x}px`, top: `${y}px` });
    };
    const put = (to) => {
      move(to);
      redraw();
      own[name] = spots.get(part);
    };
    move(own[name] ?? spots.get(part));
    dragged(made, () => spots.get(part), put, () => keep(own));
    made.onclick = () => {
      if (made.hasAttribute("data-dragged")) return made.removeAttribute("data-dragged");
      if (!part.level) return say(`${part.device.name}: ${part.device.words}`);
      board.querySelector(".pop")?.remove();
      const box = editor(links, { title: part.level.name, value: rate, set: (text) => set(part.level.at, text), closed: () => made.focus() });
      board.append(box);
      const [x, y] = spots.get(part);
      Object.assign(box.style, { left: `${Math.max(0, Math.min(x, width - box.offsetWidth))}px`, top: `${y + HUB[1] + 4}px` });
      return box.begin();
    };
    boxes.set(part, made);
    board.append(made);
  }

  function joined(part) {
    if (!part.parts) return boxed(part, part.device.name);
    part.parts.forEach((one) => {
      const shares = part.level.sent.map(({ load_share: share }) => share);
      const kind = loaded(shares.length ? Math.max(...shares) : undefined);
      // As wide as the bandwidth, in powers of ten.
      const line = drawn("line", { class: `wire ${kind}`, "stroke-width": shares.length ? Math.min(Math.max(2 * Math.log10(part.level.bandwidth_bytes_per_s / 1e9), 1.5), 7) : 2 });
      wires.append(line);
      lines.push({ line, ends: [part, one] });
      joined(one);
    });
    return boxed(part, part.name);
  }
  roots.forEach(joined);
  redraw();
  if (!["prefill", "decode"].every((name) => plan.detail.phases.some(({ phase }) => phase === name))) return;
  const { controls, line } = player((phase) => passes(plan, phase), plan.question.isl, traveller(board, { roots, boxes, lines, middle }, plan));
  token.replaceChildren(element("div", { className: "row" }, ...controls), line);
};

const leaves = (part) => (part.parts ? part.parts.flatMap(leaves) : [part]);

/** The token of a plan on a board: it marks the devices of a stage, and the links between those that exchange something. */
function traveller(board, { roots, boxes, lines, middle }, { plan }) {
  let phase = "decode";
  const all = roots.flatMap(leaves);
  const holders = (stage) => {
    const { role, devices, replicas, stages } = plan[phase];
    const held = all.filter(({ device }) => device.of === `${role === "aggregated" ? "replica" : role} 1` && device.stage === stage);
    // Other pools, whose replicas have numbers of their own, come after the first.
    return held.slice(0, devices / replicas / stages.length);
  };
  const centre = (parts) => [0, 1].map((axis) => parts.reduce((sum, part) => sum + middle(part)[axis], 0) / parts.length);
  const cleared = () => {
    board.querySelector(".token")?.remove();
    board.querySelectorAll(".at").forEach((one) => one.classList.remove("at"));
  };
  async function shown(step, length) {
    cleared();
    const [from, to] = [holders(step.stage), step.next ? holders(step.stage + 1) : []];
    const meeting = new Set(step.layers ? [] : [...from, ...to]);
    from.forEach((part) => boxes.get(part).classList.add("at"));
    lines.forEach(({ line, ends: [, below] }) => {
      const inside = leaves(below).filter((part) => meeting.has(part)).length;
      if (inside > 0 && inside < meeting.size) line.classList.add("at");
    });
    const dot = element("span", { className: "token", attributes: { "aria-hidden": "true" } });
    board.append(dot);
    const [begin, end] = [centre(from), to.length ? centre(to) : centre(from)];
    const rest = begin.map((value, axis) => (value + end[axis]) / 2);
    Object.assign(dot.style, { left: `${rest[0]}px`, top: `${rest[1]}px` });
    if (!length) return;
    const moved = dot.animate([begin, end].map(([x, y]) => ({ translate: `${x - rest[0]}px ${y - rest[1]}px` })), { duration: length });
    await moved.finished.catch(() => {});
  }
  const chosen = (name) => {
    phase = name;
    board.parentElement.classList.toggle("prefill", phase === "prefill");
  };
  const stopped = () => board.querySelector(".token")?.getAnimations().forEach((one) => one.cancel());
  const way = () => (plan[phase].stages.length > 1 ? ": each stage computes its layers and sends the result on" : holders(0).length > 1 ? ": the devices compute their parts of each layer and exchange them" : " on one device");
  return { shown, cleared, chosen, stopped, way };
}

/** Makes a box one that is dragged, or moved by arrows; `done` is called at the end of a move. Buttons in it stay buttons. */
export function dragged(box, at, put, done) {
  let held = null;
  box.onpointerdown = (event) => {
    box.removeAttribute("data-dragged");
    if ((event.target.closest("button") ?? box) !== box) return;
    held = { from: [event.clientX, event.clientY], at: at() };
    box.setPointerCapture(event.pointerId);
  };
  box.onpointermove = (event) => {
    if (!held) return;
    const by = [event.clientX - held.from[0], event.clientY - held.from[1]];
    // A click that trembles is a click.
    if (!box.hasAttribute("data-dragged") && Math.hypot(...by) < 4) return;
    box.setAttribute("data-dragged", "");
    put(held.at.map((value, axis) => value + by[axis]));
  };
  box.onpointerup = () => {
    if (held && box.hasAttribute("data-dragged")) done();
    held = null;
  };
  box.addEventListener("keydown", (event) => {
    box.removeAttribute("data-dragged");
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || event.target !== box) return;
    event.preventDefault();
    put(at().map((value, axis) => value + step[axis] * (event.shiftKey ? 1 : 8)));
    done();
  });
}
