// Runs the module off the page's own thread.
import { load, MantileError } from "./mantile.mjs";

let until = Infinity;
const control = { progress: (done, all) => postMessage({ progress: [done, all] }), stopped: () => performance.now() >= until };
const loaded = load(fetch(new URL("mantile.wasm", import.meta.url)), control);

onmessage = async ({ data: { number, name, body, format, seconds = Infinity } }) => {
  try {
    const mantile = await loaded;
    until = performance.now() + 1000 * seconds;
    postMessage({ number, text: mantile.text(name, body, format) });
  } catch (fault) {
    const { key, found, expected, fix } = fault;
    postMessage(fault instanceof MantileError ? { number, problem: { key, found, expected, fix } } : { number, fault: String(fault) });
  }
};
