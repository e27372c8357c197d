// For every test of the page: the browser, a page that notes its faults, and a wait for an answer.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.NODE_MODULES ?? "node_modules", "x.js"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core"), "utf8");

export const launched = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });

/** A page that notes what it must not do. */
export async function opened(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (fault) => faults.push(String(fault)));
  page.on("dialog", (dialog) => faults.push(`a dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(address) && !to.startsWith("data:") && !to.startsWith("blob:")) faults.push(`a request to ${to}`);
  });
  return { page, faults, close: () => context.close() };
}

/** Waits until the address is answered and nothing is computed. */
export const settled = (page) =>
  page.waitForFunction(
    () => document.documentElement.dataset.opened === location.hash && document.getElementById("stop").hidden && !document.querySelector(".stale"),
    null,
    { timeout: 120000 },
  );

export async function visit(page, address, hash) {
  await page.goto(`${address}#${hash}`);
  await page.waitForFunction(() => document.querySelector("nav [aria-current]"));
  await settled(page);
}

export const texts = (page, selector) => page.$$eval(selector, (all) => all.map((one) => one.textContent.replace(/\s+/g, " ").trim()));

/** No serious finding of axe, and nothing wider than the window. */
export async function accessible(page, where) {
  // Playwright evaluates past the content policy of the page.
  await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = found.violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  const words = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(words, [], where);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `${where}: ${overflow} px too wide`);
}
