// The run of the view as it went: a cursor over its pictures that is dragged, moved by keys or plays, and the state then.
import { drawn, element, percent, plain, time } from "./figures.mjs";

/** Seconds that a whole run takes to play. */
const PLAYS = 15;
/** Steps of the cursor over a run. */
const STEPS = 500;

/** The last of `rows` that began by `s`. */
const before = (rows, s, key) => rows.findLast((one) => one[key] <= s) ?? rows[0];

/** A line in a picture that shows the time of the replay; `px` is the place of a time in percent. */
export function playhead(svg, px) {
  const made = drawn("line", { class: "playhead", y1: "0", y2: "100%", visibility: "hidden" });
  svg.append(made);
  return (s) => {
    const place = s === undefined ? -1 : px(s);
    made.setAttribute("visibility", place >= 0 && place <= 100 ? "visible" : "hidden");
    ["x1", "x2"].forEach((name) => made.setAttribute(name, `${place}%`));
  };
}

/** What went on at a time, in words. */
function state({ timeline, windows }, s) {
  const now = before(timeline, s, "time_s");
  const came = before(windows, s, "from_s");
  const tail = (key, name) => (came?.[key] ? [`${name} p90 ${time(came[key].p90_ms)}`] : []);
  const count = (number, word) => `${number.toLocaleString("en")} ${word}`;
  const tails = [...tail("ttft", "TTFT"), ...tail("tpot", "TPOT")];
  return [count(now.running, "running"), count(now.waiting, "waiting"), `KV cache ${percent(now.kv_used)}`, ...(tails.length ? [`of those who came then, ${tails.join(", ")}`] : [])].join(" · ");
}

/**
 * The controls of a replay. `at` is the time it begins at, `heads` the lines in the pictures of now, `keep` is given the
 * time where it stops; undefined where it was taken away.
 */
export function replay(report, at, heads, keep) {
  const [from, to] = [report.timeline[0].time_s, report.timeline.at(-1).time_s];
  const words = element("output", { className: "soft" });
  const range = element("input", { type: "range", min: from, max: to, step: (to - from) / STEPS || 1, attributes: { "aria-label": "time of the replay", "data-pick": "at" } });
  const play = element("button", { type: "button", className: "plain", attributes: { "data-pick": "play" } });
  let playing = null;
  const show = (s) => {
    heads().forEach((move) => move(s));
    words.textContent = s === undefined ? "shows the run as it went" : `at ${plain(Number(s.toFixed(s < 10 ? 1 : 0)))} s: ${state(report, s)}`;
    range.setAttribute("aria-valuetext", words.textContent);
  };
  const settle = () => keep(String(Number(Number(range.value).toPrecision(4))));
  const labelled = () => (play.textContent = playing ? "❚❚ Pause" : "▶ Replay");
  const stop = () => {
    cancelAnimationFrame(playing);
    playing = null;
    labelled();
    settle();
  };
  const step = (begun, first) => (now) => {
    const s = Math.min(first + ((now - begun) / 1e3 / PLAYS) * (to - from), to);
    range.value = s;
    show(s);
    if (s >= to || !play.isConnected) return stop();
    playing = requestAnimationFrame(step(begun, first));
  };
  play.onclick = () => {
    if (playing) return stop();
    const first = Number(range.value) >= to ? from : Number(range.value);
    playing = requestAnimationFrame((now) => step(now, first)(now));
    labelled();
  };
  range.oninput = () => {
    if (playing) stop();
    show(Number(range.value));
  };
  range.onchange = settle;
  range.value = at ?? from;
  labelled();
  show(at);
  // Pictures that were drawn anew have their line where it was.
  const again = () => words.textContent.startsWith("at ") && show(Number(range.value));
  return Object.assign(element("div", { className: "replay card" }, play, range, words), { again });
}
