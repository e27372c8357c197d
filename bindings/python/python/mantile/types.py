"""Types of the answers: one class for every object of a report. Made from the schemas of the requests by stubs.py."""

from __future__ import annotations

from typing import Any, Literal

from ._answer import Answer, Record


class Space(Record):
    plans: int
    under: str
    degrees: list[str]
    formats: list[str]
    split: bool
    mixes: bool
    offload: str
    measured_kinds_only: bool | None
    family: Literal['any', 'single', 'tensor', 'pipeline', 'context', 'data', 'expert', 'hybrid', 'split', 'offload', 'mixed'] | None
    most_requests_per_rank: int
    loads: str
    outside: list[str]


class Proof(Record):
    metric: str | None
    bound: float | None
    gap: float | None
    proved_by: str
    stopped_by: Literal['time_limit', 'interrupt', 'memory'] | None
    space: Space


class Degrees(Record):
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    dcp: int | None
    ep: int | None
    moe_tp: int | None
    ffn_tp: int | None
    vocab_tp: int | None
    sp: bool | None
    stages: list[int] | None
    replicas: int | None


class Deployment(Record):
    both: Degrees | None
    prefill: Degrees | None
    decode: Degrees | None
    plan: str | None
    offload_part: Literal['layers', 'experts', 'kv'] | None


class Scenario(Record):
    model: str | None
    hardware: str | None
    host: str | None
    host_memory: str | None
    p2p: Literal['yes', 'no', 'switch'] | None
    network: str | None
    objective: str | None
    workload: str | None
    isl: int | None
    osl: int | None
    concurrency: int | None
    rate: float | None
    percentile: Literal['p50', 'p90', 'p95', 'p99'] | None
    risk: str | None
    evidence: Literal['measured', 'any'] | None
    mode: Literal['aggregated', 'disaggregated'] | None
    without: str | None
    prefix: int | None
    prefix_groups: int | None
    images: int | None
    image_size: str | None
    draft: str | None
    draft_tokens: int | None
    acceptance: float | None
    ttft: str | None
    tpot: str | None
    e2e: str | None
    runtime: str | None
    runtime_version: str | None
    max_num_batched_tokens: int | None
    max_num_seqs: int | None
    max_model_len: int | None
    gpu_memory_utilization: float | None
    weight_format: str | None
    prefill_weight_format: str | None
    decode_weight_format: str | None
    kv_format: str | None
    offload: Literal['auto', 'never', 'always'] | None
    allow: list[Literal['custom-router', 'unmeasured']] | None
    theoretical: bool | None
    pareto: list[Literal['ttft', 'tpot', 'e2e', 'output_tok_s', 'output_tok_s_per_device', 'output_tok_s_per_user', 'usd_per_mtok', 'watts', 'tok_per_joule', 'devices', 'max_context']] | None
    price_basis: Literal['owned', 'rented'] | None
    usd_per_device_hour: float | None
    electricity_usd_per_kwh: float | None
    pue: float | None
    amortization_months: float | None
    utilization: float | None
    hours_per_day: float | None
    set: list[str] | None
    deployment: Deployment | None


class ReportedTier(Record):
    name: str
    devices: int
    link: str
    bandwidth_bytes_per_s: float
    p2p: Literal['yes', 'no', 'switch'] | None
    assumed_network: bool | None


class ReportImages(Record):
    number: int
    size: str | None
    tokens: int


class Speculation(Record):
    draft: str
    tokens: int
    acceptance: float
    unstated: str | None


class LatencyLimits(Record):
    ttft: str | None
    tpot: str | None
    e2e: str | None


class ObjectiveTerm(Record):
    metric: Literal['ttft', 'tpot', 'e2e', 'output_tok_s', 'output_tok_s_per_device', 'output_tok_s_per_user', 'usd_per_mtok', 'watts', 'tok_per_joule', 'devices', 'max_context']
    direction: Literal['minimize', 'maximize']


class ReportInputs(Record):
    model: str
    read_as: str | None
    hardware: str
    devices: int
    interconnect: list[ReportedTier] | None
    runtime: str
    runtime_version: str | None
    version_counts_as_mean: bool | None
    theoretical: bool | None
    workload: str
    isl: int
    osl: int
    prefix: int
    images: ReportImages | None
    concurrency: int | None
    rate: float | None
    percentile: Literal['p50', 'p90', 'p95', 'p99'] | None
    risk: str
    speculation: Speculation | None
    limits: LatencyLimits
    objective: str
    optimize: list[ObjectiveTerm]
    pareto: list[str]
    weight_formats: list[str]
    kv_formats: list[str]
    price_basis: Literal['owned', 'rented'] | None
    amortization_months: float | None
    utilization: float | None
    hours_per_day: float | None
    warnings: list[str] | None


class PoolReport(Record):
    role: Literal['aggregated', 'prefill', 'decode']
    label: str
    tp: int
    pp: int
    dp: int
    cp: int
    dcp: int
    ep: int
    moe_tp: int
    ffn_tp: int | None
    vocab_tp: int | None
    sp: bool
    stages: list[int]
    replicas: int
    devices: int
    concurrency_per_replica: int


class Plan(Record):
    mode: str
    label: str
    prefill: PoolReport
    decode: PoolReport
    others: list[PoolReport]


class Quantiles(Record):
    p10: float
    p50: float
    p90: float


class MemoryReport(Record):
    weights_bytes: float
    kv_cache_bytes: float
    activations_bytes: float
    buffers_bytes: float
    total_bytes: float
    interval: Quantiles | None
    usable_bytes: float
    capacity_bytes: float
    utilization: float
    offloaded_bytes: float
    offloaded_interval: Quantiles | None
    host_bytes: float | None
    least_host_bytes: float


class MetricsReport(Record):
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float
    output_tok_s: float
    output_tok_s_per_device: float
    output_tok_s_per_user: float
    requests_per_s: float
    usd_per_hour: float | None
    usd_per_mtok: float | None
    usd_per_mtok_total: float | None
    usd_per_day: float | None
    usd_per_month: float | None
    tok_per_usd: float | None
    watts: float | None
    facility_watts: float | None
    tok_per_joule: float | None
    max_context_tokens: float


class Intervals(Record):
    near: Literal['measured', 'hardware_and_runtime', 'load', 'model', 'hardware', 'vendor', 'processor', 'split', 'hosts', 'nothing']
    ttft_ms: Quantiles
    tpot_ms: Quantiles
    e2e_ms: Quantiles | None
    output_tok_s: Quantiles
    output_tok_s_per_device: Quantiles | None
    output_tok_s_per_user: Quantiles | None
    requests_per_s: Quantiles | None
    usd_per_mtok: Quantiles | None
    usd_per_mtok_total: Quantiles | None
    tok_per_usd: Quantiles | None
    source: str


class SloOdds(Record):
    ttft: float | None
    tpot: float | None
    e2e: float | None
    all: float


class PlanEvidence(Record):
    rows: int
    scope: Literal['here', 'runtime', 'elsewhere'] | None


class CapacityOdds(Record):
    requests_per_s: float
    p10_requests_per_s: float
    p90_requests_per_s: float
    carries_rate: float


class PriceBound(Record):
    price: str
    source: str
    usd_per_mtok: float


class PriceBounds(Record):
    low: PriceBound
    high: PriceBound


class ReportedDeployment(Record):
    plan: Plan
    notation: str
    weight_format: str
    prefill_weight_format: str | None
    kv_format: str
    concurrency: float
    devices: int
    idle_devices: int
    feasibility: Literal['in_vram', 'with_offload', 'insufficient_memory', 'illegal']
    violations: list[str]
    memory: MemoryReport | None
    bottleneck: str | None
    metrics: MetricsReport | None
    context_bound: Literal['memory', 'model', 'server'] | None
    intervals: Intervals | None
    slo_odds: SloOdds | None
    evidence: PlanEvidence | None
    capacity: CapacityOdds | None
    price_bounds: PriceBounds | None
    chosen: bool | None


class UntriedPlan(Record):
    deployment: ReportedDeployment
    metric: Literal['ttft', 'tpot', 'e2e', 'output_tok_s', 'output_tok_s_per_device', 'output_tok_s_per_user', 'usd_per_mtok', 'watts', 'tok_per_joule', 'devices', 'max_context']


class SimplerChoice(Record):
    wins: float
    metric: Literal['ttft', 'tpot', 'e2e', 'output_tok_s', 'output_tok_s_per_device', 'output_tok_s_per_user', 'usd_per_mtok', 'watts', 'tok_per_joule', 'devices', 'max_context']


class LevelLoad(Record):
    level: str
    wire_bytes: float
    time_ms: float
    load_share: float


class ShardDimension(Record):
    name: str
    whole: int
    here: int


class Shard(Record):
    shape: list[ShardDimension]
    shards: int
    replicas: int
    token_shards: int
    attention_ranks: int | None


class OperatorLine(Record):
    phase: Literal['prefill', 'decode']
    block: str
    module: str
    part_of: Literal['attention', 'feed_forward', 'experts', 'residual', 'vocabulary', 'images', 'communication', 'overhead']
    layers: int
    time_ms: float
    fused_ms: float | None
    speed_of_light_ms: float
    efficiency: float
    flops: float
    bytes: float
    wire_bytes: float
    shard: Shard | None


class PhaseTime(Record):
    phase: Literal['prefill', 'decode']
    time_ms: float
    operators_ms: float
    compute_ms: float
    memory_ms: float
    communication_ms: float
    overhead_ms: float
    flops: float
    bytes: float
    wire_bytes: float
    interconnect: list[LevelLoad] | None
    mfu: float
    mbu: float
    bubble_share: float
    operators: list[OperatorLine]


class PoolMemory(Record):
    role: Literal['aggregated', 'prefill', 'decode']
    label: str
    memory: MemoryReport


class Latencies(Record):
    percentile: Literal['p50', 'p90', 'p95', 'p99']
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float


class Constraint(Record):
    resource: Literal['ttft', 'tpot', 'e2e', 'memory', 'prefill_pool', 'decode_pool', 'devices', 'traffic', 'context', 'step']
    binds: bool
    used: float | None
    why: str


class DeploymentDetail(Record):
    phases: list[PhaseTime]
    pools: list[PoolMemory]
    percentiles: list[Latencies]
    constraints: list[Constraint]
    prefill_tok_s: float | None
    prefill_interval: Quantiles | None
    prefill_flops: float
    prefill_flops_noncausal_without_head: float
    host_memory_peak_bytes: float
    host_memory_interval: Quantiles | None
    evidence: Record


class FrontThinning(Record):
    requested: Literal['all'] | int
    tolerance: float | None


class Census(Record):
    shapes: int
    candidates: int
    evaluated: int
    pruned: Record
    illegal: Record


class NearestMiss(Record):
    candidate: ReportedDeployment
    misses: str


class ConflictSet(Record):
    conditions: list[str]
    why: str | None


class RemedyGain(Record):
    objective: ObjectiveTerm
    value: float
    output_tok_s: float
    output_tok_s_per_user: float
    usd_per_hour: float | None


class Remedy(Record):
    flags: str
    set: Record
    now: str
    claim: Literal['least', 'about', 'works']
    tighter: list[str]
    gives: RemedyGain | None


class ConflictReport(Record):
    conflicts: list[ConflictSet]
    remedies: list[Remedy]
    more_memory_gb: int | None
    complete: bool


class SplitRatio(Record):
    verdict: Literal['do_not_split', 'split', 'split_with_both']
    split_plan: str | None
    split_output_tok_s: float | None
    one_shape_each_output_tok_s: float | None
    rows_checked: int


class PlainPlan(Record):
    notation: str
    label: str
    value: float
    best: float


class SplitCase(Record):
    worth: Literal['yes', 'no', 'not_provably']
    sentence: str
    split_plan: str | None
    aggregated_plan: str | None
    ratio: float | None
    odds_split: float | None


class Strategy(Record):
    family: Literal['any', 'single', 'tensor', 'pipeline', 'context', 'data', 'expert', 'hybrid', 'split', 'offload', 'mixed']
    plan: str | None
    notation: str | None
    weight_format: str | None
    concurrency: float | None
    value: float | None
    interval: Quantiles | None
    slo_odds: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    none: str | None


class Handover(Record):
    below: int
    at: int
    to: Literal['any', 'single', 'tensor', 'pipeline', 'context', 'data', 'expert', 'hybrid', 'split', 'offload', 'mixed']


class Crossing(Record):
    along: Literal['concurrency', 'prompt', 'purchase']
    now: int
    least: int
    most: int
    leader: Literal['any', 'single', 'tensor', 'pipeline', 'context', 'data', 'expert', 'hybrid', 'split', 'offload', 'mixed'] | None
    changes: list[Handover]


class Gain(Record):
    what: str
    value: float | None
    plan: str | None
    helps: bool


class Rival(Record):
    plan: str
    wins: float


class Robustness(Record):
    plans: int
    draws: int
    stays_best_independent: float
    stays_best_common: float
    meets_slos: float
    rival: Rival | None


class Why(Record):
    split: SplitCase | None
    sentence: str
    metric: str
    strategies: list[Strategy]
    crossovers: list[Crossing]
    worth: list[Gain]
    robustness: Robustness | None


class ServedFigures(Record):
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float
    output_tok_s: float


class CheckedPlan(Record):
    notation: str
    formulas: ServedFigures | None
    simulated: ServedFigures | None
    within_slos: float | None
    meets_slos: bool | None
    reason: str | None


class SimulatedCheck(Record):
    requests: int
    seed: int
    percentile: Literal['p50', 'p90', 'p95', 'p99']
    plans: list[CheckedPlan]
    largest_difference: float | None
    shown: int


class WeightsNeed(Record):
    weight_format: str
    weights_bytes: float
    usable_bytes_per_device: float
    least_devices: int
    least_host_bytes: float | None


class Quality(Record):
    metric: str
    value: str
    model: str
    source: str


class LowerFormat(Record):
    weight_format: str
    bits_per_weight: float
    metric: str
    now: float | None
    then: float | None
    quality: Quality | None


class LaunchFlag(Record):
    words: str
    why: str


class LaunchWorker(Record):
    name: str
    replicas: int
    devices: int
    hosts: int
    command: str
    options: list[LaunchFlag]
    environment: Record
    yaml: Record


class CostReport(Record):
    price_basis: Literal['owned', 'rented'] | None
    hours_per_day: float
    usd_per_hour: float
    usd_per_day: float
    usd_per_month: float
    usd_per_mtok: float
    tok_per_usd: float


class PublishedFlags(Record):
    model: str
    flags: list[LaunchFlag]
    source: str


class NarrowedInterval(Record):
    now: list[float]
    then: list[float]


class NextRun(Record):
    command: str
    devices: int
    seconds: float
    usd: float | None
    ttft_ms: NarrowedInterval
    tpot_ms: NarrowedInterval
    output_tok_s: NarrowedInterval


class LaunchFile(Record):
    path: str
    text: str


class LaunchReport(Record):
    runtime: str
    runtime_version: str
    image: str | None
    workers: list[LaunchWorker]
    router: str | None
    cost: CostReport | None
    infeasible: list[str] | None
    unsupported: list[str]
    notes: list[str]
    published: PublishedFlags | None
    next_run: NextRun | None
    files: list[LaunchFile]


class InputEffect(Record):
    metric: str
    elasticity: float
    at_10_percent_more: float


class AuditedInput(Record):
    symbol: str
    enters: str
    value: str
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed']
    source: str
    effects: list[InputEffect]


class OverrideEffect(Record):
    column: str
    without: float | None


class AuditedOverride(Record):
    set: str
    effects: list[OverrideEffect]


class LeftOutPart(Record):
    part: str
    why: str


class AuditSection(Record):
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed']
    assumptions: list[AuditedInput]
    overrides: list[AuditedOverride]
    left_out: list[LeftOutPart]


class RuntimeTrial(Record):
    runtime: str
    status: Literal['optimal', 'feasible', 'infeasible', 'unknown'] | None
    objective: float | None
    reason: str | None


class OptimizeAnswer(Answer, question="optimize"):
    answer: Literal['optimize']
    theoretical: bool | None
    status: Literal['optimal', 'feasible', 'infeasible', 'unknown']
    proof: Proof
    scenario: Scenario | None
    question: ReportInputs
    best: ReportedDeployment | None
    formulas_best: ReportedDeployment | None
    untried: UntriedPlan | None
    simpler: SimplerChoice | None
    detail: DeploymentDetail | None
    alternatives: list[ReportedDeployment]
    front_points: int
    front: list[ReportedDeployment]
    front_thinning: FrontThinning | None
    census: Census
    nearest: NearestMiss | None
    conflict: ConflictReport | None
    split_ratio: SplitRatio | None
    plain: PlainPlan | None
    why: Why | None
    checked: SimulatedCheck | None
    weights_need: list[WeightsNeed]
    lower_format: LowerFormat | None
    launch: LaunchReport | None
    audit: AuditSection | None
    runtimes: list[RuntimeTrial] | None


class UnreadWord(Record):
    place: str
    position: int
    word: str
    reason: str
    effect: Literal['without_effect', 'not_modelled', 'not_understood', 'refused']


class FlagChange(Record):
    flags: str
    metric: str
    now: float
    then: float


class CommandReport(Record):
    runtime: str
    runtime_version: str
    scenario: Scenario
    processes: list[str]
    will_not_start: list[str] | None
    corrected: str | None
    unread: list[UnreadWord]
    notes: list[str]
    best: ReportedDeployment | None
    changes: list[FlagChange]


class EstimateAnswer(Answer, question="estimate"):
    answer: Literal['estimate']
    theoretical: bool | None
    scenario: Scenario | None
    plan: Plan
    notation: str
    weight_format: str
    prefill_weight_format: str | None
    kv_format: str
    concurrency: float
    devices: int
    idle_devices: int
    feasibility: Literal['in_vram', 'with_offload', 'insufficient_memory', 'illegal']
    violations: list[str]
    memory: MemoryReport | None
    bottleneck: str | None
    metrics: MetricsReport | None
    context_bound: Literal['memory', 'model', 'server'] | None
    intervals: Intervals | None
    slo_odds: SloOdds | None
    evidence: PlanEvidence | None
    capacity: CapacityOdds | None
    price_bounds: PriceBounds | None
    chosen: bool | None
    question: ReportInputs
    detail: DeploymentDetail | None
    chosen_load: str | None
    launch: LaunchReport | None
    command: CommandReport | None
    audit: AuditSection | None


class FewestDevices(Record):
    devices: int | None
    label: str | None
    bytes_per_device: float | None
    why: str


class StaticLayerType(Record):
    layer_type: Literal['attention', 'feed_forward', 'experts', 'residual', 'vocabulary', 'images', 'communication', 'overhead']
    layers: int
    least_devices: int
    time_ms: float
    bound_by: Literal['compute', 'memory', 'communication', 'overhead']
    flops: float
    bytes: float
    wire_bytes: float
    weight_bytes: float
    operators: list[OperatorLine]


class StaticPhase(Record):
    phase: Literal['prefill', 'decode']
    label: str
    devices: int
    devices_why: str
    batch: int
    weight_format: str
    kv_format: str
    time_ms: float
    tok_s: float
    bound_by: Literal['compute', 'memory', 'communication', 'overhead']
    flops: float
    bytes: float
    wire_bytes: float
    mfu: float
    mbu: float
    memory: MemoryReport
    fits: bool
    fewest_devices: FewestDevices
    layer_types: list[StaticLayerType]


class LegalDegrees(Record):
    tp: list[int]
    ffn_tp: list[int]
    vocab_tp: list[int]
    pp: list[int]
    cp: list[int]
    dp: list[int]
    ep: list[int]
    sp: bool


class StaticAnswer(Answer, question="static"):
    answer: Literal['static']
    scenario: Scenario
    model: str
    hardware: str
    runtime: str
    theoretical: list[str]
    isl: int
    osl: int
    phases: list[StaticPhase]
    legal_degrees: LegalDegrees
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float


class StartCorrection(Record):
    change: str
    command: str


class FoundFailure(Record):
    runtime: str
    reason: Literal['oom_load', 'oom_profile', 'kv_too_small', 'too_few_blocks', 'context_beyond_model', 'block_divisibility', 'heads_divisibility', 'experts_divisibility', 'unsupported_format', 'unsupported_attention', 'unsupported_dtype', 'unsupported_kv_format', 'lora_too_large', 'bad_option', 'bad_value', 'not_enough_devices', 'no_device', 'out_of_host_memory', 'port_in_use', 'nccl', 'no_model', 'gated', 'other']
    stage: str
    line: str
    numbers: Record
    source: str


class CheckAnswer(Answer, question="check"):
    answer: Literal['check']
    starts: bool
    reasons: list[str]
    corrections: list[StartCorrection]
    plan: str
    runtime: str
    runtime_version: str
    scenario: Scenario
    failure: FoundFailure | None
    memory: MemoryReport | None
    kv_tokens: int | None
    context: int | None
    largest_context: int | None
    most_requests: int | None
    unread: list[UnreadWord]
    notes: list[str]


class TrafficReport(Record):
    requests: int
    measured: int
    refused: int
    mean_isl: float
    sessions: int | None
    sessions_cut: int | None
    rate_per_s: float | None
    clients: int | None
    seed: int


class DraftSettings(Record):
    tokens: int
    acceptance: float


class VllmSettings(Record):
    token_budget: int
    max_sequences: int
    blocks: int
    block_tokens: int
    chunked_prefill: bool
    long_prompt_threshold: int | None
    prefix_caching: bool
    whole_prompt_fits: bool
    reserved_blocks: int
    asynchronous: bool
    draft: DraftSettings | None
    prefill_interval: int | None


class SglangSettings(Record):
    prefill_tokens: int
    chunk_tokens: int | None
    max_requests: int
    cache_tokens: int
    page_tokens: int
    context_tokens: int
    policy: Literal['fcfs', 'lpm']
    conservativeness: float
    prefix_caching: bool
    mixed_chunk: bool
    overlap: bool
    output_limit: int | None
    exact_output: bool
    prefill_requests: int | None
    min_free_slots: int | None
    decodes_after_prefill: int
    decodes_min_requests: int
    delayed_passes: int | None
    receive_interval: int
    draft: DraftSettings | None


class TrtllmSettings(Record):
    token_budget: int
    max_requests: int
    blocks: int
    block_tokens: int
    capacity: Literal['guaranteed_no_evict', 'max_utilization']
    chunked_prefill: bool
    block_reuse: bool
    partial_reuse: bool
    prefix_aware: bool
    overlap: bool
    output_limit: int | None
    wait_steps: int
    wait_tokens_ratio: float
    draft: DraftSettings | None


class HostPromptSettings(Record):
    bytes: int | None
    prompt_bytes: int
    token_bytes: int
    idle_slots: bool


class LlamacppSettings(Record):
    slots: int
    batch_tokens: int
    context_tokens: int
    unified: bool
    joined: bool
    prefix_caching: bool
    similarity: float
    host_prompts: HostPromptSettings | None


class TierSettings(Record):
    bytes: int
    bytes_per_s: float
    latency_s: float
    scope: Literal['rank', 'replica', 'deployment']


class CacheTierSettings(Record):
    token_bytes: float
    layers: int
    prompts_only: bool
    host: TierSettings
    store: TierSettings | None


class SimulatedPool(Record):
    role: Literal['aggregated', 'prefill', 'decode']
    replicas: int
    attention_ranks: int
    scheduler: VllmSettings | SglangSettings | TrtllmSettings | LlamacppSettings
    tiers: CacheTierSettings | None


class LatencyRow(Record):
    metric: str
    mean_ms: float | None
    p50_ms: float | None
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class SlowRequest(Record):
    id: int
    arrived_s: float
    isl: int
    osl: int
    e2e_ms: float
    queue_ms: float
    prefill_ms: float
    transfer_ms: float
    decode_ms: float
    preempted_ms: float
    preemptions: int
    cached_tokens: int
    loaded_tokens: int | None
    load_ms: float | None


class TimelinePoint(Record):
    time_s: float
    running: int
    waiting: int
    kv_used: float
    output_tokens: int
    replicas: int | None


class WindowPercentiles(Record):
    p50_ms: float
    p90_ms: float
    p99_ms: float


class LatencyWindow(Record):
    from_s: float
    to_s: float
    requests: int
    ttft: WindowPercentiles | None
    tpot: WindowPercentiles | None


class FaultReport(Record):
    faults: int
    lost: int
    failed: int
    in_recovery: int
    recovery: list[LatencyRow]
    outside: list[LatencyRow]


class ScalingReport(Record):
    signal: Literal['queue', 'requests', 'kv-cache']
    target: float
    min_replicas: int
    max_replicas: int
    interval_s: float
    scale_down_s: float


class OperationReport(Record):
    aborted: int
    wasted_tokens: int
    sessions_given_up: int | None
    faults: FaultReport | None
    scaling: ScalingReport | None
    mean_replicas: float
    device_hours: float
    usd: float | None
    usd_per_mtok: float | None


class StandardErrors(Record):
    latencies: list[LatencyRow]
    output_tok_s: float | None
    requests_per_s: float | None
    concurrency: float | None
    goodput: float | None
    hit_rate: float | None
    unlimited_hit_rate: float | None
    tokens_per_step: float | None


class SampledReplicas(Record):
    method: Literal['thinned', 'groups']
    replicas: int
    simulated: int
    clusters: int
    requests: int
    errors: StandardErrors


class CapacityBound(Record):
    rule: Literal['slos', 'queue', 'cache']
    value: float | None
    missed: float | None
    end: Literal['bracketed', 'all-meet', 'none-meets', 'runs-spent', 'stopped']


class AutoscaledReplicas(Record):
    within_slos: float | None
    mean_replicas: float
    device_hours: float
    fixed_device_hours: float | None


class CapacityTrial(Record):
    value: float
    requests: int
    meets: bool
    within_slos: float | None
    waited_share: float
    requests_per_s: float
    ttft_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    hit_rate: float
    unlimited_hit_rate: float


class CapacityReport(Record):
    quantity: Literal['rate', 'speed-up', 'clients', 'replicas']
    percentile: Literal['p50', 'p90', 'p95', 'p99']
    bounds: list[CapacityBound]
    shown: float
    devices: int | None
    autoscaled: AutoscaledReplicas | None
    alone: list[LatencyRow]
    alone_within_slos: float | None
    trials: list[CapacityTrial]


class PoolUtilization(Record):
    role: Literal['aggregated', 'prefill', 'decode']
    busy: float
    kv_used_mean: float
    kv_used_max: float
    mfu: float
    mbu: float


class SimulatedEnergy(Record):
    joules: float
    watts: float
    facility_watts: float | None
    joules_per_output_token: float
    wh_per_request: float


class SimulatedCost(Record):
    device_hours: float
    usd: float | None
    usd_per_mtok: float | None
    usd_per_mtok_total: float | None


class LatencyIntervals(Record):
    metric: str
    mean_ms: Quantiles | None
    p50_ms: Quantiles | None
    p90_ms: Quantiles | None
    p95_ms: Quantiles | None
    p99_ms: Quantiles | None


class SimulatedIntervals(Record):
    draws: int
    near: Literal['measured', 'hardware_and_runtime', 'load', 'model', 'hardware', 'vendor', 'processor', 'split', 'hosts', 'nothing']
    latencies: list[LatencyIntervals]
    output_tok_s: Quantiles
    requests_per_s: Quantiles
    goodput: Quantiles | None
    source: str


class SimulatedRequest(Record):
    id: int
    arrival: float
    isl: int
    osl: int
    cached_tokens: int
    queue_ms: float | None
    prefill_ms: float | None
    transfer_ms: float | None
    decode_ms: float | None
    preempted_ms: float | None
    preemptions: int
    ttft_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    outcome: Literal['answered', 'refused', 'given_up', 'failed']


class KeptRequests(Record):
    requests: list[SimulatedRequest]
    left_out: int


class TierHits(Record):
    tier: str
    tokens: int
    hit_rate: float


class TierReport(Record):
    hits: list[TierHits]
    loads: int
    loaded_tokens: int
    mean_load_ms: float | None


class SimulateAnswer(Answer, question="simulate"):
    answer: Literal['simulate']
    scenario: Scenario
    notation: str
    traffic: TrafficReport
    pools: list[SimulatedPool]
    router: Literal['least-requests', 'round-robin', 'random', 'session', 'prefix']
    latencies: list[LatencyRow]
    output_tok_s: float
    requests_per_s: float
    concurrency: float
    goodput: float | None
    hit_rate: float
    unlimited_hit_rate: float
    tokens_per_step: float | None
    preemptions: int
    steps: int
    closed_form: ServedFigures | None
    slowest: list[SlowRequest]
    timeline: list[TimelinePoint]
    windows: list[LatencyWindow]
    operation: OperationReport | None
    checked: SimulatedCheck | None
    sample: SampledReplicas | None
    found: CapacityReport | None
    utilization: list[PoolUtilization]
    energy: SimulatedEnergy | None
    cost: SimulatedCost | None
    intervals: SimulatedIntervals | None
    records: KeptRequests | None
    tiers: TierReport | None


class DeployAnswer(Answer, question="deploy"):
    answer: Literal['deploy']
    runtime: str
    runtime_version: str
    image: str | None
    workers: list[LaunchWorker]
    router: str | None
    cost: CostReport | None
    infeasible: list[str] | None
    unsupported: list[str]
    notes: list[str]
    published: PublishedFlags | None
    next_run: NextRun | None
    files: list[LaunchFile]


class PlacementScenario(Record):
    model: str | None
    hardware: str | None
    device: list[str] | None
    link: list[str] | None
    topology: Literal['mesh', 'ring', 'star', 'chain'] | None
    objective: Literal['latency', 'request', 'throughput', 'max-context', 'largest-model']
    isl: int | None
    osl: int | None
    prefix: int | None
    prefix_groups: int | None
    images: int | None
    image_size: str | None
    concurrency: int | None
    runtime: str | None
    weight_format: str | None
    kv_format: str | None
    offload: Literal['auto', 'never', 'always'] | None
    set: list[str] | None


class PlacementInputs(Record):
    model: str
    rig: str
    objective: str
    isl: int
    osl: int
    prefix: int
    concurrency: int
    runtimes: list[str]
    weight_format: str
    weight_format_why: str | None
    kv_format: str
    defaults: list[str] | None


class StageReport(Record):
    member: str
    copies: list[str]
    devices: int
    first_layer: int
    last_layer: int
    layers: int
    embedding: bool
    head: bool
    decode_ms: float
    prefill_ms: float
    send_ms: float
    prefill_send_ms: float
    memory_bytes: float
    usable_bytes: float
    offloaded_bytes: float
    disk_bytes: float
    experts_out: list[Any] | None


class PlacementReport(Record):
    stages: list[StageReport]
    unused: list[str]
    objective_ms: float
    token_ms: float
    prefill_ms: float
    request_ms: float
    decode_tok_s: float
    micro_batches: int
    requests_each: int


class PlacementIntervals(Record):
    near: Literal['measured', 'hardware_and_runtime', 'load', 'model', 'hardware', 'vendor', 'processor', 'split', 'hosts', 'nothing']
    token_ms: Quantiles
    prefill_ms: Quantiles
    request_ms: Quantiles
    decode_tok_s: Quantiles
    source: str


class PlacementCertificate(Record):
    objective_ms: float
    lower_bound_ms: float
    proved_by: str
    gap: float
    independent_bound_ms: float
    states: int
    unlike_members: int


class TheoreticalPlacement(Record):
    why: list[str]
    runtimes: list[str]
    weight_format: str
    placement: PlacementReport
    certificate: PlacementCertificate


class BaselineComparison(Record):
    rule: str
    objective_ms: float | None
    times: float | None
    layers: list[list[Any]]


class DisaggregatedReport(Record):
    theoretical: bool
    runtimes: list[str]
    weight_format: str
    prefill: list[list[Any]]
    decode: list[list[Any]]
    prefill_ms: float
    exposed_ms: float
    token_ms: float
    request_ms: float
    lower_bound_ms: float
    pairs: int
    gain: float


class StageShortfall(Record):
    member: str
    first_layer: int
    last_layer: int
    short_bytes: float


class TriedChange(Record):
    change: str
    stated: str
    needed: str | None


class InfeasibleReport(Record):
    code: str
    text: str
    short_bytes: float | None
    conflict: list[str]
    innocent: list[str]
    several: bool
    nearest: list[StageShortfall]
    tried: list[TriedChange]
    fixes: list[str]


class PlaceAnswer(Answer, question="place"):
    answer: Literal['place']
    status: Literal['optimal', 'feasible', 'infeasible', 'unknown']
    stopped_by: Literal['time_limit', 'interrupt', 'memory'] | None
    scenario: PlacementScenario | None
    question: PlacementInputs
    max_context: int | None
    placement: PlacementReport | None
    intervals: PlacementIntervals | None
    evidence: PlanEvidence | None
    certificate: PlacementCertificate | None
    theoretical: TheoreticalPlacement | None
    compared: list[BaselineComparison]
    disaggregated: DisaggregatedReport | None
    alone: list[list[Any]]
    infeasible: InfeasibleReport | None
    launch: LaunchReport | None
    notes: list[str]


class Explanation(Record):
    symbol: str
    path: str
    formula: str | None
    substituted: str | None
    value: float
    unit: str
    text: str
    bound: list[str]
    why: str
    source: str
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed']
    parts: list[Explanation]


class Leaf(Record):
    symbol: str
    text: str
    source: str
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed']


class MeasuredAt(Record):
    model: str
    hardware: str
    weight_format: str
    isl: list[int]
    osl: list[int]
    requests: list[int]


class ExplainedInterval(Record):
    p10: float
    p90: float
    column: str
    near: Literal['measured', 'hardware_and_runtime', 'load', 'model', 'hardware', 'vendor', 'processor', 'split', 'hosts', 'nothing']
    why: str
    source: str
    measured: list[MeasuredAt]


class ExplainAnswer(Answer, question="explain"):
    answer: Literal['explain']
    symbol: str | None
    path: str | None
    formula: str | None
    substituted: str | None
    value: float | None
    unit: str | None
    text: str | None
    bound: list[str] | None
    why: str | None
    source: str | None
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed'] | None
    parts: list[Explanation] | None
    of: str | None
    violations: list[str] | None
    inputs: list[Leaf] | None
    interval: ExplainedInterval | None
    infeasible: str | None


class AuditAnswer(Answer, question="audit"):
    answer: Literal['audit']
    scenario: Scenario
    question: ReportInputs
    notation: str
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed']
    assumptions: list[AuditedInput]
    overrides: list[AuditedOverride]
    left_out: list[LeftOutPart]
    known: list[AuditedInput]


class DiagnosedMetric(Record):
    metric: str
    measured: float
    predicted: float
    interval: Quantiles | None
    limit: float
    standing: Literal['impossible', 'fast', 'expected', 'slow']
    words: str


class SuspectOperator(Record):
    phase: Literal['prefill', 'decode']
    block: str
    module: str
    time_ms: float
    speed_of_light_ms: float
    efficiency: float
    efficiency_if_alone: float


class SuspectCause(Record):
    cause: Literal['gpu_throttled', 'gpu_power_capped', 'gpu_idle', 'processor_throttled', 'memory_short', 'client_saturates', 'few_lanes']
    share: float | None
    words: str
    check: str


class DiagnoseAnswer(Answer, question="diagnose"):
    answer: Literal['diagnose']
    scenario: Scenario | None
    question: ReportInputs
    notation: str
    violations: list[str]
    metrics: list[DiagnosedMetric]
    suspects: list[SuspectOperator]
    causes: list[SuspectCause] | None


class NearestRow(Record):
    distance: float
    id: str
    model: str
    hardware: str
    devices: int
    runtime: str
    weight_format: str
    mode: str
    plan: str
    isl: int
    osl: int
    concurrency: int | None
    ttft_ms: float | None
    predicted_ttft_ms: float | None
    tpot_ms: float | None
    predicted_tpot_ms: float | None
    source: str


class NearestAnswer(Answer, question="nearest"):
    answer: Literal['nearest']
    scenario: Scenario | None
    question: ReportInputs
    notation: str
    known: int
    rows: list[NearestRow]


class DifferenceEffect(Record):
    column: str
    alone: float | None
    part: float | None


class InputDifference(Record):
    names: list[str]
    a: list[str]
    b: list[str]
    effects: list[DifferenceEffect]


class MetricDifference(Record):
    column: str
    a: float | None
    b: float | None


class DiffAnswer(Answer, question="diff"):
    answer: Literal['diff']
    inputs: list[InputDifference]
    plans: list[str]
    searched: bool
    metrics: list[MetricDifference]
    files: list[str]


class VariedKey(Record):
    key: str
    values: list[Any]


class ShardNumber(Record):
    number: int
    of: int


class SimulatedPoint(Record):
    reason: str | None
    latencies: list[LatencyRow]
    output_tok_s: float | None
    requests_per_s: float | None
    goodput: float | None
    hit_rate: float | None
    sampled_replicas: int | None


class SweepRow(Record):
    sweep: str
    point: int
    points: int
    vary: Record
    status: Literal['optimal', 'feasible', 'slo_missed', 'infeasible', 'invalid']
    reason: str | None
    notation: str | None
    devices: int | None
    mean_concurrency: float | None
    bottleneck: str | None
    metrics: MetricsReport | None
    intervals: Intervals | None
    simulated: SimulatedPoint | None


class SweepAnswer(Answer, question="sweep"):
    answer: Literal['sweep']
    sweep: str
    scenario: Scenario
    vary: list[VariedKey]
    points: int
    shard: ShardNumber | None
    traffic: Any
    rows: list[SweepRow]


class ComparedRow(Record):
    name: str
    model: str
    hardware: str
    runtime: str
    isl: int
    osl: int
    status: Literal['optimal', 'feasible', 'slo_missed', 'infeasible', 'invalid']
    reason: str | None
    notation: str | None
    plan: str | None
    devices: int | None
    metrics: MetricsReport | None
    ratios: Record


class CompareAnswer(Answer, question="compare"):
    answer: Literal['compare']
    rows: list[ComparedRow]


class Requirements(Record):
    model: str | None
    hardware: str | None
    target_tok_s: float
    users: int
    isl: int
    osl: int
    prefix: int
    limits: LatencyLimits
    no_ttft_at_home: bool | None
    budget_usd: float | None
    budget_usd_per_hour: float | None
    max_watts: float | None
    price_basis: Literal['owned', 'rented'] | None
    only: list[str]
    assumed: list[str]


class Money(Record):
    basis: Literal['owned', 'rented'] | None
    buy_usd: float | None
    buy_usd_range: list[float] | None
    devices_usd: float | None
    hosts_usd: float | None
    network_usd: float | None
    host: str | None
    amortization_months: float | None
    utilization: float | None
    electricity_usd_per_hour: float | None
    usd_per_hour: float | None
    usd_per_hour_range: list[float] | None
    hours_per_day: float | None
    usd_per_day: float | None
    usd_per_month: float | None
    tok_per_usd: float | None
    usd_per_mtok: float | None
    usd_per_mtok_full: float | None
    dated: list[str]


class Build(Record):
    name: str
    system: str
    model: str
    copies: int
    devices: int
    device: str
    runtime: str
    keeps_quality: bool
    checkpoint: str | None
    each: ReportedDeployment
    output_tok_s: float
    tok_s_per_user: float
    most_users: int
    most_output_tok_s: float
    max_context_tokens: float
    watts: float | None
    money: Money
    unmeasured: str | None
    standing: str
    because: str | None


class RejectedBuild(Record):
    name: str
    weight_formats: list[str]
    kind: str
    reason: str


class SearchSummary(Record):
    systems: int
    serve: int
    searches: int
    candidates: int
    evaluated: int
    missed: Record


class OtherFormat(Record):
    runtime: str
    weight_format: str
    checkpoint: str | None
    tok_s_per_user: float
    most_users: int


class ServedModel(Record):
    parameters: int
    family: str
    released: str | None
    build: Build
    others: list[OtherFormat]


class RecommendAnswer(Answer, question="recommend"):
    answer: Literal['recommend']
    scenario: Scenario | None
    sought: Requirements | None
    minimum: Build | None
    cheapest: Build | None
    value: Build | None
    tiers: list[Build] | None
    builds: list[Build] | None
    missed: list[RejectedBuild] | None
    looked: SearchSummary | None
    launch: LaunchReport | None
    models: list[ServedModel] | None
    longest_contexts: list[str] | None
    most_users: list[str] | None


class TrafficBucket(Record):
    isl: int
    osl: int
    rate: float
    prefix: int | None
    model: str | None


class PricedOffer(Record):
    hardware: str
    terms: Literal['on-demand', 'reserved', 'spot', 'owned'] | None
    usd_per_hour: float | None
    available: int | None


class FleetInputs(Record):
    models: list[str]
    buckets: list[TrafficBucket]
    offers: list[PricedOffer]
    limits: LatencyLimits
    aim: Literal['cost', 'devices', 'throughput']
    budget_usd_per_hour: float | None
    max_devices: int | None
    spare: bool
    headroom: float | None
    hours_per_day: float | None
    price_basis: Literal['owned', 'rented'] | None
    assumed: list[str]


class Systems(Record):
    count: int
    hardware: str
    system: str
    notation: str
    offer: str
    model: str
    plan: str
    devices: int
    usd_per_hour: float
    usd_per_hour_most: float
    requests_per_s: float
    busy: float


class BucketCosts(Record):
    isl: int
    osl: int
    model: str
    requests_per_s: float
    usd_per_hour: float
    usd_per_1k_requests: float
    usd_per_mtok_in: float
    usd_per_mtok_out: float


class FleetCosts(Record):
    hours_per_day: float
    usd_per_hour: float
    usd_per_day: float
    usd_per_month: float
    usd_per_year: float
    tok_per_usd: float
    usd_per_mtok: float
    usd_per_mtok_in: float
    usd_per_mtok_out: float
    buckets: list[BucketCosts]


class Routed(Record):
    isl: int
    osl: int
    model: str
    systems: int
    share: float
    requests_per_s: float


class ReportedVariable(Record):
    name: str
    kind: Literal['whole', 'share']
    least: int
    most: int
    cost: int
    value: float | None


class ReportedConstraint(Record):
    name: str
    columns: list[int]
    coefficients: list[int]
    sense: Literal['<=', '>=', '=']
    bound: int


class ReportedProgram(Record):
    columns: list[ReportedVariable]
    rows: list[ReportedConstraint]


class FleetCertificate(Record):
    status: Literal['optimal', 'feasible', 'infeasible', 'unknown']
    objective: float | None
    bound: float | None
    gap: float | None
    unit: str
    prover: Literal['solver', 'own_search', 'prices', 'trivial']
    nodes: int
    columns: int
    rows: int
    rows_checked: int
    doubts: list[str]
    programme: ReportedProgram


class RelaxationHint(Record):
    what: str
    stated: float
    needed: float


class FleetAnswer(Answer, question="fleet"):
    answer: Literal['fleet']
    scenario: Scenario
    question: FleetInputs
    systems: list[Systems]
    costs: FleetCosts | None
    usd_per_hour: float | None
    usd_per_hour_most: float | None
    devices: int | None
    output_tok_s: list[Any]
    routes: list[Routed]
    certificate: FleetCertificate
    conflict: list[str]
    irreducible: bool
    most_output_tok_s: float | None
    helps: list[RelaxationHint]
    unserved: list[str]
    kinds: int
    launches: list[LaunchReport] | None


class FormulaEntry(Record):
    symbol: str
    unit: str
    why: str
    source: str
    module: str


class FormulasAnswer(Answer, question="formulas"):
    items: list[FormulaEntry]


class CountTerm(Record):
    name: str
    elements: int


class Reconciliation(Record):
    published: int
    source: str
    terms: list[CountTerm]
    explained: bool
    unexplained: int


class Parameters(Record):
    unique: int
    buffers: int
    towers: int
    active: int
    mtp: int
    mtp_copies: int
    read_again: int | None


class Checkpoint(Record):
    bytes: int
    quantised: int
    native: int
    scales: int
    scale_bytes: int


class InspectedDim(Record):
    name: str
    value: int
    origin: str
    tag: Literal['config', 'class_default', 'derived', 'override']


class InspectedTensor(Record):
    name: str
    shape: list[int]
    role: Literal['embedding', 'lm_head', 'norm', 'router', 'attention', 'mlp', 'expert', 'shared_expert', 'bias', 'sink', 'recurrence', 'indexer', 'tower']
    buffer: bool


class InspectedOperator(Record):
    name: str
    kind: str
    dims: list[InspectedDim]
    inputs: list[str]
    output: int
    parameters: int
    weights: list[InspectedTensor]


class InspectedBlock(Record):
    name: str
    layers: list[int]
    parameters: int
    kv_bytes_per_token: int
    state_bytes_per_sequence: int
    window: int | None
    operators: list[InspectedOperator]


class InspectedTower(Record):
    name: str
    parameters: int
    flops_per_image: int | None
    tokens_per_image: int | None
    blocks: list[InspectedBlock]


class InspectedValue(Record):
    key: str
    value: int
    tag: Literal['config', 'class_default', 'derived', 'override']
    how: str | None


class Difference(Record):
    key: str
    a: str | None
    b: str | None
    ratio: float | None


class ParallelPlan(Record):
    tp: int
    pp: int
    dp: int
    cp: int
    dcp: int
    ep: int
    moe_tp: int
    ffn_tp: int | None
    vocab_tp: int | None
    sp: bool


class ParallelStage(Record):
    first_layer: int
    layers: int
    devices: int
    embedding: bool
    head: bool


class CollectiveReport(Record):
    operation: str
    devices: int
    devices_of_inner_tier: int
    elements_per_token: int
    tokens: str
    overlaps: bool


class ParallelStep(Record):
    name: str
    kind: str
    shard: Shard | None
    weights: int
    collective: CollectiveReport | None


class CacheReport(Record):
    kind: str
    shape: list[ShardDimension]
    shards: int
    token_shards: int
    replicas: int


class ParallelBlock(Record):
    name: str
    layers: int
    weights: int
    steps: list[ParallelStep]
    caches: list[CacheReport]


class ParallelPhase(Record):
    phase: Literal['prefill', 'decode']
    blocks: list[ParallelBlock]
    handover: CollectiveReport | None


class ParallelPool(Record):
    role: Literal['aggregated', 'prefill', 'decode']
    label: str
    plan: ParallelPlan
    replicas: int
    stages: list[ParallelStage]
    phases: list[ParallelPhase]


class InspectAnswer(Answer, question="inspect"):
    answer: Literal['inspect']
    name: str | None
    source: str | None
    weight_format: str | None
    published_total: Reconciliation | None
    model_type: str | None
    layers: int | None
    max_context: int | None
    tied: bool | None
    parameters: Parameters | None
    kv_bytes_per_token: int | None
    kv_bytes_per_token_windowed: int | None
    state_bytes_per_sequence: int | None
    checkpoint: Checkpoint | None
    towers: list[InspectedTower] | None
    values: list[InspectedValue] | None
    blocks: list[InspectedBlock] | None
    tensors: list[InspectedTensor] | None
    mtp: list[InspectedTensor] | None
    a: str | None
    b: str | None
    differences: list[Difference] | None
    model: str | None
    hardware: str | None
    pools: list[ParallelPool] | None
    violations: list[str] | None


class CheckResult(Record):
    what: str
    of: int
    faults: list[str]


class VerifyAnswer(Answer, question="verify"):
    answer: Literal['verify']
    holds: bool
    checks: list[CheckResult]
    seed: int | None
    notes: list[str] | None


class Score(Record):
    n: int
    mdape: float
    mape: float
    p90: float
    bias: float
    within_10: float
    within_25: float
    coverage_80: float | None


class PointScore(Record):
    n: int
    median: float
    p90: float
    bias: float


class FigureScore(Record):
    figure: Literal['ttft_p90', 'ttft_p95', 'tpot_p90', 'tpot_p99', 'e2e_p90', 'e2e_p99', 'itl', 'e2e', 'prefill', 'output', 'weights', 'kv_memory', 'kv_tokens']
    score: Score


class Decision(Record):
    groups: int
    spearman: float
    choices: int
    slo_met: float
    regret: float | None


class RowGroup(Record):
    name: str
    n: int
    unsupported: int
    too_small: int
    tpot: Score | None
    ttft: Score | None
    e2e: Score | None
    ttft_p99: Score | None
    hit_rate: PointScore | None
    tpot_mean_of_cells: float | None
    ttft_mean_of_cells: float | None
    memory: Score | None
    figures: list[FigureScore] | None
    decision: Decision | None
    decision_p90: Decision | None


class ComparedFigure(Record):
    measured: float
    predicted: float


class FigureOfRow(Record):
    figure: Literal['ttft_p90', 'ttft_p95', 'tpot_p90', 'tpot_p99', 'e2e_p90', 'e2e_p99', 'itl', 'e2e', 'prefill', 'output', 'weights', 'kv_memory', 'kv_tokens']
    measured: float
    predicted: float


class ReplayedRow(Record):
    id: str
    setting: str | None
    hit_rate: ComparedFigure | None
    ttft_ms: ComparedFigure | None
    tpot_ms: ComparedFigure | None
    figures: list[FigureOfRow] | None


class DroppedRow(Record):
    table: str
    row: int
    column: str
    found: str
    expected: str


class PeerScore(Record):
    simulator: str
    metric: str
    score: Score


class Unsupported(Record):
    reason: str
    rows: int


class Unscored(Record):
    column: str
    rows: int


class AssumedInput(Record):
    input: str
    rows: int


class ChoicesAtOdds(Record):
    odds: float
    limit_met: float
    regret: float | None


class LeftOut(Record):
    name: str
    rows: int
    tpot: list[float] | None
    ttft: list[float] | None
    tpot_covered: float | None
    ttft_covered: float | None
    choices: int | None
    limit_met: float | None
    regret: float | None
    at_odds: list[ChoicesAtOdds]


class MeasuredKind(Record):
    runtime: str
    vendor: str
    experts: bool
    drafts: bool
    role: Literal['aggregated', 'prefill', 'decode']
    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    rows: int


class ValidateAnswer(Answer, question="validate"):
    answer: Literal['validate']
    overall: RowGroup | None
    groups: list[RowGroup] | None
    sessions: list[RowGroup] | None
    rows: list[ReplayedRow] | None
    doubtful: RowGroup | None
    above_capacity: RowGroup | None
    dropped: list[DroppedRow] | None
    peers: list[PeerScore] | None
    unsupported: list[Unsupported] | None
    unscored: list[Unscored] | None
    assumed: list[AssumedInput] | None
    items: list[MeasuredKind]


class GateResult(Record):
    gate: Literal['decode', 'prefill', 'ttft', 'memory']
    size: Literal['small', 'medium', 'large', 'giant']
    hardware_class: str
    rows: int
    limit: float
    median_error: float
    met: bool


class ShrunkFactor(Record):
    times: float
    low: float
    high: float
    rows: int


class CellCorrection(Record):
    model: str
    hardware: str
    weight_format: str
    time: ShrunkFactor | None
    compute: ShrunkFactor | None
    memory: ShrunkFactor | None
    source: str


class FittedCorrection(Record):
    runtime: str
    correction: CellCorrection
    near: Literal['measured', 'hardware_and_runtime', 'load', 'model', 'hardware', 'vendor', 'processor', 'split', 'hosts', 'nothing'] | None
    time_ratio: float | None
    compute_ratio: float | None
    memory_ratio: float | None


class CalibrateAnswer(Answer, question="calibrate"):
    answer: Literal['calibrate']
    runtimes: list[str] | None
    rows: int | None
    beyond_kernels: list[str] | None
    unknowns: int | None
    constants_determined: int | None
    constants_undetermined: list[str] | None
    errors: list[LeftOut] | None
    gates: list[GateResult] | None
    memory: Record | None
    skipped: list[str] | None
    factors: list[FittedCorrection] | None


class MaxBatchedTokens(Record):
    value: str | float
    source: str
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed'] | None
    date: str | None


class MaxSequences(Record):
    value: str | float
    source: str
    grade: Literal['stated', 'read', 'datasheet', 'measured', 'fitted', 'assumed'] | None
    date: str | None


class SchedulerFacts(Record):
    max_batched_tokens: MaxBatchedTokens
    max_sequences: MaxSequences | None


class RuntimeBuild(Record):
    id: str
    version: str
    cuda_version: str | None


class CatalogLine(Record):
    id: str
    name: str
    aliases: list[str]
    summary: str
    user: bool
    layers: int | None
    attention: str | None
    rope_theta: float | None
    formats: list[str]
    kv_formats: list[str]
    scheduler: SchedulerFacts | None
    builds: list[RuntimeBuild]


class CatalogAnswer(Answer, question="catalog"):
    items: list[CatalogLine]


class DetectedDevices(Record):
    count: int
    printed: str
    device: str | None
    memory_bytes: float | None
    used_bytes: float | None
    slot: str | None
    power_limit_w: float | None
    left_out: str | None
    fix: str | None


class MeasuredBandwidth(Record):
    read: float
    triad: float
    threads: int
    bytes: float


class DetectedHost(Record):
    processor: str | None
    device: str | None
    sockets: int
    cores: int | None
    threads: int | None
    memory_bytes: float | None
    free_bytes: float | None
    catalogue_bandwidth: float | None
    measured: MeasuredBandwidth | None


class ToolResult(Record):
    tool: str
    finds: str
    found: bool
    result: str


class MachineFile(Record):
    kind: Literal['system', 'rig']
    content: Any


class DetectAnswer(Answer, question="detect"):
    answer: Literal['detect']
    devices: list[DetectedDevices]
    host: DetectedHost
    tools: list[ToolResult]
    file: MachineFile | None
    notes: list[str]


class LinkedQuestion(Record):
    request: str
    scenario: Scenario


class PermalinkAnswer(Answer, question="permalink"):
    answer: Literal['permalink']
    link: str
    question: LinkedQuestion


class SchemaAnswer(Answer, question="schema"):
    pass


class GlossaryTerm(Record):
    term: str
    meaning: str


class GlossaryAnswer(Answer, question="glossary"):
    items: list[GlossaryTerm]
