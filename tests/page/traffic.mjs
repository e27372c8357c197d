// Traffic with real pointer and key events: a simulated run in a sentence and in pictures, further rates, the slowest
// requests, and an address that brings the same run back.

import assert from "node:assert/strict";

import { accessible, opened, settled, texts, visit } from "./support.mjs";

const HERE = "[data-page=traffic]";
const QUESTION = "model=Llama-3.1-8B&hardware=1xh100&plan=1 x tp1 @32&rate=6";
const kept = (page, key) => page.evaluate((name) => new URLSearchParams(location.hash.split("?")[1]).get(name), key);
const title = (page) => page.textContent(`${HERE} h1`);
const changed = (page, key, value) => page.waitForFunction(([name, text]) => new URLSearchParams(location.hash.split("?")[1]).get(name) === text, [key, value]);

/** A run and its rates; each picture is walked and has a table; rate, seed and arrivals are changed, and restored. */
export async function simulated(page, address) {
  await visit(page, address, `answer?${QUESTION}`);
  assert.equal(await page.locator(`${HERE} h1`).count(), 0, "nothing is simulated before the view is opened");
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForFunction(() => location.hash.startsWith("#traffic"));
  await settled(page);
  assert.match(await title(page), /^At 6 requests\/s, \d+ % of requests meet both SLOs/);
  assert.match(await page.textContent(`${HERE} .sub`), /Poisson arrivals.*seed 1.*1 x tp1.*router least-requests.*scheduler of vllm.*of 2,000 simulated requests/);
  const cells = await texts(page, `${HERE} .metrics h3 span:first-child`);
  assert.deepEqual(cells, ["TTFT p90", "TPOT p90", "Goodput", "Waiting", "Running", "Preempted"]);
  await walked(page);
  await accessible(page, "traffic");
  // What is drawn in one picture is in the address, and no other picture changes.
  await page.click(`${HERE} .behind summary >> nth=0`);
  await page.click(`${HERE} [data-pick=kv]`);
  await changed(page, "traffic.show", "kv");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.pick), "kv");
  assert.ok(await page.locator(`${HERE} .behind >> nth=0`).evaluate((one) => one.open));
  assert.match(await page.textContent(`${HERE} .state h2`), /^KV cache: at most \d+ % in use/);
  const first = await page.textContent(`${HERE} .stories [role=status]`);
  await page.focus(`${HERE} .story >> nth=2`);
  await page.keyboard.press("Enter");
  assert.notEqual(await page.textContent(`${HERE} .stories [role=status]`), first);
  assert.match(await page.textContent(`${HERE} .stories [role=status]`), /^Request [\d,]+ came at .* with 2,048 tokens\. It .* wrote its output for .* \(512 tokens\)/);
  // Another seed is another run, and equal seeds are the same run.
  const before = await page.textContent(`${HERE} .metrics`);
  await page.fill(`${HERE} [data-pick=seed]`, "7");
  await page.keyboard.press("Enter");
  await changed(page, "traffic.seed", "7");
  await settled(page);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.pick), "seed");
  assert.notEqual(await page.textContent(`${HERE} .metrics`), before);
  await page.click(`${HERE} [data-pick=bursts]`);
  await changed(page, "traffic.arrivals", "bursts");
  await settled(page);
  assert.match(await page.textContent(`${HERE} .sub`), /^Arrivals in bursts.*seed 7/);
  const state = async () => [await title(page), await texts(page, `${HERE} :is(h2, .metrics .card, .stories [role=status], [aria-pressed=true])`)];
  const shown = await state();
  const link = await page.evaluate(() => location.href);
  await page.goto("about:blank");
  await page.goto(link);
  await settled(page);
  assert.deepEqual(await state(), shown, link);
  await replayed(page);
  await rates(page);
  await traced(page, address);
}

/** The run is replayed: it plays and stops, is moved by keys, and its address brings the time back. */
async function replayed(page) {
  const [range, words] = [`${HERE} [data-pick=at]`, () => page.textContent(`${HERE} .replay output`)];
  assert.match(await words(), /^shows the run/);
  assert.equal(await page.locator(`${HERE} .playhead[visibility=visible]`).count(), 0);
  await page.click(`${HERE} [data-pick=play]`);
  await page.waitForFunction((one) => Number(document.querySelector(one).value) > Number(document.querySelector(one).min), range);
  await page.click(`${HERE} [data-pick=play]`);
  const stopped = await page.inputValue(range);
  assert.match(await words(), /^at [\d.,]+ s: [\d,]+ running · [\d,]+ waiting · KV cache \d+ %/);
  assert.ok((await page.locator(`${HERE} .playhead[visibility=visible]`).count()) >= 1);
  await page.focus(range);
  await page.keyboard.press("End");
  await page.keyboard.press("PageDown");
  assert.notEqual(await page.inputValue(range), stopped);
  const at = await words();
  // A picture that is drawn anew keeps its line, and the address the time.
  await page.click(`${HERE} [data-pick=requests]`);
  assert.equal(await page.locator(`${HERE} .state .playhead[visibility=visible]`).count(), 1);
  await page.reload();
  await settled(page);
  assert.equal(await words(), at);
}

/** A trace of the reader takes the place of drawn requests, its address brings it back, and a faulty one is refused. */
async function traced(page, address) {
  await visit(page, address, `traffic?${QUESTION}`);
  const lines = ["arrival,isl,osl", ...Array.from({ length: 400 }, (_, at) => `${at * 0.25},${500 + (at % 7) * 100},64`)];
  const file = (text) => ({ name: "day.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await page.setInputFiles(`${HERE} [data-pick=trace]`, file(lines.join("\n")));
  await page.waitForFunction(() => location.hash.includes("traffic.trace"));
  await settled(page);
  assert.match(await title(page), /^Under the trace of 4 requests\/s, /);
  // Its rate is its own: the curve is over its speed.
  await page.waitForSelector(`${HERE} .goodput [aria-label^='Goodput over the speed of the trace, 7']`, { timeout: 120000 });
  assert.equal(await page.locator(`${HERE} .goodput .point`).count(), 7);
  assert.equal(await page.locator(`${HERE} .goodput .slo-handle, ${HERE} .goodput button:visible`).count(), 0);
  await page.focus(`${HERE} .goodput .graph`);
  await page.keyboard.press("End");
  assert.match(await page.textContent(`${HERE} .goodput .tip`), /16 requests\/s.*speed\s*4 x/s);
  assert.match(await page.textContent(`${HERE} .sub`), /^Day\.csv · seed 1 .* of 400 simulated requests count/);
  const shown = await texts(page, `${HERE} .metrics .card`);
  await page.reload();
  await settled(page);
  assert.deepEqual(await texts(page, `${HERE} .metrics .card`), shown);
  await page.setInputFiles(`${HERE} [data-pick=trace]`, file("arrival,isl,osl\n0,many,64\n1,500,64"));
  await page.waitForFunction((here) => /not simulated/.test(document.querySelector(here).textContent), HERE);
  assert.match(await page.textContent(HERE), /line 2/);
  await page.click(`${HERE} >> text=Use the usual traffic`);
  await page.waitForFunction(() => !location.hash.includes("traffic.trace"));
  await settled(page);
  assert.match(await title(page), /^At 6 requests/);
}

/** Every picture of the view is walked by keys, and its table has rows. */
async function walked(page) {
  const graphs = page.locator(`${HERE} .graph`);
  assert.equal(await graphs.count(), 4);
  for (let number = 0; number < 4; number += 1) {
    await graphs.nth(number).focus();
    await page.keyboard.press("Home");
    const first = await page.textContent(`${HERE} .tip`);
    await page.keyboard.press("End");
    assert.notEqual(await page.textContent(`${HERE} .tip`), first);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(`${HERE} .tip`).count(), 0);
    assert.ok((await page.locator(`${HERE} .behind >> nth=${number} >> tbody tr`).count()) >= 4);
  }
  assert.match(await page.textContent(`${HERE} .goodput h2`), /requests\/s meet the SLOs/);
  assert.ok((await page.locator(`${HERE} .goodput .point`).count()) >= 6);
  assert.equal(await page.locator(`${HERE} .edge`).count() > 0, true, "an SLO is drawn");
}

/** A click on a point of the curve, and Enter on another, change the rate of the question and keep the plan. */
async function rates(page) {
  await page.locator(`${HERE} .goodput .graph`).scrollIntoViewIfNeeded();
  const { x, y } = await page.locator(`${HERE} .goodput .point >> nth=0`).boundingBox();
  await page.mouse.click(x + 7, y + 6);
  await page.waitForFunction(() => !/[?&]rate=6(&|$)/.test(location.hash));
  await settled(page);
  const rate = await kept(page, "rate");
  assert.ok(Number(rate) < 6);
  assert.ok((await title(page)).startsWith(`At ${rate} requests/s, `));
  assert.match(await kept(page, "plan"), /1 x tp1/);
  await page.focus(`${HERE} .goodput .graph`);
  await page.keyboard.press("End");
  assert.match(await page.textContent(`${HERE} .tip`), /SLOs met.*Take this rate/);
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => new URLSearchParams(location.hash.split("?")[1]).get("rate") !== text, rate);
  await settled(page);
  assert.ok(Number(await kept(page, "rate")) > 6);
  assert.match(await title(page), /, \d+ % of requests meet both SLOs; (TTFT|TPOT) is the tighter one$/);
  await page.goBack();
  await changed(page, "rate", rate);
  await settled(page);
  // The mark of the rate is dragged, and moved by keys, which Escape takes back.
  const mark = page.locator(`${HERE} [data-pick=rate]`);
  await mark.scrollIntoViewIfNeeded();
  const box = await mark.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 40, box.y + 40, { steps: 4 });
  assert.match(await mark.textContent(), /^[\d.]+\/s$/);
  assert.equal(await kept(page, "rate"), rate);
  await page.mouse.up();
  await page.waitForFunction((text) => new URLSearchParams(location.hash.split("?")[1]).get("rate") !== text, rate);
  await settled(page);
  const dragged = await kept(page, "rate");
  assert.ok(Number(dragged) > Number(rate), `${dragged} after ${rate}`);
  await mark.focus();
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await mark.textContent(), `now ${dragged}`);
  await page.keyboard.press("Escape");
  assert.equal(await mark.textContent(), `now ${dragged}`);
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => new URLSearchParams(location.hash.split("?")[1]).get("rate") !== text, dragged);
  await settled(page);
  assert.ok(Number(await kept(page, "rate")) < Number(rate));
  await page.fill(`${HERE} [aria-label="requests/s"]`, "4");
  await page.keyboard.press("Enter");
  await changed(page, "rate", "4");
  await settled(page);
  assert.match(await title(page), /^At 4 requests\/s/);
}

/** Where nothing is simulated, the view says why; without an SLO it has no goodput. */
export async function refused(page, address) {
  await visit(page, address, "traffic?model=Llama-3.1-405B&hardware=1xh100");
  assert.match(await page.textContent(HERE), /not simulated.*No plan runs/s);
  await visit(page, address, `traffic?${QUESTION}&traffic.seed=many`);
  assert.match(await page.textContent(HERE), /not simulated.*seed.*whole number/s);
  await page.click(`${HERE} >> text=Use the usual traffic`);
  await page.waitForFunction(() => !location.hash.includes("traffic.seed"));
  await settled(page);
  assert.match(await title(page), /^At 6 requests/);
  await visit(page, address, `traffic?${QUESTION}&ttft=none&tpot=none`);
  assert.match(await page.textContent(`${HERE} .goodput`), /Goodput needs an SLO/);
  await visit(page, address, `traffic?${QUESTION}&traffic.sead=7`);
  assert.match(await page.textContent("#fault"), /traffic\.sead/);
}

/** On a phone, in both schemes: texts of 11 px, parts of 24 px to touch, nothing wider than the window. */
export async function narrow(browser, address) {
  for (const colorScheme of ["light", "dark"]) {
    const { page, faults, close } = await opened(browser, address, { viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true, colorScheme });
    await visit(page, address, `traffic?${QUESTION}`);
    await accessible(page, `traffic, 375 px, ${colorScheme}`);
    const low = await page.$$eval(`${HERE} svg text`, (all) => all.filter((one) => one.getClientRects().length).map((one) => [one.textContent, parseFloat(getComputedStyle(one).fontSize)]).filter(([, size]) => size < 10.95));
    assert.deepEqual(low, []);
    const tiny = await page.$$eval(`${HERE} :is(button, summary, .graph, input)`, (all) => all.map((one) => [one.outerHTML.slice(0, 80), one.offsetWidth, one.offsetHeight]).filter(([, width, height]) => width < 24 || height < 24));
    assert.deepEqual(tiny, []);
    // A finger shows the card first; its button takes the rate.
    await page.locator(`${HERE} .goodput .graph`).scrollIntoViewIfNeeded();
    const { x, y } = await page.locator(`${HERE} .goodput .point >> nth=0`).boundingBox();
    await page.touchscreen.tap(x + 4, y + 4);
    const card = await page.locator(`${HERE} .tip`).boundingBox();
    assert.ok(card.x >= 0 && card.x + card.width <= 375 && card.y + card.height <= 812, JSON.stringify(card));
    await page.tap(`${HERE} .tip >> text=Take this rate`);
    await page.waitForFunction(() => !/[?&]rate=6(&|$)/.test(location.hash));
    await settled(page);
    await page.setViewportSize({ width: 320, height: 640 });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 320);
    assert.deepEqual(faults, []);
    await close();
  }
}
