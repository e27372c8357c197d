// A card: the answer in a small picture with its link, for a pull request or a paper.

import { isLocal } from "./link.mjs";

const WIDTH = 720;
const PLACES = 4;
const TOP = 110;

const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The shown answer as SVG; its texts are those of the page. An address of this machine alone is no link for others. */
export function card(section, link) {
  const text = (selector) => section.querySelector(selector)?.textContent.replace(/\s+/g, " ").trim() ?? "";
  const figures = [...section.querySelectorAll(".metrics .card")].map((one) => [one.querySelector("h3 span, h3").textContent, one.querySelector(".big").textContent.trim()]);
  const said = text(".proof").split(" · ");
  const [proved, problem] = [said.slice(0, -1).join(" · "), said.at(-1)];
  const column = WIDTH / PLACES;
  const line = (x, y, size, words, extra = "") => `<text x="${x}" y="${y}" font-size="${size}" ${extra}>${escaped(words)}</text>`;
  const shown = figures.map(([name, value], at) => {
    const [x, y] = [20 + (at % PLACES) * column, TOP + Math.floor(at / PLACES) * 52];
    return line(x, y, 12, name, 'fill="#565e6b"') + line(x, y + 22, 17, value, 'font-weight="600"');
  });
  const height = TOP + Math.ceil(figures.length / PLACES) * 52;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui,sans-serif" fill="#15181e">
<title>${escaped(text("h1"))}</title>${isLocal(link) ? "<g>" : `<a href="${escaped(link)}">`}<rect width="100%" height="100%" rx="6" fill="#ffffff" stroke="#d5d9e0"/>
${line(20, 36, 16, cut(text("h1"), 74), 'font-weight="600"')}${line(20, 58, 12, cut(proved, 96), 'fill="#565e6b"')}${line(20, 76, 12, cut(problem, 108), 'fill="#565e6b"')}
${shown.join("\n")}${isLocal(link) ? "</g>" : "</a>"}</svg>
`;
}
