// Links of the page: what they unpack to is bounded, and a card leads to no loopback address. Needs node alone.

import assert from "node:assert";
import { deflateRawSync } from "node:zlib";

import { card } from "../../src/site/card.mjs";
import { isLocal, read, write } from "../../src/site/link.mjs";
import { unknown } from "../../src/site/forms.mjs";

const files = { "models/a": "{}" };
assert.deepEqual(await read(await write("answer", { model: "x" }, files)), { view: "answer", fields: { model: "x" }, files, own: {} });

// What a view keeps has its name before it; a text that is no value of the page stays one, and a packed one is bounded too.
const own = { users: "4", runs: { name: "a.csv", csv: "id,tpot_ms\n~,1" } };
assert.deepEqual(await read(await write("buy", { model: "x" }, {}, [], own)), { view: "buy", fields: { model: "x" }, files: {}, own });
assert.deepEqual((await read("#answer?buy.users=4")).fields, { "buy.users": "4" });

// 512 MB of zeros take half a megabyte in a link.
const zeros = Buffer.alloc(512 << 20);
const link = `#answer?files=${deflateRawSync(zeros, { level: 9 }).toString("base64url")}`;
const before = process.memoryUsage().rss;
await assert.rejects(read(link), /longer than 4194304 bytes/);
await assert.rejects(read(link.replace("answer?files=", "accuracy?accuracy.runs=~")), /longer than 4194304 bytes/);
assert.ok(process.memoryUsage().rss - before < 256 << 20, "it was unpacked");

const local = ["localhost", "LOCALHOST:8000", "a.localhost", "127.0.0.1", "127.9.9.9:80", "[::1]:8000", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1", "2130706433"];
for (const host of local) assert.ok(isLocal(`http://${host}/#answer`), host);
assert.ok(isLocal("file:///page/index.html"));
for (const host of ["mantile.example.org", "localhost.example.org", "192.0.2.1", "[2001:db8::1]"]) assert.ok(!isLocal(`https://${host}/`), host);
const section = { querySelector: () => null, querySelectorAll: () => [] };
for (const host of local) assert.ok(!card(Object.assign(section, { querySelector: (one) => (one === ".proof" ? { textContent: "a · b" } : null) }), `http://${host}/#answer`).includes("href"), host);
assert.ok(card(section, "https://mantile.example.org/#answer").includes('href="https://mantile.example.org/#answer"'));

const form = { elements: [{ name: "model", dataset: { kind: "text" } }] };
assert.deepEqual(unknown(form, { model: "x", modle: "y" }), ["modle"]);
