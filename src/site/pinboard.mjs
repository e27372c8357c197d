// The view Compare: which scenarios it compares, and what its columns, menus and chips do.
import { compare, found } from "./compare.mjs";
import { redrawn } from "./figures.mjs";
import * as forms from "./forms.mjs";
import * as kept from "./kept.mjs";
import * as pins from "./pins.mjs";
import { save } from "./tools.mjs";

/** The comparison where fewer than two are pinned: the question on three systems. */
function example(question, own) {
  const { hardware: _, ...rest } = forms.scenario(question);
  return ["8xh100", "8xh200", "8xl40s"].map((hardware, at) => own[at] ?? { ...rest, hardware });
}

/** The comparison in `target`. `page` has the question with its chips, and what the page can do. */
export function pinboard(target, page) {
  const { question, chips, flat } = page;
  let shown = { scenarios: [] };
  let cloning = false;

  /** Other pins, in the address too. */
  async function repin(scenarios) {
    pins.keep(scenarios);
    await page.addressed();
    return show();
  }

  /** The pinned answers next to each other. */
  async function show() {
    const own = pins.pinned();
    const scenarios = own.length >= 2 ? own : example(question, own);
    const pin = Math.min(Number(kept.picks("compare").pin) || 1, scenarios.length - 1);
    const wanted = JSON.stringify([scenarios, pin, page.files()]);
    page.counted();
    if (target.dataset.answered !== wanted) {
      const data = await page.search([target], () => found(scenarios, pin, page.files(), page.answer, page.list));
      if (!data) return;
      target.dataset.answered = wanted;
      shown = { data, scenarios };
    }
    shown.data.own = own.length;
    redrawn(target, draw);
  }

  function draw() {
    const { data, scenarios } = shown;
    const others = (at) => scenarios.filter((_, place) => place !== at);
    const first = (all) => (kept.pick("compare", { pin: undefined }), repin(all));
    compare(target, data, scenarios, {
      open: (at) => page.go("answer", { ...Object.fromEntries(Object.keys(forms.fields(question)).map((key) => [key, ""])), ...flat(scenarios[at]) }),
      base: (at) => first([scenarios[at], ...others(at)]),
      drop: (at) => first(others(at)),
      keep: (change) => page.keep("compare", change),
      pick: (change) => (void page.keep("compare", change), "pin" in change ? show() : redrawn(target, draw)),
      explain: (number, at) => page.explain(number, { ...scenarios[at], deployment: { plan: data.answers[at].notation } }),
      save: (text) => save("mantile-compare.csv", text, "text/csv"),
    }, kept.picks("compare"));
  }

  return {
    show,
    forget: () => repin([]),
    left: () => (cloning = false),
    /** The base with one change is the next pin: its question opens, and the chip that changes makes it. */
    clone() {
      const [base] = shown.scenarios;
      if (!pins.pinned().length) pins.keep([base]);
      const { plan: _, ...fields } = flat(base);
      forms.fill(question, fields);
      chips.draw();
      chips.open("hardware");
      cloning = true;
    },
    /** Whether the changed question became a further pin. */
    cloned() {
      if (!cloning) return false;
      cloning = false;
      const plan = forms.plan(question);
      pins.pin({ ...forms.scenario(question), ...(plan ? { deployment: { plan } } : {}) });
      void repin(pins.pinned());
      return true;
    },
  };
}
