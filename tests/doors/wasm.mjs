// The answers of the WebAssembly module to the calls on standard input: [[name, body], …].
import { readFileSync } from "node:fs";
import { load, MantileError } from "../../src/site/mantile.mjs";

const mantile = await load(readFileSync(process.argv[2]));
const calls = JSON.parse(readFileSync(0, "utf8"));
const answers = calls.map(([name, body]) => {
  try {
    return mantile.text(name, body);
  } catch (fault) {
    if (fault instanceof MantileError) return `error: ${fault.key}`;
    throw fault;
  }
});
process.stdout.write(JSON.stringify(answers));
