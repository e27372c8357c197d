// Single letters as commands, and `g` followed by the letter of a view.

const VIEWS = { h: "ask", a: "answer", w: "why", n: "numbers", e: "where", t: "traffic", s: "assumptions", b: "buy", c: "compare", i: "layers", l: "library", y: "accuracy" };
/** Within this time the letter of a view follows `g`. */
const FOLLOWS_MS = 1500;

/** The act of a key: of `commands`, or as the second of two. */
export function shortcuts(commands, go) {
  let since = -Infinity;
  return {
    press(key) {
      const follows = performance.now() - since < FOLLOWS_MS;
      since = -Infinity;
      if (follows && VIEWS[key]) return () => go(VIEWS[key]);
      if (key === "g") since = performance.now();
      return key === "g" ? () => {} : commands[key];
    },
  };
}

/** The letter of a view. */
export const letter = (view) => Object.keys(VIEWS).find((key) => VIEWS[key] === view);
