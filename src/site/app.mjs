// The page: the question is the address; every answer is a part of a page that the engine renders.
import { engine } from "./engine.mjs";
import * as forms from "./forms.mjs";
import * as link from "./link.mjs";
import * as palette from "./palette.mjs";
import { understood } from "./pasted.mjs";
import { filter, sort } from "./tables.mjs";

const $ = (id) => document.getElementById(id);
const question = $("question");
/** Points of a front that are drawn. */
const POINTS = 120;
/** Views that show the answer to the question. */
const ANSWERED = ["answer", "why", "numbers", "assumptions"];

const state = { view: "answer", files: {}, shown: null, last: null, trail: [], asked: 0, targets: [] };
const source = engine((done, all) => {
  $("progress").hidden = false;
  $("progress").value = all ? done / all : 0;
});

const page = (view) => document.querySelector(`[data-page="${view}"]`);
const say = (text) => ($("status").textContent = text);

/** An answer in a format, with the files of the question. */
function answer(name, body, format = "section") {
  const files = Object.keys(state.files).length ? { files: state.files } : {};
  return source.answer(name, { ...body, ...files }, format);
}

/** Runs a search: old answers stay, greyed, until the new one is here. The newest question wins. */
async function search(targets, work, form = question) {
  const number = (state.asked += 1);
  const begun = performance.now();
  state.targets = targets;
  targets.forEach((target) => target.classList.add("stale"));
  $("stop").hidden = false;
  $("fault").hidden = true;
  question.querySelectorAll("[aria-invalid]").forEach((input) => input.removeAttribute("aria-invalid"));
  say("Computing …");
  try {
    const done = await work();
    if (number !== state.asked) return undefined;
    say(`Computed in ${Math.round(performance.now() - begun)} ms.`);
    return done;
  } catch (fault) {
    if (number === state.asked) failed(fault, form);
    return undefined;
  } finally {
    if (number === state.asked) {
      targets.forEach((target) => target.classList.remove("stale"));
      $("stop").hidden = true;
      $("progress").hidden = true;
    } else {
      targets.filter((target) => !state.targets.includes(target)).forEach((target) => target.classList.remove("stale"));
    }
  }
}

function failed(fault, form) {
  if (fault.name === "AbortError") return say("Stopped.");
  const words = fault.key === undefined ? `${fault.message}` : `${fault.key}: found ${fault.found}; expected ${fault.expected}. ${fault.fix}`;
  if (fault.key !== undefined && !forms.mark(form, fault.key)) forms.mark(question, fault.key);
  $("fault").textContent = words;
  $("fault").hidden = false;
  return say("Refused.");
}

/** The request of the question: an estimate of the given plan, or a search. */
function asked(extra = {}) {
  const scenario = forms.scenario(question);
  const plan = forms.plan(question);
  if (state.command) return ["estimate", { scenario, command: state.command }];
  if (plan) return ["estimate", { scenario: { ...scenario, deployment: { plan } } }];
  return ["optimize", { scenario, max_front_points: POINTS, ...extra }];
}

/** Distributes the sections of an answer over their views. */
function show(html) {
  const parts = new DOMParser().parseFromString(html, "text/html");
  for (const view of ANSWERED) {
    const sections = [...parts.querySelectorAll(`section[data-view="${view}"]`)];
    page(view).replaceChildren(...sections);
    if (!sections.length) page(view).innerHTML = "<p class=\"soft\">This answer has no such part: ask for a plan that runs.</p>";
  }
}

async function ask(extra) {
  const key = JSON.stringify([asked(extra), state.files]);
  if (key === state.shown) return;
  const [name, body] = asked(extra);
  const html = await search(ANSWERED.map(page), () => answer(name, body));
  if (html === undefined) return;
  [state.shown, state.last] = [key, [name, body]];
  show(html);
  offerFormats();
}

/** Hides the buttons of formats that the engine does not write. */
function offerFormats() {
  document.querySelectorAll("[data-export]").forEach((button) => (button.hidden = !source.formats.includes(button.dataset.export)));
}

function tab(view) {
  if (!page(view)) view = "answer";
  state.view = view;
  document.querySelectorAll("[data-page]").forEach((one) => (one.hidden = one.dataset.page !== view));
  document.querySelectorAll("[data-tab]").forEach((one) => (one.dataset.tab === view ? one.setAttribute("aria-current", "page") : one.removeAttribute("aria-current")));
  if (view === "compare") pins();
}

async function address(view = state.view) {
  return link.write(view, forms.fields(question), state.files);
}

/** Changes the question by its address, so that Back undoes it. */
async function go(view, changes = {}) {
  forms.fill(question, { ...forms.fields(question), ...changes });
  const next = await address(view);
  if (next === location.hash) return opened();
  location.hash = next;
}

async function opened() {
  try {
    const { view, fields, files, permalink } = await link.read(location.hash);
    Object.assign(state, { files, command: null });
    const linked = permalink ? JSON.parse(await source.answer("permalink", { link: permalink }, "json")).question.scenario : fields;
    forms.fill(question, flat(linked));
    tab(view);
    if (ANSWERED.includes(state.view)) {
      // The default question is answered in the page itself.
      if (!Object.keys(linked).length && !state.shown && page("answer").querySelector("section")) state.last = asked();
      else await ask();
    } else {
      await opening(page(state.view));
    }
  } catch (fault) {
    failed(fault, question);
  }
}

/** A scenario as fields of the form. */
const flat = ({ deployment, ...rest }) => ({ ...rest, ...(deployment?.plan ? { plan: deployment.plan } : {}) });

/** Views that answer when they are opened. */
async function opening(view) {
  const form = view.querySelector("form[data-auto]");
  const rig = form?.elements["scenario.hardware"];
  if (rig && !rig.value && [...document.querySelectorAll("#rigs option")].some((one) => one.value === question.elements.hardware.value)) rig.value = question.elements.hardware.value;
  if (form && !view.querySelector(".output").children.length && (!rig || rig.value)) await submitted(form);
}

async function submitted(form) {
  const target = form.parentElement.querySelector(".output");
  const name = form.dataset.request;
  const body = forms.request(form, question);
  const html = await search([target], () => answer(name, body), form);
  if (html !== undefined) {
    target.innerHTML = html;
    target.dataset.entryKind = body.kind ?? "";
  }
}

/** The scenario of the shown answer, with its plan. */
function planned() {
  const section = page("answer").querySelector("section");
  const scenario = JSON.parse(section?.dataset.scenario || "null") ?? forms.scenario(question);
  return { ...scenario, deployment: { plan: section?.dataset.notation } };
}

async function explain(number, path) {
  try {
    $("panel").hidden = false;
    const html = await answer("explain", { scenario: planned(), number, depth: 2, ...(path ? { path } : {}) });
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

const PINS = "mantile-pins";
const pinned = () => JSON.parse(localStorage.getItem(PINS) ?? "[]");

function pins() {
  $("pins").replaceChildren(
    ...pinned().map(({ name }) => {
      const item = document.createElement("li");
      item.textContent = name;
      return item;
    }),
  );
}

/** Tokens at the predicted pace. */
function pace(button) {
  const place = button.parentElement.parentElement.querySelector(".pace");
  const { ttft, tpot } = button.dataset;
  const words = "The answer appears at this pace: each word is a token, after the time to the first one. ".repeat(4).split(" ");
  clearInterval(state.pacing);
  [place.hidden, place.textContent] = [false, ""];
  setTimeout(() => (state.pacing = setInterval(() => (words.length ? (place.textContent += `${words.shift()} `) : clearInterval(state.pacing)), Number(tpot))), Number(ttft));
}

function save(name, content, type = "text/plain") {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

async function exported(format) {
  const [name, body] = state.last ?? asked();
  const { max_front_points: _, ...whole } = body;
  try {
    const content = await answer(name, whole, format);
    if (content) save(`mantile-${name}.${format}`, content);
  } catch (fault) {
    failed(fault, question);
  }
}

async function copied(text, button) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), 1200);
}

async function used(text) {
  try {
    const found = understood(text);
    $("pasted").textContent = `Read ${found.what}.`;
    if (found.saved) state.saved = found.saved;
    if (found.command) {
      state.command = found.command;
      forms.fill(question, { ...forms.fields(question), plan: "" });
      tab("answer");
      return ask();
    }
    Object.assign(state.files, found.files);
    forms.fill(question, { ...(found.saved ? {} : forms.fields(question)), ...flat(found.fields) });
    return go("answer");
  } catch (fault) {
    return ($("pasted").textContent = fault.message);
  }
}

const actions = {
  ask: (changes) => go("answer", changes),
  back,
  close,
  link: async (button) => copied(new URL(await address("answer"), location.href).href, button),
  palette: () => palette.open(actions),
  theme: () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("mantile-theme", root.dataset.theme);
  },
  why: () => ask({ why: true }),
  best: () => go("answer", { plan: "" }),
  pace,
  pin: (button) => {
    const scenario = planned();
    const name = `${scenario.model ?? "default"} on ${scenario.hardware ?? "default"}: ${scenario.deployment.plan}`;
    const kept = pinned().filter((one) => one.name !== name);
    localStorage.setItem(PINS, JSON.stringify([...kept, { name, scenario }].slice(-4)));
    button.textContent = "Pinned";
  },
  unpin: () => {
    localStorage.removeItem(PINS);
    pins();
  },
  compare: async () => {
    const target = page("compare").querySelector(".output");
    const html = await search([target], () => answer("compare", { entries: pinned() }));
    if (html !== undefined) target.innerHTML = html;
  },
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
    hit("[data-export]", ({ dataset }) => exported(dataset.export)) ||
    hit("[data-toggle]", ({ dataset }) => ($(dataset.toggle).hidden = !$(dataset.toggle).hidden)) ||
    hit("[data-entry]", ({ dataset }) => entry(dataset.entry)) ||
    hit("[data-go]", ({ dataset }) => go(dataset.go, dataset.clear ? { [dataset.clear]: "" } : {})) ||
    hit("[data-open]", ({ dataset }) => (($(dataset.open).open = true), question.elements.plan.focus())) ||
    hit("[data-action]", (button) => actions[button.dataset.action](button)) ||
    hit("table[data-sort] thead th", sort) ||
    hit("[data-tab]", ({ dataset }) => (event.preventDefault(), go(dataset.tab)))
  );
}

/** An entry of the library: its file, or the structure of a model. */
async function entry(name) {
  const target = page("library").querySelector(".output");
  const kind = target.dataset.entryKind;
  const [request, body] = kind === "models" ? ["inspect", { model: name }] : ["catalog", { kind, name }];
  const html = await search([target], () => answer(request, body));
  if (html !== undefined) target.innerHTML = html;
}

/** A slider changes the load of the given plan; only the newest value is asked for. */
function slid(input) {
  const plan = (page("answer").querySelector("section")?.dataset.notation ?? "").replace(/@[\d.]+/, `@${input.value}`);
  input.nextElementSibling.textContent = input.value;
  question.elements.plan.value = plan;
  clearTimeout(state.sliding);
  state.sliding = setTimeout(async () => {
    await ask();
    history.replaceState(null, "", await address());
    page("answer").querySelector("[data-slider]")?.focus();
  }, 60);
}

document.addEventListener("click", (event) => void clicked(event));
document.addEventListener("input", ({ target }) => {
  if (target.dataset.filter) filter(target);
  if (target.dataset.slider) slid(target);
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target === question) {
    state.command = null;
    return void go(ANSWERED.includes(state.view) ? state.view : "answer");
  }
  return void submitted(event.target);
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    palette.open(actions);
  }
  if (event.key === "Escape" && !$("panel").hidden) close();
});
$("stop").addEventListener("click", () => source.stop());
$("file").addEventListener("change", async ({ target }) => used(await target.files[0].text()));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  used(file ? await file.text() : event.dataTransfer.getData("text"));
});
window.addEventListener("hashchange", () => void opened());

const theme = localStorage.getItem("mantile-theme");
if (theme) document.documentElement.dataset.theme = theme;
offerFormats();
void opened();
