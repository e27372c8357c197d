// Buy, Accuracy and opened groups with real pointer and key events: pictures that are walked, limits that are relaxed, own
// measurements with their class, drift of a store, and addresses that bring the whole state back.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { accessible, opened, settled, texts, visit } from "./support.mjs";

const MODEL = "model=gpt-oss-20b";
/** Two systems, so that an answer is there at once. */
const FEW = "buy.users=4&buy.target_tok_s=20&buy.only=nvidia-l40s,nvidia-h100-sxm";
const kept = (page, key) => page.evaluate((name) => new URLSearchParams(location.hash.split("?")[1]).get(name), key);
const centre = ({ x, y, width, height }) => [x + width / 2, y + height / 2];

/** The same address in a page that knows nothing shows the same. */
async function again(page, what) {
  const link = await page.evaluate(() => location.href);
  const before = await what();
  await page.goto("about:blank");
  await page.goto(link);
  await settled(page);
  assert.deepEqual(await what(), before, link);
}

/** A question in the form is an address; its offers are steps with names, walked by pointer and keys; a miss is admitted. */
export async function buy(page, address) {
  await visit(page, address, `buy?${MODEL}`);
  await page.fill("[data-page=buy] [name=only]", "nvidia-l40s,nvidia-h100-sxm");
  await page.fill("[data-page=buy] [name=budget]", "12000usd");
  await page.focus("[data-page=buy] [name=users]");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("4");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("buy.users=4") && location.hash.includes("buy.budget=12000usd"));
  await settled(page);
  assert.match(await page.textContent("[data-page=buy] h1 >> nth=1"), /No offer within the limits/);
  assert.match(await page.textContent(".misses"), /L40S.*up to 14,900 USD.*allow 14,900/s);
  await page.click(".misses >> text=allow 14,900");
  await page.waitForFunction(() => location.hash.includes("buy.budget=14900usd"));
  await settled(page);
  const title = () => page.textContent("[data-page=buy] .output h1");
  assert.match(await title(), /^Buy L40S for about 14,900 USD: [\d.,]+ tok\/s for each of 4 users, \d+ at most$/);
  assert.equal(await page.$eval("[data-page=buy] .graph .limit", (one) => one.textContent), "budget 14,900");
  // Without a budget, the axis is USD/h, and there are more steps.
  await page.fill("[data-page=buy] [name=budget]", "");
  await page.click("[data-page=buy] .primary >> nth=0");
  await page.waitForFunction(() => !location.hash.includes("budget="));
  await settled(page);
  assert.equal(await page.$eval("[data-page=buy] [aria-label=\"axis to the right\"]", (one) => one.value), "hour");
  const names = await texts(page, "[data-page=buy] .graph .name");
  assert.ok(names.length && names.every((name) => /\d/.test(name)), `${names}`);
  await page.locator("[data-page=buy] .graph").scrollIntoViewIfNeeded();
  const [x, y] = centre(await page.locator("[data-page=buy] .graph .point >> nth=0").boundingBox());
  await page.mouse.move(x + 6, y + 5);
  assert.match(await page.textContent("[data-page=buy] .tip"), /each user.*tok\/s.*plan/s);
  await page.mouse.move(4, 4);
  assert.equal(await page.locator("[data-page=buy] .tip").count(), 0);
  await page.focus("[data-page=buy] .graph");
  await page.keyboard.press("Home");
  const first = await page.textContent("[data-page=buy] .tip h3");
  await page.keyboard.press("End");
  assert.notEqual(await page.textContent("[data-page=buy] .tip h3"), first);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("[data-page=buy] .tip").count(), 0);
  // What is picked is in the address, with the table behind the picture and the offer.
  await page.focus("[data-page=buy] [aria-label=\"axis upwards\"]");
  await page.selectOption("[data-page=buy] [aria-label=\"axis upwards\"]", "users");
  await page.waitForFunction(() => location.hash.includes("buy.y=users"));
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "axis upwards");
  await page.click("[data-page=buy] summary >> text=as a table");
  await page.waitForFunction(() => location.hash.includes("buy.table=open"));
  assert.ok((await page.locator("[data-page=buy] .tall tbody tr").count()) > 4);
  await page.click("[data-page=buy] .offer:last-of-type .big");
  await accessible(page, "buy");
  const state = async () => [await title(), await texts(page, "[data-page=buy] .graph .name"), await texts(page, ".offer [aria-pressed=true]"), await page.locator("[data-page=buy] .tall").count()];
  await again(page, state);
  // Enter opens the plan of a step.
  await page.focus("[data-page=buy] .graph");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.startsWith("#answer") && location.hash.includes("plan="));
  await settled(page);
  assert.match(await page.textContent("[data-page=answer] .proof"), /a given plan/);
  // Back brings the offers again; an address without them has the examples.
  await page.goBack();
  await settled(page);
  assert.match(await title(), /^(Buy|Rent) /);
  await visit(page, address, `buy?${MODEL}`);
  assert.equal(await page.locator("[data-page=buy] .examples [data-try]:visible").count(), 3);
  await visit(page, address, `buy?${MODEL}&buy.usres=4`);
  assert.match(await page.textContent("#fault"), /buy\.usres/);
}

/** The models of a machine: chips choose a use and the order, and stay in the address. */
export async function models(page, address) {
  await visit(page, address, "buy?model=Llama-3.1-8B&hardware=1xrtx-4090");
  await page.fill("[data-page=buy] [name=target_tok_s]", "15");
  await page.click("text=Models for my machine");
  await page.waitForFunction(() => location.hash.includes("buy.seek=models"));
  await settled(page);
  assert.match(await page.textContent("[data-page=buy] .output h1"), /\d+ models run on 1 x RTX 4090/);
  const uses = await texts(page, ".models tbody tr td:first-child");
  assert.ok(["general", "code", "vision"].every((use) => uses.includes(use)), `${uses}`);
  await page.focus("[data-pick=code]");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("buy.use=code"));
  assert.equal(await page.evaluate(() => document.activeElement.dataset.pick), "code");
  await page.click("[data-pick=speed]");
  await page.waitForFunction(() => location.hash.includes("buy.order=speed"));
  const speeds = (await texts(page, ".models tbody tr td:nth-child(8)")).map((text) => Number(text.replace(",", "")));
  assert.ok(speeds.length > 2 && speeds.every((speed, at) => !at || speed <= speeds[at - 1]), `${speeds}`);
  assert.ok((await texts(page, ".models tbody th")).every((name) => /cod|devstral/i.test(name)));
  await accessible(page, "models of a machine");
  await again(page, () => texts(page, ".models tbody th"));
}

/** A table of measurements with the figures of published rows, the second of which is slower. */
function table() {
  const [head, ...rows] = readFileSync(new URL("../../hardware/measured/serving.csv", import.meta.url), "utf8").trim().split("\n");
  const columns = head.split(",");
  const [tpot, hardware] = ["tpot_ms", "hardware"].map((name) => columns.indexOf(name));
  // The source is the one quoted cell; columns count from the end.
  const own = rows.filter((row) => row.includes("nvidia-h100-sxm") && row.includes("vllm") && row.includes("agg")).slice(0, 2).map((row) => row.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/));
  assert.ok(own.length === 2 && own.every((row) => row.length === columns.length && row[hardware] === "nvidia-h100-sxm"));
  own[1][tpot] = String(Number(own[1][tpot]) * 3);
  return [head, ...own.map((row) => row.join(","))].join("\n");
}

/** The answer of a server with a store: an alarm, and runs by date. */
const STORED = {
  accepted: 12, kept: 12, refit_due: true, drift: [],
  stored: {
    report: { runs: 12, window: 30, least_runs: 10, alarm: true, false_positives: 0, false_negatives: 0, unpredicted: [], groups: [{ runtime: "vllm", hardware: "nvidia-h100-sxm", model_class: "up to 10 billion", runs: 12, false_positives: 0, false_negatives: 0, figures: [{ figure: "decode", n: 12, median_error: 0.21, limit: 0.12, alarm: true }, { figure: "ttft", n: 12, median_error: 0.1, limit: 0.18, alarm: false }] }] },
    dated: Array.from({ length: 12 }, (_, at) => ({ timestamp_utc: new Date(Date.UTC(2026, 8, 1 + 3 * at)).toISOString(), model: "Llama-3.1-8B", runtime: "vllm", hardware: "nvidia-h100-sxm", errors: { decode: at < 6 ? 0.02 : -0.25, ttft: 0.1, memory: null } })),
    versions: [{ number: 1, created_utc: "2026-09-20T00:00:00Z", runtime: "vllm", tags: [[], [], []], runs: 10, medians: [] }],
    retraining: false,
  },
};

/** Published runs as a scatter that is walked, held-out errors with intervals, own runs with their class, drift. */
export async function measured(page, address) {
  await visit(page, address, "accuracy?model=Llama-3.1-8B&hardware=1xh100&plan=1 x tp1 @64");
  assert.match(await page.textContent("#measured h1"), /TPOT is off by \d+ %, TTFT by \d+ %/);
  assert.ok((await page.locator("#measured .graph .shape").count()) > 400);
  assert.equal(await page.locator("#measured .graph :is(.diagonal, .factor)").count(), 3);
  assert.ok((await page.locator("#measured .legend svg").count()) >= 3);
  assert.match(await page.textContent("#measured"), /interval.*holds.*× 0\.\d\d–1\.\d\d/s);
  const server = (await page.getAttribute("html", "data-engine")) === "http";
  assert.match(await page.textContent("#measured"), /Drift needs stored runs: start the server with mantile-opt serve --store/);
  // The pointer and the keys show what a point is.
  await page.locator("#measured .graph >> nth=0").scrollIntoViewIfNeeded();
  const [x, y] = centre(await page.locator("#measured .graph .ring").boundingBox());
  await page.mouse.move(x + 2, y + 1);
  assert.match(await page.textContent("#measured .tip"), /measured.*predicted.*model.*runtime/s);
  await page.mouse.move(2, 2);
  await page.focus("#measured .graph >> nth=0");
  await page.keyboard.press("Home");
  const first = await page.textContent("#measured .tip");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowUp");
  assert.notEqual(await page.textContent("#measured .tip"), first);
  await page.keyboard.press("Escape");
  await page.click("#measured [data-pick=ttft]");
  await page.waitForFunction(() => location.hash.includes("accuracy.metric=ttft"));
  assert.match(await page.textContent("#measured .chart-frame h2"), /within [\d.]+ % of the measured TTFT/);
  await page.selectOption("#measured [aria-label=families]", "hardware");
  assert.match(await page.textContent("#measured .legend"), /nvidia-h100-sxm \d+/);
  await page.click("#measured [data-pick=tpot]");
  // Own runs come from a file, and go with the address.
  await page.setInputFiles("#own-runs", { name: "mine.csv", mimeType: "text/csv", buffer: Buffer.from(table()) });
  await page.waitForFunction(() => location.hash.includes("accuracy.runs=") && document.querySelector("#measured .yours"));
  await settled(page);
  assert.match(await page.textContent("#measured"), /\d of your \d numbers (is|are) not close/);
  const classes = await texts(page, "#measured .stack:first-child tbody td:last-child");
  assert.ok(classes.includes("close") && classes.includes("far above"), `${classes}`);
  await accessible(page, "accuracy");
  await again(page, async () => [await texts(page, "#measured .stack:first-child tbody tr"), await page.$eval("#measured [aria-label=families]", (one) => one.value)]);
  await page.click("#measured >> text=Remove");
  await page.waitForFunction(() => !location.hash.includes("accuracy.runs="));
  // Numbers that are entered have a class too, and are in the address.
  await page.fill("[name=tpot_ms]", "90");
  await page.focus("[name=tpot_ms]");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("accuracy.tpot_ms=90"));
  await settled(page);
  assert.match(await page.textContent("#measured .stack:first-child tbody"), /TPOT.*90.*far above/s);
  assert.match(await page.textContent("[data-page=accuracy] .output"), /slower than the 80 % interval/);
  if (server) await drifted(page, address);
}

const RUN_IDS = ["one", "two", "three", "four"];
/** A run as `bench` writes it. */
const record = (id) => JSON.stringify({ run_id: id, timestamp_utc: "2026-11-30T00:00:00Z", model_id: "Llama-3.1-8B", runtime_id: "vllm", hardware_id: "nvidia-h100-sxm", devices: 1, outcome: "measured", context_tokens: 1024, output_tokens: 128, concurrency: 4, quant: "bf16", metrics: { ttft_ms_p50: 60, tpot_ms_p50: 9 } });

/** A server with a store: its alarm, its groups, and predicted / observed by date. */
async function drifted(page, address) {
  await page.route("**/v1/calibrate", (route) => route.fulfill({ json: STORED }));
  await visit(page, address, "accuracy?model=Llama-3.1-8B&hardware=1xh100&plan=1 x tp1 @32");
  assert.match(await page.textContent("#measured .drift h2"), /1 alarm: TPOT of vllm on nvidia-h100-sxm is off by 21\.0 %/);
  assert.equal(await page.locator("#measured .drift .graph .shape").count(), 12);
  assert.equal(await page.locator("#measured .drift .version").count(), 1);
  await page.locator("#measured .drift .graph").scrollIntoViewIfNeeded();
  await page.focus("#measured .drift .graph");
  await page.keyboard.press("End");
  assert.match(await page.textContent("#measured .drift .tip"), /2026-10-04.*predicted \/ observed0\.750/s);
  await page.keyboard.press("Escape");
  await page.click("#measured .drift [data-pick=ttft]");
  await page.waitForFunction(() => location.hash.includes("accuracy.drift=ttft"));
  await accessible(page, "drift");
  // Runs are handed to the server, one request each; a refusal ends it with its reason.
  const posted = [];
  await page.route("**/v1/calibrate", (route) => {
    if (route.request().method() === "GET") return route.fulfill({ json: STORED });
    posted.push(route.request().postDataJSON().run_id);
    return posted.length < 3 ? route.fulfill({ json: {} }) : route.fulfill({ status: 422, json: { detail: "no figures" } });
  });
  await page.setInputFiles("#own-runs", { name: "runs.jsonl", mimeType: "text/plain", buffer: Buffer.from(RUN_IDS.map(record).join("\n")) });
  await page.waitForSelector("#submit-runs");
  await settled(page);
  await page.focus("#submit-runs");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#measured .yours [role=status], #measured [role=status]");
  await settled(page);
  assert.deepEqual(posted, RUN_IDS.slice(0, 3));
  assert.match(await page.textContent("#measured"), /2 runs submitted; refused: no figures\./);
  await page.unroute("**/v1/calibrate");
}

/** An opened rack, node, level and colour are in the address. */
export async function groups(page, address) {
  await visit(page, address, "where?model=Llama-3.1-8B&hardware=16x8xh100&plan=128 x tp1 @64");
  await page.waitForSelector(".groups .group");
  await page.focus(".groups button >> nth=2");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("where.node=3"));
  await page.click(".seg >> text=memory");
  await page.waitForFunction(() => location.hash.includes("where.colour=memory"));
  const state = async () => {
    await page.waitForSelector(".groups .device");
    return [await page.textContent(".trail"), await texts(page, ".groups .device"), await texts(page, ".seg [aria-pressed=true]")];
  };
  await again(page, state);
  assert.equal((await texts(page, ".groups .device")).length, 8);
  await page.focus(".groups .device >> nth=0");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("where.node") && !location.hash.includes("where.rack"));
  assert.equal(await kept(page, "where.colour"), "memory");
}

/** On a phone: texts of 11 px, parts of 24 px to touch, nothing wider than the window, and cards within it. */
export async function small(browser, address) {
  const { page, faults, close } = await opened(browser, address, { viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true });
  for (const [hash, name] of [[`buy?${MODEL}&${FEW}`, "buy"], ["accuracy?model=Llama-3.1-8B&hardware=1xh100&plan=1 x tp1 @64", "accuracy"]]) {
    await visit(page, address, hash);
    const here = `[data-page=${name}]`;
    const low = await page.$$eval(`${here} svg text`, (all) => all.filter((one) => one.getClientRects().length).map((one) => [one.textContent, parseFloat(getComputedStyle(one).fontSize) * (one.getScreenCTM()?.a ?? 1)]).filter(([text, size]) => text && size < 10.95));
    assert.deepEqual(low, [], name);
    const tiny = await page.$$eval(`${here} :is(button, select, summary, .graph, .add-file, input:not([type=file], [type=checkbox]))`, (all) => all.filter((one) => one.offsetParent).map((one) => [one.outerHTML.slice(0, 80), one.offsetWidth, one.offsetHeight]).filter(([, width, height]) => width < 24 || height < 24));
    assert.deepEqual(tiny, [], name);
    const overlaps = await page.$$eval(`${here} .graph`, (all) => all.flatMap((graph) => {
      const boxes = [...graph.querySelectorAll(".name")].map((one) => [one.textContent, one.getBoundingClientRect()]);
      return boxes.flatMap(([a, one], at) => boxes.slice(at + 1).filter(([, two]) => one.left < two.right && two.left < one.right && one.top < two.bottom && two.top < one.bottom).map(([b]) => `${a} on ${b}`));
    }));
    assert.deepEqual(overlaps, [], name);
    await accessible(page, `${name}, 375 px`);
    const graph = page.locator(`${here} .graph >> nth=0`);
    await graph.scrollIntoViewIfNeeded();
    const [x, y] = centre(await page.locator(`${here} .graph .ring >> nth=0`).boundingBox());
    await page.touchscreen.tap(x, y);
    const card = await page.locator(`${here} .tip`).boundingBox();
    assert.ok(card.x >= 0 && card.x + card.width <= 375 && card.y + card.height <= 812, JSON.stringify(card));
    await page.setViewportSize({ width: 320, height: 640 });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 320, `${name} at 320 px`);
    await page.setViewportSize({ width: 375, height: 812 });
  }
  assert.deepEqual(faults, []);
  await close();
}
