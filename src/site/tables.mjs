// Tables: sorted by a click on a heading, filtered by words.

/** The number that a cell begins with; the text where there is none. Times are in milliseconds. */
function key(cell) {
  const text = cell?.textContent.trim() ?? "";
  const number = Number.parseFloat(text.replaceAll(",", ""));
  if (Number.isNaN(number)) return text.toLowerCase();
  const unit = { "µs": 1e-3, us: 1e-3, s: 1e3, min: 6e4, MiB: 1 / 1024, TiB: 1024 }[text.split(" ")[1]] ?? 1;
  return number * unit;
}

const compare = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);

/** Sorts the table of a heading, the other way at the next click. */
export function sort(heading) {
  const table = heading.closest("table");
  const at = [...heading.parentElement.children].indexOf(heading);
  const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  heading.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", direction);
  const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[at]), row]);
  rows.sort(([a], [b]) => compare(a, b) * (direction === "ascending" ? 1 : -1));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

/** Hides the rows of a table that lack one of the words. */
export function filter(input) {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const table = document.getElementById(input.dataset.filter);
  for (const row of table?.tBodies[0].rows ?? []) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}
