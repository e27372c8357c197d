// Pinned answers side by side: a column each, the first as the base, with bars and changes.
import { digits, element, time } from "./figures.mjs";
import { named } from "./pins.mjs";

/** Metrics as rows: key, name, whether more is better; undefined where neither is. */
const ROWS = [
  ["output_tok_s", "tok/s in all", true],
  ["output_tok_s_per_user", "tok/s for each user", true],
  ["output_tok_s_per_device", "tok/s for each device", true],
  ["ttft_ms", "TTFT", false],
  ["tpot_ms", "TPOT", false],
  ["e2e_ms", "E2E", false],
  ["requests_per_s", "requests/s", true],
  ["usd_per_hour", "USD/h", false],
  ["usd_per_mtok", "USD/Mtok", false],
  ["watts", "power, W", false],
  ["tok_per_joule", "tok/J", true],
  ["max_context_tokens", "longest context, tokens", true],
];
/** A change below this is none. */
const SAME = 0.005;

const spelled = (key, value) => (key.endsWith("_ms") ? time(value) : digits(value));

/** The change of a value from the base, with its colour. */
function change(value, base, more) {
  const share = value / base - 1;
  if (Math.abs(share) < SAME) return element("span", { className: "soft", textContent: "same" });
  const words = share > 9.99 ? `× ${digits(value / base)}` : `${share > 0 ? "+" : "−"}${Math.round(Math.abs(share) * 100)} %`;
  return element("span", { className: share > 0 === more ? "good" : "bad", textContent: words });
}

/** A cell: the value, its change, and a bar on the scale of its row. */
function cell(key, value, base, most, more, isBase) {
  if (!Number.isFinite(value)) return element("td", { textContent: "–" });
  const bar = element("span", { className: "bar-of" }, element("span", {}));
  bar.firstChild.style.width = `${(value / most) * 100}%`;
  const line = element("span", { className: "amount" }, element("b", { textContent: spelled(key, value) }));
  if (!isBase && Number.isFinite(base) && base > 0) line.append(change(value, base, more));
  return element("td", {}, line, bar);
}

/** The comparison of `rows`, the answers to `scenarios`; `act` opens, clones, drops and makes one the base. */
export function table(rows, scenarios, act) {
  const { names, common } = named(scenarios);
  const button = (label, title, choose) => element("button", { type: "button", className: "plain", textContent: label, title, onclick: choose });
  const heads = rows.map((row, at) =>
    element("th", { scope: "col" },
      element("span", { className: "pin-name", textContent: names[at], title: names[at] }),
      element("span", { className: "soft", textContent: row.plan ? `${row.plan}${at ? "" : " · base"}` : row.reason ?? row.status }),
      element("span", { className: "row" }, button("Open", "show this answer", () => act.open(at)), ...(at ? [button("Base", "compare with this one", () => act.base(at))] : []), button("×", "take this pin away", () => act.drop(at)))),
  );
  const body = ROWS.map(([key, name, more]) => {
    const values = rows.map((row) => row.metrics?.[key]);
    const known = values.filter(Number.isFinite);
    if (!known.length) return null;
    const equal = known.length === values.length && values.every((value) => Math.abs(value / values[0] - 1) < SAME);
    return element("tr", { className: equal ? "equal" : "" }, element("th", { scope: "row", textContent: name }), ...values.map((value, at) => cell(key, value, values[0], Math.max(...known), more, !at)));
  });
  const made = element("table", { className: "comparison" }, element("thead", {}, element("tr", {}, element("td", {}), ...heads)), element("tbody", {}, ...body.filter(Boolean)));
  const reasons = rows.flatMap((row, at) => (row.reason ? [element("p", { className: "warning", textContent: `${names[at]}: ${row.reason}` })] : []));
  return [element("p", { className: "soft", textContent: common ? `All: ${common}` : "" }), ...reasons, element("div", { className: "scroll", tabIndex: 0, attributes: { role: "region", "aria-label": "comparison" } }, made)];
}
