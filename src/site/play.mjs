// One token on its way through the devices of a placement or of a plan, step by step, with the time of each step.
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
 * The steps of a token through one replica of a plan: a stage computes its layers, its devices exchange their parts, the
 * next stage gets the result; their times add up to the whole. The answer times a kind of layer, not a stage: each stage has
 * the share of its number of layers.
 */
export function passes({ plan, detail }, phase) {
  const pool = plan[phase];
  const { operators, operators_ms: own, time_ms: whole } = detail.phases.find((one) => one.phase === phase);
  const layers = pool.stages.reduce((sum, count) => sum + count, 0);
  const spent = (blocks, sends) => operators.filter((one) => blocks(one.block) && (one.class === "communication") === sends).reduce((sum, { time_ms: ms }) => sum + ms, 0);
  const ends = ["embedding", "head"];
  const last = pool.stages.length - 1;
  const name = `${pool.role === "aggregated" ? "replica" : pool.role} 1`;
  const staged = (stage) => (last ? `${name} stage ${stage}` : name);
  // What no operator takes is what stages send to each other.
  const rest = Math.max(whole - own, 0);
  let before = 0;
  return pool.stages.flatMap((count, stage) => {
    const ms = (sends) => (spent((block) => !ends.includes(block), sends) * count) / layers + (stage ? 0 : spent((block) => block === ends[0], sends)) + (stage === last ? spent((block) => block === ends[1], sends) : 0);
    const held = `layers ${before} to ${before + count - 1}${stage === last ? " and the head" : ""}`;
    before += count;
    const sent = ms(true);
    const exchange = sent > 0 ? [{ on: staged(stage), stage, what: `${staged(stage)}: its devices exchange their parts`, ms: sent }] : [];
    const send = stage < last ? [{ on: staged(stage), next: staged(stage + 1), stage, ms: rest / last }] : [];
    return [{ on: staged(stage), stage, layers: held, ms: ms(false) + (last ? 0 : rest) }, ...exchange, ...send];
  });
}

/**
 * The controls and the line of a token. `list(phase)` has its steps. `scene` moves it: `shown(step, length)` marks a step
 * and animates it over a length in ms, or at once where that is 0; it resolves at the end. `cleared()` takes the marks away,
 * `chosen(phase)` draws a phase, `way(phase)` says how it goes.
 */
export function player(list, isl, scene) {
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  let [phase, at, playing] = ["decode", -1, 0];
  const line = element("p", { className: "token-line", attributes: { role: "status" } });
  const play = element("button", { type: "button", className: "plain", onclick: () => (playing ? pause() : begin()) });
  const next = element("button", { type: "button", className: "plain", textContent: "Step", attributes: { "aria-label": "next step of the token" }, onclick: () => (pause(), show(at + 1, 0)) });
  const phases = ["decode", "prefill"].map((name) => element("button", { type: "button", textContent: name, onclick: () => choose(name) }));
  const all = () => list(phase);
  const whole = () => all().reduce((sum, { ms }) => sum + ms, 0);

  function words(one, number) {
    const before = all().slice(0, number + 1).reduce((sum, { ms }) => sum + ms, 0);
    const what = one.what ?? (one.layers ? `${one.on}: ${one.layers}` : `${one.on} → ${one.next}`);
    return `${number + 1} of ${all().length} · ${what} · ${time(one.ms)}, ${percent(one.ms / whole())} · ${time(before)} of ${time(whole())}`;
  }

  function start() {
    line.textContent = `${phase === "decode" ? "A token" : `A prompt of ${digits(isl)} tokens`} takes ${time(whole())}${scene.way(phase)}.`;
  }

  async function show(number, length) {
    const one = all()[number];
    if (!one) return reset();
    at = number;
    line.textContent = words(one, number);
    return scene.shown(one, length);
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
