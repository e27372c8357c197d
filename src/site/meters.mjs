// What pins are compared by: measures with their units, what one can count on of each, and how a change is said.
import { digits, element, time } from "./figures.mjs";

/**
 * Measures in the order of the table. `sure` is what one can count on, the end of the interval that is the worse one.
 * Those that `follow` another say nothing new where they change as it does.
 */
export const METERS = [
  { key: "output_tok_s", name: "Throughput", unit: "tok/s", more: true, end: "p10", causes: true },
  { key: "output_tok_s_per_user", name: "Speed of each user", unit: "tok/s", more: true, end: "p10", causes: true },
  { key: "output_tok_s_per_device", name: "Throughput of a device", unit: "tok/s", more: true, end: "p10", follow: "output_tok_s", causes: true },
  { key: "requests_per_s", name: "Requests", unit: "/s", more: true, end: "p10", follow: "output_tok_s" },
  { key: "usd_per_mtok", name: "Cost of output", unit: "USD/Mtok", more: false, causes: true },
  { key: "usd_per_hour", name: "Cost", unit: "USD/h", more: false },
  { key: "odds", name: "Odds of the SLOs", unit: "%", more: true },
  { key: "ttft_ms", name: "TTFT", unit: "ms", more: false, end: "p90", causes: true },
  { key: "tpot_ms", name: "TPOT", unit: "ms", more: false, end: "p90", causes: true },
  { key: "e2e_ms", name: "E2E", unit: "ms", more: false, end: "p90", causes: true },
  { key: "tok_per_joule", name: "Tokens per joule", unit: "tok/J", more: true, causes: true },
  { key: "watts", name: "Power", unit: "W", more: false },
  { key: "max_context_tokens", name: "Longest context", unit: "tokens", more: true },
];

/** The measures of these answers: those that one can count on where every answer has its interval. */
export function metersOf(answers) {
  const run = answers.filter(({ metrics }) => metrics);
  const all = (key) => run.length > 0 && run.every(({ intervals }) => intervals?.[key]);
  const rented = run.every(({ question }) => question?.price_basis === "rented");
  return METERS.map((meter) => ({ ...meter, name: meter.key === "usd_per_hour" && rented ? "Rent" : meter.name, ...(meter.end && all(meter.key) ? { sure: meter.end === "p10" ? "to count on" : "at p90" } : { end: undefined }) }));
}

/** The median of a measure. */
export const middle = ({ metrics, slo_odds: odds }, { key }) => (key === "odds" ? (odds?.all ?? NaN) * 100 : metrics?.[key] ?? NaN);
/** The value that is compared. */
export const read = (answer, meter) => (meter.end ? answer.intervals?.[meter.key]?.[meter.end] : undefined) ?? middle(answer, meter);

/** A value with its unit. */
export function spelled({ key, unit }, value) {
  if (unit === "ms") return time(value);
  if (key === "odds") return `${value >= 99.5 && value < 100 ? "> 99" : Math.round(value)} %`;
  if (key === "watts" && value >= 1000) return `${digits(value / 1000)} kW`;
  return `${digits(value)} ${unit}`;
}

/** A change as a share. */
export const signed = (share) => share < -0.995 ? "< −99 %" : `${share > 0 ? "+" : "−"}${Math.abs(share) < 0.095 && Math.abs(share) >= 0.001 ? Number((Math.abs(share) * 100).toPrecision(1)) : Math.round(Math.abs(share) * 100)} %`;

/** A table that stays closed until it is wanted; the address knows. */
export function behind(key, summary, heads, rows, act, picks) {
  const cell = (tag, text, at, more = {}) => element(tag, { textContent: text, className: at ? "n" : "", ...more });
  const box = element("details", { className: "behind", open: picks[key] === "open" }, element("summary", { textContent: summary }),
    element("div", { className: "scroll", tabIndex: 0, attributes: { role: "region", "aria-label": heads[0] } }, element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map((text, at) => cell("th", text, at)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text, at) => cell(at ? "td" : "th", text, at, at ? {} : { attributes: { scope: "row" } }))))))));
  box.addEventListener("toggle", () => act.keep({ [key]: box.open ? "open" : undefined }));
  return box;
}
