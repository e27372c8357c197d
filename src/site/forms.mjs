// Forms as requests. An input has a name, which is the key of the request, and a kind of value.

/** The value of an input; undefined where it is empty. */
function value(input) {
  const text = input.value.trim();
  if (text === "") return undefined;
  switch (input.dataset.kind) {
    case "number":
      return Number(text);
    case "list":
      return text.split(",").map((part) => part.trim()).filter(Boolean);
    case "list;":
      return text.split(";").map((part) => part.trim()).filter(Boolean);
    case "lines":
      return text.split("\n").map((part) => part.trim()).filter(Boolean);
    default:
      return text;
  }
}

const inputs = (form) => [...form.elements].filter((input) => input.name && input.dataset.kind);

/** The fields of a form as texts, without empty ones. */
export function fields(form) {
  return Object.fromEntries(inputs(form).filter((input) => input.value.trim()).map((input) => [input.name, input.value.trim()]));
}

/** Keys that no field of a form takes. */
export const unknown = (form, named) => Object.keys(named).filter((key) => !inputs(form).some((input) => input.name === key));

/** Fills a form; fields that are not named become empty. */
export function fill(form, named) {
  for (const input of inputs(form)) {
    const given = named[input.name];
    input.value = Array.isArray(given) ? given.join("\n") : given ?? "";
    input.removeAttribute("aria-invalid");
  }
}

/** The scenario of the question, of all fields or of some. */
export function scenario(form, only) {
  const wanted = only && only !== "*" ? only.split(" ") : null;
  const found = {};
  for (const input of inputs(form)) {
    const given = value(input);
    if (given === undefined || input.name === "plan" || (wanted && !wanted.includes(input.name))) continue;
    found[input.name] = given;
  }
  return found;
}

/** The given plan of the question. */
export const plan = (form) => form.elements.plan.value.trim();

/** The degrees of a form as a plan: `tp8 ffn_tp4`. */
function degrees(form) {
  const parts = inputs(form).filter((input) => input.name.startsWith("plan.") && value(input) !== undefined);
  return parts.map((input) => input.name.slice(5) + value(input)).join(" ");
}

/** The request of a form, with fields of the question where it takes some. */
export function request(form, question) {
  const body = {};
  if (form.dataset.with !== undefined) body.scenario = scenario(question, form.dataset.with);
  for (const input of inputs(form)) {
    const given = value(input);
    if (given === undefined || input.name.startsWith("plan.")) continue;
    const [section, key] = input.name.includes(".") ? input.name.split(".") : [null, input.name];
    if (section) body[section] = { ...body[section], [key]: given };
    else body[key] = given;
  }
  const given = degrees(form) || (form.dataset.plan !== undefined && plan(question));
  if (given && !body.command) body.scenario.deployment = { plan: given };
  if (form.elements.ignore_hardware?.checked && body.scenario.model && !form.elements.seek?.value) delete body.scenario.hardware;
  // The models of a machine: only the machine and the speed are given.
  if (form.elements.seek?.value) for (const key of ["model", "weight_format"]) delete body.scenario[key];
  return body;
}

/** Offers the legal degrees in the menus of a form; others are shown, and cannot be chosen. */
export function offer(form, legal) {
  for (const menu of form.querySelectorAll("select[data-degree]")) {
    const degrees = legal[menu.dataset.degree] ?? [];
    const before = menu.value;
    const shown = [...new Set([...degrees, 1, 2, 4, 8, 16, Number(before) || 1])].sort((a, b) => a - b);
    const options = shown.map((degree) => {
      const option = new Option(String(degree), String(degree));
      option.disabled = !degrees.includes(degree);
      if (option.disabled) option.text = `${degree} (not legal)`;
      return option;
    });
    menu.replaceChildren(new Option("default", ""), ...options);
    menu.value = before;
  }
}

/** Chooses degrees in the menus of a form: `tp2 pp4`. */
export function choose(form, degrees) {
  const given = new Map([...degrees.matchAll(/([a-z_]+)(\d+)/g)].map(([, name, degree]) => [name, degree]));
  for (const menu of form.querySelectorAll("select[data-degree]")) {
    const degree = given.get(menu.dataset.degree) ?? "";
    // The legal ones are offered by the first answer.
    if (![...menu.options].some(({ value: one }) => one === degree)) menu.append(new Option(degree, degree));
    menu.value = degree;
  }
}

/** Marks the input of a faulty key; whether there is one. */
export function mark(form, key) {
  const name = key.replaceAll("-", "_").split(/[.[]/).filter((part) => part !== "scenario")[0];
  const input = inputs(form).find((input) => input.name === name || input.name.endsWith(`.${name}`));
  input?.setAttribute("aria-invalid", "true");
  return Boolean(input);
}

/** Flags of the command line as fields: `--hardware 8xh100 --isl 1k`. */
export function flags(text) {
  const found = {};
  for (const [, name, quoted, plain] of text.matchAll(/--([a-z-]+)(?:[ =](?:'([^']*)'|(?!--)(\S+)))?/g)) {
    found[name.replaceAll("-", "_")] = quoted ?? plain ?? "true";
  }
  return found;
}
