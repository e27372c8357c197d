// A Pareto front: points over which the pointer is dragged become the SLO.

/** Watches a page for brushes over fronts; `chosen` gets the TPOT SLO of one, in milliseconds. */
export function watch(page, chosen) {
  let brush = null;
  page.addEventListener("pointerdown", (event) => {
    const figure = event.target.closest("[data-brush]");
    const svg = figure?.querySelector("svg");
    if (!svg || event.button !== 0 || event.target.closest("[data-plan], button")) return;
    brush = { figure, svg, from: event.clientX, mark: null };
  });
  page.addEventListener("pointermove", (event) => {
    if (!brush || Math.abs(event.clientX - brush.from) < 8) return;
    brush.mark ??= marked(brush.svg);
    const [a, b] = [brush.from, event.clientX].map((x) => within(brush.svg, x)).sort((a, b) => a - b);
    brush.mark.setAttribute("x", a);
    brush.mark.setAttribute("width", b - a);
  });
  window.addEventListener("pointerup", (event) => {
    if (!brush) return;
    const { figure, svg, from, mark } = brush;
    brush = null;
    if (!mark) return;
    mark.remove();
    const [left, right] = [from, event.clientX].sort((a, b) => a - b);
    const slo = slowest(figure.dataset.brush, covered(svg, left, right));
    if (slo !== undefined) chosen(slo);
  });
}

/** Values across of the points between two places of the window. */
function covered(svg, left, right) {
  const inside = (point) => {
    const box = point.getBoundingClientRect();
    const middle = (box.left + box.right) / 2;
    return left <= middle && middle <= right;
  };
  return [...svg.querySelectorAll("[data-across]")].filter(inside).map((point) => Number(point.dataset.across));
}

/** The slowest TPOT of values across, in milliseconds. */
function slowest(metric, values) {
  if (!values.length) return undefined;
  return metric === "tpot" ? Math.max(...values) : 1e3 / Math.min(...values);
}

function marked(svg) {
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  mark.setAttribute("class", "brush");
  mark.setAttribute("y", 0);
  mark.setAttribute("height", svg.viewBox.baseVal.height);
  svg.append(mark);
  return mark;
}

/** A place of the window in the coordinates of a picture. */
const within = (svg, x) => new DOMPoint(x, 0).matrixTransform(svg.getScreenCTM().inverse()).x;
