// The address is the question: `#view?key=value&…`. Files that came with it are packed into `files`.

const packed = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const unpacked = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
/** Longest unpacked files, in bytes: a link is a stranger's. */
const MOST = 4 << 20;

/** View, fields and files of an address. */
export async function read(hash) {
  const [view, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  if (view.startsWith("m1.")) return { view: "answer", fields: {}, files: {}, permalink: view };
  const fields = Object.fromEntries(new URLSearchParams(query));
  let files = {};
  if (fields.files) {
    const bytes = await through(unpacked(fields.files), new DecompressionStream("deflate-raw"));
    if (bytes.length > MOST) throw new Error("the files of this link are too long");
    files = JSON.parse(new TextDecoder().decode(bytes));
    delete fields.files;
  }
  return { view: view || "answer", fields, files };
}

/** The address of a view, fields and files. */
export async function write(view, fields, files) {
  const query = new URLSearchParams(fields);
  if (Object.keys(files).length) {
    const bytes = new TextEncoder().encode(JSON.stringify(files));
    query.set("files", packed(await through(bytes, new CompressionStream("deflate-raw"))));
  }
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}
