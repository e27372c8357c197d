// Find: a model, a system, a view or a number, by typing.

/** Everything that can be found, as [words, kind, choose]. */
function all(actions) {
  const listed = (id, kind, choose) =>
    [...document.querySelectorAll(`#${id} option`)].map((option) => [`${option.value} ${option.textContent}`, kind, () => choose(option.value)]);
  const views = [...document.querySelectorAll("nav a")].map((link) => [link.textContent, "view", () => link.click()]);
  const numbers = [...document.querySelectorAll("[data-page]:not([hidden]) [data-number]")];
  return [
    ...views,
    ...numbers.map((button) => [`${button.dataset.number} ${button.textContent}`, "number", () => button.click()]),
    ...listed("models", "model", (model) => actions.ask({ model })),
    ...listed("systems", "system", (hardware) => actions.ask({ hardware })),
  ];
}

/** Opens the dialog. */
export function open(actions) {
  const dialog = document.getElementById("palette");
  const input = document.getElementById("find");
  const list = document.getElementById("found");
  const entries = all(actions);
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = entries.filter(([text]) => words.every((word) => text.toLowerCase().includes(word))).slice(0, 30);
    list.replaceChildren(
      ...found.map(([text, kind, choose]) => {
        const item = document.createElement("li");
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = `${text} · ${kind}`;
        button.onclick = () => {
          dialog.close();
          choose();
        };
        item.append(button);
        return item;
      }),
    );
  };
  input.value = "";
  input.oninput = show;
  input.onkeydown = (event) => event.key === "Enter" && list.querySelector("button")?.click();
  show();
  dialog.showModal();
  input.focus();
}
