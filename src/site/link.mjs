// The address is the question: `#view?key=value&…`. Files that came with it are packed into `files`. A key with the
// view before it (`buy.users`) is of this view alone: fields of its forms, and choices in its pictures.

const packed = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const unpacked = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
/** Longest unpacked files, in bytes: a link is a stranger's. */
const MOST = 4 << 20;

/** Unpacks bytes, and stops where there are more than `most`. */
async function inflated(bytes, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const [parts, refused] = [[], new Error(`the files of this link are longer than ${most} bytes`)];
  for (let length = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw refused;
    }
    parts.push(value);
  }
}

/** Whether an address leads others to their own machine, or to no machine. */
export function isLocal(address) {
  const { protocol, hostname } = new URL(address);
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const loopback = /^127\./.test(host) || /^(::ffff:7f|::1$|::$|0\.0\.0\.0$)/.test(host);
  return !/^https?:$/.test(protocol) || loopback || host === "localhost" || host.endsWith(".localhost");
}

/** A value of an address that was packed by `write`. */
const opened = async (text) => JSON.parse(new TextDecoder().decode(await inflated(unpacked(text), MOST)));

/** The start of a packed value of a view. */
const PACKED = "~";

/** View, fields, files, pins and what the view keeps, of an address. */
export async function read(hash) {
  const [view, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  if (view.startsWith("m1.")) return { view: "answer", fields: {}, files: {}, permalink: view };
  const all = [...new URLSearchParams(query)];
  const isOwn = ([key]) => key.startsWith(`${view}.`);
  const fields = Object.fromEntries(all.filter((one) => !isOwn(one)));
  const own = {};
  for (const [key, text] of all.filter(isOwn)) own[key.slice(view.length + 1)] = text.startsWith(PACKED) ? await opened(text.slice(1)) : text;
  const files = fields.files ? await opened(fields.files) : {};
  const pins = fields.pins ? await opened(fields.pins) : null;
  delete fields.files;
  delete fields.pins;
  return { view: view || "answer", fields, files, own, ...(pins && { pins }) };
}

/** The address of a view, fields, files, pins and what the view keeps. */
export async function write(view, fields, files, pins = [], own = {}) {
  const query = new URLSearchParams(fields);
  const pack = async (value) => packed(await through(new TextEncoder().encode(JSON.stringify(value)), new CompressionStream("deflate-raw")));
  if (Object.keys(files).length) query.set("files", await pack(files));
  if (pins.length) query.set("pins", await pack(pins));
  for (const [key, value] of Object.entries(own)) query.set(`${view}.${key}`, typeof value === "string" ? value : PACKED + (await pack(value)));
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}
