// What buttons do without the engine: copy, save, show the pace of tokens.

const COPIED_MS = 1200;
let pacing;

/** Copies a text; the button says so. */
export async function copied(text, button) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), COPIED_MS);
}

/** Saves a text or a blob as a file. */
export function save(name, content, type = "text/plain") {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

/** Tokens at the predicted pace. */
export function pace(button) {
  const place = button.parentElement.parentElement.querySelector(".pace");
  const { ttft, tpot } = button.dataset;
  const words = "The answer appears at this pace: each word is a token, after the time to the first one. ".repeat(4).split(" ");
  clearInterval(pacing);
  [place.hidden, place.textContent] = [false, ""];
  setTimeout(() => (pacing = setInterval(() => (words.length ? (place.textContent += `${words.shift()} `) : clearInterval(pacing)), Number(tpot))), Number(ttft));
}
