// The question as one line of chips: each shows a part of it and opens its fields over the page, which nothing moves.
import { element, listing, plain, seconds, short } from "./figures.mjs";
import { fields } from "./forms.mjs";

const $ = (id) => document.getElementById(id);

/** Tokens in short: `2k`. */
const kilo = (tokens) => (tokens >= 1024 && tokens % 1024 === 0 ? `${tokens / 1024}k` : String(tokens));
/** An SLO in words: the one that is set, else that of the answer's question. */
function limited(name, given, known) {
  const limit = seconds((given ?? known)?.toString().trim());
  if (given === "none" || (!given && !known)) return `no ${name} SLO`;
  if (limit === undefined) return `${name} ≤ ${given}`;
  return `${name} ≤ ${limit >= 1 ? `${plain(limit)} s` : `${plain(limit * 1e3)} ms`}`;
}

/** Parts that are always shown: what each says, from the set fields and the answer's question. */
const ALWAYS = {
  model: (set) => short(set.model ?? "Llama-3.3-70B"),
  hardware: (set) => set.hardware ?? "8xh100",
  traffic: (set, known) => {
    const workload = set.workload && !set.isl && !set.osl ? `${set.workload}: ` : "";
    const cached = set.prefix ? ` (${kilo(Number(set.prefix))} cached)` : "";
    return `${workload}${kilo(Number(set.isl ?? known.isl ?? 2048))} in${cached}, ${kilo(Number(set.osl ?? known.osl ?? 512))} out`;
  },
  ttft: (set, known) => limited("TTFT", set.ttft, known.limits?.ttft),
  tpot: (set, known) => limited("TPOT", set.tpot, known.limits?.tpot),
  objective: (set, known) => set.objective ?? known.objective ?? "throughput",
  risk: (set) => `odds ${set.risk ?? "p75"}`,
};
/** Words of the others, where they are not the list of their values. */
const OTHERS = {
  e2e: (set) => limited("E2E", set.e2e),
  load: (set) => [set.rate && `${set.rate} requests/s`, set.concurrency && `${set.concurrency} at once`, set.percentile].filter(Boolean).join(", "),
  runtime: (set) => [set.runtime, set.runtime_version].filter(Boolean).join(" "),
  formats: (set) => [set.weight_format && `${set.weight_format} weights`, set.prefill_weight_format && `prefill ${set.prefill_weight_format}`, set.decode_weight_format && `decode ${set.decode_weight_format}`, set.kv_format && `${set.kv_format} KV`].filter(Boolean).join(", "),
  memory: (set) => [set.offload && `offload ${set.offload}`, set.host_memory && `host ${set.host_memory}`, set.gpu_memory_utilization && `${set.gpu_memory_utilization} of memory`].filter(Boolean).join(", "),
  space: (set) => [set.mode, set.without && `without ${set.without}`, set.evidence && `evidence ${set.evidence}`].filter(Boolean).join(", "),
  prices: (set) => [set.price_basis, set.usd_per_device_hour && `${set.usd_per_device_hour} USD/h`, set.electricity_usd_per_kwh && `${set.electricity_usd_per_kwh} USD/kWh`].filter(Boolean).join(", ") || "prices",
  plan: (set) => set.plan.split(";")[0],
  set: (set) => (set.set.includes("\n") ? `${set.set.split("\n").length} overrides` : set.set),
};

/** Of a popover: the names of its fields. */
const names = (pop) => [...pop.querySelectorAll("[name]")].map((input) => input.name);
const pop = (id) => document.querySelector(`[data-pop="${id}"]`);
const pops = () => [...document.querySelectorAll("[data-pop][data-title]")];

/** The chips of a form. `ask` is called when one was changed. */
export function chips(form, ask) {
  let known = {};
  let opened = null;
  /** Values when the popover was opened, so that Escape restores them. */
  let before = {};

  /** One chip, with a button that opens it and one that clears it. */
  function chip(id, text, title, isSet, isRefused) {
    const open = element("button", { type: "button", textContent: text });
    open.dataset.chip = id;
    for (const [name, value] of [["haspopup", "dialog"], ["expanded", "false"], ["label", `${title}: ${text}`]]) open.setAttribute(`aria-${name}`, value);
    const made = element("span", { className: `chip${isSet ? "" : " default"}${isRefused ? " refused" : ""}` }, open);
    if (isSet) {
      const clear = element("button", { type: "button", className: "clear", textContent: "×" });
      clear.dataset.clear = id;
      clear.setAttribute("aria-label", `without ${title}: ${text}`);
      made.append(clear);
    }
    return made;
  }

  /** Draws the chips from the fields. `question` is the one that the shown answer has, with all defaults. */
  function draw(question) {
    known = question ?? known;
    const set = fields(form);
    const line = $("chips");
    const refocus = document.activeElement?.closest?.("#chips")?.querySelector(":focus")?.dataset.chip;
    const made = [];
    for (const one of pops()) {
      const id = one.dataset.pop;
      const isSet = names(one).some((name) => set[name]);
      if (!isSet && !ALWAYS[id]) continue;
      const text = ALWAYS[id]?.(set, known) ?? OTHERS[id]?.(set) ?? names(one).filter((name) => set[name]).map((name) => set[name]).join(", ");
      if (id === "hardware") made.push(element("span", { className: "on", textContent: "on" }));
      made.push(chip(id, text, one.dataset.title, isSet, Boolean(one.querySelector("[aria-invalid]"))));
    }
    line.replaceChildren(...made, line.querySelector(".more") ?? element("span", { hidden: true }), line.querySelector(".add"));
    $("fold").textContent = made.filter((one) => one.matches(".chip:not(.default), .chip:has([data-chip=model]), .chip:has([data-chip=hardware])")).map((one) => one.firstChild.textContent).join(" · ");
    fold();
    if (refocus) line.querySelector(`[data-chip="${refocus}"]`)?.focus();
  }

  /** Chips that do not fit are in a menu at the end of the line. */
  function fold() {
    const line = $("chips");
    const all = [...line.querySelectorAll(":scope > .chip")];
    line.querySelector(".more")?.remove();
    all.forEach((one) => one.classList.remove("over"));
    if (getComputedStyle(line).flexWrap === "wrap") return;
    const over = [];
    // Model and hardware are never folded, and defaults go first.
    const order = [...all.slice(2)].sort((a, b) => Number(b.classList.contains("default")) - Number(a.classList.contains("default")) || all.indexOf(b) - all.indexOf(a));
    for (const one of order) {
      if (line.scrollWidth <= line.clientWidth) break;
      if (!over.length) {
        const more = element("button", { type: "button", className: "quiet more" });
        more.setAttribute("aria-haspopup", "dialog");
        more.setAttribute("aria-expanded", "false");
        more.dataset.chip = "more";
        line.querySelector(".add").before(more);
      }
      one.classList.add("over");
      over.push(one);
      line.querySelector(".more").textContent = `+ ${over.length} more`;
    }
  }

  /** Puts a popover under its chip, inside the window. */
  function place(box, under) {
    const frame = form.closest("header").getBoundingClientRect();
    const at = under.getBoundingClientRect();
    box.hidden = false;
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 8));
    Object.assign(box.style, { left: `${left - frame.left}px`, top: `${at.bottom - frame.top + 6}px` });
  }

  function open(id, under) {
    close();
    const box = id === "more" ? pop("add") : pop(id);
    if (!box) return;
    const button = under ?? [...document.querySelectorAll(`[data-chip="${id}"]`)].find((one) => one.offsetParent) ?? document.querySelector(".more") ?? document.querySelector(".add");
    opened = { id, box, button };
    button.setAttribute("aria-expanded", "true");
    if (id === "add" || id === "more") conditions(id === "more");
    place(box, button.offsetParent ? button : $("fold"));
    before = Object.fromEntries(names(box).map((name) => [name, form.elements[name].value]));
    const field = box.querySelector("input, select, textarea, #conditions button");
    field?.focus();
    field?.select?.();
    box.querySelectorAll("[data-options], [data-presets]").forEach((input) => suggest(input, ""));
  }

  /** Closes the open popover. A changed value is a new question unless it is put back. */
  function close({ restore = false, focus = false, submit = true } = {}) {
    if (!opened) return false;
    const { id, box, button } = opened;
    opened = null;
    box.hidden = true;
    button.setAttribute("aria-expanded", "false");
    const changed = names(box).some((name) => form.elements[name].value !== before[name]);
    if (restore) Object.entries(before).forEach(([name, value]) => (form.elements[name].value = value));
    if (focus) (document.querySelector(`[data-chip="${id}"]`) ?? document.querySelector(".add")).focus();
    if (changed && !restore && submit) ask();
    return true;
  }

  /** The conditions that can be added, or the chips that are folded. */
  function conditions(folded) {
    const shown = new Set([...document.querySelectorAll("#chips > .chip:not(.over) [data-chip]")].map((one) => one.dataset.chip));
    const all = pops().filter((one) => !shown.has(one.dataset.pop) && (!folded || document.querySelector(`.over [data-chip="${one.dataset.pop}"]`)));
    $("conditions").replaceChildren(...all.map((one) => {
      const row = element("button", { type: "button" }, element("span", { textContent: one.dataset.title }), element("span", { className: "soft", textContent: document.querySelector(`[data-chip="${one.dataset.pop}"]`)?.textContent ?? "" }));
      row.onclick = () => {
        const { button } = opened;
        close();
        open(one.dataset.pop, button);
      };
      return row;
    }));
    pop("add").querySelector("strong").textContent = folded ? "More of the question" : "Add a condition";
  }

  /** Offers values under a field: lines of a list that have the typed words, or presets. */
  function suggest(input, typed = input.value) {
    const listed = input.dataset.options
      ? [...document.querySelectorAll(`#${input.dataset.options} option`)].map(listing)
      : input.dataset.presets.split(" ").map((value) => [value, ""]);
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    const found = listed.filter(([value, name]) => words.every((word) => `${value} ${name}`.toLowerCase().includes(word)) || input.dataset.presets);
    let list = input.parentElement.nextElementSibling;
    if (!list?.matches(".options")) {
      list = element("ul", { className: "options", id: `options-${input.name}` });
      list.setAttribute("role", "listbox");
      list.setAttribute("aria-label", "values");
      input.parentElement.after(list);
      for (const [name, value] of [["controls", list.id], ["autocomplete", "list"], ["expanded", "true"]]) input.setAttribute(`aria-${name}`, value);
      input.setAttribute("role", "combobox");
    }
    list.classList.toggle("presets", Boolean(input.dataset.presets));
    list.replaceChildren(...found.slice(0, 60).map(([value, name], at) => {
      const row = element("li", { id: `${list.id}-${at}` }, element("span", { textContent: short(value) }), ...(name ? [element("span", { className: "soft", textContent: name })] : []));
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      row.dataset.value = value;
      if (value === input.value) row.classList.add("chosen");
      row.onclick = () => {
        input.value = value;
        close({ focus: true });
      };
      return row;
    }));
    input.removeAttribute("aria-activedescendant");
  }

  /** Moves along the offered values. */
  function move(input, list, step) {
    const rows = [...list.children];
    const at = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
    const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
    rows[at]?.setAttribute("aria-selected", "false");
    next?.setAttribute("aria-selected", "true");
    next?.scrollIntoView({ block: "nearest" });
    if (next) input.setAttribute("aria-activedescendant", next.id);
  }

  function key(event) {
    const { target } = event;
    if (event.key === "Escape" && opened) {
      event.stopPropagation();
      event.preventDefault();
      return close({ restore: true, focus: true });
    }
    const list = target.closest("label")?.nextElementSibling;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    const step = steps[event.key];
    if (step && list?.matches(".options") && target.matches("input")) {
      event.preventDefault();
      return move(target, list, step);
    }
    if (step && target.closest("#conditions")) {
      event.preventDefault();
      return (step > 0 ? target.nextElementSibling : target.previousElementSibling)?.focus();
    }
    if (event.key === "Enter" && target.matches("input, select") && opened) {
      event.preventDefault();
      const chosen = list?.querySelector?.('[aria-selected="true"]');
      if (chosen) return chosen.click();
      return close({ focus: true });
    }
    return undefined;
  }

  form.addEventListener("keydown", key);
  form.addEventListener("input", ({ target }) => target.matches("[data-options], [data-presets]") && suggest(target));
  form.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-chip]");
    const clear = target.closest("[data-clear]");
    if (target.closest("[data-pop-close]")) return close({ focus: true });
    if (clear) {
      close({ submit: false });
      names(pop(clear.dataset.clear)).forEach((name) => (form.elements[name].value = ""));
      return ask();
    }
    if (!button) return undefined;
    if (opened?.id === button.dataset.chip) return close({ focus: true });
    return open(button.dataset.chip, button);
  });
  document.addEventListener("pointerdown", ({ target }) => opened && !target.closest("[data-pop], [data-chip]") && close());
  // Focus that leaves a popover by Tab closes it.
  form.addEventListener("focusout", ({ relatedTarget }) => opened && relatedTarget && !opened.box.contains(relatedTarget) && !relatedTarget.closest("[data-chip]") && close());
  $("fold").addEventListener("click", () => {
    const isOpen = form.classList.toggle("unfolded");
    $("fold").setAttribute("aria-expanded", String(isOpen));
  });
  new ResizeObserver(() => fold()).observe($("chips").parentElement);
  return { draw, open, close, hardware: () => form.elements.hardware.value || known.hardware || form.elements.hardware.placeholder };
}
