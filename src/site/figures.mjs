// Numbers as the reports write them, and small helpers for elements.

/** Three digits, and all of large numbers. */
export function digits(value) {
  if (!Number.isFinite(value)) return "unknown";
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(value).toLocaleString("en");
  if (size === 0) return "0";
  return value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(Number(size.toPrecision(3))))));
}

/** Without zeros at the end. */
export const plain = (value) => (/\./.test(digits(value)) ? digits(value).replace(/\.?0+$/, "") : digits(value));

/** A time in milliseconds, in the unit that reads best. */
export function time(ms) {
  if (ms >= 1e4) return `${digits(ms / 1e3)} s`;
  return ms >= 0.9995 || ms === 0 ? `${digits(ms)} ms` : `${digits(ms * 1e3)} µs`;
}

export const percent = (share) => (share > 0 && share < 0.005 ? "<1 %" : `${Math.round(share * 100)} %`);

/** The seconds of an SLO: a number, or a text such as `50ms`. */
export function seconds(limit) {
  if (typeof limit !== "string") return limit ?? undefined;
  const [, number, unit] = limit.match(/^([\d.]+)\s*([a-zµ]*)$/) ?? [];
  return number && Number(number) * ({ ms: 1e-3, "µs": 1e-6, us: 1e-6, min: 60 }[unit] ?? 1);
}

/** The name of a model without its publisher. */
export const short = (id) => id.replace(/^.*--/, "");

/** An element with properties, attributes and children. */
export function element(tag, { attributes = {}, ...properties } = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

/** An element of a picture. */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

/** Runs a drawing again and keeps the focus on what was picked. */
export function redrawn(target, draw) {
  const places = () => [...target.querySelectorAll("[data-pick], select.pick, .offer button")];
  const focused = document.activeElement;
  const at = places().indexOf(focused);
  const same = () => places().filter(({ dataset: { pick } }) => pick && pick === focused.dataset.pick);
  const number = same().indexOf(focused);
  draw();
  if (at >= 0) (same()[number] ?? places()[at])?.focus({ preventScroll: true });
}

/** The value of a line of a list, and its name: the page omits that of a model, which is its id as hubs spell it. */
export function listing({ value, textContent }) {
  const name = textContent || (value.includes("--") ? value.replace("--", "/") : "");
  return [value, name === value ? "" : name];
}
