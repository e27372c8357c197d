//! Laws of manifests.

#[cfg(test)]
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::compose::interpolate;
use super::*;

fn read(text: &str) -> Vec<Process> {
    assert!(is_manifest(text), "{text}");
    processes(text, &NamedFiles::new(), &BTreeMap::new())
        .unwrap_or_else(|fault| panic!("{fault:?}\n{text}"))
        .0
}

/// The servers of a manifest: words, replicas, devices, hosts and role.
fn servers(text: &str) -> Vec<String> {
    let number = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    let shown = |one: &Process| {
        let counts = [one.replicas, one.devices, one.hosts].map(number).join(",");
        format!("{} [{counts}] {}", one.words.join(" "), one.role.as_deref().unwrap_or("-"))
    };
    read(text).iter().filter(|one| starts_server(&one.words)).map(shown).collect()
}

fn refused(text: &str) -> String {
    let fault = processes(text, &NamedFiles::new(), &BTreeMap::new()).unwrap_err();
    format!("{} {}", fault.key, fault.found)
}

#[test]
fn services_of_compose_have_interpolated_texts() {
    let text = "x-common: &common\n  image: ${IMAGE:-vllm/vllm-openai:v1}\n  environment: [\"A=${A:-1}\", B]\nservices:\n  one:\n    <<: *common\n    command: [--model, '${MODEL:-Qwen/Qwen3-8B}', -tp, '${TP:-2}']\n    deploy: {replicas: 2, resources: {reservations: {devices: [{count: 2}]}}}\n";
    assert_eq!(servers(text), ["vllm serve --model Qwen/Qwen3-8B -tp 2 [2,2,-] -"]);
    assert_eq!(read(text)[0].environment, [("A".to_owned(), "1".to_owned())]);
    assert_eq!(read(text)[0].image.as_deref(), Some("vllm/vllm-openai:v1"));
    let text = "services:\n  one:\n    image: ghcr.io/ggml-org/llama.cpp:server-cuda\n    environment: [\"N=${N:-}\"]\n    entrypoint:\n    - bash\n    - -c\n    - |\n      n=\"$${N:-3}\"\n      if [ \"$$n\" -gt 0 ]; then exec /app/llama-server \"$$@\" --n $$n; fi\n      exec /app/llama-server \"$$@\"\n    - --\n    command: >-\n      -m /m/${FILE:-x.gguf}\n      -c 4096\n";
    assert_eq!(servers(text), ["llama-server -m /m/x.gguf -c 4096 --n 3 [-,-,-] -"]);
    let given = BTreeMap::from([("TP".to_owned(), "4".to_owned())]);
    let files = NamedFiles::from([(".env".to_owned(), "TP=8\nM='a/b' # the model\n#X=1".to_owned())]);
    let text = "services:\n  one:\n    image: vllm/vllm-openai\n    command: $M -tp $TP\n";
    let words = |files: &NamedFiles, given: &BTreeMap<String, String>| {
        processes(text, files, given).unwrap().0[0].words.join(" ")
    };
    assert_eq!(words(&files, &BTreeMap::new()), "vllm serve a/b -tp 8");
    assert_eq!(words(&files, &given), "vllm serve a/b -tp 4");
    assert_eq!(words(&NamedFiles::new(), &given), "vllm serve $M -tp 4");
    let unknown = refused("services:\n  one:\n    image: ${IMAGE}\n    command: --model a/b\n");
    assert!(unknown.contains("service one: the image $IMAGE"), "{unknown}");
}

#[test]
fn interpolation_is_that_of_compose() {
    let known = BTreeMap::from([("A".to_owned(), "x".to_owned()), ("E".to_owned(), String::new())]);
    for (text, value) in [
        ("$A ${A} ${A:-d} ${A-d} ${A:+y} ${A:?m}", "x x x x y x"),
        ("${E:-d} ${E-d}|${E:+y}|${E+y}", "d ||y"),
        ("${N:-d} ${N-d} ${N:+y}|${N:-${A}}", "d d |x"),
        ("$N ${N} ${N:?set it}", "$N $N $N"),
        ("$$A $${A}", "$A ${A}"),
        ("a$ ${ b", "a$ ${ b"),
    ] {
        assert_eq!(interpolate(text, &known, 0), value, "{text}");
    }
}

#[test]
fn objects_of_kubernetes_give_counts_and_roles() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: q}\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - name: server\n        image: i\n        command: [/bin/sh, -c]\n        args: ['pip install x && vllm serve a/b -tp $TP']\n        env: [{name: TP, value: \"2\"}]\n        resources: {limits: {nvidia.com/gpu: \"2\"}}\n";
    assert_eq!(servers(text), ["vllm serve a/b -tp 2 [2,2,-] -"]);
    let text = "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: NAME}\nspec:\n  replicas: 1\n  leaderWorkerTemplate:\n    size: 2\n    workerTemplate:\n      metadata: {labels: {llm-d.ai/role: NAME}}\n      spec: {containers: [{name: v, command: [vllm, serve, a/b], resources: {limits: {nvidia.com/gpu: 8}}}]}\n";
    let both = format!("{}---\n{}", text.replace("NAME", "prefill"), text.replace("NAME", "decode"));
    assert_eq!(servers(&both), ["vllm serve a/b [1,8,2] prefill", "vllm serve a/b [1,8,2] decode"]);
    assert_eq!(servers(&text.replace("NAME", "decode")), ["vllm serve a/b [1,8,2] -"]);
    let ranks =
        text.replace("[vllm, serve, a/b]", "[bash, -c, 'vllm serve a/b -dp $((LWS_GROUP_SIZE * L))']");
    let ranks = ranks.replace("{name: v,", "{name: v, env: [{name: L, value: '8'}],");
    assert_eq!(servers(&ranks), ["vllm serve a/b -dp 16 [1,8,2] -"]);
}

#[test]
fn pods_of_a_set_with_ranks_are_hosts() {
    let text = |pods: u64| {
        format!(
            "kind: StatefulSet\napiVersion: apps/v1\nmetadata: {{name: q}}\nspec:\n  replicas: {pods}\n  template:\n    spec:\n      containers:\n      - name: s\n        command: [bash, -c, 'sglang serve --model-path a/b --tp-size 16 --nnodes 2 --node-rank $POD_INDEX']\n"
        )
    };
    let words = "sglang serve --model-path a/b --tp-size 16 --nnodes 2 --node-rank $POD_INDEX";
    assert_eq!(servers(&text(4)), [format!("{words} [2,-,2] -")]);
    assert_eq!(servers(&text(3)), [format!("{words} [3,-,-] -")]);
}

#[test]
fn graphs_of_dynamo_have_roles_in_both_versions() {
    let worker = |key: &str, more: &str| {
        format!(
            "    {key}:\n      componentType: worker\n{more}      replicas: 1\n      multinode: {{nodeCount: 2}}\n      resources: {{limits: {{gpu: \"8\"}}}}\n      extraPodSpec:\n        mainContainer:\n          image: i\n          command: [/bin/bash, -c]\n          args: ['exec python3 -m dynamo.vllm --model a/b']\n"
        )
    };
    let head = "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: g}\nspec:\n  services:\n    Frontend: {componentType: frontend, replicas: 1, extraPodSpec: {mainContainer: {image: i}}}\n";
    let keyed = format!(
        "{head}{}{}",
        worker("one", "      subComponentType: prefill\n"),
        worker("two", "      subComponentType: decode\n")
    );
    let expected = [
        "python3 -m dynamo.vllm --model a/b [1,8,2] prefill",
        "python3 -m dynamo.vllm --model a/b [1,8,2] decode",
    ];
    assert_eq!(servers(&keyed), expected);
    let named = format!("{head}{}{}", worker("VllmPrefillWorker", ""), worker("VllmDecodeWorker", ""));
    assert_eq!(servers(&named), expected);
    let alone = format!("{head}{}", worker("VllmDecodeWorker", ""));
    assert_eq!(servers(&alone), ["python3 -m dynamo.vllm --model a/b [1,8,2] -"]);
    let component = |name: &str, kind: &str| {
        format!(
            "  - name: {name}\n    type: {kind}\n    replicas: 2\n    podTemplate:\n      spec:\n        containers:\n        - name: main\n          command: [python3, -m, dynamo.sglang]\n          args: [--config, /etc/x/{kind}.yaml]\n          resources: {{limits: {{nvidia.com/gpu: \"4\"}}}}\n"
        )
    };
    let beta = format!(
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  prefill.yaml: 'tp-size: 4'\n---\napiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nspec:\n  components:\n{}{}",
        component("A", "prefill"),
        component("B", "decode")
    );
    let (found, files) = processes(&beta, &NamedFiles::new(), &BTreeMap::new()).unwrap();
    let roles: Vec<_> = found.iter().map(|one| (one.role.as_deref(), one.replicas, one.devices)).collect();
    assert_eq!(roles, [(Some("prefill"), Some(2), Some(4)), (Some("decode"), Some(2), Some(4))]);
    assert_eq!(files["prefill.yaml"], "tp-size: 4");
}

#[test]
fn values_of_charts_are_commands() {
    let text = "servingEngineSpec:\n  modelSpec:\n  - name: q\n    repository: vllm/vllm-openai\n    tag: v1\n    modelURL: a/b\n    replicaCount: 3\n    requestGPU: 4\n    vllmConfig: {dtype: half, tensorParallelSize: 4, maxModelLen: 8192, gpuMemoryUtilization: 0.9, enablePrefixCaching: true, extraArgs: [--enforce-eager]}\n";
    assert_eq!(
        servers(text),
        [
            "vllm serve a/b --max-model-len 8192 --dtype half --tensor-parallel-size 4 --gpu-memory-utilization 0.9 --enable-prefix-caching --enforce-eager [3,4,-] -"
        ]
    );
    assert!(refused("servingEngineSpec: {modelSpec: [{name: q}]}").contains("modelSpec, q: modelURL"));
    let pool = |role: &str, data: u64| {
        format!(
            "{role}:\n  replicas: 2\n  parallelism: {{tensor: 2, data: {data}}}\n  containers:\n  - {{name: vllm, image: i, modelCommand: vllmServe, args: [--enforce-eager]}}\n"
        )
    };
    let text = format!(
        "modelArtifacts:\n  name: a/b\n  uri: \"hf://{{{{ .Values.modelArtifacts.name }}}}\"\n{}{}",
        pool("prefill", 1),
        pool("decode", 4)
    );
    assert_eq!(
        servers(&text),
        [
            "vllm serve a/b --tensor-parallel-size 2 --enforce-eager [2,2,-] prefill",
            "vllm serve a/b --tensor-parallel-size 2 --data-parallel-size 4 --data-parallel-size-local 4 --enforce-eager [2,8,-] decode"
        ]
    );
    assert!(refused("modelArtifacts: {uri: 's3://x'}").contains("modelArtifacts.uri: s3://x"));
}

#[test]
fn services_of_kserve_are_commands() {
    let text = "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: q}\nspec:\n  predictor:\n    minReplicas: 2\n    model:\n      modelFormat: {name: huggingface}\n      args: [--model_name=q, --model_id=a/b, --max_model_len=4096, --dtype, half]\n      resources: {limits: {nvidia.com/gpu: \"1\"}}\n";
    assert_eq!(servers(text), ["vllm serve a/b --max_model_len=4096 --dtype half [2,1,-] -"]);
    let text = text.replace("--model_id=a/b, ", "");
    assert!(refused(&text).contains("spec.predictor.model: no --model_id"));
    let stored = format!("{text}      storageUri: hf://c/d\n");
    assert!(servers(&stored)[0].starts_with("vllm serve c/d "));
    let text = "apiVersion: serving.kserve.io/v1alpha1\nkind: LLMInferenceService\nmetadata: {name: q}\nspec:\n  model: {uri: 'hf://a/b', name: q}\n  replicas: 2\n  parallelism: {tensor: 4, data: 16, dataLocal: 8, expert: true}\n  template: {containers: [{name: main, env: [{name: VLLM_ADDITIONAL_ARGS, value: --enforce-eager}], resources: {limits: {nvidia.com/gpu: 8}}}]}\n  prefill:\n    replicas: 1\n    parallelism: {tensor: 8}\n    template: {containers: [{name: main}]}\n";
    assert_eq!(
        servers(text),
        [
            "vllm serve a/b --tensor-parallel-size 8 [1,-,-] prefill",
            "vllm serve a/b --tensor-parallel-size 4 --data-parallel-size 16 --data-parallel-size-local 8 --enable-expert-parallel --enforce-eager [2,8,2] decode"
        ]
    );
}

#[test]
fn files_of_options_are_commands() {
    for (text, words) in [
        (
            "# of vLLM\nmodel: a/b\ntensor-parallel-size: 4\nenable-expert-parallel: true\n",
            "vllm serve a/b --tensor-parallel-size 4 --enable-expert-parallel",
        ),
        ("model-path: a/b\ntp-size: 4\n", "python3 -m sglang.launch_server --model-path a/b --tp-size 4"),
        (
            "applications:\n- args:\n    llm_configs:\n    - model_loading_config: {model_id: q, model_source: a/b}\n      engine_kwargs: {tensor_parallel_size: 2, enable_prefix_caching: false}\n",
            "vllm serve a/b --tensor-parallel-size 2 --no-enable-prefix-caching",
        ),
        (
            "macros: {server: 'llama-server --port ${PORT}', c: 4096}\nmodels:\n  q:\n    macros: {c: 8192}\n    cmd: |\n      # the server\n      ${server}\n      -m x.gguf -c ${c}\n",
            "llama-server --port 5800 -m x.gguf -c 8192",
        ),
        (
            "# mine\nFROM hf.co/o/m-GGUF:Q4_K_M\nPARAMETER num_ctx 8192\nPARAMETER temperature 1\nSYSTEM You are kind\n",
            "llama-server -hf o/m-GGUF:Q4_K_M -c 8192",
        ),
        ("FROM ./x.gguf\n", "llama-server -m ./x.gguf"),
    ] {
        let found = read(text);
        assert_eq!(found[0].words.join(" "), words, "{text}");
    }
    for text in [
        "vllm serve a/b",
        "FROM vllm/vllm-openai\nCMD vllm serve a/b",
        "{ vllm serve a/b; }",
        "echo a: b",
        "set -e\nmodel: x",
    ] {
        assert!(!is_manifest(text), "{text}");
    }
    assert!(refused("models: {a: {name: x}}").contains("models: no cmd"));
    assert!(refused("applications: [{args: {x: 1}}]").contains("no llm_configs"));
}

proptest! {
    #[test]
    fn no_text_is_a_panic(
        lines in prop::collection::vec("(  ){0,3}(- )?(kind|services|models|spec|model|args|command|image|cmd|containers|env|uri|decode|modelArtifacts|llm_configs|applications|servingEngineSpec|modelSpec): ?[a-z${}:\\-\\[\\]\"' ]{0,12}", 0..10),
        text in "\\PC{0,60}",
    ) {
        let known = BTreeMap::new();
        for text in [lines.join("\n"), text.clone(), format!("model: x\n{text}")] {
            let _ = is_manifest(&text);
            let _ = processes(&text, &NamedFiles::new(), &known);
        }
        interpolate(&text, &known, 0);
    }
}
