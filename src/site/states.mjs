// The lines about an answer that is not the one to the question: computing, refused, stopped, or no server.
import { element, percent } from "./figures.mjs";

const $ = (id) => document.getElementById(id);
/** Before that, an answer is there: no line is shown. */
const SLOW_MS = 250;
/** First wait before a server is tried again, and the longest, in seconds. */
const [FIRST, LONGEST] = [2, 32];
/**
 * The lines under the header. `again` repeats the question, `back` returns to the answered one, `change` sets fields,
 * `answered` says which question the shown answer has, and `early` whether it is one to this question that a search
 * still betters.
 */
export function states({ again, back, change, answered, early }) {
  const root = document.documentElement;
  let timers = [];
  let best = "";
  const after = (ms, act) => timers.push(setTimeout(act, ms));
  const button = (text, act) => element("button", { type: "button", className: "link", textContent: text, onclick: act });
  const clear = () => {
    timers.forEach(clearTimeout);
    timers = [];
    $("working").hidden = $("fault").hidden = $("stop").hidden = $("progress").hidden = true;
    root.classList.remove("refused-question");
    best = "";
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
        if (!best) $("so-far").textContent = of ? `Computing … The answer below is to the previous question: ${of}.` : "Computing …";
      });
    },
    /** Steps of the search so far. */
    progress(done, all) {
      $("progress").hidden = false;
      $("progress").value = all ? done / all : 0;
      if (all) $("so-far").textContent = `${best}${percent(done / all)} of ${all.toLocaleString("en")} groups of plans are searched.`;
    },
    /** An answer of a search that goes on is shown: the best within these seconds. */
    soFar(seconds) {
      best = `The best plan of the first ${seconds === 1 ? "second" : `${seconds} seconds`} is below; the search goes on. `;
      $("so-far").textContent = best;
      $("working").hidden = false;
    },
    /** An answer is here. */
    done() {
      waits = FIRST;
      clear();
    },
    stopped: () => note(element("b", { textContent: "Stopped." }), ...(early() ? ["The plan below is the best so far."] : []), button("Compute it", again)),
    /** The question has a fault: what it is, how to mend it, and values that are near. */
    refused(fault) {
      if (fault.key === undefined) return note(element("b", { textContent: "Refused." }), fault.message);
      const field = fault.key.replaceAll("-", "_").split(/[.[]/).filter((part) => part !== "scenario")[0];
      const [fix, names] = fault.fix.split(/did you mean/i);
      const likely = [...(names ?? "").matchAll(/`([^`]+)`/g)].flatMap(([, value], at) => [at ? " or " : " Did you mean ", button(value, () => change({ [field]: value }))]);
      const advice = [`Expected ${fault.expected}`, fix.trim().replace(/[;,.]$/, "")].filter(Boolean).map((text) => `${text}.`);
      return note(element("b", { textContent: `${fault.key}: found ${fault.found}.` }), element("span", {}, advice.join(" "), ...likely, ...(likely.length ? ["?"] : [])));
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
