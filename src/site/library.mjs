// The library: copies of entries that the reader edits, and the reader's own files.

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

/** Turns the file under a button into a form; `use` takes the edited file as text. */
export function edit(button, use) {
  const section = button.closest("section");
  const shown = section.querySelector("pre");
  const file = JSON.parse(shown.textContent);
  const [name, text] = [file.id ? "id" : "_name_or_path", JSON.stringify({ ...file, ...renamed(file) }, null, 2)];
  const area = element("textarea", { rows: 24, value: text, spellcheck: false });
  area.setAttribute("aria-label", `file; its name is ${name}`);
  const changed = element("pre");
  const report = () => (changed.textContent = differences(file, parsed(area.value)));
  area.addEventListener("input", report);
  const apply = element("button", { type: "button", className: "primary", textContent: "Use this file" });
  apply.addEventListener("click", () => use(area.value));
  shown.replaceWith(area);
  button.parentElement.replaceChildren(apply);
  section.append(element("h2", { textContent: "Differences" }), changed);
  report();
}

/** A copy has a name of its own and no other names. */
function renamed(file) {
  if (file.id) return { id: `${file.id}-mine`, ...(file.aliases ? { aliases: [] } : {}) };
  return { _name_or_path: `${file._name_or_path ?? "model"}-mine` };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (fault) {
    return `not JSON: ${fault.message}`;
  }
}

/** Every value that differs between two files, a line each. */
function differences(before, after) {
  if (typeof after === "string") return after;
  const [old, now] = [new Map(leaves(before)), new Map(leaves(after))];
  const keys = [...new Set([...old.keys(), ...now.keys()])].filter((key) => old.get(key) !== now.get(key));
  return keys.map((key) => `${key}: ${old.get(key) ?? "none"} → ${now.get(key) ?? "none"}`).join("\n");
}

function leaves(value, path = "") {
  if (value === null || typeof value !== "object") return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, part]) => leaves(part, path ? `${path}.${key}` : key));
}

/** Lists the reader's own files with a button that removes each. */
export function list(target, files, removed) {
  const items = Object.keys(files).map((name) => {
    const button = element("button", { type: "button", className: "plain", textContent: "Remove" });
    button.addEventListener("click", () => removed(name));
    return element("li", {}, `${name} `, button);
  });
  const heading = element("h2", { textContent: "Your files" });
  target.replaceChildren(...(items.length ? [heading, element("ul", { className: "remedies" }, ...items)] : []));
}
