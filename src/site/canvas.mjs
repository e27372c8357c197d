// Devices and links as one scene: devices are dragged, added and removed, links are edited, and each change is solved again.
import { digits, drawn, element, percent, plain, short, time } from "./figures.mjs";
import { dragged, loaded } from "./fabric.mjs";
import { groups } from "./groups.mjs";
import { player, steps } from "./play.mjs";
import { bytes, editor, rate } from "./wire.mjs";

/** Id of the reader's own rig, in the files of the question. */
export const OWN = "my-rig";
const FILE = `hardware/rigs/${OWN}`;
/** Devices that the scene draws one by one, at most, and those of a group. */
const [MOST, GROUP] = [64, 16];
const NODE = { width: 236, height: 112 };
/** Links whose labels are moved off the devices, at most: with more, there is no space. */
const LABELS = 24;

/** A rig with a member for each device and a pair for each link. */
export function expanded(rig) {
  const members = rig.members.flatMap(({ count = 1, ...one }) => Array.from({ length: one.joined ? 1 : count }, () => ({ ...one, ...(one.joined ? { count } : {}), name: one.name ?? one.device })));
  // Names as the answer has them: equal ones get a number.
  const many = members.map(({ name }) => name);
  members.forEach((one, at) => {
    if (many.indexOf(many[at]) !== many.lastIndexOf(many[at])) one.name = `${many[at]} ${many.slice(0, at + 1).filter((name) => name === many[at]).length}`;
  });
  const { topology, links = [], ...rest } = rig;
  const joined = topology ? pairs(topology, members.length) : null;
  const all = joined ? joined.map(([a, b], at) => ({ ...links[links.length === 1 ? 0 : at], between: [members[a].name, members[b].name] })) : links;
  return { ...rest, members, links: all };
}

/** The two members of each link of a topology. */
function pairs(topology, count) {
  const all = Array.from({ length: count }, (_, at) => at);
  if (topology === "mesh") return all.flatMap((a) => all.slice(a + 1).map((b) => [a, b]));
  if (topology === "star") return all.slice(1).map((b) => [0, b]);
  const chain = all.slice(1).map((b) => [b - 1, b]);
  return topology === "ring" && count > 2 ? [...chain, [count - 1, 0]] : chain;
}

/** Places of members on a ring; of two, next to each other. */
function spots(members, width, height) {
  const [x, y] = [(width - NODE.width) / 2, (height - NODE.height) / 2];
  return Object.fromEntries(members.map((one, at) => {
    const angle = (at / members.length) * 2 * Math.PI + (members.length === 2 ? Math.PI : -Math.PI / 2);
    return [one.name, [x + Math.cos(angle) * (x - 12), y + Math.sin(angle) * (y - 12)]];
  }));
}

/**
 * Draws a rig with its placement. `act.changed(files, id)` solves a changed rig; `act.spots` has the places of devices that
 * were moved, `act.keep` is given them; `lists` has the links and devices of the catalogue.
 */
export function canvas(place, rig, answer, lists, act) {
  const scene = expanded(rig);
  const { placement } = answer;
  const stages = placement?.stages ?? [];
  if (scene.members.length > MOST) return groups(place, grouped(scene, stages), { title: bound(answer), notes: ways(answer) });
  const kept = act.spots ?? {};
  const board = element("div", { className: "board", attributes: { role: "group", "aria-label": "devices and links" } });
  const narrow = place.clientWidth < 640;
  const height = narrow ? scene.members.length * (NODE.height + 56) + 16 : Math.min(Math.max(360, 160 + scene.members.length * 80), 1400);
  board.style.height = `${height}px`;
  const token = stages.length ? player((phase) => steps(placement, phase), answer.question.isl, { shown, stopped, cleared, chosen, way: (phase) => (stages.length < 2 ? " on one device" : `: each device computes its layers and sends the ${phase === "decode" ? "result" : "results of all tokens"} on`) }) : undefined;
  place.replaceChildren(...toolbar(), element("div", { className: "side-by-side" }, element("div", {}, board, ...(token ? [token.line] : [])), element("div", { className: "stack" }, ...ways(answer), ...balance(stages, (name) => home(scene, name)))));
  const width = board.clientWidth;
  // On a phone, a chain from top to bottom: the stages in their order, then the others.
  const chain = [...new Set([...stages.map(({ member }) => home(scene, member)), ...scene.members.map(({ name }) => name)])];
  const usual = narrow ? Object.fromEntries(chain.map((name, at) => [name, [(width - NODE.width) / 2, 8 + at * (NODE.height + 56)]])) : spots(scene.members, width, height);
  const at = Object.fromEntries(scene.members.map(({ name }) => [name, within(!narrow && kept[name] ? kept[name] : usual[name])]));
  const wires = drawn("svg", { class: "wires", width: "100%", height: "100%", "aria-hidden": "true" });
  board.append(wires);
  const order = stages.map(({ member }) => home(scene, member));
  const [boxes, loads, sent] = [{}, [], {}];
  const most = Math.max(...scene.links.map((link) => log(speed(link, lists))), 1);
  const lines = scene.links.map((link) => wire(link));
  scene.members.forEach(node);
  lines.forEach(({ draw }) => draw());
  board.after(legend(stages, scene.links));

  /** Times and loads are those of a phase. */
  function chosen(phase) {
    board.parentElement.classList.toggle("prefill", phase === "prefill");
    [...lines.map(({ load }) => load), ...loads].forEach((load) => load(phase));
  }

  function within([x, y]) {
    return [Math.min(Math.max(x, 0), Math.max(width - NODE.width, 0)), Math.min(Math.max(y, 0), height - NODE.height)];
  }

  /** A place of a label near the middle of its line, over no device where there is one. */
  function clear(label, [x1, y1], [x2, y2]) {
    const middle = [(x1 + x2) / 2, (y1 + y2) / 2];
    if (scene.links.length > LABELS) return middle;
    const [half, tall, long] = [label.offsetWidth / 2 + 4, label.offsetHeight / 2 + 4, Math.hypot(x2 - x1, y2 - y1) || 1];
    const free = ([x, y]) => x >= half && y >= tall && x <= width - half && y <= height - tall && Object.values(at).every(([left, top]) => x + half < left || x - half > left + NODE.width || y + tall < top || y - tall > top + NODE.height);
    const places = [0.5, 0.4, 0.6, 0.3, 0.7].flatMap((part) => [0, 24, -24, 48, -48].map((off) => [x1 + (x2 - x1) * part + ((y2 - y1) / long) * off, y1 + (y2 - y1) * part - ((x2 - x1) / long) * off]));
    return places.toSorted((a, b) => Math.hypot(a[0] - middle[0], a[1] - middle[1]) - Math.hypot(b[0] - middle[0], b[1] - middle[1])).find(free) ?? middle;
  }

  /** The transfers of a phase between stages, with the links of the way and the time of each. */
  function hops(phase) {
    return (sent[phase] ??= order.slice(1).flatMap((to, at) => {
      const ms = stages[at][phase === "prefill" ? "prefill_send_ms" : "send_ms"] ?? 0;
      return order[at] === to ? [] : [{ ms, over: way(scene.links, order[at], to) }];
    }));
  }

  /** Solves the rig with a change. */
  function changed(change) {
    const next = structuredClone({ ...scene, id: OWN, name: "My devices", aliases: undefined, notes: undefined });
    change(next);
    const names = new Set(next.members.map(({ name }) => name));
    next.links = next.links.filter(({ between }) => between.every((name) => names.has(name)));
    act.changed({ [FILE]: next }, OWN);
  }

  function wire(link) {
    const [a, b] = link.between;
    const line = drawn("line", {});
    wires.append(line);
    const name = lists.links.find(({ id }) => id === link.link)?.name ?? link.link;
    const [amount, busy, words] = [element("b", { textContent: rate(speed(link, lists)) }), element("span", {}), element("span", { className: "words" })];
    const label = element("button", { type: "button", attributes: { "aria-haspopup": "dialog" } }, element("span", {}, amount, busy), " ", words);
    /** Colours the link by the share of a phase in which it sends. */
    const load = (phase) => {
      const used = hops(phase).filter(({ over }) => over.includes(link));
      const ms = used.reduce((sum, hop) => sum + hop.ms, 0);
      const share = used.length ? ms / cycle(placement, phase) : undefined;
      const kind = loaded(share);
      const slowest = used.length > 0 && ms > longest(stages, phase);
      line.setAttribute("class", `wire ${kind}`);
      line.setAttribute("stroke-width", kind === "idle" ? 2 : 1.5 + (log(speed(link, lists)) / most) * 6);
      label.className = `wire-label ${kind}${slowest ? " slowest" : ""}`;
      const each = phase === "prefill" ? "a prompt" : "a token";
      busy.textContent = ms > 0 ? ` · ${percent(share)}` : "";
      // The time of a way over several links is not split.
      const spans = Math.max(...used.map(({ over }) => over.length));
      words.textContent = share === undefined ? "not used" : ms > 0 ? `${time(ms)} ${spans > 1 ? `over ${spans} links` : each}` : "used";
      if (slowest) words.append(element("span", { className: "tag", textContent: "bottleneck" }));
      label.setAttribute("aria-label", `${amount.textContent}${busy.textContent} ${words.textContent}, link ${a} to ${b}, ${name}`);
    };
    load("decode");
    label.title = name;
    label.onclick = () => edit(link, label);
    label.onkeydown = (event) => {
      if (event.key !== "Delete" && event.key !== "Backspace") return;
      event.preventDefault();
      changed((next) => (next.links = next.links.filter(({ between }) => between.join() !== link.between.join())));
    };
    board.append(label);
    const draw = () => {
      const [[x1, y1], [x2, y2]] = [a, b].map((member) => [at[member][0] + NODE.width / 2, at[member][1] + NODE.height / 2]);
      Object.entries({ x1, y1, x2, y2 }).forEach(([key, value]) => line.setAttribute(key, value));
      // In a chain, a label is above the lower device, next to those of its other links.
      const lower = (one) => one.between.reduce((low, name) => (at[name][1] > at[low][1] ? name : low));
      const before = scene.links.slice(0, scene.links.indexOf(link)).filter((one) => lower(one) === lower(link)).length;
      const [x, y] = narrow ? [width / 2 + [0, 112, -112][before % 3], at[lower(link)][1] - 28] : clear(label, [x1, y1], [x2, y2]);
      Object.assign(label.style, { left: `${x}px`, top: `${y}px` });
    };
    return { draw, line, load, link, between: [a, b] };
  }

  function node(member) {
    const { stage, memory, words, held: own } = holding(member, scene, stages);
    const bar = element("span", { className: "bar-of" }, element("span", {}));
    bar.firstChild.style.width = stage ? `${Math.min(memory / stage.usable_bytes, 1) * 100}%` : "0";
    // Its layers among all.
    const strip = element("span", { className: "bar-of layers" }, ...own.map(() => element("span", {})));
    const layers = (stages.at(-1)?.last_layer ?? 0) + 1;
    own.forEach(({ first_layer: first, layers: count }, number) => Object.assign(strip.children[number].style, { left: `${(first / layers) * 100}%`, width: `${(count / layers) * 100}%`, backgroundSize: `${100 / count}% 100%` }));
    const tag = element("span", { className: "tag", textContent: "bottleneck", hidden: true });
    const foot = element("span", { className: "node-foot" });
    const box = element("div", { className: `node${stage ? "" : " unused"}`, tabIndex: 0, attributes: { role: "group", "aria-roledescription": "device", "aria-label": `${member.name}: ${member.device}, ${words}. Arrows move it.` } },
      element("span", { className: "node-head" }, element("strong", { textContent: member.name }), tag, element("button", { type: "button", className: "quiet", textContent: "×", attributes: { "aria-label": `without ${member.name}` }, disabled: scene.members.length < 2, onclick: () => changed((next) => (next.members = next.members.filter(({ name }) => name !== member.name))) })),
      element("span", { className: "soft", textContent: `${member.count > 1 ? `${member.count} × ` : ""}${member.device.replace(/^(nvidia|apple|amd|intel)-/, "")}` }), element("span", { className: "held", textContent: words.split(",")[0] }), ...(stage ? [strip, bar] : []), foot);
    const passes = (phase) => hops(phase).some(({ over }) => over.length > 1 && over.some(({ between }) => between.includes(member.name)));
    const load = (phase) => {
      const ms = own.reduce((sum, one) => sum + one[`${phase}_ms`], 0);
      const slowest = Boolean(stage) && stages.length > 1 && own.some((one) => computed(one, phase) >= longest(stages, phase)) && hops(phase).every((hop) => hop.ms <= longest(stages, phase));
      tag.hidden = !slowest;
      box.classList.toggle("slowest", slowest);
      foot.replaceChildren(...(stage ? [element("span", { className: "soft", textContent: `${digits(memory / 2 ** 30)} of ${digits(stage.usable_bytes / 2 ** 30)} GiB` }), element("b", { textContent: time(ms) })] : [element("span", { className: "soft", textContent: !placement ? "" : passes(phase) ? "passes results on" : "its layers are faster elsewhere" })]));
    };
    load("decode");
    loads.push(load);
    const move = (to) => {
      at[member.name] = within(to);
      Object.assign(box.style, { left: `${at[member.name][0]}px`, top: `${at[member.name][1]}px` });
      lines.forEach(({ draw }) => draw());
    };
    boxes[member.name] = box;
    // A chain on a phone has places of its own.
    const keep = () => !narrow && act.keep({ ...kept, ...Object.fromEntries(Object.entries(at).map(([name, place]) => [name, place.map(Math.round)])) });
    dragged(box, () => at[member.name], move, keep);
    board.append(box);
    move(at[member.name]);
  }

  /** Marks a step of the token; its dot moves over the length of a hop. */
  async function shown(step, length) {
    cleared();
    const [from, to] = [home(scene, step.on), home(scene, step.next ?? step.on)];
    const centre = (name) => [at[name][0] + NODE.width / 2, at[name][1] + NODE.height / 2];
    const over = step.layers ? [] : way(scene.links, from, to);
    if (step.layers) boxes[from].classList.add("at");
    lines.filter(({ link }) => over.includes(link)).forEach(({ line }) => line.classList.add("at"));
    const dot = element("span", { className: "token", attributes: { "aria-hidden": "true" } });
    board.append(dot);
    const stops = stations(over, from).map(centre);
    const middle = stops.length > 2 ? stops[1] : stops[0].map((value, axis) => (value + stops.at(-1)[axis]) / 2);
    // A resting dot is in the middle of its hop.
    Object.assign(dot.style, { left: `${middle[0]}px`, top: `${middle[1]}px` });
    if (!length) return;
    const moved = dot.animate(stops.length > 1 ? stops.map(([x, y]) => ({ translate: `${x - middle[0]}px ${y - middle[1]}px` })) : [{ translate: "0 0" }, { translate: "0 0" }], { duration: length });
    await moved.finished.catch(() => {});
  }

  function stopped() {
    board.querySelector(".token")?.getAnimations().forEach((one) => one.cancel());
  }

  function cleared() {
    board.querySelector(".token")?.remove();
    board.querySelectorAll(".at").forEach((one) => one.classList.remove("at"));
  }

  /** The fields of a link: its bandwidth, with those of the catalogue as presets. */
  function edit(link, under) {
    board.querySelector(".pop")?.remove();
    const wireOf = lines.find(({ link: one }) => one === link).line;
    board.querySelector(".edited")?.classList.remove("edited");
    wireOf.classList.add("edited");
    const box = editor(lists.links, {
      title: link.between.join(" – "), value: rate(speed(link, lists)), costs: costs(link),
      closed: () => (wireOf.classList.remove("edited"), under.focus()),
      set: (text, id = link.link) => changed((next) => {
        const one = next.links.find(({ between }) => between.join() === link.between.join());
        Object.assign(one, { link: id, bandwidth: { value: text, source: "set on the page" } });
        if (id !== link.link) delete one.latency;
      }),
      remove: () => changed((next) => (next.links = next.links.filter(({ between }) => between.join() !== link.between.join()))),
    });
    board.append(box);
    Object.assign(box.style, { left: `${Math.max(0, Math.min(under.offsetLeft, width - box.offsetWidth))}px`, top: `${under.offsetTop + 20}px` });
    box.begin();
  }

  /** The part of a link in a token. */
  function costs(link) {
    const ms = hops("decode").filter(({ over }) => over.includes(link)).reduce((sum, hop) => sum + hop.ms, 0);
    return ms > 0 ? [element("p", { className: "soft", textContent: `Costs ${time(ms)} of ${time(placement.token_ms)} a token: ${ms > longest(stages, "decode") ? "the bottleneck" : "not the bottleneck"}.` })] : [];
  }

  /** A device to add, and the links as a topology. */
  function toolbar() {
    const device = element("select", { attributes: { "aria-label": "add a device" }, onchange: ({ target }) => {
      const name = `${target.value.replace(/^(nvidia|apple|amd|intel)-/, "")}-${scene.members.length + 1}`;
      changed((next) => {
        // A cable to the last device, as fast as the others.
        const { bandwidth, latency, link = lists.links[0].id } = next.links.at(-1) ?? {};
        next.links.push({ link, bandwidth, latency, between: [next.members.at(-1).name, name] });
        next.members.push({ name, device: target.value });
      });
    } }, new Option("+ device", ""), ...lists.devices.map(({ id, name }) => new Option(name, id)));
    const shapes = ["mesh", "ring", "chain", "star"].map((shape) => element("button", { type: "button", className: "plain", textContent: shape, onclick: () => changed((next) => {
      const { between: _, ...link } = next.links[0] ?? { link: lists.links[0].id };
      next.links = pairs(shape, next.members.length).map(([a, b]) => ({ ...link, between: [next.members[a].name, next.members[b].name] }));
    }) }));
    return [element("div", { className: "row scene-tools" }, element("strong", { textContent: bound(answer), className: "grow" }), ...(token?.controls ?? []), device, element("span", { className: "soft", textContent: "links as" }), ...shapes)];
  }
}

/** The links of the way from one member to another, the fewest. */
function way(links, from, to) {
  const seen = new Map([[from, []]]);
  for (const [name, over] of seen) {
    if (name === to) return over;
    for (const link of links) {
      const next = link.between.includes(name) ? link.between.find((one) => one !== name) : undefined;
      if (next !== undefined && !seen.has(next)) seen.set(next, [...over, link]);
    }
  }
  return [];
}

/** The members along links, from the first. */
const stations = (over, from) => over.reduce((all, { between }) => [...all, between.find((name) => name !== all.at(-1))], [from]);

/** Time of a stage in a phase without its transfer, ms; the longest of all. */
const computed = (stage, phase) => (phase === "prefill" ? stage.prefill_ms - (stage.prefill_send_ms ?? 0) : stage.decode_ms - stage.send_ms);
const longest = (stages, phase) => Math.max(...stages.map((stage) => computed(stage, phase)));

/** Time from one transfer of a link to its next, ms: of a prompt, or of the tokens of a micro-batch. */
const cycle = (placement, phase) => (phase === "prefill" ? placement.prefill_ms : (1e3 * placement.requests_each) / placement.decode_tok_s);

/** The marks of the scene in words. */
function legend(stages, links) {
  const mark = (kind, text) => element("span", {}, element("i", { className: kind, attributes: { "aria-hidden": "true" } }), text);
  return element("p", { className: "board-legend" }, ...(stages.length ? [mark("key layers", `layers held, of ${stages.at(-1).last_layer + 1}`), mark("key memory", "memory")] : []), ...(links.length ? ["link: width = bandwidth; sends", mark("key low", "below 40 %"), mark("key middle", "to 80 %"), mark("key high", "above, of the time"), mark("key idle", "not used")] : []));
}

/** The times of the stages as bars. */
function balance(stages, name) {
  if (stages.length < 2) return [];
  const most = longest(stages, "decode");
  const least = Math.min(...stages.map((stage) => computed(stage, "decode")));
  const rows = stages.map((stage) => {
    const bar = element("span", { className: "stage-bar", attributes: { "aria-hidden": "true" } });
    bar.style.width = `${(computed(stage, "decode") / most) * 100}%`;
    return element("div", { className: "stage-row" }, element("span", { textContent: name(stage.member) }), element("span", {}, bar), element("b", { textContent: time(computed(stage, "decode")) }));
  });
  return [element("article", { className: "card" }, element("h2", {}, element("span", { textContent: 1 - least / most < 0.2 ? `Stages, balanced within ${percent(1 - least / most)}` : "Stages of a token" })), ...rows)];
}

/** The answer in a line: the devices that are used, and those that are not needed. */
export function sentence({ placement, question, status }) {
  if (!placement) return [element("h1", { textContent: `${short(question.model).replace(/^.*\//, "")} on ${question.rig}: ${status.replaceAll("_", " ")}` })];
  const { stages, unused } = placement;
  const used = stages.reduce((sum, { copies }) => sum + 1 + copies.length, 0);
  const count = `${used} of ${used + unused.length} devices`;
  const left = unused.length === 1 ? `; ${unused[0]} holds no layers` : unused.length ? `; ${unused.slice(0, -1).join(", ")} and ${unused.at(-1)} hold no layers` : "";
  return [element("h1", {}, `${short(question.model).replace(/^.*\//, "")} runs on `, element("em", { textContent: unused.length ? count : used === 1 ? "one device" : `all ${used} devices` }), `: ${digits(placement.decode_tok_s)} tok/s${unused.length > 3 ? "" : left}`), element("p", { className: "sub", textContent: [question.rig, question.weight_format, `E2E of a request ${time(placement.request_ms)}`, status.replaceAll("_", " ")].join(" · ") })];
}

const bound = ({ placement: of }) => (of ? `${time(of.token_ms)} a token · ${digits(of.decode_tok_s)} tok/s · prefill ${time(of.prefill_ms)}` : "no placement fits");

/** The drawn device of a stage: joined devices are one, and their stages are `mac/1` or `mac 1`. */
const home = (scene, name) => scene.members.find((one) => one.name === name || (one.joined && [`${one.name}/`, `${one.name} `].some((start) => name.startsWith(start))))?.name ?? name;

/** What a device holds of a placement: its stages, the slowest of them, its memory, and words. */
function holding(member, scene, stages) {
  const held = stages.filter(({ member: name, copies }) => home(scene, name) === member.name || copies.includes(member.name));
  const stage = held.length ? held.reduce((a, b) => (b.decode_ms > a.decode_ms ? b : a)) : undefined;
  const [first, last] = [held[0]?.first_layer, held.at(-1)?.last_layer];
  const words = stage ? `layers ${first} to ${last}, ${time(held.reduce((sum, { decode_ms: ms }) => sum + ms, 0))} a token` : "not used";
  return { held, stage, memory: stage && stage.memory_bytes - stage.offloaded_bytes, words };
}

/** Many devices as groups of equal ones that follow each other. */
function grouped(scene, stages) {
  const all = [];
  scene.members.forEach((member) => {
    const { stage, memory, words } = holding(member, scene, stages);
    const device = { of: stage ? `layers ${stage.first_layer} to ${stage.last_layer}` : "not used", name: member.name, short: `${scene.members.indexOf(member) + 1}`, kind: stage ? "used" : "idle", words: `${member.device}, ${words}`, memory: stage ? memory / stage.usable_bytes : 0, rank: stage ? `layers ${stage.first_layer} to ${stage.last_layer}` : "idle" };
    const last = all.at(-1);
    if (last?.device === member.device && last.devices.length < GROUP) last.devices.push(device);
    else all.push({ device: member.device, name: member.device.replace(/^(nvidia|apple|amd|intel)-/, ""), devices: [device] });
  });
  return all;
}

const speed = (link, lists) => bytes(link.bandwidth?.value) ?? bytes(lists.links.find(({ id }) => id === link.link)?.summary) ?? 1e9;
const log = (value) => Math.max(Math.log10(value / 1e7), 0.1);

/** The same devices in other ways, with their times. */
function ways({ placement, question, disaggregated, compared = [], alone = [] }) {
  if (!placement) return [];
  const rows = [
    ["layers split as here", placement.token_ms, placement.request_ms],
    ...(disaggregated ? [["prefill and decode on different devices", disaggregated.token_ms, disaggregated.request_ms]] : []),
    ...alone.map((one) => [`${one.member ?? one.name ?? "one device"} alone`, one.token_ms ?? one.objective_ms, one.request_ms]),
    ...compared.filter((one) => Number.isFinite(one.objective_ms)).map((one) => [one.rule, question.objective === "latency" ? one.objective_ms : undefined, undefined, one.times]),
  ];
  const cell = (ms) => element("td", { className: "n", textContent: Number.isFinite(ms) ? time(ms) : "–" });
  return [element("article", { className: "card" }, element("h2", {}, element("span", { textContent: "The same devices, other ways" })), element("table", {}, element("thead", {}, element("tr", {}, ...["way", "a token", "a request", "times"].map((text, at) => element("th", { textContent: text, className: at ? "n" : "" })))), element("tbody", {}, ...rows.map(([name, token, request, times]) => element("tr", {}, element("th", { scope: "row", textContent: name }), cell(token), cell(request), element("td", { className: "n", textContent: digits(times ?? token / placement.token_ms) }))))))];
}
