// A pasted or dropped text: a model, a device, a system, an answer or a launch command.

/** Fields, files or a command of a text; none of words; throws where JSON is none of these. */
export function understood(text) {
  const trimmed = text.trim();
  if (!trimmed.startsWith("{")) {
    if (/(vllm|sglang|llama-server|trtllm-serve|mlx_lm|python3? -m)/.test(trimmed)) return { command: trimmed, what: "a launch command" };
    return undefined;
  }
  const json = JSON.parse(trimmed);
  if (json.answer && json.question && json.bundle) return { fields: json.question.scenario ?? {}, what: "a bundle", saved: json };
  if (json.scenario !== undefined && (json.status || json.notation || json.rows)) return { fields: json.scenario ?? {}, what: "a saved answer", saved: json };
  if (json.model_type || json.architectures) return given("models", "model", json._name_or_path, json, "a model");
  if (json.memory && json.peak) return given("hardware/devices", "device", json.id, json, "a device");
  if (json.tiers || json.devices_per_node) return given("hardware/systems", "hardware", json.id, json, "a system");
  if (json.model || json.hardware) return { fields: json, what: "a scenario" };
  throw new Error("JSON that is no model, device, system, answer or scenario");
}

function given(folder, field, named, json, what) {
  const name = String(named || "pasted").split("/").pop().replace(/[^A-Za-z0-9._-]/g, "-").slice(0, 60) || "pasted";
  return { files: { [`${folder}/${name}`]: json }, fields: field ? { [field]: name } : {}, what };
}
