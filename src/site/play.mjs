// One token on its way through the devices of a placement, step by step, with the time of each step.
import { digits, element, percent, time } from "./figures.mjs";

/** Shown length of the whole way, and of its shortest step, ms. */
const [WHOLE, LEAST] = [5000, 350];

/** The steps of a token: a stage on a device, then the hop to the next; their times add up to the whole. */
export function steps(placement, phase) {
  const { stages } = placement;
  return stages.flatMap((stage, at) => {
    const next = stages[at + 1];
    const layers = `layers ${stage.first_layer} to ${stage.last_layer}${stage.head ? " and the head" : ""}`;
    const [whole, send] = phase === "prefill" ? [stage.prefill_ms, stage.prefill_send_ms ?? 0] : [stage.decode_ms, stage.send_ms];
    const held = { on: stage.member, layers, ms: whole - (next ? send : 0) };
    return next ? [held, { on: stage.member, next: next.member, ms: send }] : [held];
  });
}

/**
 * The controls and the line of a token. `scene` moves it: `shown(step, length)` marks a step and animates it over a length
 * in ms, or at once where that is 0; it resolves at the end. `cleared()` takes the marks away, `chosen(phase)` draws a phase.
 */
export function player(placement, isl, scene) {
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  let [phase, at, playing] = ["decode", -1, 0];
  const line = element("p", { className: "token-line", attributes: { role: "status" } });
  const play = element("button", { type: "button", className: "plain", onclick: () => (playing ? pause() : begin()) });
  const next = element("button", { type: "button", className: "plain", textContent: "Step", attributes: { "aria-label": "next step of the token" }, onclick: () => (pause(), show(at + 1, 0)) });
  const phases = ["decode", "prefill"].map((name) => element("button", { type: "button", textContent: name, onclick: () => choose(name) }));
  const all = () => steps(placement, phase);
  const whole = () => all().reduce((sum, { ms }) => sum + ms, 0);

  function words(one, number) {
    const before = all().slice(0, number + 1).reduce((sum, { ms }) => sum + ms, 0);
    const what = one.layers ? `${one.on}: ${one.layers}` : `${one.on} → ${one.next}`;
    return `${number + 1} of ${all().length} · ${what} · ${time(one.ms)}, ${percent(one.ms / whole())} · ${time(before)} of ${time(whole())}`;
  }

  function start() {
    line.textContent = phase === "decode" ? `A token takes ${time(whole())}${placement.stages.length > 1 ? ": each device computes its layers and sends the result on" : " on one device"}.` : `A prompt of ${digits(isl)} tokens takes ${time(whole())}${placement.stages.length > 1 ? ": each device computes its layers and sends the results of all tokens on" : " on one device"}.`;
  }

  async function show(number, length) {
    const list = all();
    if (number >= list.length) return reset();
    at = number;
    line.textContent = words(list[number], number);
    return scene.shown(list[number], length);
  }

  function label() {
    play.textContent = playing ? "❚❚ Pause" : "▶ One token";
    phases.forEach((one) => one.setAttribute("aria-pressed", String(one.textContent === phase)));
  }

  function pause() {
    playing = 0;
    scene.stopped();
    label();
  }

  function reset() {
    pause();
    at = -1;
    scene.cleared();
    start();
  }

  function choose(name) {
    phase = name;
    scene.chosen(phase);
    reset();
  }

  /** Plays to the end; without motion, each press is a step. */
  async function begin() {
    if (calm()) return show(at + 1, 0);
    if (at === all().length - 1) at = -1;
    const own = (playing = performance.now());
    label();
    for (let number = at + 1; number < all().length; number += 1) {
      await show(number, Math.max(LEAST, (all()[number].ms / whole()) * WHOLE));
      if (playing !== own) return undefined;
    }
    return pause();
  }

  label();
  start();
  const controls = [play, next, element("span", { className: "seg", attributes: { role: "group", "aria-label": "phase of the token" } }, ...phases)];
  return { controls, line, reset };
}
