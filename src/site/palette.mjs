// The command palette: models, hardware, views, numbers, settings and phrases such as `tp 4`, by typing and arrows.
import { listing, short } from "./figures.mjs";
import { phrases } from "./phrases.mjs";
import { letter } from "./shortcuts.mjs";

/** Rows of each group, and of all. */
const [EACH, MOST] = [6, 24];
const WITH = "Models with this";
const $ = (id) => document.getElementById(id);

/** Lines of a list of the page, each as an entry. */
function listed(id, group, key, actions) {
  return [...document.querySelectorAll(`#${id} option`)].map(listing).map(([value, name]) => ({
    group, key, ask: actions.ask, text: name ? `${short(value)} · ${name}` : value, id: value, choose: () => actions.ask({ [key]: value }),
  }));
}

/** Everything that can be found: its group, its text, a hint, and what choosing it does. */
function all(actions) {
  const views = [...document.querySelectorAll("nav [data-tab]")].map((link) => ({ group: "Go to", text: link.dataset.title ?? link.textContent, hint: `g ${letter(link.dataset.tab)}`, choose: () => link.click() }));
  const numbers = [...document.querySelectorAll("[data-page]:not([hidden]) [data-number]")].map((button) => ({
    group: "Numbers of this answer", text: `${button.dataset.number} ${button.textContent}`, hint: "formula", choose: () => button.click(),
  }));
  const commands = [...document.querySelectorAll("[data-page]:not([hidden]) [data-action], [data-page]:not([hidden]) [data-export], header [data-action=theme]")].map((button) => ({
    group: "Do", text: button.dataset.title ?? button.getAttribute("aria-label") ?? button.textContent.trim(), choose: () => button.click(),
  }));
  return [
    ...views,
    ...numbers,
    ...listed("models", "Models", "model", actions),
    ...listed("systems", "Hardware", "hardware", actions),
    ...listed("objectives", "Objectives", "objective", actions),
    ...listed("workloads", "Traffic", "workload", actions),
    ...listed("runtimes", "Runtimes", "runtime", actions),
    ...listed("formats", "Weight formats", "weight_format", actions),
    ...listed("rigs", "Heterogeneous devices", "hardware", { ask: (changes) => actions.where(changes) }),
    ...commands,
  ];
}

/** How well an entry has the words: less is better, undefined where it lacks one. */
function rank({ text, id }, words) {
  const low = text.toLowerCase();
  if (!words.every((word) => low.includes(word))) return undefined;
  const [first] = words;
  if (id && short(id).toLowerCase() === words.join(" ")) return 0;
  return low.startsWith(first) ? 1 : low.split(/[\s·/-]+/).some((part) => part.startsWith(first)) ? 2 : 3;
}

/** The entries that have all words, best first, at most a few of each group. */
function matching(entries, words) {
  const ranked = entries.map((entry, at) => [rank(entry, words), at, entry]).filter(([score]) => score !== undefined);
  ranked.sort(([a, i], [b, j]) => a - b || i - j);
  const groups = Map.groupBy(ranked, ([, , { group }]) => group);
  return [...groups.values()].flatMap((rows) => rows.slice(0, words.length ? EACH : 4)).map(([, , entry]) => entry).slice(0, MOST);
}

/** A text whose words are marked. */
function marked(text, words) {
  const pattern = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  if (!pattern) return [text];
  return text.split(new RegExp(`(${pattern})`, "i")).map((part, at) => (at % 2 ? Object.assign(document.createElement("mark"), { textContent: part }) : part));
}

function item({ text, hint, choose }, at, words, dialog) {
  const row = document.createElement("li");
  Object.assign(row, { id: `found-${at}`, role: "option" });
  const name = document.createElement("span");
  name.append(...marked(text, words));
  row.append(name);
  if (hint) row.append(Object.assign(document.createElement("span"), { className: "soft", textContent: hint }));
  row.onclick = () => {
    dialog.close();
    choose();
  };
  return row;
}

/** A model with what the phrase sets. */
function joined(entry, changes) {
  if (entry.key !== "model" || !Object.keys(changes).length) return entry;
  const { model, ...more } = { model: entry.id, ...changes };
  const said = Object.entries(more).filter(([, value]) => value).map(([key, value]) => (key === "plan" ? value : key === "hardware" ? `on ${value}` : `${key} ${value}`));
  return { ...entry, group: WITH, text: `${short(entry.id)} · ${said.join(", ")}`, choose: () => entry.ask({ model, ...more }) };
}

/** Opens the dialog; `actions` are those of the page, with the fields of the question. */
export function open(actions) {
  const [dialog, input, list] = [$("palette"), $("find"), $("found")];
  if (dialog.open) return;
  const entries = all(actions);
  let rows = [];
  let at = 0;
  const choose = (next) => {
    rows[at]?.removeAttribute("aria-selected");
    at = Math.min(Math.max(next, 0), rows.length - 1);
    rows[at]?.setAttribute("aria-selected", "true");
    rows[at]?.scrollIntoView({ block: "nearest" });
    if (rows[at]) input.setAttribute("aria-activedescendant", rows[at].id);
    else input.removeAttribute("aria-activedescendant");
  };
  const show = () => {
    const { changes, entries: set, rest } = phrases(input.value, actions);
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    // With a phrase alone, nothing else is meant.
    const others = rest.length || !set.length ? matching(entries, rest).map((entry) => joined(entry, changes)) : matching(entries, words);
    const found = [...others.filter(({ group }) => set.length && group === WITH), ...set, ...others.filter(({ group }) => !set.length || group !== WITH)];
    rows = found.map((entry, place) => item(entry, place, words, dialog));
    const groups = found.map(({ group }, place) => (group === found[place - 1]?.group ? [] : [Object.assign(document.createElement("li"), { className: "group", role: "presentation", textContent: group })]));
    list.replaceChildren(...rows.flatMap((row, place) => [...groups[place], row]));
    if (!rows.length) list.append(Object.assign(document.createElement("li"), { className: "group", role: "presentation", textContent: "Nothing has these words. Try a model, 8xh100, tp 4, ttft 500ms, why …" }));
    choose(0);
  };
  const moves = { ArrowDown: () => at + 1, ArrowUp: () => at - 1, PageDown: () => at + EACH, PageUp: () => at - EACH };
  input.value = "";
  input.oninput = show;
  input.onkeydown = (event) => {
    if (event.key === "Enter") rows[at]?.click();
    else if (moves[event.key]) choose(moves[event.key]());
    else return;
    event.preventDefault();
  };
  dialog.onclick = ({ target }) => target === dialog && dialog.close();
  show();
  dialog.showModal();
  input.focus();
}
