// Compare with real pointer and key events: what the pins say, folded rows, steps that add up to the difference, a pin
// that is the base with one change, and an address that brings all of it back.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { accessible, opened, settled, texts, visit } from "./support.mjs";

const MODEL = "model=Llama-3.1-8B";
const number = (text) => Number(text.replace("−", "-").replace(/[^\d.-]/g, ""));

/** Pins the best plan on each of these systems, by key. */
async function pinned(page, address, systems) {
  for (const hardware of systems) {
    await visit(page, address, `answer?${MODEL}&hardware=${hardware}`);
    await page.keyboard.press("p");
    await page.waitForFunction(() => document.querySelector(".toast.shown"));
  }
  await page.click(".toast >> text=Compare");
  await page.waitForSelector("#compared .comparison");
  await settled(page);
}

/** The value of the base, the changes and the value of the pin, of the table behind the steps. */
async function steps(page) {
  const rows = await page.$$eval(".causes .behind tbody tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  return { first: number(rows[0][2]), goal: number(rows.at(-1)[2]), changes: rows.slice(1, -1).map((row) => number(row[1])), names: rows.map(([name]) => name) };
}

/** Two pins: the sentence, the switch, the steps, the chart, the file, and the link. */
export async function sideBySide(page, address) {
  await pinned(page, address, ["1xl40s", "1xh100"]);
  assert.match(await page.textContent("#compared h1"), /^1 × H100 gives [\d.]+ × the 1 × L40S at \d+ % (less|more) per token$/);
  assert.deepEqual(await texts(page, "#compared .pin-name"), ["1 × L40S", "1 × H100"]);
  const names = () => texts(page, ".comparison tbody tr:not(.fold-row) th");
  const few = await names();
  assert.ok(["Throughput to count on", "Odds of the SLOs", "TTFT at p90", "Tokens per joule", "Power", "Longest context"].every((name) => few.includes(name) || few.length < 8), `${few}`);
  assert.ok(!few.includes("Model"));
  // One line for the equal rows, which opens by key; the switch shows all.
  assert.match(await page.textContent(".fold-row button"), /\d+ rows are equal: model Llama-3\.1-8B/);
  await page.focus(".fold-row button");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("compare.equal=open"));
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-expanded")), "true");
  assert.ok((await names()).includes("Model"));
  await page.keyboard.press("Enter");
  await page.click("[data-pick=all]");
  await page.waitForFunction(() => location.hash.includes("compare.rows=all"));
  assert.equal((await names())[0], "Model");
  // The steps add up to the difference, in each measure.
  await page.click(".causes summary");
  await page.waitForFunction(() => location.hash.includes("compare.steps=open"));
  for (const key of ["output_tok_s", "tpot_ms", "usd_per_mtok"]) {
    await page.selectOption("[aria-label=\"measure that is explained\"]", key);
    const { first, goal, changes, names: named } = await steps(page);
    const sum = changes.reduce((all, one) => all + one, first);
    assert.ok(changes.length > 1 && Math.abs(sum - goal) < 0.002 * Math.max(first, goal), `${key}: ${first} ${changes} ${goal}`);
    assert.equal(await page.locator(".causes rect.cause").count(), changes.length + 2);
    if (key === "output_tok_s") assert.ok(named.some((name) => name.startsWith("memory bandwidth")), `${named}`);
  }
  await page.focus(".causes .graph");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent(".causes .tip"), /change.*of the difference.*after it/s);
  await page.keyboard.press("Escape");
  // The pins over cost and throughput.
  await page.selectOption(".pin-scatter [aria-label=\"axis to the right\"]", "watts");
  await page.waitForFunction(() => location.hash.includes("compare.x=watts"));
  assert.match(await page.textContent(".pin-scatter h2"), /^1 × H100 draws .* and gives /);
  await page.locator(".pin-scatter .graph").scrollIntoViewIfNeeded();
  const { x, y, width, height } = await page.locator(".pin-scatter circle.cause.base").boundingBox();
  await page.mouse.move(x + width / 2 + 2, y + height / 2 + 1);
  assert.match(await page.textContent(".pin-scatter .tip"), /1 × L40S.*to count on.*median/s);
  await page.mouse.move(2, 2);
  const [file] = await Promise.all([page.waitForEvent("download"), page.click(".compared-card >> text=CSV")]);
  const csv = readFileSync(await file.path(), "utf8").split("\n");
  assert.equal(csv[0], "row,unit,1 × L40S,1 × H100,1 × H100 / 1 × L40S");
  assert.ok(csv.some((row) => /^Throughput to count on,tok\/s,[\d.]+,[\d.]+,[\d.]+$/.test(row)));
  await accessible(page, "compare");
  const state = async () => [await page.textContent("#compared h1"), await names(), await texts(page, ".causes h2"), await texts(page, ".causes .behind td"), await texts(page, ".pin-scatter h2")];
  const before = await state();
  const link = await page.evaluate(() => location.href);
  await page.evaluate(() => localStorage.clear());
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForSelector("#compared .comparison");
  await settled(page);
  assert.deepEqual(await state(), before);
  await visit(page, address, `compare?${MODEL}&compare.rwos=all`);
  assert.match(await page.textContent("#fault"), /compare\.rwos/);
}

/** The base with one change is the next pin; a number opens its formula; four pins fit. */
export async function further(page, address) {
  await pinned(page, address, ["1xl40s", "1xh100"]);
  for (const hardware of ["1xh200", "1xa100"]) {
    await page.focus(".comparison [data-action=clone]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-pop=hardware]:not([hidden])");
    await page.keyboard.press("Control+a");
    await page.keyboard.type(hardware);
    await page.keyboard.press("Enter");
    await page.waitForFunction((name) => [...document.querySelectorAll("#compared .pin-name")].some((one) => one.textContent.includes(name)), hardware.slice(2).toUpperCase());
    await settled(page);
  }
  assert.deepEqual(await texts(page, "#compared .pin-name"), ["1 × L40S", "1 × H100", "1 × H200", "1 × A100"]);
  assert.equal(await page.locator(".comparison [data-action=clone]").count(), 0);
  const [right, over] = await page.$eval(".comparison", (one) => [one.getBoundingClientRect().right, one.parentElement.scrollWidth - one.parentElement.clientWidth]);
  assert.ok(right <= 1280 && over <= 0, `${right}, ${over}`);
  await page.focus("[aria-label=\"pin that is explained\"]");
  await page.selectOption("[aria-label=\"pin that is explained\"]", "3");
  await page.waitForFunction(() => location.hash.includes("compare.pin=3") && document.querySelector(".causes .under span:last-child").textContent === "1 × A100");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "pin that is explained");
  await page.click(".comparison tbody tr:not(.input-row) td:nth-child(3) .number >> nth=0");
  await page.waitForFunction(() => document.getElementById("explained").textContent.includes("output_tok_s"));
  await page.keyboard.press("Escape");
  await page.click("#compared th:nth-child(3) >> text=make base");
  await page.waitForFunction(() => document.querySelector("#compared .pin-name").textContent === "1 × H100" && !location.hash.includes("compare.pin"));
}

/** On a phone: the table scrolls in its own region, with the names of its rows in view. */
export async function narrow(browser, address) {
  const { page, faults, close } = await opened(browser, address, { viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true });
  await visit(page, address, `compare?${MODEL}`);
  const low = await page.$$eval("#compared :is(svg text, .under span)", (all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize)).filter((size) => size < 11));
  assert.deepEqual(low, []);
  const tiny = await page.$$eval("#compared :is(button, select, summary, .graph)", (all) => all.filter((one) => one.offsetParent).map((one) => [one.outerHTML.slice(0, 80), one.offsetWidth, one.offsetHeight]).filter(([, width, height]) => width < 24 || height < 24));
  assert.deepEqual(tiny, []);
  await accessible(page, "compare, 375 px");
  const left = await page.$eval(".comparison", (one) => {
    one.parentElement.scrollLeft = 200;
    return one.tBodies[0].rows[0].cells[0].getBoundingClientRect().left;
  });
  assert.ok(left >= 0 && left < 60, `${left}`);
  assert.deepEqual(faults, []);
  await close();
}
