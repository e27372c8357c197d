// The state of a view in its address, next to the question: fields of a form once it was sent, and choices in pictures.

const shown = {};

/** The choices in the pictures of a view, where they are not the usual ones. */
export const picks = (view) => (shown[view] ??= {});

/** Changes choices in the pictures of a view; undefined is the usual one. */
export function pick(view, changes) {
  shown[view] = Object.fromEntries(Object.entries({ ...picks(view), ...changes }).filter(([, value]) => value !== undefined && value !== ""));
}

const kept = (page) => [...page.querySelectorAll("form[data-kept]")];
const inputs = (form) => [...form.elements].filter(({ name }) => name);
const isBox = ({ type }) => type === "checkbox";

/** The form was sent: the address has its fields from now on. */
export const sent = (form) => (form.dataset.sent = "yes");
export const isSent = (form) => form.dataset.sent !== undefined;

/** The state of a view, as texts and values. */
export function written(page) {
  const fields = kept(page).filter(isSent).flatMap(inputs);
  const value = (input) => (isBox(input) ? (input.checked ? undefined : "no") : input.value.trim() || undefined);
  const given = fields.map((input) => [input.name, value(input)]).filter(([, text]) => text !== undefined);
  return { ...Object.fromEntries(given), ...picks(page.dataset.page) };
}

/** Takes over what an address keeps of a view; the forms that it sends, and those that it no longer sends. */
export function restored(page, own) {
  const forms = kept(page);
  const names = [...forms.flatMap(inputs).map(({ name }) => name), ...(page.dataset.picks ?? "").split(" ")];
  const unknown = Object.keys(own).find((key) => !names.includes(key));
  if (unknown) throw new Error(`this link has the key "${page.dataset.page}.${unknown}", which the page does not know; it was not answered without it`);
  const isField = (key) => forms.some((form) => inputs(form).some(({ name }) => name === key));
  shown[page.dataset.page] = Object.fromEntries(Object.entries(own).filter(([key]) => !isField(key)));
  for (const form of forms) {
    const fields = inputs(form);
    if (fields.some(({ name }) => name in own)) {
      for (const input of fields) {
        if (isBox(input)) input.checked = own[input.name] !== "no";
        else input.value = own[input.name] ?? "";
        input.removeAttribute("aria-invalid");
      }
      sent(form);
    } else if (isSent(form)) {
      form.reset();
      delete form.dataset.sent;
    }
  }
}
