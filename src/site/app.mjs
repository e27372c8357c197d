// The page: the question is the address; every answer is a part of a page that the engine renders.
import * as accuracy from "./accuracy.mjs";
import { buy } from "./buy.mjs";
import { OWN, canvas, sentence } from "./canvas.mjs";
import { card } from "./card.mjs";
import { chips } from "./chips.mjs";
import { engine, once, refused } from "./engine.mjs";
import * as forms from "./forms.mjs";
import { instrument } from "./front.mjs";
import { fabric, topology } from "./fabric.mjs";
import { groups, planned as ranked } from "./groups.mjs";
import * as kept from "./kept.mjs";
import * as layers from "./layers.mjs";
import * as library from "./library.mjs";
import * as link from "./link.mjs";
import { numbers } from "./numbers.mjs";
import { peaks as roofs } from "./roofline.mjs";
import * as palette from "./palette.mjs";
import { pinboard } from "./pinboard.mjs";
import * as pins from "./pins.mjs";
import { understood } from "./pasted.mjs";
import { worded } from "./phrases.mjs";
import { shortcuts } from "./shortcuts.mjs";
import { states } from "./states.mjs";
import { filter, sort } from "./tables.mjs";
import { element, percent, redrawn } from "./figures.mjs";
import * as toast from "./toast.mjs";
import { copied, pace, save } from "./tools.mjs";
import { traffic, without } from "./traffic.mjs";
import { why } from "./why.mjs";

const $ = (id) => document.getElementById(id);
$("unserved").remove();
const question = $("question");
/** Points of a front that are drawn. */
const POINTS = 120;
/** From then on, a search shows its best plan so far. */
const SLOW_MS = 1000;
/** Views that are sections of the answer to the question, and those that show it in another way too. */
const SECTIONS = ["answer", "why", "numbers", "where", "assumptions"];
const ANSWERED = [...SECTIONS, "traffic"];

const state = { view: "answer", files: {}, shown: null, early: false, last: null, trail: [], searches: 0, openings: 0, changes: 0, targets: [] };
const said = states({
  again: () => void opened(),
  back: () => void go(state.answered?.view ?? "answer", Object.fromEntries([...Object.keys(forms.fields(question)).map((key) => [key, ""]), ...Object.entries(state.answered?.fields ?? {})])),
  change: (changes) => void go(ANSWERED.includes(state.view) ? state.view : "answer", changes),
  answered: () => ANSWERED.includes(state.view) && !state.early && state.answered?.words,
  early: () => state.early,
});
const source = engine((done, all) => said.progress(done, all));

/** The question as chips; a change of one is a new question. */
const line = chips(question, () => {
  state.command = null;
  if (!board.cloned()) void go(ANSWERED.includes(state.view) ? state.view : "answer");
});

const page = (view) => document.querySelector(`[data-page="${view}"]`);
/** The part of a view that shows the answer. */
const part = (view) => page(view).querySelector("[data-part]") ?? page(view);
const say = (text) => ($("status").textContent = text);

/** A request with the files of the question. */
const whole = (body) => (Object.keys(state.files).length ? { ...body, files: state.files } : body);
/** An answer in a format. */
const answer = (name, body, format = "section") => source.answer(name, whole(body), format);

/** While a search lasts: its best answer so far, after ever longer times. */
async function meanwhile(early, signal) {
  const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));
  await pause(SLOW_MS);
  // An answer that comes at once is a refusal, of a busy server among others: the next request waits as long all the same.
  for (let seconds = 1; !signal.aborted; seconds *= 2) await Promise.all([early(seconds, signal), pause(1000 * seconds)]);
}

/**
 * Runs a search: old answers stay, greyed, until the new one is here. The newest question wins. `early` shows what is
 * found within some seconds.
 */
async function search(targets, work, form = question, early = null) {
  const number = (state.searches += 1);
  const begun = performance.now();
  state.over?.abort();
  const over = new AbortController();
  Object.assign(state, { targets, over, early: false });
  if (early) void meanwhile(early, over.signal);
  targets.forEach((target) => target.classList.add("stale"));
  said.working();
  question.querySelectorAll("[aria-invalid]").forEach((input) => input.removeAttribute("aria-invalid"));
  say("Computing …");
  try {
    const done = await work();
    if (number !== state.searches) return undefined;
    say(`Computed in ${Math.round(performance.now() - begun)} ms.`);
    said.done();
    return done;
  } catch (fault) {
    if (number === state.searches) failed(fault, form);
    return undefined;
  } finally {
    over.abort();
    if (number === state.searches) {
      targets.forEach((target) => target.classList.remove("stale"));
      $("stop").hidden = true;
    } else {
      targets.filter((target) => !state.targets.includes(target)).forEach((target) => target.classList.remove("stale"));
    }
  }
}

function failed(fault, form) {
  if (fault.name === "AbortError") return said.stopped(), say("Stopped.");
  if (fault.name === "Unreachable") return said.gone(), say("The server is not reachable.");
  if (fault.key !== undefined && !forms.mark(form, fault.key)) forms.mark(question, fault.key);
  line.draw();
  said.refused(fault);
  return say("Refused.");
}

/** The request of the question: an estimate of the given plan, or a search. */
function requested(extra = {}) {
  const scenario = forms.scenario(question);
  const plan = forms.plan(question);
  if (state.command) return ["estimate", { scenario, command: state.command }];
  if (plan) return ["estimate", { scenario: { ...scenario, deployment: { plan } } }];
  return ["optimize", { scenario, max_front_points: POINTS, ...extra }];
}

/** Why, where the question has a plan. */
const GIVEN = "<p class=\"soft\">The plan was given: nothing was chosen.</p><button type=\"button\" class=\"plain\" data-go=\"why\" data-clear=\"plan\">Compare the strategies</button>";

/** Distributes the sections of an answer over their views. Those that are in their place stay, so that nothing is drawn twice. */
function show(parts) {
  for (const view of SECTIONS.filter((name) => part(name) !== parts)) {
    const sections = [...parts.querySelectorAll(`section[data-view="${view}"]`)];
    part(view).replaceChildren(...sections);
    if (!sections.length) part(view).innerHTML = view === "why" && forms.plan(question) ? GIVEN : "<p class=\"soft\">This answer has no such part: ask for a plan that runs.</p>";
  }
}

const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

/** The question of the fields, so that a later fault can name it and lead back. */
function answeredNow() {
  const fields = forms.fields(question);
  return { view: state.view, fields, words: `${(fields.model ?? "Llama-3.3-70B").replace(/^.*--/, "")} on ${fields.hardware ?? line.hardware()}${fields.plan ? `, ${fields.plan}` : ""}` };
}

/** Shows the best plan that a search has found within some seconds, where it has one. */
async function soFar(name, body, seconds, signal) {
  const html = await source.soFar(name, whole(body), "section", seconds, signal).catch(() => undefined);
  if (signal.aborted || !html?.includes("data-notation")) return;
  Object.assign(state, { shown: null, early: true, answered: answeredNow() });
  show(parsed(html));
  enliven();
  state.targets.forEach((target) => target.classList.remove("stale"));
  said.soFar(seconds);
}

async function ask(extra = {}) {
  const key = JSON.stringify([requested(), state.files]);
  if (key === state.shown && (!extra.why || state.why)) return said.clear();
  const [name, body] = requested(extra);
  const html = await search(ANSWERED.map(part), () => answer(name, body), question, (...until) => soFar(name, body, ...until));
  if (html === undefined) return;
  Object.assign(state, { shown: key, why: Boolean(extra.why), last: [name, body], answered: answeredNow() });
  show(parsed(html));
  enliven();
  offerFormats();
  await verified();
  await nearby();
}

/** The acts of a point of the front. */
const ofPoint = {
  open: ({ plan }) => go("answer", { plan }),
  pin: ({ plan }) => pin({ ...planned(), deployment: { plan } }),
  slo: ({ tpot_ms: ms }) => ofPoint.limit("tpot", ms * 1.0005),
  limit: (name, ms) => go("answer", { [name]: ms >= 1e4 ? `${(ms / 1e3).toFixed(2)}s` : `${ms.toPrecision(4)}ms`, plan: "" }),
  launch: ({ plan }) => {
    state.launching = true;
    return go("answer", { plan });
  },
};

/** Opens the files and reasons of the launch. */
function launched() {
  state.launching = false;
  const box = part("answer").querySelector("#launch");
  if (!box) return;
  box.open = true;
  box.scrollIntoView({ block: "start" });
  box.querySelector("summary").focus({ preventScroll: true });
}

/** Makes the parts of a shown answer instruments. */
function enliven() {
  const section = part("answer").querySelector("section");
  line.draw(JSON.parse(section?.dataset.question ?? "null"));
  if (section) instrument(section, ofPoint);
  decided();
  if (state.launching) launched();
}

/** The strategies of the answer as pictures, where they were searched. */
function decided() {
  const section = part("why").querySelector("section[data-why]");
  if (section) why(section, part("answer").querySelector("section"), kept.picks("why"), { keep: (change) => keep("why", change), ask: (changes) => go("why", changes) });
}

/** Adds the nearest published measurements to the answer. */
async function nearby() {
  const { shown } = state;
  const section = part("answer").querySelector("section[data-notation]");
  if (!section) return;
  const html = await answer("nearest", { scenario: planned() }).catch(() => "");
  if (shown !== state.shown || !section.isConnected) return;
  section.insertAdjacentHTML("beforeend", html);
  // In short where it keeps its place, in full below.
  const [short, slot] = [section.querySelector(".nearest"), section.querySelector("[data-slot=nearest]")];
  if (short && slot) slot.replaceWith(short);
}

/** Checks a saved answer that was dropped: it is computed again and compared. */
async function verified() {
  const { saved } = state;
  if (!saved) return;
  state.saved = null;
  const html = await search([], () => answer("verify", { result: saved }));
  if (html !== undefined) part("answer").insertAdjacentHTML("afterbegin", html);
}

/** Hides the buttons of formats that the engine does not write. */
function offerFormats() {
  document.querySelectorAll("[data-export]").forEach((button) => (button.hidden = !source.formats.includes(button.dataset.export)));
}

function tab(view) {
  state.view = view = page(view) ? view : "answer";
  board.left();
  document.querySelectorAll("[data-page]").forEach((one) => (one.hidden = one.dataset.page !== view));
  document.querySelectorAll("nav [data-tab]").forEach((one) => (one.dataset.tab === view ? one.setAttribute("aria-current", "page") : one.removeAttribute("aria-current")));
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

async function address(view = state.view) {
  return link.write(view, forms.fields(question), state.files, view === "compare" ? pins.pinned() : [], page(view) ? kept.written(page(view)) : {});
}

/** Keeps what the pictures of a view show in its address, without a new answer. */
async function keep(view, changes) {
  kept.pick(view, changes);
  if (state.view === view) await readdressed();
}

/** Writes the address of what is shown or on its way: of changes that overlap the newest, and none where the reader has gone on. */
async function readdressed() {
  const [change, opening, { view }] = [(state.changes += 1), state.openings, state];
  const next = await address(view);
  const isNewest = change === state.changes && opening === state.openings && view === state.view;
  if (!isNewest || location.hash !== state.address) return;
  const { dataset } = document.documentElement;
  const shown = dataset.opened === location.hash;
  history.replaceState(null, "", next);
  state.address = location.hash;
  if (shown) dataset.opened = location.hash;
}

/** Changes the question by its address, so that Back undoes it. */
async function go(view, changes = {}) {
  forms.fill(question, { ...forms.fields(question), ...changes });
  const next = await address(view);
  if (next === location.hash) return opened();
  location.hash = next;
}

/** Answers the address. Of two that overlap, the newer one counts: its fields, its faults, and when it is answered. */
async function opened() {
  const number = (state.openings += 1);
  const superseded = () => number !== state.openings;
  state.address = location.hash;
  try {
    const { view, fields, files, own = {}, permalink, pins: given } = await link.read(location.hash);
    const linked = permalink ? JSON.parse(await source.answer("permalink", { link: permalink }, "json")).question.scenario : fields;
    if (superseded()) return;
    const [unknown] = forms.unknown(question, flat(linked));
    if (unknown) throw new Error(`this link has the key "${unknown}", which the page does not know; it was not answered without it`);
    if (page(view)) kept.restored(page(view), own);
    Object.assign(state, { files, command: null });
    forms.fill(question, flat(linked));
    if (given) pins.keep(given);
    line.close({ restore: true });
    line.draw();
    said.clear();
    tab(view);
    if (ANSWERED.includes(state.view)) {
      if (rigged()) part("where").replaceChildren();
      else await ask({ why: view === "why" });
      if (state.view === "where") await Promise.all([opening(page("where")), devices()]);
      if (state.view === "numbers") await operators();
      if (state.view === "traffic") await simulated();
    } else {
      await opening(page(state.view));
    }
  } catch (fault) {
    if (!superseded()) failed(fault, question);
  }
  // Not `location.hash`: the next address may be there before its event.
  if (!superseded()) document.documentElement.dataset.opened = state.address;
}

/** A scenario as fields. */
const flat = ({ deployment, ...rest }) => ({ ...rest, ...(deployment?.plan ? { plan: deployment.plan } : deployment && { deployment }) });

/** Whether the hardware of the question is heterogeneous, which only placements use. */
const rigged = () => {
  const { value } = question.elements.hardware;
  return state.view === "where" && (Boolean(state.files[`hardware/rigs/${value}`]) || [...$("rigs").options].some((one) => one.value === value));
};

/** Views that answer when they are opened, unless they show the answer to this question. */
async function opening(view) {
  if (view === page("library")) own();
  if (view === page("compare")) await board.show();
  if (view === page("accuracy")) await accurate();
  for (const form of view.querySelectorAll("form[data-kept]")) {
    const target = view.querySelector(".output");
    if (!kept.isSent(form)) {
      target.replaceChildren();
      delete target.dataset.answered;
    } else if (target.dataset.answered !== key(form)) await submitted(form);
    else if (form.dataset.request === "recommend") bought();
  }
  if (view === page("layers")) await sharded(view.querySelector("form"));
  const form = view.querySelector("form[data-auto]");
  const rig = form?.elements["scenario.hardware"];
  if (rig && rigged()) rig.value = question.elements.hardware.value;
  if (form && view.querySelector(".output").dataset.answered !== key(form) && (!rig || rig.value)) await submitted(form);
}

/** Chooses the degrees and formats of the answer to the question in the menus of a static batch, once. */
async function sharded(form) {
  const [wanted, target] = [JSON.stringify([requested(), state.files]), form.parentElement.querySelector(".output")];
  if (state.sharded?.wanted === wanted) return;
  const section = state.shown === wanted && page("answer").querySelector("section[data-notation]");
  const [name, body] = section ? ["estimate", { scenario: planned() }] : requested();
  const json = await search([target], () => answer(name, body, "json")).catch(() => undefined);
  const found = json && JSON.parse(json);
  const own = found?.best ?? found;
  state.sharded = { wanted, formats: {} };
  if (!own?.notation) return;
  const { weight_format, kv_format, notation } = own;
  Object.assign(state.sharded, { formats: { weight_format, kv_format }, notation });
  forms.choose(form, layers.degrees(notation));
}

/** The request of a form; a static batch has the formats of the answer where the question sets none. */
function wanted(form) {
  const body = forms.request(form, question);
  if (form.dataset.request !== "static" || !state.sharded) return body;
  const formats = Object.entries(state.sharded.formats).filter(([name]) => !body.scenario[name] && !(name === "weight_format" && (body.scenario.prefill_weight_format || body.scenario.decode_weight_format)));
  return { ...body, scenario: { ...body.scenario, ...Object.fromEntries(formats) } };
}

const key = (form) => JSON.stringify([wanted(form), state.files]);
async function submitted(form) {
  const target = form.parentElement.querySelector(".output");
  const name = form.dataset.request;
  const body = wanted(form);
  if (name === "recommend") return recommended(form, target, body);
  const [html, json] = (await search([target], () => Promise.all([answer(name, body), name === "static" ? answer(name, body, "json") : null]), form)) ?? [];
  if (html !== undefined) {
    target.innerHTML = html;
    if (json) shardedNow(target, JSON.parse(json));
    Object.assign(target.dataset, { answered: key(form), entryKind: body.kind ?? "" });
    if (name === "place") await scene(form, body);
    if (name === "diagnose") await diagnosed(body);
    const legal = target.querySelector("[data-legal]")?.dataset.legal;
    if (legal) forms.offer(form, JSON.parse(legal));
  }
}

/** The answer of `recommend` as pictures. */
async function recommended(form, target, body) {
  if (form.elements.seek.value) body.scenario.hardware ??= line.hardware();
  if (form.elements.seek.value || (body.scenario.hardware && !body.scenario.model)) delete body.only;
  const json = await search([target], () => answer("recommend", body, "json"), form);
  if (json === undefined) return;
  target.dataset.answered = key(form);
  state.bought = JSON.parse(json);
  bought();
}

/** Draws the offers, and again where another part of them is to be shown. */
function bought() {
  const form = page("buy").querySelector("form");
  const target = page("buy").querySelector(".output");
  if (!state.bought) return;
  buy(target, state.bought, {
    keep: (change) => keep("buy", change),
    pick: (change) => (void keep("buy", change), redrawn(target, bought)),
    open: ({ model, system, each, copies }) => go("answer", { model, hardware: system, weight_format: "", plan: copies ? each.notation : "" }),
    relax: ({ form: fields = {}, question: changes = {} }) => {
      Object.entries(fields).forEach(([name, value]) => (form.elements[name].value = value));
      kept.sent(form);
      return go("buy", changes);
    },
  }, kept.picks("buy"));
}

/** A deployment that published runs are compared with where the question has none that runs. */
const REFERENCE = { model: "Llama-3.1-8B", hardware: "1xh100", deployment: { plan: "1 x tp1 @16" } };
/** Published runs that are drawn, at most; and the longest text of own runs that an address takes. */
const [PUBLISHED, LINKED] = [1000, 1 << 17];

/** The plan of the question, as answered where it is. */
const posed = () => (JSON.stringify([requested(), state.files]) === state.shown && page("answer").querySelector("section[data-notation]") ? planned() : requested()[1].scenario);

/** Measured against predicted: the published runs, held-out errors, own runs, and those of a store. */
async function accurate() {
  const target = $("measured");
  const runtime = kept.picks("accuracy").runtime ?? "vllm";
  const runs = kept.picks("accuracy").runs ?? state.runs;
  const scenario = posed();
  const wanted = JSON.stringify([runtime, scenario, runs, state.files]);
  if (target.dataset.answered !== wanted) {
    const parsed = async (...request) => JSON.parse(await answer(...request, "json"));
    const near = (of) => parsed("nearest", { scenario: of, most: PUBLISHED, any: true });
    const found = await search([target], async () => ({
      left: await once("left", runtime, () => parsed("validate", { left_out: runtime }).catch(refused(() => []))),
      profile: await once("profile", [runtime, state.files], () => parsed("catalog", { kind: "runtimes", name: runtime })),
      near: await once("near", [scenario, state.files], () => near(scenario).catch(refused(() => near(REFERENCE)))),
      stored: await source.measured(),
      own: runs && (await accuracy.owned(runs, { scenario: forms.scenario(question), plan: forms.plan(question), hardware: line.hardware() }, answer)),
    }));
    if (!found) return;
    target.dataset.answered = wanted;
    state.accuracy = { ...found, runtime };
  }
  compareMeasured();
}

/** Numbers that were entered, with their prediction. */
async function diagnosed(body) {
  const { notation, metrics } = JSON.parse(await answer("diagnose", body, "json"));
  const of = (name) => metrics.find(({ metric }) => metric === name);
  state.entered = { id: notation, TPOT: of("tpot_ms"), TTFT: of("ttft_ms"), "tok/s": of("output_tok_s") };
  if (state.accuracy && state.view === "accuracy") compareMeasured();
}

function compareMeasured() {
  const target = $("measured");
  const { left, profile, near, stored, own, runtime } = state.accuracy;
  const picks = kept.picks("accuracy");
  const rows = [...(state.entered ? [state.entered] : []), ...(own?.own ?? [])];
  const act = {
    pick: (change) => {
      void keep("accuracy", change);
      if (!("runtime" in change)) return redrawn(target, compareMeasured);
      return accurate();
    },
    add: async (file) => {
      const runs = { name: file.name, csv: await file.text() };
      Object.assign(state, { runs, submitted: undefined });
      await keep("accuracy", { runs: runs.csv.length <= LINKED ? runs : undefined });
      return accurate();
    },
    clear: async () => {
      state.runs = state.entered = state.submitted = undefined;
      await keep("accuracy", { runs: undefined });
      return accurate();
    },
  };
  const submitted = stored ? accuracy.records((picks.runs ?? state.runs)?.csv) : [];
  if (submitted.length) {
    act.submit = async () => {
      state.submitted = await source.submit(submitted);
      delete target.dataset.answered;
      return accurate();
    };
  }
  act.submitted = state.submitted;
  const cloud = accuracy.scatter(near.rows, rows, picks, act);
  const drift = accuracy.drift(stored, picks, act);
  const odds = left.flatMap(({ name, at_odds: all }) => (name.includes("lighter and heavier") ? all.filter(({ odds: share }) => share === 0.9) : []))[0];
  const sub = [`${near.known.toLocaleString("en")} published runs ship with the program`, ...(odds ? [`at odds of 90 %, ${percent(odds.limit_met)} of choices meet their SLO when measured`] : [])].join(" · ");
  target.replaceChildren(
    element("div", { className: "head" }, element("div", {}, element("h1", { textContent: accuracy.finding(left) }), element("p", { className: "sub", textContent: sub })), element("div", { className: "row actions" }, element("button", { type: "button", className: "plain", textContent: "Copy link", attributes: { "data-action": "link" } }))),
    element("div", { className: "grid-2 measured" }, element("div", { className: "stack" }, cloud.figure, accuracy.yours(rows, own?.summary, own?.fault, act)), element("div", { className: "stack" }, accuracy.held(left, profile, [...$("runtimes").options].map(({ value }) => value), runtime, act), drift.figure)));
  cloud.placed();
  drift.placed();
}

/** Memory and compute of a device over the tables, against those of the answer's own degrees. */
function shardedNow(target, found) {
  const own = state.sharded;
  if (own?.notation) own.first ??= found;
  const words = own?.notation ? `Opened with the degrees and formats of the answer, ${own.notation}; each choice changes the figures.` : "No plan fits this question: the degrees are the defaults.";
  target.querySelector("h1")?.replaceWith(element("p", { className: "sub", textContent: words }), layers.summary(found, own?.first));
}

/** Lists of the catalogue that the scene offers, once. */
const listed = {};
const list = async (kind) => (listed[kind] ??= JSON.parse(await answer("catalog", { kind }, "json")));

/** The devices of a placement as a scene, whose changes are solved again. */
async function scene(form, body) {
  const id = body.scenario?.hardware;
  const place = $("scene");
  if (!id) return place.replaceChildren();
  const rig = state.files[`hardware/rigs/${id}`] ?? JSON.parse(await answer("catalog", { kind: "rigs", name: id }, "json"));
  const [placed, links, devices] = await Promise.all([answer("place", body, "json"), list("links"), list("devices")]);
  const shown = devices.filter(({ id: one }) => /^(nvidia|apple|amd-(mi|rad|rx|ryzen)|intel-arc)/.test(one));
  const found = JSON.parse(placed);
  canvas(place, rig, found, { links, devices: shown }, {
    spots: kept.picks("where").spots,
    keep: (spots) => void keep("where", { spots }),
    changed: (files) => {
      Object.assign(state.files, files);
      form.elements["scenario.hardware"].value = OWN;
      return go("where", { hardware: OWN, plan: "" });
    },
  });
  place.prepend(...sentence(found));
}

/** The devices of the shown plan as groups that open, in place of their picture. */
async function devices() {
  const { shown } = state;
  const figure = part("where").querySelector("figure.natural");
  if (!figure) return;
  const [json, links] = await Promise.all([answer("estimate", { scenario: planned() }, "json").catch(() => undefined), list("links")]);
  if (json === undefined || shown !== state.shown || !figure.isConnected) return;
  const place = element("div", { className: "ranks" });
  figure.replaceWith(place);
  const plan = JSON.parse(json);
  const set = (at, bandwidth) => go("where", overriding(`system.tiers.${at}.bandwidth`, bandwidth));
  const linked = topology(plan, links, { spots: kept.picks("where").spots, keep: (spots) => void keep("where", { spots }), set });
  groups(place, ranked(plan), { notes: [fabric(plan, links, set)], opened: kept.picks("where"), changed: (open) => keep("where", open), linked });
}

/** The operators of the shown plan as a timeline, a tree and a roofline. */
async function operators() {
  const { shown } = state;
  const section = part("numbers").querySelector("section");
  if (!section?.querySelector("#operators")) return;
  const [json, peaks] = await Promise.all([answer("estimate", { scenario: planned() }, "json").catch(() => undefined), roofs(forms.scenario(question).hardware ?? line.hardware(), list, answer)]);
  if (json === undefined || shown !== state.shown || !section.isConnected) return;
  numbers(section, JSON.parse(json), peaks, { explain: (number, path) => ((state.trail = []), explain(number, path)) });
}

/** The plan of the answer under traffic. */
async function simulated() {
  const target = part("traffic");
  if (JSON.stringify([requested(), state.files]) !== state.shown) return undefined;
  if (!part("answer").querySelector("section[data-notation]")) return target.replaceChildren(without("No plan runs for this question.", element("a", { href: "#answer", textContent: "The answer says why, and what would help", attributes: { "data-tab": "answer" } })));
  const { plan } = planned().deployment;
  return traffic(target, planned(), state.files, {
    answer,
    search: (targets, work, caught) => search(targets, () => work().catch(caught)),
    picks: () => kept.picks("traffic"),
    keep: (change) => void keep("traffic", change),
    pick: async (change) => (await keep("traffic", change), simulated()),
    trace: () => kept.picks("traffic").trace ?? state.trace,
    // A long trace stays in this window.
    take: async (file, change = {}) => {
      const trace = file && { name: file.name, text: await file.text() };
      state.trace = trace;
      await keep("traffic", { ...change, at: undefined, request: undefined, trace: trace && trace.text.length <= LINKED ? trace : undefined });
      return simulated();
    },
    // The curve is of this plan: another rate keeps it.
    rate: (rate) => go("traffic", { rate: String(rate), concurrency: "", plan }),
  });
}

/** The scenario of the shown answer, with its plan. */
function planned() {
  const section = page("answer").querySelector("section");
  const scenario = JSON.parse(section?.dataset.scenario || "null") ?? forms.scenario(question);
  return { ...scenario, deployment: { plan: section?.dataset.notation } };
}

/** The pins and their comparison. */
const board = pinboard($("compared"), {
  question, chips: line, search, answer, go, keep, counted, flat,
  list: (kind) => list(kind),
  files: () => state.files,
  addressed: readdressed,
  explain: (number, subject) => {
    Object.assign(state, { trail: [], subject });
    return explain(number);
  },
});

async function explain(number, path) {
  try {
    $("panel").hidden = false;
    const html = await answer("explain", { scenario: (state.view === "compare" && state.subject) || planned(), number, depth: 2, ...(path ? { path } : {}) });
    $("explained").innerHTML = html;
    state.trail.push([number, path]);
    $("trail").textContent = state.trail.map(([one, part]) => part ?? one).join(" › ");
  } catch (fault) {
    $("explained").textContent = fault.message;
  }
}

function back() {
  state.trail.pop();
  const last = state.trail.pop();
  return last ? explain(...last) : close();
}

function close() {
  state.trail = [];
  $("panel").hidden = true;
}

/** Pins a plan; a line says so, with what can follow. */
function pin(scenario) {
  const undo = pins.pin(scenario);
  counted();
  const button = (label, act) => element("button", { type: "button", className: "link", textContent: label, onclick: () => (toast.close(), act()) });
  toast.show(`Pinned ${scenario.deployment.plan}`, button("Compare", () => go("compare")), button("Undo", () => (undo(), counted())));
}

async function exported(format) {
  const [name, body] = state.last ?? requested();
  const { max_front_points: _, ...whole } = body;
  try {
    const content = await answer(name, whole, format);
    if (content) save(`mantile-${name}.${format}`, content);
  } catch (fault) {
    failed(fault, question);
  }
}

async function used(text) {
  try {
    const found = understood(text) ?? worded(text, actions);
    $("pasted").textContent = `Read ${found.what}.`;
    if (found.changes) return go("answer", found.changes);
    if (found.saved) Object.assign(state, { saved: found.saved, shown: null });
    if (found.command) {
      state.command = found.command;
      forms.fill(question, { ...forms.fields(question), plan: "" });
      tab("answer");
      return ask();
    }
    Object.assign(state.files, found.files);
    const { device, ...fields } = flat(found.fields);
    // As many devices as before.
    if (device) fields.hardware = `${forms.fields(question).hardware?.match(/^(\d+x)+/)?.[0] ?? "1x"}${device}`;
    forms.fill(question, { ...(found.saved ? {} : forms.fields(question)), ...fields });
    return go("answer");
  } catch (fault) {
    return ($("pasted").textContent = fault.message);
  }
}

const actions = {
  ask: (changes) => go("answer", changes),
  back, close, pace,
  where: (changes) => go("where", changes),
  fields: () => forms.fields(question),
  hardware: () => line.hardware(),
  palette: () => palette.open(actions),
  link: async (button) => copied(new URL(await address(state.view), location.href).href, button),
  theme: () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("mantile-theme", root.dataset.theme);
  },
  why: () => ask({ why: true }),
  card: async () => save("mantile-card.svg", card(part("answer").querySelector("section"), new URL(await address("answer"), location.href).href), "image/svg+xml"),
  edit: (button) => library.edit(button, (text) => used(text)),
  reset: () => go("assumptions", { set: "" }),
  best: () => go("answer", { plan: "" }),
  launch: launched,
  pin: () => pin(planned()),
  unpin: () => board.forget(),
  clone: () => board.clone(),
  paste: () => used($("paste").value),
};

function clicked(event) {
  const at = (selector) => event.target.closest(selector);
  const hit = (selector, act) => {
    const found = at(selector);
    if (found) act(found);
    return Boolean(found);
  };
  return (
    hit("[data-number]", ({ dataset }) => ((state.trail = []), explain(dataset.number))) ||
    hit("[data-path]", ({ dataset }) => explain(state.trail.at(-1)?.[0] ?? "tpot", dataset.path)) ||
    hit("[data-plan]:not(form)", ({ dataset }) => go("answer", { plan: dataset.plan })) ||
    hit("[data-flags]", ({ dataset }) => go("answer", forms.flags(dataset.flags))) ||
    hit("[data-copy]", (button) => copied(button.dataset.copy, button)) ||
    hit("[data-save]", (button) => save(button.dataset.save.replaceAll("/", "-"), button.parentElement.querySelector("pre").textContent)) ||
    hit("[data-degrees]", ({ dataset }) => (forms.choose(page("layers").querySelector("form"), dataset.degrees), submitted(page("layers").querySelector("form")))) ||
    hit("[data-export]", ({ dataset }) => exported(dataset.export)) ||
    hit("[data-toggle]", ({ dataset }) => ($(dataset.toggle).hidden = !$(dataset.toggle).hidden)) ||
    hit("[data-entry]", ({ dataset }) => entry(dataset.entry)) ||
    hit("[data-go]", ({ dataset }) => go(dataset.go, dataset.clear ? { [dataset.clear]: "" } : {})) ||
    hit("[data-try]", ({ dataset }) => tried(JSON.parse(dataset.try))) ||
    hit("[data-example]", (button) => ((button.form.elements[button.dataset.field].value = button.dataset.example), button.form.requestSubmit())) ||
    hit("[data-open]", ({ dataset }) => line.open(dataset.open)) ||
    hit("[data-action]", (button) => actions[button.dataset.action](button)) ||
    hit("table[data-sort] thead th", sort) ||
    hit("[data-tab]", ({ dataset }) => (event.preventDefault(), go(dataset.tab)))
  );
}

/** An example of a view: its question, and the fields of its form, answered. */
async function tried({ view, request, question: changes, fields }) {
  const form = page(view).querySelector(`form[data-request=${request}]`);
  form.reset();
  Object.entries(fields).forEach(([name, value]) => (form.elements[name][typeof value === "boolean" ? "checked" : "value"] = value));
  kept.sent(form);
  await go(view, changes);
}

/** The number of pins in the navigation. */
function counted() {
  const number = pins.pinned().length;
  $("pin-count").textContent = number;
  $("pin-count").hidden = !number;
}

/** An entry of the library: its file, or the structure of a model. */
async function entry(name) {
  const target = page("library").querySelector(".output");
  const kind = target.dataset.entryKind;
  const file = () => answer("catalog", { kind, name });
  const both = async () => (await answer("inspect", { model: name })) + (await file());
  const html = await search([target], kind === "models" ? both : file);
  if (html !== undefined) target.innerHTML = html;
}

/** The reader's own files, which the address carries. */
function own() {
  library.list($("own"), state.files, (name) => {
    delete state.files[name];
    own();
    return go("library");
  });
}

/** The overrides of the question with that of a figure; one of the same figure is replaced. */
function overriding(path, value) {
  const others = question.elements.set.value.split("\n").filter((line) => line && !line.startsWith(`${path}=`));
  return { set: [...others, `${path}=${value}`].join("\n") };
}

/** A number of a live form is computed when no key has followed for a moment. */
function typed(form) {
  clearTimeout(state.typing);
  state.typing = setTimeout(() => void submitted(form), 200);
}

/** A slider changes the load of the given plan; only the newest value is computed. */
function slid(input) {
  const plan = (page("answer").querySelector("section")?.dataset.notation ?? "").replace(/@[\d.]+/, `@${input.value}`);
  input.nextElementSibling.textContent = input.value;
  question.elements.plan.value = plan;
  clearTimeout(state.sliding);
  state.sliding = setTimeout(async () => {
    // Before the answer, whose last parts may come after the next address.
    await readdressed();
    await ask();
    page("answer").querySelector("[data-slider]")?.focus();
  }, 60);
}

/** Single letters, outside fields. */
const keys = shortcuts({
  "/": () => palette.open(actions),
  q: () => $("chips").querySelector("[data-chip]").focus(),
  p: () => part("answer").querySelector("section[data-notation]") && pin(planned()),
  c: () => part("answer").querySelector("[data-action=link]")?.click(),
  "[": back,
  "?": () => toast.show("⌘K or / search · g then a w n e t s b c l y i: views · q question · p pin · c copy link · [ back · arrows: front"),
}, (view) => go(view));

document.addEventListener("click", (event) => void clicked(event));
document.addEventListener("input", ({ target }) => {
  if (target.dataset.filter) filter(target);
  if (target.dataset.slider) slid(target);
  if (target.type === "number" && target.closest("form[data-live]") && target.checkValidity()) typed(target.form);
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target === question) {
    state.command = null;
    line.close({ submit: false });
    return void go(ANSWERED.includes(state.view) ? state.view : "answer");
  }
  if (event.target.id === "override") return void go("assumptions", overriding(event.target.elements.path.value, event.target.elements.value.value));
  if (event.target.dataset.kept !== undefined) {
    const { seek } = event.target.elements;
    if (seek) seek.value = event.submitter?.dataset.seek ?? "";
    kept.sent(event.target);
    return void go(state.view);
  }
  // The scene is above its form.
  if (event.target.dataset.request === "place") scrollTo({ top: 0 });
  return void submitted(event.target);
});
document.addEventListener("change", ({ target }) => {
  const form = target.closest("form[data-live]");
  if (form) void submitted(form);
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    palette.open(actions);
  }
  if (event.key === "Escape" && !$("panel").hidden) close();
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog, [data-pop]")) return;
  const act = keys.press(event.key);
  if (!act) return;
  event.preventDefault();
  act();
});
$("stop").addEventListener("click", () => source.stop());
$("file").addEventListener("change", async ({ target }) => used(await target.files[0].text()));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  used(file ? await file.text() : event.dataTransfer.getData("text"));
});
window.addEventListener("hashchange", () => (state.opening = opened()));

document.documentElement.dataset.theme = localStorage.getItem("mantile-theme") ?? "";
// The default question is answered in the page itself.
Object.assign(state, { shown: JSON.stringify([requested(), {}]), last: requested(), answered: answeredNow() });
show(part("answer"));
enliven();
counted();
offerFormats();
// Where a browser keeps no files, the page works as long as it is served.
if (source.kind === "wasm") navigator.serviceWorker?.register("offline.mjs").catch(() => {});
if (!location.hash && !localStorage.getItem("mantile-seen")) {
  localStorage.setItem("mantile-seen", "yes");
  const begin = (textContent, onclick) => element("button", { type: "button", className: "link", textContent, onclick: () => (toast.close(), onclick()) });
  toast.show("This is the answer to an example.", begin("Your model", () => line.open("model")), begin("Examples", () => go("ask")));
}
state.opening = opened();
void state.opening.then(() => state.view === "answer" && page("answer").children.length === 1 && nearby());
