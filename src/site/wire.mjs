// A link that is edited: its bandwidth, with those of the catalogue to choose.
import { element, plain } from "./figures.mjs";

/** Bytes of a unit of a rate. */
const UNITS = { KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, Kb: 125, Mb: 125e3, Gb: 125e6 };
export const bytes = (text) => {
  const [, number, unit] = String(text ?? "").match(/([\d.]+)\s*([KMGT][bB])/) ?? [];
  return number ? Number(number) * UNITS[unit] : undefined;
};
export const rate = (value) => (value >= 1e9 ? `${plain(value / 1e9)} GB/s` : `${plain(value / 1e6)} MB/s`);

/**
 * The popover of a link. `links` are those of the catalogue; `set` is given a bandwidth as text and the id of a link that
 * was chosen, `remove` takes the link away where that is possible, `closed` is called where nothing was set.
 */
export function editor(links, { title, value, costs = [], set, remove, closed }) {
  const input = element("input", { type: "text", value, attributes: { "aria-label": "bandwidth each way" } });
  const take = (text, id) => {
    if (!bytes(text)) return input.setAttribute("aria-invalid", "true");
    box.remove();
    return set(text, id);
  };
  const close = () => (box.remove(), closed());
  const presets = links.filter(({ summary }) => bytes(summary)).map(({ id, name, summary }) => element("button", { type: "button", onclick: () => take(summary.split(" each")[0], id) }, element("span", { textContent: name }), element("span", { className: "soft", textContent: summary })));
  const box = element("div", { className: "pop", attributes: { role: "dialog", "aria-label": `link ${title}` } },
    element("div", { className: "pop-head" }, element("strong", { textContent: title }), element("button", { type: "button", className: "quiet", textContent: "×", onclick: close, attributes: { "aria-label": "close" } })),
    element("label", {}, "Bandwidth each way", input),
    element("div", { className: "options" }, ...presets),
    ...costs,
    element("div", { className: "row" }, element("button", { type: "button", className: "primary", textContent: "Set", onclick: () => take(input.value) }), ...(remove ? [element("button", { type: "button", className: "plain", textContent: "No link", onclick: () => (box.remove(), remove()) })] : [])));
  box.onkeydown = (event) => {
    if (event.key === "Escape") event.stopPropagation(), close();
    if (event.key === "Enter" && event.target === input) take(input.value);
  };
  return Object.assign(box, { begin: () => (input.focus(), input.select()) });
}
