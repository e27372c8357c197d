// Answers that the reader pinned, at most four: they stay in this browser.

const KEY = "mantile-pins";
const MOST = 4;

/** Names and scenarios. */
export const pinned = () => JSON.parse(localStorage.getItem(KEY) ?? "[]");

/** Pins the plan of a scenario; the result takes it back. */
export function pin(scenario) {
  const before = pinned();
  const name = `${scenario.model ?? "default"} on ${scenario.hardware ?? "default"}: ${scenario.deployment.plan}`;
  const kept = pinned().filter((one) => one.name !== name);
  localStorage.setItem(KEY, JSON.stringify([...kept, { name, scenario }].slice(-MOST)));
  return () => localStorage.setItem(KEY, JSON.stringify(before));
}

/** Forgets all. */
export const forget = () => localStorage.removeItem(KEY);

/** Lists them. */
export function list(target) {
  target.replaceChildren(
    ...pinned().map(({ name }) => {
      const item = document.createElement("li");
      item.textContent = name;
      return item;
    }),
  );
}
