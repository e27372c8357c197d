// A line at the foot of the window that says what was done, and what can follow. It goes by itself, but not while it is in use.

const SHOWN_MS = 6000;
let box = null;
let timer;

const wait = () => {
  clearTimeout(timer);
  timer = setTimeout(close, SHOWN_MS);
};

/** Takes the line away. */
export function close() {
  clearTimeout(timer);
  box?.replaceChildren();
  box?.classList.remove("shown");
}

/** Shows a text with buttons. */
export function show(text, ...buttons) {
  if (!box) {
    box = document.createElement("div");
    box.className = "toast";
    box.setAttribute("role", "status");
    for (const held of ["pointerenter", "focusin"]) box.addEventListener(held, () => clearTimeout(timer));
    for (const left of ["pointerleave", "focusout"]) box.addEventListener(left, wait);
    document.body.append(box);
  }
  const words = document.createElement("span");
  words.textContent = text;
  box.replaceChildren(words, ...buttons);
  box.classList.add("shown");
  wait();
}
