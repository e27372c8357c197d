// Why with real pointer and key events: the ladder opens plans, the verdict has its run, a limit and the marks of the
// crossovers change the question, and nothing is wider than a phone.

import assert from "node:assert/strict";

import { accessible, opened, settled, texts, visit } from "./support.mjs";

const QUESTION = "model=Llama-3.1-8B&hardware=2xh100";
/** Two strategies are near there, also at a given load. */
const SYSTEM = "model=Llama-3.3-70B&hardware=8xh100";
const here = "[data-page=why]";
const field = (page, key) => page.evaluate((name) => new URLSearchParams(location.hash.split("?")[1]).get(name), key);
const drawn = async (page, address, question = QUESTION) => {
  await visit(page, address, `why?${question}`);
  await page.waitForSelector(`${here} .ladder`);
};

/** The finding, the verdict and its run; a row opens its plan by pointer and by keys, and Why leads back from there. */
async function ladder(page, address) {
  await drawn(page, address);
  assert.match(await page.textContent(`${here} h1`), /leads/);
  assert.match(await page.textContent(`${here} .verdict .word`), /^(Yes|No|Not provably)\.$/);
  assert.ok((await page.textContent(`${here} .verdict .said`)).length > 10);
  assert.ok((await page.locator(`${here} .ladder tr[data-plan] .rung .tick`).count()) >= 1);
  // Strategies without a plan say why.
  assert.ok((await texts(page, `${here} .ladder .reason`)).every((reason) => reason.length > 5));
  assert.equal(await page.locator(`${here} .picture`).count(), 0);
  await page.click(`${here} >> text=Copy as command`);
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^mantile-opt .*Llama-3\.1-8B.*--why$/);
  // The tables are behind, and the address knows.
  await page.click(`${here} summary >> text=The same as tables`);
  await page.waitForFunction(() => location.hash.includes("why.table=open"));
  assert.ok((await page.locator(`${here} details table`).count()) >= 2);
  await accessible(page, "why");
  await page.click(`${here} .ladder tr[data-plan] .rung >> nth=0`);
  await page.waitForFunction(() => location.hash.startsWith("#answer") && location.hash.includes("plan="));
  await settled(page);
  assert.match(await page.textContent("[data-page=answer] .proof"), /a given plan/);
  await page.click("nav [data-tab=why]");
  await page.click(`${here} >> text=Compare the strategies`);
  await page.waitForFunction(() => !location.hash.includes("plan="));
  await page.waitForSelector(`${here} .ladder`);
  await settled(page);
  await page.focus(`${here} .ladder button[data-plan] >> nth=0`);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.startsWith("#answer") && location.hash.includes("plan="));
  await settled(page);
}

/** A limit of the gains is set by a click. */
async function limits(page, address) {
  await drawn(page, address, `${SYSTEM}&ttft=2s&tpot=50ms`);
  const row = page.locator(`${here} button.torn-row >> text=TPOT ≤ 51 ms`);
  await row.click();
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("tpot") === "51ms");
  await settled(page);
  assert.equal(await page.evaluate(() => location.hash.split("?")[0]), "#why");
}

/** The mark of a crossover is moved by keys and by the pointer, and sets the question to its value. */
async function marks(page, address) {
  await drawn(page, address, SYSTEM);
  const mark = page.locator(`${here} .now[role=slider] >> nth=0`);
  const along = await mark.getAttribute("data-along");
  const name = { concurrency: "concurrency", prompt: "isl" }[along];
  const value = async () => Number(await page.getAttribute(`${here} .now[data-along=${along}]`, "aria-valuenow"));
  const first = await value();
  await mark.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  const moved = await value();
  assert.ok(moved < first, `${moved} is not below ${first}`);
  assert.match(await page.textContent(`${here} .strip-head`), /leads · Enter to ask/);
  // Escape puts it back, and the question is as before.
  await page.keyboard.press("Escape");
  assert.equal(await value(), first);
  assert.equal(await field(page, name), null);
  await page.keyboard.press("Shift+ArrowLeft");
  const wanted = await value();
  await page.keyboard.press("Enter");
  await page.waitForFunction(([key, text]) => new URLSearchParams(location.hash.split("?")[1]).get(key) === text, [name, String(wanted)]);
  await settled(page);
  await page.waitForSelector(`${here} .ladder`);
  // The focus is at the mark again, or at the sentence of an answer without a runner-up.
  assert.ok(await page.evaluate(() => document.activeElement.matches("[data-page=why] :is(.now, h1)")));
  // The pointer drags the mark of the prompt, which changes the question on release.
  await drawn(page, address, SYSTEM);
  await page.locator(`${here} .now[data-along=prompt]`).scrollIntoViewIfNeeded();
  const { x, y, width, height } = await page.locator(`${here} .now[data-along=prompt]`).boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width / 2 - 60, y + height / 2, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => /isl=\d+/.test(location.hash));
  await settled(page);
  assert.ok(Number(await field(page, "isl")) < 2048);
}

export async function why(page, address) {
  await ladder(page, address);
  await limits(page, address);
  await marks(page, address);
}

/** On a phone: nothing is too wide, too small to read or to touch. */
export async function narrow(browser, address) {
  const { page, faults, close } = await opened(browser, address, { viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true });
  await drawn(page, address, SYSTEM);
  const low = await page.$$eval(`${here} *`, (all) => all.filter((one) => one.offsetParent && !one.children.length && one.textContent.trim()).map((one) => [one.textContent, parseFloat(getComputedStyle(one).fontSize)]).filter(([, size]) => size < 11));
  assert.deepEqual(low, []);
  const tiny = await page.$$eval(`${here} :is(button, summary)`, (all) => all.filter((one) => one.offsetParent).map((one) => [one.outerHTML.slice(0, 80), one.offsetWidth, one.offsetHeight]).filter(([, width, height]) => width < 24 || height < 24));
  assert.deepEqual(tiny, []);
  await accessible(page, "why, 375 px");
  await page.setViewportSize({ width: 320, height: 640 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 320, "why at 320 px");
  assert.deepEqual(faults, []);
  await close();
}
