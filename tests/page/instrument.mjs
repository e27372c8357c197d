// The page as an instrument, with real key and pointer events: palette, chips, states, front, comparison.
//
// Usage alone: node instrument.mjs ADDRESS [NAME …].

import assert from "node:assert/strict";

import { accessible, launched, opened, settled, texts, visit } from "./support.mjs";
import * as pins from "./compare.mjs";
import * as tools from "./tools.mjs";
import * as traffic from "./traffic.mjs";
import * as decision from "./why.mjs";

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
  // Escape puts the value back and changes nothing.
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

/** A point of the staircase in the window. */
const point = (page, at) => page.$$eval(".plot .point", (all, place) => all.map((one) => one.getBoundingClientRect()).map(({ x, y, width }) => ({ x: x + width / 2, y: y + width / 2 })).at(place), at);

/** The front is walked by arrows, a point says what it is, and the edge of the SLO is dragged. */
async function front(page, address) {
  await visit(page, address, `answer?${QUESTION}`);
  await page.waitForSelector(".plot .stairs");
  assert.ok((await texts(page, ".plot .name")).length >= 1);
  await page.locator(".plot").scrollIntoViewIfNeeded();
  // The pointer near a point shows its card; leaving takes it away.
  const far = await point(page, -1);
  await page.mouse.move(far.x + 5, far.y - 4);
  await page.waitForSelector(".tip h3");
  assert.match(await page.textContent(".tip"), /each user.*tok\/s/s);
  await page.mouse.move(5, 5);
  assert.ok(await page.isHidden(".tip"));
  // Arrows walk, and the card follows.
  await page.focus(".plot");
  await page.keyboard.press("End");
  const last = await page.textContent(".tip h3");
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await page.textContent(".tip"), last);
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden(".tip"));
  // Axes are picked, and stay picked.
  await page.selectOption("[data-axis=y]", "usd_per_mtok");
  await page.waitForFunction(() => document.querySelector("[data-axis=y]").value === "usd_per_mtok" && document.querySelectorAll(".plot .point").length > 0);
  await page.selectOption("[data-axis=y]", "output_tok_s_per_device");
  // A pin from the card, with undo in reach.
  const first = await point(page, 0);
  await page.mouse.click(first.x, first.y);
  await page.click(".tip >> text=Pin");
  assert.match(await page.textContent(".toast"), /Pinned .*Compare.*Undo/s);
  await page.click(".toast >> text=Undo");
  // The edge is dragged by the pointer, then moved by keys.
  const handle = await page.locator(".slo-handle").boundingBox();
  await page.mouse.move(handle.x + 12, handle.y + 80);
  await page.mouse.down();
  await page.mouse.move(handle.x + 72, handle.y + 80, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => /tpot=[\d.]+ms/.test(location.hash));
  await settled(page);
  assert.match(await page.textContent("[data-page=answer] .proof"), /optimal/);
  const dragged = await page.evaluate(() => new URLSearchParams(location.hash.split("?")[1]).get("tpot"));
  await page.focus(".slo-handle");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.waitForFunction((before) => new URLSearchParams(location.hash.split("?")[1]).get("tpot") !== before, dragged);
  await settled(page);
  // Enter opens the plan of a point.
  await page.focus(".plot");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("plan="));
  await settled(page);
  assert.match(await page.textContent("[data-page=answer] .proof"), /a given plan/);
}

/** The answer is one screen: what it says, its metrics, the front, time, memory, next best, nearest, launch. */
async function screen(page, address) {
  await visit(page, address, "answer?model=Llama-3.3-70B&hardware=8xh100");
  await page.waitForSelector("[data-page=answer] .nearest");
  const bottoms = await page.$$eval("[data-page=answer] .head, .metrics, figure.front, .grid-2 .bars, .grid-3 > *", (all) => all.map((one) => [one.className, one.getBoundingClientRect().bottom]));
  assert.ok(bottoms.length >= 8, `${bottoms.length} parts`);
  for (const [name, bottom] of bottoms) assert.ok(bottom <= 900, `${name} ends at ${bottom}`);
  assert.match(await page.textContent("[data-page=answer] h1"), /Llama-3\.3-70B.* on 8xh100 as .*to count on/);
  assert.match(await page.textContent("[data-page=answer] .sub"), /vllm.*expected.*odds to meet both SLOs/s);
  const odds = await texts(page, ".metrics .ends b");
  assert.ok(odds.filter((text) => text.endsWith("%")).length === 2, `${odds}`);
  // All cells of the row have one scale rule, and each number opens its formula.
  assert.ok((await page.locator(".metrics .interval .range").count()) >= 4);
}

/** No answer is at full strength under another question. */
async function states(page, address) {
  await visit(page, address, `answer?${QUESTION}`);
  await page.click("[data-chip=model]");
  await page.keyboard.type("Llama-3.1-8X");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#fault:visible");
  const said = await page.textContent("#fault");
  assert.match(said, /model: found.*Did you mean.*The answer below is to the previous question: Llama-3\.1-8B on 2xh100/s);
  assert.ok((await page.$eval("[data-page=answer] section", (one) => Number(getComputedStyle(one).opacity))) < 0.7);
  assert.ok(await page.locator(".chip.refused [data-chip=model]").count());
  await page.click("#fault >> text=Back to it");
  await page.waitForFunction(() => location.hash.includes("model=Llama-3.1-8B"));
  await settled(page);
  assert.ok(await page.isHidden("#fault"));
  assert.equal(await page.$eval("[data-page=answer] section", (one) => getComputedStyle(one).opacity), "1");
  // An infeasible question: its remedies say what they give.
  await visit(page, address, "answer?model=Llama-3.1-405B&hardware=1xh100");
  assert.match(await page.textContent("[data-page=answer] .remedies"), /tok\/s/);
  // Nothing pinned: an example is compared.
  await visit(page, address, `compare?${QUESTION}`);
  assert.match(await page.textContent("#compared"), /An example.*three systems/s);
  assert.ok(await page.locator("#compared td b").count() > 20);
}

/** A server that is gone is tried again, and the question is kept. */
async function gone(page, address) {
  await visit(page, address, `answer?${QUESTION}`);
  if ((await page.getAttribute("html", "data-engine")) !== "http") return;
  await page.route("**/v2/**", (route) => route.abort());
  await page.click("[data-chip=tpot]");
  await page.keyboard.type("21ms");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#fault:visible");
  assert.match(await page.textContent("#fault"), /not reachable.*Trying again in \d s.*Try now/s);
  await page.unroute("**/v2/**");
  await page.click("#fault >> text=Try now");
  await settled(page);
  await page.waitForFunction(() => document.getElementById("fault").hidden);
  assert.match(await page.textContent("[data-page=answer] .proof"), /optimal/);
}

/** A search that lasts shows its best plan so far, which stays where the search is stopped, and is computed on request. */
async function early(page, address) {
  await visit(page, address, `answer?${QUESTION}`);
  if ((await page.getAttribute("html", "data-engine")) !== "http") return;
  let held = null;
  const waits = [];
  await page.route("**/v2/optimize", (route) => {
    const wait = route.request().headers().prefer;
    if (!wait) return (held = route);
    waits.push(wait);
    return route.continue();
  });
  await page.click("[data-chip=tpot]");
  await page.keyboard.type("19ms");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /The best plan of the first second is below; the search goes on/.test(document.getElementById("working").textContent), null, { timeout: 60000 });
  assert.ok(held);
  assert.equal(waits[0], "wait=1");
  assert.equal(await page.$eval("[data-page=answer] section", (one) => getComputedStyle(one).opacity), "1");
  const plan = () => page.getAttribute("[data-page=answer] section[data-notation]", "data-notation");
  const found = await plan();
  await page.click("#stop");
  await page.waitForSelector("#fault:visible");
  assert.match(await page.textContent("#fault"), /^Stopped\.The plan below is the best so far\.Compute it$/);
  assert.equal(await plan(), found);
  await page.unroute("**/v2/optimize");
  await page.click("#fault >> text=Compute it");
  await page.waitForFunction(() => document.getElementById("fault").hidden);
  await settled(page);
  assert.match(await page.textContent("[data-page=answer] .proof"), /optimal/);
}

/** Pins are columns that fit, the first is the base, and the address carries them. */
async function compare(page, address) {
  for (const plan of ["1 x tp2 @16", "2 x tp1 @16", "1 x tp1 @8"]) {
    await visit(page, address, `answer?${QUESTION}&plan=${plan}`);
    await page.keyboard.press("p");
    await page.waitForFunction(() => document.querySelector(".toast.shown"));
  }
  await page.click(".toast >> text=Compare");
  await page.waitForSelector("#compared table");
  await settled(page);
  const heads = await texts(page, "#compared .pin-name");
  assert.deepEqual(heads, ["1 x tp2 @16", "2 x tp1 @16", "1 x tp1 @8"]);
  const [right, width] = await page.$eval("#compared table", (one) => [one.getBoundingClientRect().right, one.parentElement.scrollWidth - one.parentElement.clientWidth]);
  assert.ok(right <= 1280 && width <= 0, `${right}, ${width}`);
  assert.ok((await texts(page, "#compared td .good, #compared td .bad")).some((text) => /[+−]\d+ %/.test(text)));
  await page.click("#compared th:nth-child(3) >> text=make base");
  await page.waitForFunction(() => document.querySelector("#compared .pin-name").textContent === "2 x tp1 @16");
  const link = await page.evaluate(() => location.href);
  assert.match(link, /pins=/);
  await page.evaluate(() => localStorage.clear());
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForSelector("#compared .pin-name");
  assert.deepEqual(await texts(page, "#compared .pin-name"), ["2 x tp1 @16", "1 x tp2 @16", "1 x tp1 @8"]);
  await page.click("#compared th:nth-child(4) >> text=×");
  await page.waitForFunction(() => document.querySelectorAll("#compared .pin-name").length === 2);
}

/** Devices are dragged and moved by arrows; a link is edited, a device added and removed; each change is solved again. */
async function where(page, address) {
  await visit(page, address, "where?model=Llama-3.1-8B&hardware=spark-mac-studio");
  await page.waitForSelector(".node");
  assert.deepEqual(await texts(page, ".node strong"), ["spark", "mac"]);
  const box = () => page.locator(".node >> nth=0").boundingBox();
  const line = () => page.$eval(".wire", (one) => ["x1", "y1", "x2", "y2"].map((name) => Number(one.getAttribute(name))));
  await page.locator(".board").scrollIntoViewIfNeeded();
  const [before, wire] = [await box(), await line()];
  await page.mouse.move(before.x + 60, before.y + 50);
  await page.mouse.down();
  await page.mouse.move(before.x + 130, before.y + 90, { steps: 5 });
  await page.mouse.up();
  const after = await box();
  assert.ok(Math.abs(after.x - before.x - 70) < 2 && Math.abs(after.y - before.y - 40) < 2, JSON.stringify([before, after]));
  assert.notDeepEqual(await line(), wire);
  await page.focus(".node >> nth=0");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowDown");
  const moved = await box();
  assert.ok(Math.abs(moved.x - after.x - 8) < 1 && Math.abs(moved.y - after.y - 1) < 1, JSON.stringify([after, moved]));
  // The address has the places.
  await page.waitForFunction(() => location.hash.includes("where.spots"));
  await page.reload();
  await page.waitForSelector(".node");
  await page.locator(".board").scrollIntoViewIfNeeded();
  const again = await box();
  assert.ok(Math.abs(again.x - moved.x) < 2 && Math.abs(again.width - moved.width) < 1, JSON.stringify([moved, again]));
  // A link by its bandwidth, and by a preset.
  await page.focus(".wire-label");
  await page.keyboard.press("Enter");
  await page.keyboard.type("2 GB/s");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("files=") && document.querySelector(".wire-label b")?.textContent === "2 GB/s");
  await settled(page);
  await page.click(".wire-label");
  await page.click(".board .options >> text=Ethernet 25 Gb/s");
  await page.waitForFunction(() => /^3\.1/.test(document.querySelector(".wire-label b")?.textContent));
  await settled(page);
  await page.selectOption("[aria-label=\"add a device\"]", "nvidia-rtx-4090");
  await page.waitForFunction(() => document.querySelectorAll(".node").length === 3 && document.querySelectorAll(".wire").length === 2);
  await settled(page);
  await page.click(".scene-tools >> text=mesh");
  await page.waitForFunction(() => document.querySelectorAll(".wire").length === 3);
  await settled(page);
  await accessible(page, "the scene");
  // The address carries the devices.
  const link = await page.evaluate(() => location.href);
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForFunction(() => document.querySelectorAll(".node").length === 3, null, { timeout: 60000 });
  await settled(page);
  await page.click("[aria-label^=\"without rtx-4090\"]");
  await page.waitForFunction(() => document.querySelectorAll(".node").length === 2);
  await settled(page);
}

/** One token on its way: step by step without motion, by itself with it, in both phases, with times that add up. */
async function played(page, address) {
  await visit(page, address, "where?model=Llama-3.3-70B&hardware=pcie-four-cards");
  await page.waitForSelector(".scene-tools >> text=One token");
  const line = () => page.textContent(".token-line");
  assert.match(await line(), /A token takes [\d.]+ ms: each device/);
  await page.focus(".scene-tools >> text=One token");
  await page.keyboard.press("Enter");
  assert.match(await line(), /^1 of 3 · \S+: layers 0 to \d+ · [\d.]+ ms, \d+ % · ([\d.]+) ms of [\d.]+ ms$/);
  assert.equal(await page.locator(".node.at").count(), 1);
  assert.equal(await page.locator(".token").count(), 1);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.match(await line(), /^2 of 3 · \S+ → \S+ · /);
  assert.equal(await page.locator(".wire.at").count(), 1);
  await page.keyboard.press("Space");
  const [, before, all] = (await line()).match(/^3 of 3 · .* · ([\d.]+ ms) of ([\d.]+ ms)$/);
  assert.equal(before, all);
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".token, .node.at, .wire.at").count(), 0);
  await page.click(".scene-tools .seg >> text=prefill");
  assert.match(await line(), /A prompt of 2,048 tokens takes/);
  // A prompt has hops of its own, whose times add up too; loads and times are those of the phase.
  assert.match(await page.textContent(".wire-label:not(.idle)"), /[\d.]+ (m|µ)s a prompt/);
  await page.click(".scene-tools >> text=Step");
  assert.match(await line(), /^1 of 3 · /);
  await page.click(".scene-tools >> text=Step");
  assert.match(await line(), /^2 of 3 · \S+ → \S+ · [\d.]+ (m|µ)s, /);
  assert.equal(await page.locator(".wire.at").count(), 1);
  await page.click(".scene-tools >> text=Step");
  const [, sum, prompt] = (await line()).match(/^3 of 3 · .* · (.+) of (.+)$/);
  assert.equal(sum, prompt);
  // With motion it plays to the end, and stops where it is paused.
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await page.click(".scene-tools .seg >> text=decode");
  await page.click(".scene-tools >> text=One token");
  await page.waitForFunction(() => document.querySelector(".token-line").textContent.startsWith("2 of 3"));
  const place = () => page.locator(".token").boundingBox();
  const first = await place();
  await page.waitForFunction((x) => Math.abs(document.querySelector(".token").getBoundingClientRect().x - x) > 2, first.x);
  await page.click(".scene-tools >> text=Pause");
  await page.waitForSelector(".scene-tools >> text=One token");
  await page.click(".scene-tools >> text=One token");
  await page.waitForFunction(() => document.querySelector(".token-line").textContent.startsWith("3 of 3") && document.querySelector(".scene-tools button").textContent.includes("One token"), null, { timeout: 20000 });
  await accessible(page, "a token");
}

/** Links: the load is a colour with a legend, unused ones are dashed, the bottleneck is marked, and a token's way has its time. */
async function links(page, address) {
  await visit(page, address, "where?model=Llama-3.3-70B&hardware=pcie-four-cards");
  await page.waitForSelector(".wire-label");
  assert.match((await texts(page, ".wire-label:not(.idle)")).join(), /^63 GB\/s · (<1|\d+) %\s*[\d.]+ µs a token$/);
  assert.deepEqual(await texts(page, ".wire-label.idle .words"), ["not used", "not used"]);
  const strokes = await page.$$eval(".wire", (all) => all.map((one) => [one.classList.contains("idle"), getComputedStyle(one).strokeDasharray !== "none"]));
  assert.ok(strokes.length === 3 && strokes.every(([idle, dashed]) => idle === dashed), JSON.stringify(strokes));
  assert.match(await page.textContent(".board-legend"), /layers held, of 80.*memory.*below 40 %.*to 80 %.*above.*not used/s);
  assert.deepEqual(await page.$$eval(".node.slowest strong", (all) => all.map((one) => one.textContent)), ["5090"]);
  assert.ok(await page.isVisible(".node.slowest >> text=bottleneck"));
  assert.match(await page.textContent(".node.slowest .node-foot"), /[\d.]+ of [\d.]+ GiB\s*[\d.]+ ms/);
  assert.match(await page.textContent("#scene h1"), /runs on 2 of 4 devices: [\d.]+ tok\/s; 3090 and 3060 hold no layers/);
  await page.click(".wire-label:not(.idle)");
  assert.match(await page.textContent(".board .pop"), /Costs [\d.]+ µs of [\d.]+ ms a token: not the bottleneck/);
  await page.keyboard.press("Escape");
  // A slow link sends for most of the time, and is the bottleneck.
  await visit(page, address, "where?model=Llama-3.3-70B&hardware=rtx-4090-3090");
  await page.waitForSelector(".wire.low", { state: "attached" });
  assert.equal(await page.locator(".node.slowest").count(), 1);
  await page.focus(".wire-label");
  await page.keyboard.press("Enter");
  await page.keyboard.type("0.2 MB/s");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".wire.middle", { state: "attached" });
  await settled(page);
  assert.match(await page.textContent(".wire-label"), /0\.2 MB\/s · [4-7]\d % [\d.]+ ms a token.*bottleneck/);
  assert.equal(await page.locator(".node.slowest").count(), 0);
  await accessible(page, "links");
}

/** The tree folds by the pointer and by arrows with sums, the roofline is walked, and all parts of the view select together. */
async function operators(page, address) {
  await visit(page, address, "numbers?model=Llama-3.1-8B&hardware=2xh100");
  await page.waitForSelector(".tree");
  const row = (name) => page.locator(`.tree tr:visible:has(th:text-is("${name}"))`).first();
  const open = (name) => row(name).getAttribute("aria-expanded");
  const visible = () => page.locator(".tree tbody tr:visible").count();
  assert.match(await page.textContent("[data-page=numbers] h1"), /^A decode step takes [\d.]+ (m|µ)s, \d+ % of it /);
  // A group's time is the sum of those of its rows.
  const spent = await page.$$eval(".tree tbody tr", (all) => all.map((one) => [one.getAttribute("aria-level"), one.dataset.op, Number.parseFloat(one.cells[1].textContent), one.cells[6].textContent.trim()]));
  const ms = (text) => Number.parseFloat(text.replaceAll(",", "")) * (/µs/.test(text) ? 1e-3 : 1);
  for (const [level, key, , time] of spent.filter(([one]) => one !== "3")) {
    const own = spent.filter(([one, other]) => Number(one) === Number(level) + 1 && other.startsWith(`${key}/`)).reduce((sum, [, , , text]) => sum + ms(text), 0);
    assert.ok(Math.abs(own / ms(time) - 1) < 0.02, `${key}: ${own} of ${time}`);
  }
  const before = await visible();
  assert.equal(await open("Decode step"), "true");
  await row("Decode step").locator("th").click();
  assert.equal(await open("Decode step"), "false");
  assert.ok((await visible()) < before);
  // Right opens, right again goes in; left closes, and left again goes out.
  await page.keyboard.press("ArrowRight");
  assert.equal(await open("Decode step"), "true");
  assert.equal(await visible(), before);
  await page.keyboard.press("ArrowRight");
  const level = () => page.evaluate(() => document.activeElement.getAttribute("aria-level"));
  assert.equal(await level(), "2");
  const part = await page.evaluate(() => document.activeElement.getAttribute("aria-expanded"));
  if (part === "true") await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.equal(await level(), "3");
  // The row is chosen in the timeline and the roofline as well, and Enter opens its formula.
  await page.keyboard.press("End");
  await page.keyboard.press("Home");
  assert.equal(await level(), "1");
  await row("feed forward").locator("th").click();
  assert.ok((await page.locator(".dot.chosen").count()) > 0 && (await page.locator(".piece.chosen").count()) > 0);
  assert.match(await page.textContent(".numbers .token-line"), /feed forward · [\d.]+ (m|µ)s, \d+ % · bound by/);
  await page.focus(".roofline .plot");
  await page.keyboard.press("End");
  const last = await page.textContent(".roofline .tip");
  assert.match(last, /attained.*FLOP\/s.*intensity.*FLOP\/B.*time/s);
  const chosen = await page.getAttribute(".tree tr.chosen", "data-op");
  assert.equal(await page.locator(`.tree tr[data-op="${chosen}"]:visible`).count(), 1);
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await page.textContent(".roofline .tip"), last);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#explained .term");
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden(".roofline .tip"));
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden("#panel"));
  // The roofs have names and rates; the pointer shows a dot.
  assert.match((await texts(page, ".roofline text.on")).join(), /3\.35 TB\/s.*BF16 989 TFLOP\/s/);
  const dot = await page.locator(".dot.decode").last().boundingBox();
  await page.mouse.move(dot.x + dot.width / 2 + 6, dot.y + dot.height / 2);
  await page.waitForSelector(".roofline .tip:visible");
  await page.mouse.move(5, 5);
  assert.ok(await page.isHidden(".roofline .tip"));
  // Segments by keys, in the other phase.
  await page.click(".timeline .seg >> text=prefill");
  await page.focus(".strip >> nth=1");
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.textContent(".numbers .token-line"), /^Prefill · /);
  await page.focus(".tree tr.chosen");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#explained .term");
  assert.match(await page.textContent("#trail"), /^prefill\//);
  await page.keyboard.press("Escape");
  await page.click(".numbers .seg >> text=flat");
  assert.ok((await page.isVisible("#operators")) && (await page.isHidden(".tree")));
  await page.click(".numbers .seg >> text=tree");
  await accessible(page, "numbers");
}

/** A static batch opens with the degrees of the answer; memory and compute follow each choice at once. */
async function degrees(page, address) {
  await visit(page, address, "layers?model=Llama-3.3-70B&hardware=8xh100");
  await page.waitForSelector(".degrees");
  assert.match(await page.textContent("[data-page=layers] .sub"), /degrees and formats of the answer, 4 x tp2 @/);
  assert.equal(await page.inputValue("[name=\"plan.tp\"]"), "2");
  const figures = () => texts(page, ".degrees .card >> nth=1 >> .figure");
  const first = await figures();
  assert.match(first[0], /memory\s*[\d.]+ of 73\.3 GiB fits$/);
  await page.focus("[name=\"plan.tp\"]");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => /Decode: tp4, 4 devices/.test(document.querySelector(".degrees").textContent));
  const [memory, compute] = await figures();
  assert.match(memory, /fits −\d+ %$/);
  assert.match(compute, /FLOP −50 %$/);
  // A number is computed while it is typed.
  await page.click("[name=batch]");
  await page.keyboard.press("End");
  await page.keyboard.type("6");
  await page.waitForFunction(() => /batch 16/.test(document.querySelector("[data-page=layers] .output section > h2").textContent));
  assert.equal(await page.evaluate(() => document.activeElement.name), "batch");
  await accessible(page, "layers");
}

/** Many devices are racks, nodes and single ones; arrows walk, Enter opens, Escape goes back. */
async function racks(page, address) {
  await visit(page, address, "where?model=Llama-3.1-8B&hardware=16x8xh100&plan=128 x tp1 @64");
  await page.waitForSelector(".groups .group");
  assert.equal(await page.locator(".groups .group").count(), 16);
  assert.match(await page.textContent(".side-by-side table"), /replica, layers 0 to 31\s*128/);
  await accessible(page, "nodes");
  await page.focus(".groups button >> nth=0");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /2 \d+ % full: replica 9/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".groups .device").count(), 8);
  assert.match(await page.textContent(".trail"), /all 128.*rack 1.*2/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  assert.match(await page.textContent(".token-line"), /replica 10.*layers 0 to 31, memory \d+ %/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".groups .group").count(), 8);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".groups .group").count(), 16);
  await page.click(".seg >> text=racks");
  assert.equal(await page.locator(".groups .group").count(), 2);
  await page.click(".groups .group >> nth=1");
  assert.match(await page.textContent(".groups .group"), /9/);
  await page.click(".trail >> text=all 128");
  await page.click(".seg >> text=GPUs");
  assert.equal(await page.locator(".groups .device").count(), 128);
  await page.click(".seg >> text=memory");
  assert.match(await page.textContent(".legend"), /under 50 %/);
  assert.match(await page.textContent(".fabric"), /nvlink domain.*unused by this plan.*network.*unused by this plan/);
  await accessible(page, "groups");
  await visit(page, address, "where?model=Llama-3.3-70B&hardware=2x8xh100-sxm&plan=1 x tp8 pp2 @16");
  await page.waitForSelector(".fabric");
  assert.match(await page.textContent(".fabric"), /Busiest links: nvlink domain, \d+ % of a (prompt|token).*network.*a prompt.*GB\/s.*a token/);
  await accessible(page, "links");
  // A slower network is set in the picture, and carries the same in more time.
  const busy = async () => Number((await page.textContent(".fabric h2")).match(/(\d+) %/)[1]);
  const before = await busy();
  await page.click(".fabric [data-pick=level-0]");
  await accessible(page, "a level of links");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.pick), "level-0");
  await page.keyboard.press("Enter");
  await page.keyboard.type("fast");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute(".fabric .pop input", "aria-invalid"), "true");
  await page.fill(".fabric .pop input", "100 GB/s");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("set") === "system.tiers.0.bandwidth=100 GB/s");
  await settled(page);
  await page.waitForFunction(() => document.querySelector(".fabric [data-pick=level-0]")?.textContent === "100 GB/s");
  assert.ok((await busy()) > before, `${await busy()} after ${before}`);
  await joined(page, address);
}

/** Equal devices and what joins them are one scene: boxes are dragged and moved by keys, a link is edited, all is shared. */
async function joined(page, address) {
  await visit(page, address, "where?model=Llama-3.3-70B&hardware=2x8xh100-sxm&plan=2 x tp8 @16");
  await page.waitForSelector(".groups.links .device-box");
  assert.equal(await page.locator(".device-box").count(), 16);
  assert.deepEqual(await texts(page, ".hub b"), ["nvlink4 · 450 GB/s", "nvlink4 · 450 GB/s", "ib-ndr · 50.0 GB/s"]);
  assert.match(await page.textContent(".hub.idle"), /unused by this plan/);
  assert.equal(await page.locator(".groups.links .wire").count(), 18);
  assert.equal(await page.locator(".groups.links .wire.idle").count(), 2);
  await accessible(page, "equal devices and their links");
  const box = page.locator("[data-box='replica 1 tp3']");
  const place = async () => (({ x, y }) => [Math.round(x), Math.round(y)])(await box.boundingBox());
  const spots = () => page.evaluate(() => new URLSearchParams(location.hash.split("?")[1]).get("where.spots"));
  const [x, y] = await place();
  await page.mouse.move(x + 40, y + 20);
  await page.mouse.down();
  await page.mouse.move(x + 70, y + 60, { steps: 4 });
  await page.mouse.up();
  assert.deepEqual(await place(), [x + 30, y + 40]);
  await page.waitForFunction(() => location.hash.includes("where.spots"));
  const dragged = await spots();
  await box.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Shift+ArrowLeft");
  assert.deepEqual(await place(), [x + 29, y + 48]);
  await page.waitForFunction((text) => new URLSearchParams(location.hash.split("?")[1]).get("where.spots") !== text, dragged);
  await page.reload();
  await page.waitForSelector(".groups.links .device-box");
  assert.deepEqual(await place(), [x + 29, y + 48], "the address has the places");
  await box.focus();
  await page.keyboard.press("Enter");
  assert.match(await page.textContent(".groups + .token-line"), /replica 1 tp3: layers 0 to 79, memory \d+ %/);
  await page.focus(".hub >> nth=2");
  await page.keyboard.press("Enter");
  await page.keyboard.type("12.5 GB/s");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("set") === "system.tiers.1.bandwidth=12.5 GB/s");
  await page.waitForFunction(() => /12.5 GB\/s/.test(document.querySelector(".hub.idle")?.textContent));
  await page.click(".seg >> text=GPUs");
  assert.equal(await page.locator(".groups .device").count(), 16);
  await settled(page);
  await travelled(page, address);
}

/** One token on its way through equal devices: a stage computes, its devices exchange their parts, the next gets the result. */
async function travelled(page, address) {
  await visit(page, address, "where?model=Llama-3.3-70B&hardware=8xh100-sxm&plan=2 x tp2 pp2 @16");
  await page.waitForSelector(".token-tools >> text=One token");
  const line = () => page.textContent(".token-tools .token-line");
  const marked = () => Promise.all([".device-box.at", ".wire.at"].map((one) => page.locator(one).count()));
  assert.match(await line(), /^A token takes [\d.]+ ms: each stage computes its layers and sends the result on\.$/);
  await page.focus(".token-tools >> text=One token");
  await page.keyboard.press("Enter");
  assert.match(await line(), /^1 of 5 · replica 1 stage 0: layers 0 to 39 · [\d.]+ ms, \d+ % · /);
  assert.deepEqual(await marked(), [2, 0]);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.match(await line(), /^2 of 5 · replica 1 stage 0: its devices exchange their parts · /);
  assert.deepEqual(await marked(), [2, 2]);
  await page.keyboard.press("Space");
  assert.match(await line(), /^3 of 5 · replica 1 stage 0 → replica 1 stage 1 · /);
  assert.deepEqual(await marked(), [2, 4]);
  await page.keyboard.press("Space");
  await page.keyboard.press("Space");
  const [, sum, all] = (await line()).match(/^5 of 5 · .* · (.+) of (.+)$/);
  assert.equal(sum, all);
  await page.click(".token-tools .seg >> text=prefill");
  assert.match(await line(), /^A prompt of [\d,]+ tokens takes [\d.]+ ms: each stage/);
  assert.deepEqual(await marked(), [0, 0]);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await page.click(".token-tools >> text=One token");
  await page.waitForFunction(() => document.querySelector(".token-tools .token-line").textContent.startsWith("2 of 5"));
  await page.click(".token-tools >> text=Pause");
  assert.equal(await page.locator(".token").count(), 1);
  await accessible(page, "a token through equal devices");
}

/** A tool that is empty has examples that a click answers; a question in words is understood. */
async function examples(page, address) {
  await visit(page, address, "accuracy");
  await page.click("form[data-request=diagnose] [data-try] >> nth=0");
  await page.waitForFunction(() => /impossible|slow|fast|possible/i.test(document.querySelector("[data-page=accuracy] .output").textContent) && document.querySelector("[name=output_tok_s]").value === "20000", null, { timeout: 120000 });
  await settled(page);
  assert.match(await page.evaluate(() => location.hash), /plan=/);
  await visit(page, address, `buy?${QUESTION}`);
  assert.equal(await page.locator("[data-page=buy] .examples [data-try]").count(), 3);
  await page.click("[data-page=buy] .examples [data-try] >> nth=1");
  await page.waitForFunction(() => document.querySelector("[data-page=buy] .output h1, [data-page=buy] .output h2"), null, { timeout: 180000 });
  await settled(page);
  assert.match(await page.textContent("[data-page=buy] .output"), /RTX 4090/);
  assert.ok(await page.isHidden("[data-page=buy] .examples"));
  await visit(page, address, "ask");
  await page.focus("#paste");
  await page.keyboard.type("Llama-3.1-8B on 2 H100, TPOT 40 ms");
  await page.click("[data-action=paste]");
  await page.waitForFunction(() => location.hash.includes("tpot=40ms"));
  await settled(page);
  assert.match(await page.evaluate(() => decodeURIComponent(location.hash)), /model=Llama-3\.1-8B.*hardware=2xh100/);
  await visit(page, address, "ask");
  await page.fill("#paste", "llama-9.9-9b on 2 H100");
  await page.click("[data-action=paste]");
  assert.match(await page.textContent("#pasted"), /llama-9\.9-9b.*no model/);
}

/** On a phone, every text of a picture has 11 px at least, and what can be touched has 24. */
async function phone(browser, address) {
  const { page, faults, close } = await opened(browser, address, { viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true });
  for (const view of ["ask", "answer", "why", "numbers", "layers", "where", "compare", "accuracy", "buy"]) {
    await visit(page, address, `${view}?${QUESTION}`);
    if (view === "numbers") await page.waitForSelector(".tree");
    const small = await page.$$eval("[data-page]:not([hidden]) svg text", (all) => all.filter((one) => one.getClientRects().length).map((one) => [one.textContent, parseFloat(getComputedStyle(one).fontSize) * (one.getScreenCTM()?.a ?? 1)]).filter(([text, size]) => text && size < 10.95));
    assert.deepEqual(small.slice(0, 5), [], view);
    const tiny = await page.$$eval("header button, [data-page]:not([hidden]) :is(button.plain, .seg button, .group, .device, .trail button, .strip, .tree tr, .tree button, .wire-label, .node button), .slo-handle, nav a", (all) => all.filter((one) => one.offsetParent).map((one) => [one.outerHTML.slice(0, 80), one.offsetWidth, one.offsetHeight]).filter(([, width, height]) => width < 24 || height < 24));
    assert.deepEqual(tiny, [], view);
    // Nothing scrolls sideways on the narrowest screen.
    await page.setViewportSize({ width: 320, height: 640 });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 320, `${view} at 320 px`);
    await page.setViewportSize({ width: 375, height: 812 });
  }
  // The scene is a chain, whose labels are over no device.
  await visit(page, address, "where?model=Llama-3.3-70B&hardware=pcie-four-cards");
  await page.waitForSelector(".wire-label");
  const boxes = await page.$$eval(".board :is(.node, .wire-label)", (all) => all.map((one) => [one.textContent, one.getBoundingClientRect(), Number.parseFloat(getComputedStyle(one).fontSize)]).map(([text, { x, y, width, height }, size]) => ({ text, x, y, width, height, size })));
  for (const box of boxes) {
    assert.ok(box.width >= 24 && box.height >= 24 && box.size >= 11 && box.x >= 0 && box.x + box.width <= 375, JSON.stringify(box));
    const over = boxes.filter((other) => other !== box && other.x < box.x + box.width && box.x < other.x + other.width && other.y < box.y + box.height - 1 && box.y < other.y + other.height - 1);
    assert.deepEqual(over.map(({ text }) => text), [], box.text);
  }
  await visit(page, address, `answer?${QUESTION}`);
  await page.locator("[data-page=answer] .plot").scrollIntoViewIfNeeded();
  const { x, y } = await point(page, -1);
  await page.touchscreen.tap(x, y);
  const card = await page.locator("[data-page=answer] .tip").boundingBox();
  assert.ok(card.x >= 0 && card.x + card.width <= 375 && card.y + card.height <= 812, JSON.stringify(card));
  await page.tap("[data-page=answer] .tip >> text=Open");
  await page.waitForFunction(() => location.hash.includes("plan="));
  assert.deepEqual(faults, []);
  await close();
}

const TESTS = { palette, chips, screen, front, states, gone, early, compare, sideBySide: pins.sideBySide, further: pins.further, where, played, links, operators, degrees, racks, examples, buy: tools.buy, models: tools.models, measured: tools.measured, groups: tools.groups, traffic: traffic.simulated, refusals: traffic.refused, why: decision.why };

/** All instruments of the page at an address. */
export async function instruments(browser, address, names = Object.keys(TESTS)) {
  for (const name of names) {
    if (!TESTS[name]) continue;
    const { page, faults, close } = await opened(browser, address);
    await TESTS[name](page, address);
    assert.deepEqual(faults.filter((fault) => !/422|ERR_FAILED/.test(fault)), [], name);
    await close();
  }
  for (const [name, test] of Object.entries({ folded, phone, small: tools.small, narrow: traffic.narrow, slim: decision.narrow, pinned: pins.narrow })) if (names.length > 1 || names[0] === name) await test(browser, address);
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
