from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

config = LLMConfig(
    model_loading_config=dict(model_id="m", model_source="Qwen/Qwen3-32B"),
    accelerator_type="H100",
    engine_kwargs=dict(tensor_parallel_size=4, max_model_len=16384),
    deployment_config=dict(autoscaling_config=dict(min_replicas=2, max_replicas=2)),
)
serve.run(build_openai_app({"llm_configs": [config]}), blocking=True)
