// Many devices as racks, nodes and single ones: a group opens, colours are roles or memory, equal ranks are counted once.
import { element, percent } from "./figures.mjs";

/** Nodes of a rack: the hardware states none, so that many are drawn together. */
const RACK = 8;
/** Devices whose names are drawn at once, at most, and those that are drawn with their links. */
const [NAMED, SCENE] = [256, 64];

/** The devices of a plan, in the order of ranks, as nodes of the first level of its interconnect. */
export function planned({ plan, question, detail, idle_devices: unused }) {
  const tiers = question.interconnect;
  const size = tiers.find(({ devices }) => devices > 1)?.devices ?? Math.max(...tiers.map(({ devices }) => devices));
  const pools = plan.mode === "disaggregated" ? [plan.prefill, plan.decode, ...(plan.others ?? [])] : [plan.decode];
  const all = pools.flatMap((pool, number) => ranks(pool, number, detail.pools));
  const idle = Array.from({ length: unused }, () => ({ name: "idle", short: "idle", of: "idle", kind: "idle", words: "idle", memory: 0, rank: "idle" }));
  const devices = [...all, ...idle];
  const name = tiers.find(({ devices: one }) => one === size)?.name.split(" ").at(-1) ?? "node";
  return Array.from({ length: Math.ceil(devices.length / size) }, (_, at) => ({ name: `${name} ${at + 1}`, devices: devices.slice(at * size, (at + 1) * size) }));
}

/** Every device of a pool; ranks count pipeline stages first, then data, context and tensor parallel ones. */
function ranks(pool, number, memories) {
  const held = (memories.find(({ role, label }) => role === pool.role && label === pool.label) ?? memories.find(({ role }) => role === pool.role))?.memory;
  const memory = held ? (held.total_bytes - held.offloaded_bytes) / held.usable_bytes : 0;
  const degrees = ["pp", "dp", "cp", "tp"].map((name) => [name, Math.max(pool[name] ?? 1, 1)]);
  const each = degrees.reduce((product, [, degree]) => product * degree, 1);
  const role = pool.role === "aggregated" ? "replica" : pool.role;
  const letter = { prefill: "p", decode: "d" }[pool.role] ?? "r";
  return Array.from({ length: pool.replicas * each }, (_, place) => {
    const [replica, inside] = [Math.floor(place / each), place % each];
    let rest = inside;
    const parts = degrees.toReversed().map(([name, degree]) => {
      const digit = rest % degree;
      rest = Math.floor(rest / degree);
      return [name, degree, digit];
    }).toReversed();
    const shown = parts.filter(([, degree]) => degree > 1).map(([name, , digit]) => `${name}${digit}`);
    const stage = parts[0][2];
    const before = pool.stages.slice(0, stage).reduce((sum, layers) => sum + layers, 0);
    const layers = `layers ${before} to ${before + (pool.stages[stage] ?? 1) - 1}`;
    const kind = role === "replica" ? (pool.pp > 1 ? `stage-${stage % 4}` : number ? `stage-${number % 4}` : "used") : role;
    return { of: `${role} ${replica + 1}`, stage, name: `${role} ${replica + 1} ${shown.join(" ")}`.trim(), short: `${letter}${replica + 1}·${inside}`, odd: replica % 2 === 1, kind, memory, rank: `${role}${pool.pp > 1 ? ` stage ${stage}` : ""}, ${layers}`, words: `${layers}, memory ${percent(memory)}` };
  });
}

const total = (nodes) => nodes.reduce((sum, { devices }) => sum + devices.length, 0);
/** Equal ranks, counted. */
function kinds(nodes) {
  const all = new Map();
  nodes.flatMap(({ devices }) => devices).forEach((one) => {
    const seen = all.get(one.rank) ?? { ...one, count: 0 };
    seen.count += 1;
    all.set(one.rank, seen);
  });
  return [...all.values()];
}

/** The rack, node, level and colour of an address, where the nodes have them. */
function restored({ rack, node, level, colour }, racks, nodes, linked) {
  const within = (text, all) => (/^\d+$/.test(text ?? "") && Number(text) <= all && Number(text) > 0 ? Number(text) - 1 : undefined);
  const [inRack, inNode] = [within(rack, racks.length), within(node, nodes.length)];
  const isLevel = level === "nodes" || (level === "links" && linked) || (level === "racks" && racks.length && inRack === undefined) || (level === "GPUs" && (inNode !== undefined || total(nodes) <= NAMED || inRack !== undefined));
  return { rack: inNode === undefined || !racks.length ? inRack : Math.floor(inNode / RACK), node: inNode, ...(isLevel ? { level } : inNode === undefined ? {} : { level: "GPUs" }), ...(colour === "memory" && { colour }) };
}

/**
 * Draws nodes; `title` is the first line, `notes` come after the ranks; `opened` is open, `changed` keeps it. `linked` draws
 * devices and links as a scene, of few devices only.
 */
export function groups(place, nodes, { title = "", notes = [], opened = {}, changed = () => {}, linked } = {}) {
  const few = linked && total(nodes) > 1 && total(nodes) <= SCENE ? linked : undefined;
  const racks = nodes.length > RACK ? Array.from({ length: Math.ceil(nodes.length / RACK) }, (_, at) => nodes.slice(at * RACK, (at + 1) * RACK)) : [];
  const state = { rack: undefined, node: undefined, level: few ? "links" : racks.length > 4 ? "racks" : total(nodes) > SCENE ? "nodes" : "GPUs", colour: "role" };
  const usual = { ...state };
  Object.assign(state, restored(opened, racks, nodes, few));
  const scope = () => (state.node !== undefined ? [nodes[state.node]] : state.rack !== undefined ? racks[state.rack] : nodes);
  const line = element("p", { className: "token-line", attributes: { role: "status" } });
  const trail = element("div", { className: "row trail", attributes: { role: "group", "aria-label": "opened groups" } });
  const levels = element("span", { className: "seg", attributes: { role: "group", "aria-label": "level" } });
  const colours = element("span", { className: "seg", attributes: { role: "group", "aria-label": "colour" } });
  const legend = element("p", { className: "soft legend" });
  const board = element("div", { className: "groups", attributes: { role: "group", "aria-label": "devices in groups; arrows walk, Enter opens, Escape goes back" } });
  const table = element("div", {});
  const token = element("div", { className: "token-tools" });

  const press = (name, on, act, disabled = false) => element("button", { type: "button", textContent: name, disabled, onclick: act, attributes: { "aria-pressed": String(on) } });
  function open(change, focus) {
    Object.assign(state, change);
    draw();
    const one = (number) => (number === undefined ? undefined : String(number + 1));
    changed({ rack: one(state.rack), node: one(state.node), level: state.level === usual.level ? undefined : state.level, colour: state.colour === usual.colour ? undefined : state.colour });
    if (focus) board.querySelector("button")?.focus();
  }

  const label = (number) => `rack ${number + 1}`;
  function controls() {
    const here = total(scope());
    const way = [[`all ${total(nodes)}`, { rack: undefined, node: undefined, level: racks.length > 4 ? "racks" : "nodes" }], ...(state.rack === undefined ? [] : [[label(state.rack), { node: undefined, level: "nodes" }]]), ...(state.node === undefined ? [] : [[nodes[state.node].name, {}]])];
    trail.replaceChildren(...way.flatMap(([name, change], at) => [...(at ? ["›"] : []), element("button", { type: "button", className: "link", textContent: name, disabled: at === way.length - 1, onclick: () => open(change, true) })]));
    levels.replaceChildren(
      ...(few ? [press("links", state.level === "links", () => open({ level: "links", rack: undefined, node: undefined }))] : []),
      ...(racks.length ? [press("racks", state.level === "racks", () => open({ level: "racks", rack: undefined, node: undefined }))] : []),
      press("nodes", state.level === "nodes", () => open({ level: "nodes", node: undefined })),
      press("GPUs", state.level === "GPUs", () => open({ level: "GPUs" }), here > NAMED),
    );
    colours.replaceChildren(...["role", "memory"].map((name) => press(name, state.colour === name, () => open({ colour: name }))));
    const [shown, named] = [kinds(nodes), { prefill: "prefill", decode: "decode" }];
    const roles = [...new Map(shown.map((one) => [one.kind, one])).values()];
    legend.replaceChildren(...(state.colour === "memory" ? ["Memory in use: ", ...["under 50 %", "under 80 %", "under 95 %", "more"].map((text, at) => element("span", {}, element("i", { className: `cell m${at}` }), text))] : roles.map((one) => element("span", {}, element("i", { className: `cell ${one.kind}` }), named[one.kind] ?? one.rank.split(",")[0]))));
  }

  const shade = (one) => (state.colour === "memory" ? `m${[0.5, 0.8, 0.95].filter((edge) => one.memory >= edge).length}${one.kind === "idle" ? " idle" : ""}` : `${one.kind}${one.odd ? " odd" : ""}`);
  const words = (part) => {
    const all = [...new Set(part.flatMap(({ devices }) => devices.map(({ of }) => of)))];
    return all.length > 3 ? `${all.slice(0, 2).join(", ")} to ${all.at(-1)}` : all.join(", ");
  };
  const full = (devices) => `${percent(Math.max(...devices.map(({ memory }) => memory)))} full`;
  const head = (name, devices) => element("span", { className: "node-foot" }, element("strong", { textContent: name }), " ", element("span", { className: "soft", textContent: full(devices) }));
  const cells = (devices) => element("span", { className: `cells${devices.length > 16 ? " many" : ""}`, attributes: { "aria-hidden": "true" } }, ...devices.map((one) => element("i", { className: `cell ${shade(one)}` })));
  const box = (name, part, act) => element("button", { type: "button", className: "group", onclick: act, attributes: { "aria-label": `${name} ${full(part.flatMap(({ devices }) => devices))}: ${words(part)}. Opens.` } }, head(name, part.flatMap(({ devices }) => devices)), " ", ...part.map(({ devices }) => cells(devices)), element("span", { className: "soft", textContent: words(part) }));

  function named(node) {
    const list = node.devices.map((one) => element("button", { type: "button", className: `cell device ${shade(one)}`, textContent: one.short, title: `${one.name}: ${one.words}`, attributes: { "aria-label": `${one.short}, ${one.name}: ${one.words}` }, onclick: () => (line.textContent = `${node.name} · ${one.name}: ${one.words}`) }));
    return element("div", { className: "group named" }, head(node.name, node.devices), element("span", { className: "cells" }, ...list));
  }

  function draw() {
    controls();
    const part = scope();
    board.style.height = "";
    board.className = `groups ${state.level}${part.length === 1 ? " one" : ""}`;
    const drawn = {
      racks: () => racks.map((rack, at) => box(label(at), rack, () => open({ rack: at, level: "nodes" }, true))),
      nodes: () => part.map((node) => box(node.name, [node], () => open({ rack: racks.length ? Math.floor(nodes.indexOf(node) / RACK) : undefined, node: nodes.indexOf(node), level: "GPUs" }, true))),
      GPUs: () => part.map(named),
    };
    board.replaceChildren(...(state.level === "links" ? [] : drawn[state.level]()));
    token.replaceChildren();
    if (state.level === "links") few(board, { nodes, shade, token, say: (text) => (line.textContent = text) });
    line.textContent = `${total(part)} devices${state.level === "racks" ? `; a rack is ${RACK} nodes drawn together, since the hardware states none` : ""}`;
    const rows = kinds(part).map((one) => element("tr", {}, element("th", { scope: "row", textContent: one.rank }), element("td", { className: "n", textContent: one.count }), element("td", { className: "n", textContent: one.kind === "idle" ? "0" : percent(one.memory) })));
    table.replaceChildren(element("article", { className: "card" }, element("h2", {}, element("span", { textContent: `${rows.length} ${rows.length === 1 ? "kind" : "kinds"} of rank` }), element("span", { className: "soft", textContent: "× copies" })), element("table", {}, element("thead", {}, element("tr", {}, ...["rank", "×", "memory"].map((text, at) => element("th", { className: at ? "n" : "", textContent: text })))), element("tbody", {}, ...rows))));
  }

  board.onkeydown = (event) => {
    if (state.level === "links") return;
    if (event.key === "Escape" && (state.node !== undefined || state.rack !== undefined)) {
      event.stopPropagation();
      const from = state.node;
      open(from === undefined ? { rack: undefined, level: racks.length > 4 ? "racks" : "nodes" } : { node: undefined, level: "nodes" }, true);
      return;
    }
    const all = [...board.querySelectorAll("button")];
    const at = all.indexOf(event.target);
    const row = (one) => Math.round(one.getBoundingClientRect().top);
    const near = (way) => {
      const here = event.target.getBoundingClientRect();
      const rows = all.filter((one) => (row(one) - Math.round(here.top)) * way > 4);
      const next = rows.map(row).sort((a, b) => (a - b) * way)[0];
      return rows.filter((one) => Math.abs(row(one) - next) <= 4).sort((a, b) => Math.abs(a.getBoundingClientRect().left - here.left) - Math.abs(b.getBoundingClientRect().left - here.left))[0];
    };
    const to = { ArrowRight: () => all[at + 1], ArrowLeft: () => all[at - 1], ArrowDown: () => near(1), ArrowUp: () => near(-1), Home: () => all[0], End: () => all.at(-1) }[event.key];
    if (!to || at < 0) return;
    event.preventDefault();
    to()?.focus();
  };

  const bar = element("div", { className: "row scene-tools" }, ...(title ? [element("strong", { className: "grow", textContent: title })] : []), element("div", { className: "grow" }, trail), levels, colours);
  place.replaceChildren(bar, element("div", { className: "side-by-side" }, element("div", { className: "card" }, legend, token, board, line), element("div", { className: "stack" }, table, ...notes)));
  draw();
}
