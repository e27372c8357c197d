// A static batch: its degrees are at first those of the answer; memory and compute of a device follow each choice.
import { digits, element, percent, time } from "./figures.mjs";
import { amount } from "./numbers.mjs";

const PARTS = [["weights", "weights_bytes", "b-weights"], ["KV cache", "kv_cache_bytes", "b-kv"], ["activations", "activations_bytes", "b-pale"], ["buffers", "buffers_bytes", "b-host"]];
const GIB = 2 ** 30;

/** The degrees of the decode pool of a plan in its notation. */
export const degrees = (notation = "") => (notation.match(/decode (.*)/)?.[1] ?? notation).split(" @")[0];

/** A change in percent from a value before, in words. */
function change(now, before) {
  const ratio = now / before - 1;
  if (!Number.isFinite(ratio) || Math.abs(ratio) < 0.0005) return [];
  return [element("b", { className: ratio > 0 ? "bad" : "good", textContent: `${ratio > 0 ? "+" : "−"}${Math.abs(ratio) < 10 ? percent(Math.abs(ratio)) : `${digits(ratio + 1)} ×`}` })];
}

function line(name, value, ...more) {
  return element("p", { className: "figure" }, element("span", { className: "soft", textContent: name }), element("span", {}, element("b", { textContent: value }), " ", ...more));
}

/** The memory of a device as a bar of its parts, up to what is usable. */
function held(memory) {
  const most = Math.max(memory.usable_bytes, memory.total_bytes);
  const bar = element("span", { className: "stacked", attributes: { role: "img", "aria-label": PARTS.map(([name, key]) => `${name} ${digits(memory[key] / GIB)} GiB`).join(", ") } });
  for (const [name, key, tone] of PARTS) {
    const piece = element("span", { className: tone, title: `${name} ${digits(memory[key] / GIB)} GiB` });
    piece.style.width = `${(memory[key] / most) * 100}%`;
    bar.append(piece);
  }
  const edge = element("i", { className: "edge" });
  edge.style.left = `${(memory.usable_bytes / most) * 100}%`;
  bar.append(edge);
  return bar;
}

/** Cards of the phases of a static batch, with changes from `first`, the answer's own. */
export function summary({ phases }, first) {
  const cards = phases.map((phase, at) => {
    const base = first?.phases[at];
    const { memory } = phase;
    const short = memory.total_bytes > memory.usable_bytes;
    return element("article", { className: "card" },
      element("h2", {}, element("span", { textContent: `${phase.phase.replace(/^./, (letter) => letter.toUpperCase())}: ${phase.label}, ${phase.devices} ${phase.devices === 1 ? "device" : "devices"}` }), element("span", { className: "soft", textContent: "per device" })),
      line("memory", `${digits(memory.total_bytes / GIB)} of ${digits(memory.usable_bytes / GIB)} GiB`, element("b", { className: short ? "bad" : "good", textContent: short ? `${digits((memory.total_bytes - memory.usable_bytes) / GIB)} GiB short ` : "fits " }), ...change(memory.total_bytes, base?.memory.total_bytes)),
      held(memory),
      line("compute", amount(phase.flops, "FLOP"), ...change(phase.flops, base?.flops)),
      line("memory read", amount(phase.bytes, "B"), ...change(phase.bytes, base?.bytes)),
      ...(phase.wire_bytes > 0 ? [line("sent", amount(phase.wire_bytes, "B"), ...change(phase.wire_bytes, base?.wire_bytes))] : []),
      line("time", `${time(phase.time_ms)}, bound by ${phase.bound_by}`, ...change(phase.time_ms, base?.time_ms)));
  });
  const keys = PARTS.map(([name, , tone]) => element("span", {}, element("i", { className: `key-of ${tone}` }), name));
  return element("div", { className: "degrees" }, element("div", { className: "pair" }, ...cards), element("p", { className: "board-legend" }, ...keys, ...(first ? ["changes are from the degrees of the answer"] : [])));
}
