// The page in a real browser: every view, from the server and from files, light and dark, wide and 375 px.
//
// Usage: node page.mjs BINARY [WASM]. `playwright-core` and `axe-core` are found in NODE_MODULES; the browser is CHROMIUM.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { instruments } from "./instrument.mjs";
import { accessible, launched, opened, settled, texts, visit } from "./support.mjs";

const [binary, wasm] = process.argv.slice(2);
const QUESTION = "model=Llama-3.1-8B&hardware=2xh100";
const FLAGS = ["--model", "Llama-3.1-8B", "--hardware", "2xh100"];
const VIEWS = ["ask", "answer", "why", "numbers", "layers", "where", "traffic", "assumptions", "compare", "library", "accuracy", "buy"];
const HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'>";
/** Shared pictures: the repository's when they are wanted. */
const SHOTS = process.env.SCREENSHOTS;

const json = (...words) => JSON.parse(execFileSync(binary, [...words, "--format", "json"], { maxBuffer: 1 << 28 }));

async function served() {
  const server = spawn(binary, ["serve", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
  const line = await new Promise((resolve) => server.stderr.once("data", (data) => resolve(String(data))));
  return { address: `${line.match(/http:\/\/[^;]+/)[0]}/`, stop: () => server.kill() };
}

/** A server of files that knows nothing of the program. */
async function filed() {
  const folder = mkdtempSync(join(tmpdir(), "page-"));
  execFileSync(binary, ["site", "--out", folder, "--wasm", wasm]);
  const types = { html: "text/html", css: "text/css", mjs: "text/javascript", wasm: "application/wasm" };
  const server = createServer((request, response) => {
    const name = new URL(request.url, "http://a").pathname.slice(1) || "index.html";
    try {
      const content = readFileSync(join(folder, name));
      response.writeHead(200, { "Content-Type": types[name.split(".").pop()] }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => (server.close(), server.closeAllConnections(), rmSync(folder, { recursive: true, force: true }));
  return { address: `http://127.0.0.1:${server.address().port}/`, folder, stop };
}

/** The numbers of the answer are those of the command line. */
async function numbers(page, address) {
  await visit(page, address, `answer?${QUESTION}`);
  // The page allows no style of a stranger, not even in a document that it only reads.
  const report = execFileSync(binary, [...FLAGS, "--format", "html"], { maxBuffer: 1 << 28 }).toString().replace(/<style>.*?<\/style>/s, "");
  const expected = await page.evaluate((html) => [...new DOMParser().parseFromString(html, "text/html").querySelectorAll("[data-view=answer] .card .big, [data-view=answer] h1, [data-view=numbers] td")].map((one) => one.textContent.trim()), report);
  const found = await page.$$eval("[data-page=answer] .card .big, [data-page=answer] h1, [data-page=numbers] td", (all) => all.map((one) => one.textContent.trim()));
  assert.ok(expected.length > 100 && found.length === expected.length, `${found.length} numbers, ${expected.length} expected`);
  assert.deepEqual(found, expected);
  const best = json(...FLAGS).best;
  assert.equal(await page.getAttribute("[data-page=answer] section", "data-notation"), best.notation);
}

/** From a number to a source, and back. */
async function drilled(page) {
  await page.click("[data-page=answer] [data-number=tpot]");
  await page.waitForSelector("#explained .term .term");
  assert.match(await page.textContent("#explained h2"), /^tpot = /);
  assert.ok((await texts(page, "#explained .source")).some((text) => text.length > 12));
  await page.click("#explained [data-path]");
  await page.waitForFunction(() => document.getElementById("trail").textContent.includes("›"));
  await page.click("[data-action=back]");
  await page.waitForFunction(() => !document.getElementById("trail").textContent.includes("›"));
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden("#panel"));
}

/** A plan of the front is estimated; its link opens the same; a remedy is a button. */
async function linked(page, address, browser) {
  await page.focus(".plot");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("plan="));
  await settled(page);
  const heading = await page.textContent("[data-page=answer] h1");
  assert.match(await page.textContent("[data-page=answer] .proof"), /a given plan/);
  await page.click("[data-page=answer] [data-action=link]");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const other = await opened(browser, address);
  await other.page.goto(link);
  await other.page.waitForFunction((text) => document.querySelector("[data-page=answer] h1")?.textContent === text, heading);
  await other.close();
  // Begin and end of a range: a slider's answer is an estimate.
  const slider = page.locator("[data-slider]");
  if (await slider.count()) {
    const before = await page.getAttribute("[data-page=answer] section", "data-notation");
    await slider.fill(String(Number(await slider.inputValue()) + 1));
    await page.waitForFunction((text) => document.querySelector("[data-page=answer] section").dataset.notation !== text, before);
    await settled(page);
  }
  await visit(page, address, "answer?model=Llama-3.1-405B&hardware=1xh100");
  assert.match(await page.textContent("[data-page=answer] h1"), /INFEASIBLE/);
  await page.click("[data-flags]");
  await page.waitForFunction(() => document.querySelector("[data-page=answer] .proof")?.textContent.includes("optimal"), null, { timeout: 120000 });
  const permalink = execFileSync(binary, [...FLAGS, "--permalink"]).toString().trim();
  await visit(page, address, permalink);
  assert.equal(await page.inputValue("[name=hardware]"), "2xh100");
}

/** A dropped configuration is answered, and markup in every name is text. */
async function dropped(page, address) {
  const config = JSON.parse(readFileSync(new URL("../../models/meta-llama--Llama-3.1-8B.json", import.meta.url)));
  const own = { ...(config.config ?? config), _name_or_path: "mine" };
  await visit(page, address, "ask");
  await page.fill("#paste", JSON.stringify(own));
  await page.click("[data-action=paste]");
  await page.waitForFunction(() => location.hash.includes("model=mine") && location.hash.includes("files="));
  await settled(page);
  assert.match(await page.textContent("[data-page=answer] .proof"), /mine/);
  const link = await page.evaluate(() => location.hash);
  assert.ok(link.includes("files="));
  await visit(page, address, `answer?model=${encodeURIComponent(HOSTILE)}`);
  assert.ok((await page.textContent("#fault")).includes("<img src=x"));
  await visit(page, address, "ask");
  await page.fill("#paste", JSON.stringify({ ...own, _name_or_path: "x", architectures: [HOSTILE], model_type: HOSTILE }));
  await page.click("[data-action=paste]");
  await page.waitForFunction(() => document.getElementById("fault").textContent.includes("onerror"));
  assert.equal(await page.$$eval("img, main script", (all) => all.length), 0);
}

/** Views with forms of their own. */
async function forms(page, address) {
  await visit(page, address, `why?${QUESTION}`);
  await page.waitForSelector("[data-page=why] table", { timeout: 120000 });
  await visit(page, address, "where?model=Llama-3.1-8B&hardware=spark-mac-studio");
  assert.match(await page.textContent("[data-page=where] .output h1"), /optimal/);
  await visit(page, address, "layers?model=Llama-3.3-70B&hardware=8xh100");
  assert.ok(await page.$eval("[name=\"plan.tp\"] option[value='16']", (option) => option.disabled));
  await page.selectOption("[name=\"plan.tp\"]", "8");
  await page.waitForFunction(() => document.querySelector("[data-page=layers] .output h2").textContent.includes("tp8"));
  assert.match(await page.textContent("[data-page=layers] .output"), /At least \d+ device/);
  await page.click("[data-degrees]");
  await page.waitForFunction(() => document.querySelector("[data-page=layers] .output h2").textContent.includes("tp1"));
  await visit(page, address, "accuracy?model=Llama-3.1-8B&hardware=1xh100&plan=1 x tp1 @64");
  await page.fill("[name=output_tok_s]", "900000");
  await page.click("form[data-request=diagnose] button");
  await page.waitForFunction(() => document.querySelector("[data-page=accuracy] .output")?.textContent.includes("impossible"));
  await visit(page, address, "library");
  await page.click("form[data-request=catalog] button");
  await page.waitForSelector("#entries");
  await page.fill("[data-filter=entries]", "qwen3-30b");
  await page.click("#entries tr:not([hidden]) [data-entry]");
  await page.waitForFunction(() => document.querySelector("[data-page=library] .output")?.textContent.includes("Blocks"));
  // Parameters are a number, not a time.
  assert.match(await page.textContent("[data-page=library] .output dl"), /parameters\s*[\d,]+, active [\d,]+\s*layers/);
  await page.selectOption("[name=kind]", "devices");
  await page.click("form[data-request=catalog] button");
  await page.waitForSelector("[data-entry=nvidia-h100-sxm]");
  await page.click("[data-entry=nvidia-h100-sxm]");
  await page.click("[data-action=edit]");
  const edited = JSON.parse(await page.inputValue("[data-page=library] textarea"));
  await page.fill("[data-page=library] textarea", JSON.stringify({ ...edited, memory: { ...edited.memory, bandwidth: { value: "6.7 TB/s", source: "a test" } } }));
  assert.match(await page.textContent("[data-page=library] h2 + pre"), /memory.bandwidth.value: "3.35 TB\/s" → "6.7 TB\/s"/);
  await page.click("[data-page=library] .live button");
  await page.waitForFunction(() => location.hash.includes("files="));
  await settled(page);
  assert.match(await page.inputValue("[name=hardware]"), /x?nvidia-h100-sxm-mine$/);
  assert.match(await page.textContent("[data-page=answer] .proof"), /optimal/);
  const files = new URLSearchParams(await page.evaluate(() => location.hash.split("?")[1])).get("files");
  await visit(page, address, `library?files=${encodeURIComponent(files)}`);
  await page.click("#own button");
  await page.waitForFunction(() => !location.hash.includes("files="));
  await visit(page, address, `answer?${QUESTION}`);
  const [card] = await Promise.all([page.waitForEvent("download"), page.click("[data-page=answer] .menu summary").then(() => page.click("[data-page=answer] [data-action=card]"))]);
  const picture = readFileSync(await card.path(), "utf8");
  // A card of a page on this machine has no link: nobody else could follow it.
  assert.ok(picture.includes("tok/s") && !picture.includes("href=") && picture.includes("optimal"));
  await page.click("[data-page=answer] [data-action=pin]");
  await visit(page, address, `answer?${QUESTION}&plan=1 x tp2 @16`);
  await page.click("[data-page=answer] [data-action=pin]");
  await visit(page, address, "compare");
  await page.waitForSelector("#compared .pin-name");
  await visit(page, address, `assumptions?${QUESTION}`);
  await page.fill("[name=path]", "device.memory.bandwidth");
  await page.fill("#override [name=value]", "1 TB/s");
  await page.click("#override button[type=submit]");
  await page.waitForFunction(() => location.hash.includes("set="));
  await settled(page);
  assert.ok((await page.textContent("[data-page=assumptions]")).includes("Your overrides"));
  await page.click("[data-action=reset]");
  await page.waitForFunction(() => !location.hash.includes("set="));
  await visit(page, address, `where?${QUESTION}`);
  await page.waitForSelector("[data-page=where] .device-box");
  assert.match(await page.textContent("[data-page=where] table"), /replica, layers 0 to 31/);
  const saved = execFileSync(binary, [...FLAGS, "--format", "json"], { maxBuffer: 1 << 26 }).toString();
  await visit(page, address, "ask");
  await page.setInputFiles("#file", { name: "answer.json", mimeType: "application/json", buffer: Buffer.from(saved) });
  await page.waitForFunction(() => document.querySelector("[data-page=answer]").textContent.includes("Verified: every check holds"), null, { timeout: 120000 });
  await page.waitForFunction(() => document.querySelector("[data-page=answer]").textContent.includes("Nearest published measurements"));
  await visit(page, address, "buy?hardware=dgx-spark-x1");
  await page.click("form[data-request=recommend] button");
  await page.waitForSelector("[data-page=buy] .output table", { timeout: 240000 });
}

/** Every view in both schemes and widths. */
async function looked(browser, address, engine) {
  for (const [scheme, width, height] of [["light", 1280, 900], ["dark", 375, 812], ["dark", 1920, 1080]]) {
    const { page, faults, close } = await opened(browser, address, { colorScheme: scheme, viewport: { width, height } });
    for (const view of VIEWS) {
      await visit(page, address, `${view}?${QUESTION}`);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${view} is wider than ${width} px`);
      await accessible(page, `${view}, ${scheme}, ${width} px, ${engine}`);
      if (SHOTS && engine === "server") await page.screenshot({ path: join(SHOTS, `${view}-${scheme}.png`) });
    }
    assert.deepEqual(faults, []);
    await close();
  }
}

/** The largest contentful paint of the first visit, ms: the median of some, each with empty caches. */
async function painted(browser, address) {
  const all = [];
  for (let number = 0; number < 5; number += 1) {
    const { page, close } = await opened(browser, address);
    await page.goto(address);
    await page.waitForFunction(() => document.querySelector("nav [aria-current]"));
    all.push(await page.evaluate(() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime)).observe({ type: "largest-contentful-paint", buffered: true }))));
    await close();
  }
  return all.toSorted((a, b) => a - b)[2];
}

async function whole(browser, { address, stop }, engine) {
  try {
    const begun = performance.now();
    const { page, faults, close } = await opened(browser, address);
    await page.goto(address);
    await page.waitForFunction(() => document.querySelector("nav [aria-current]"));
    assert.match(await page.textContent("[data-page=answer] h1"), /output tok\/s/);
    await numbers(page, address);
    await drilled(page);
    await linked(page, address, browser);
    await forms(page, address);
    assert.deepEqual(faults, [], engine);
    await dropped(page, address);
    // A refused request is a response that a browser notes by itself.
    assert.deepEqual(faults.filter((fault) => !fault.includes("422")), [], engine);
    await close();
    await instruments(browser, address);
    await looked(browser, address, engine);
    const paint = await painted(browser, address);
    console.log(`${engine}: every view; largest paint ${Math.round(paint)} ms; ${Math.round((performance.now() - begun) / 1e3)} s`);
  } finally {
    stop();
  }
}

/** Every file of the site has a compressed copy. */
async function compressed() {
  const { folder, stop } = await filed();
  const names = readdirSync(folder).filter((name) => !name.endsWith(".gz"));
  for (const name of names) {
    const [whole, packed] = [name, `${name}.gz`].map((one) => readFileSync(join(folder, one)));
    assert.ok(gunzipSync(packed).equals(whole), name);
  }
  assert.deepEqual(names.toSorted(), ["app.mjs", "index.html", "mantile.mjs", "mantile.wasm", "offline.mjs", "page.css", "worker.mjs"]);
  stop();
}

/** Opened from a disk, the page says how to serve it, and shows the answer that it has. */
async function unserved(browser) {
  const { folder, stop } = await filed();
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`file://${folder}/index.html`);
    await page.waitForSelector("#unserved", { state: "visible", timeout: 20000 });
    assert.match(await page.textContent("#unserved"), /http\.server[^]*mantile-opt serve/);
    assert.match(await page.textContent("[data-page=answer] h1"), /output tok\/s/);
  } finally {
    await context.close();
    stop();
  }
}

/** Once loaded, the page loads again and answers without its server. */
async function offline(browser) {
  const { address, stop } = await filed();
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await visit(page, address, `answer?${QUESTION}`);
    assert.equal(await page.locator("#unserved").count(), 0);
    await page.waitForFunction(() => navigator.serviceWorker.controller, null, { timeout: 60000 });
    stop();
    await page.reload();
    await visit(page, address, "answer?model=Qwen3-0.6B&hardware=1xl40s");
    assert.match(await page.textContent("[data-page=answer] .proof"), /Qwen3-0\.6B[^]*optimal|optimal[^]*Qwen3-0\.6B/);
  } finally {
    await context.close();
    stop();
  }
}

/** Questions of which each has a picture of its own kind. */
const PICTURES = {
  front: [...FLAGS],
  decision: ["optimize", ...FLAGS, "--why"],
  estimate: ["estimate", ...FLAGS, "--plan", "1 x tp2 @16"],
  bars: ["sweep", ...FLAGS, "--vary", "runtime=vllm,sglang"],
  lines: ["sweep", ...FLAGS, "--vary", "isl=1k..4k*2"],
  map: ["sweep", ...FLAGS, "--vary", "isl=1k..8k*2", "--vary", "concurrency=1..512*2"],
  place: ["place", "--model", "Llama-3.3-70B", "--hardware", "spark-mac-studio"],
  fleet: ["fleet", "--model", "Llama-3.1-8B", "--offers", "1xl40s,1xh100"],
  compare: ["compare", "--model", "Llama-3.1-8B", "--hardware", "1xl40s,1xh100"],
  audit: ["audit", ...FLAGS],
  static: ["static", ...FLAGS, "--tp", "2"],
  recommend: ["recommend", "--model", "gpt-oss-20b", "--only", "nvidia-l40s,nvidia-h100-sxm"],
};

/** In a browser: texts of a picture that are hard to read on what is behind them. */
function faint() {
  const scale = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * scale(r / 255) + 0.7152 * scale(g / 255) + 0.0722 * scale(b / 255);
  const parsed = (colour) => colour.match(/[\d.]+/g).map(Number);
  const over = (top, share, under) => under.map((part, at) => top[at] * share + part * (1 - share));
  const all = [...document.querySelectorAll("text")];
  let tinted = 0;
  const low = all.flatMap((text) => {
    const { left, top, width, height } = text.getBoundingClientRect();
    const style = getComputedStyle(text);
    let behind = [255, 255, 255];
    const shapes = document.elementsFromPoint(left + width / 2, top + height / 2).filter((one) => !["text", "svg", "g"].includes(one.tagName));
    for (const shape of shapes.reverse()) {
      const look = getComputedStyle(shape);
      if (look.fill === "none") continue;
      const [r, g, b, alpha = 1] = parsed(look.fill);
      behind = over([r, g, b], alpha * look.fillOpacity * look.opacity, behind);
    }
    tinted += Number(shapes.length > 1);
    if (style.stroke !== "none" && style.paintOrder.startsWith("stroke")) behind = parsed(style.stroke).slice(0, 3);
    const [a, b] = [luminance(parsed(style.fill)), luminance(behind)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    return contrast < 4.5 ? [`${text.textContent} ${style.fill} on ${behind}: ${contrast.toFixed(2)}`] : [];
  });
  return { texts: all.length, tinted, low };
}

/** Every kind of picture is legible on a light and on a dark page. */
async function legible(browser) {
  const folder = mkdtempSync(join(tmpdir(), "pictures-"));
  let texts = 0;
  try {
    for (const [name, words] of Object.entries(PICTURES)) {
      const path = join(folder, `${name}.svg`);
      writeFileSync(path, execFileSync(binary, [...words, "--format", "svg"], { maxBuffer: 1 << 28 }));
      const [, width, height] = readFileSync(path, "utf8").match(/width="([\d.]+)" height="([\d.]+)"/).map(Number);
      for (const colorScheme of ["light", "dark"]) {
        const viewport = { width: Math.ceil(width) + 20, height: Math.ceil(height) + 20 };
        const context = await browser.newContext({ colorScheme, viewport });
        const page = await context.newPage();
        await page.goto(`file://${path}`);
        const found = await page.evaluate(faint);
        assert.deepEqual(found.low, [], `${name}, ${colorScheme}`);
        assert.ok(found.texts > 8, `${name}: ${found.texts} texts`);
        assert.ok(name !== "map" || found.tinted > 20, `${found.tinted} texts on cells of the map`);
        texts += found.texts;
        await context.close();
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  console.log(`pictures: ${texts} texts of ${Object.keys(PICTURES).length} kinds in two schemes, each with contrast`);
}

const browser = await launched();
try {
  await legible(browser);
  if (wasm) {
    await compressed();
    await unserved(browser);
    await offline(browser);
  }
  await whole(browser, await served(), "server");
  if (wasm) await whole(browser, await filed(), "module");
} finally {
  await browser.close();
}
