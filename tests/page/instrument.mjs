// The page as an instrument, with real key and pointer events: palette, chips, states, front, comparison.
//
// Usage alone: node instrument.mjs ADDRESS [NAME …].

import assert from "node:assert/strict";

import { accessible, launched, opened, settled, texts, visit } from "./support.mjs";

const QUESTION = "model=Llama-3.1-8B&hardware=2xh100";
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.dataset.chip || document.activeElement.className);

/** The palette takes typed text, moves by arrows, and finds models, devices, views, metrics and phrases. */
async function palette(page, address) {
  await visit(page, address, `answer?${QUESTION}`);
  const open = async (text) => {
    await page.keyboard.press("Control+k");
    await page.waitForSelector("#palette[open]");
    await page.keyboard.type(text);
    assert.equal(await page.inputValue("#find"), text);
  };
  await open("numbers");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("nav [aria-current]").dataset.tab === "numbers");
  await settled(page);
  // Arrows move one row; the chosen row is the one that Enter takes.
  await open("qwen3-");
  const rows = await texts(page, "#found [role=option]");
  assert.ok(rows.length > 2 && rows.every((row) => /qwen3-/i.test(row)), `${rows}`);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.textContent("#found [aria-selected=true]"), await page.textContent("#found [role=option] >> nth=1"));
  await page.keyboard.press("Backspace");
  assert.equal(await page.inputValue("#find"), "qwen3");
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden("#palette"));
  await visit(page, address, `answer?${QUESTION}`);
  await open("tpot");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#explained .term");
  await page.keyboard.press("Escape");
  await open("tp 2");
  assert.match(await page.textContent("#found [aria-selected=true]"), /Plan: 1 x tp2/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("plan=1+x+tp2"));
  await settled(page);
  await open("qwen3-0.6b tp 2");
  assert.match(await page.textContent("#found [aria-selected=true]"), /Qwen3-0\.6B · 1 x tp2/);
  await page.keyboard.press("Escape");
  await open("1xl40s");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("hardware=1xl40s") && !location.hash.includes("plan="));
  await settled(page);
  // A slash opens it too, and the pointer chooses.
  await page.keyboard.press("/");
  await page.keyboard.type("ttft 900ms");
  await page.click("#found [role=option]");
  await page.waitForFunction(() => location.hash.includes("ttft=900ms"));
  await settled(page);
}

/** The question is one line of chips: each opens over the page, and nothing moves. */
async function chips(page, address) {
  await visit(page, address, `answer?${QUESTION}&rate=2`);
  // A link with a rate opens no form over the answer.
  assert.equal(await page.locator("[data-pop]:visible").count(), 0);
  assert.equal(await page.$eval(".bar", (bar) => bar.offsetHeight), 48);
  assert.ok((await texts(page, "#chips .chip:not(.default) [data-chip]")).includes("2 requests/s"));
  const place = () => page.$eval("[data-page=answer] h1", (one) => one.getBoundingClientRect().top);
  const top = await place();
  await page.click("[data-chip=model]");
  assert.equal(await page.getAttribute("[data-chip=model]", "aria-expanded"), "true");
  assert.equal(await place(), top);
  await page.keyboard.type("qwen3-0.6");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /model=(Qwen--)?Qwen3-0\.6B/.test(location.hash));
  await settled(page);
  assert.equal(await focused(page), "model");
  // Escape puts the value back and asks nothing.
  const before = await page.evaluate(() => location.hash);
  await page.keyboard.press("Enter");
  await page.keyboard.type("nothing");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => location.hash), before);
  assert.equal(await focused(page), "model");
  // A condition is added from the plus, and removed by its cross.
  await page.click("[data-chip=add]");
  await page.click("#conditions button >> text=E2E SLO");
  await page.keyboard.type("20s");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("e2e=20s"));
  await settled(page);
  await page.click("[data-clear=e2e]");
  await page.waitForFunction(() => !location.hash.includes("e2e="));
  await settled(page);
  // A preset is one click; a click outside closes.
  await page.click("[data-chip=tpot]");
  await page.click("[data-pop=tpot] .options >> text=20ms");
  await page.waitForFunction(() => location.hash.includes("tpot=20ms"));
  await settled(page);
  assert.ok((await texts(page, "#chips .chip:not(.default) [data-chip]")).includes("TPOT ≤ 20 ms"));
  await page.click("[data-chip=traffic]");
  await page.mouse.click(640, 880);
  assert.equal(await page.locator("[data-pop]:visible").count(), 0);
}

/** On a phone, the chips are one line that opens a sheet; in a narrow window, those that do not fit are in a menu. */
async function folded(browser, address) {
  for (const width of [375, 820]) {
    const { page, faults, close } = await opened(browser, address, { viewport: { width, height: 812 } });
    await visit(page, address, `answer?${QUESTION}&rate=2&runtime=sglang&host_memory=256GB`);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${width}: ${overflow} px too wide`);
    if (width === 375) await page.click("#fold");
    else await page.click("[data-chip=more]");
    await page.click(width === 375 ? "[data-chip=runtime]" : "#conditions button >> text=Runtime");
    assert.ok(await page.isVisible("[data-pop=runtime] input"));
    await accessible(page, `chips, ${width} px`);
    assert.deepEqual(faults, []);
    await close();
  }
}

const TESTS = { palette, chips };

/** All instruments of the page at an address. */
export async function instruments(browser, address, names = Object.keys(TESTS)) {
  for (const name of names) {
    if (!TESTS[name]) continue;
    const { page, faults, close } = await opened(browser, address);
    await TESTS[name](page, address);
    assert.deepEqual(faults.filter((fault) => !fault.includes("422")), [], name);
    await close();
  }
  if (names.length !== 1 || names[0] === "folded") await folded(browser, address);
}

if (process.argv[1] === import.meta.filename) {
  const [address, ...names] = process.argv.slice(2);
  const browser = await launched();
  try {
    await instruments(browser, address, names.length ? names : undefined);
    console.log("instruments: as they should be");
  } finally {
    await browser.close();
  }
}
