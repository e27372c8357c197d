// The WebAssembly module for browsers and Node: JSON in, JSON out.
//
//   const mantile = await load(fetch("mantile.wasm"));
//   const answer = mantile.request("optimize", { scenario: { model: "Llama-3.1-8B", hardware: "8xh100" } });

const KINDS = ["answer", "problem", "no such format"];
const HEAD = 5;

/** A request that is faulty: `key`, `found`, `expected` and `fix`. */
export class MantileError extends Error {
  constructor(problem) {
    super(`${problem.key}: found ${problem.found}, expected ${problem.expected}; ${problem.fix}`);
    Object.assign(this, problem, { name: "MantileError" });
  }
}

/**
 * Loads the module.
 * @param source bytes, a `Response`, or a promise of one
 * @param {{ progress?: (done: number, all: number) => void, stopped?: () => boolean }} control
 *   progress of a search, and whether it is to stop; a stopped search returns its best answer so far
 */
export async function load(source, control = {}) {
  const imports = {
    mantile: {
      progress: (done, all) => control.progress?.(done, all),
      stopped: () => (control.stopped?.() ? 1 : 0),
      now: () => performance.now(),
    },
  };
  const given = await source;
  const bytes = typeof Response === "function" && given instanceof Response ? await given.arrayBuffer() : given;
  const module = await WebAssembly.compile(bytes);
  let { exports } = await WebAssembly.instantiate(module, imports);

  function text(name, body, format = "json") {
    const blocks = [name, format, body].map((part) => {
      const encoded = new TextEncoder().encode(part);
      const start = exports.reserve(encoded.length);
      new Uint8Array(exports.memory.buffer, start, encoded.length).set(encoded);
      return [start, encoded.length];
    });
    let start;
    try {
      start = exports.answer(...blocks.flat());
    } catch (fault) {
      // A module that trapped is not used again.
      exports = new WebAssembly.Instance(module, imports).exports;
      throw fault;
    }
    const length = new DataView(exports.memory.buffer).getUint32(start, true);
    const kind = KINDS[new Uint8Array(exports.memory.buffer)[start + 4]];
    const result = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, start + HEAD, length));
    exports.release(start, HEAD + length);
    blocks.forEach((block) => exports.release(...block));
    if (kind === "problem") throw new MantileError(JSON.parse(result));
    return kind === "answer" ? result : null;
  }

  return {
    /** The answer as the text that the command line prints; null where the request has no such format. */
    text: (name, body, format) => text(name, JSON.stringify(body), format),
    /** The answer as an object. */
    request: (name, body) => JSON.parse(text(name, JSON.stringify(body))),
  };
}
