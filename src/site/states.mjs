// What the page says about an answer that is not the one to the question: computing, refused, stopped, or no server.
import { element, percent, short } from "./figures.mjs";

const $ = (id) => document.getElementById(id);
/** Before that, an answer is there: no line is shown. */
const SLOW_MS = 250;
/** First wait before a server is tried again, and the longest, in seconds. */
const [FIRST, LONGEST] = [2, 32];
/** Lists of the page in which a field's value is. */
const LISTS = { model: "models", hardware: "systems", runtime: "runtimes", objective: "objectives", workload: "workloads", weight_format: "formats" };

/** Letters that two words do not share in order. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + Number(a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length];
}

/** The values of a list that are nearest to a wrong one. */
export function near(field, wrong) {
  const text = short(String(wrong)).toLowerCase().replaceAll("`", "").slice(0, 60);
  const all = [...document.querySelectorAll(`#${LISTS[field] ?? "none"} option`)].map(({ value }) => [distance(text, short(value).toLowerCase()), value]);
  return all.filter(([far]) => far <= Math.max(3, text.length / 2)).sort(([a], [b]) => a - b).slice(0, 2).map(([, value]) => value);
}

/**
 * The lines under the header. `again` asks the question once more, `back` returns to the answered one, `change` sets fields,
 * and `answered` says which question the shown answer has.
 */
export function states({ again, back, change, answered }) {
  const root = document.documentElement;
  let timers = [];
  const after = (ms, act) => timers.push(setTimeout(act, ms));
  const button = (text, act) => element("button", { type: "button", className: "link", textContent: text, onclick: act });
  const clear = () => {
    timers.forEach(clearTimeout);
    timers = [];
    $("working").hidden = $("fault").hidden = $("stop").hidden = $("progress").hidden = true;
    root.classList.remove("refused-question");
  };
  /** The line of a fault, and that the answer below it is another one's. */
  const note = (...words) => {
    clear();
    const of = answered();
    root.classList.toggle("refused-question", Boolean(of));
    const below = of ? [element("span", { className: "of" }, `The answer below is to the previous question: ${of}. `, button("Back to it", back))] : [];
    $("fault").replaceChildren(...words, ...below);
    $("fault").hidden = false;
  };
  let waits = FIRST;

  return {
    clear,
    /** A search began. */
    working() {
      clear();
      $("stop").hidden = false;
      $("so-far").textContent = "Computing …";
      const of = answered();
      after(SLOW_MS, () => {
        $("working").hidden = false;
        $("so-far").textContent = of ? `Computing … The answer below is to the previous question: ${of}.` : "Computing …";
      });
    },
    /** Steps of the search so far. */
    progress(done, all) {
      $("progress").hidden = false;
      $("progress").value = all ? done / all : 0;
      if (all) $("so-far").textContent = `${percent(done / all)} of ${all.toLocaleString("en")} groups of plans are searched.`;
    },
    /** An answer is here. */
    done() {
      waits = FIRST;
      clear();
    },
    stopped: () => note(element("b", { textContent: "Stopped." }), button("Compute it", again)),
    /** The question has a fault: what it is, how to mend it, and values that are near. */
    refused(fault) {
      if (fault.key === undefined) return note(element("b", { textContent: "Refused." }), fault.message);
      const field = fault.key.replaceAll("-", "_").split(/[.[]/).filter((part) => part !== "scenario")[0];
      const likely = near(field, fault.found).flatMap((value, at) => [at ? " or " : " Did you mean ", button(short(value), () => change({ [field]: value }))]);
      return note(element("b", { textContent: `${fault.key}: found ${fault.found}.` }), `Expected ${fault.expected}. ${fault.fix}.`.replace("..", "."), ...likely, ...(likely.length ? ["?"] : []));
    },
    /** The server does not answer: it is tried again, later each time. */
    gone() {
      let left = waits;
      waits = Math.min(waits * 2, LONGEST);
      const line = element("span", {});
      const tick = () => {
        line.textContent = `Trying again in ${left} s. Your question is kept.`;
        if (left <= 0) return again();
        left -= 1;
        return after(1000, tick);
      };
      note(element("b", { textContent: "The server is not reachable." }), line, button("Try now", again));
      tick();
    },
  };
}
