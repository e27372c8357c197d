"""Types of the package, made from the schemas of the requests by stubs.py."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

from mantile._answer import Answer as Answer
from mantile._answer import Record as Record

__version__: str

class MantileError(Exception): ...

def request(name: str, body: dict[str, Any], progress: Callable[[int, int], None] | None = None) -> Answer: ...
def sharded_sweep(executor: Any, *, shards: int, directory: str | PathLike[str], **arguments: Any) -> Answer: ...

class Space(Record):
    plans: int
    under: str
    degrees: list[str]
    formats: list[str]
    split: bool
    mixes: bool
    offload: str
    family: Literal['any'] | Literal['single'] | Literal['tensor'] | Literal['pipeline'] | Literal['context'] | Literal['data'] | Literal['expert'] | Literal['hybrid'] | Literal['split'] | Literal['offload'] | Literal['mixed'] | None
    most_requests_per_rank: int
    loads: str
    outside: list[str]

class Proof(Record):
    metric: str | None
    bound: float | None
    gap: float | None
    proved_by: str
    stopped_by: Literal['time_limit'] | Literal['interrupt'] | Literal['memory'] | None
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
    both: Degrees
    prefill: Degrees
    decode: Degrees
    plan: str | None
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None

class Scenario(Record):
    model: str | None
    hardware: str | None
    host: str | None
    host_memory: str | None
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None
    network: str | None
    objective: str | None
    workload: str | None
    isl: int | None
    osl: int | None
    concurrency: int | None
    rate: float | None
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None
    risk: Literal['p50'] | Literal['p90'] | None
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
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None
    theoretical: bool | None
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None
    price_basis: Literal['owned'] | Literal['rented'] | None
    usd_per_device_hour: float | None
    electricity_usd_per_kwh: float | None
    pue: float | None
    amortization_months: float | None
    utilization: float | None
    hours_per_day: float | None
    set: list[str] | None
    deployment: Deployment | None

class Reportedtier(Record):
    name: str
    devices: int
    link: str
    bandwidth_bytes_per_s: float
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None
    assumed_network: bool

class Reportimages(Record):
    number: int
    size: str | None
    tokens: int

class Speculation(Record):
    draft: str
    tokens: int
    acceptance: float

class Latencylimits(Record):
    ttft: str | None
    tpot: str | None
    e2e: str | None

class Objectiveterm(Record):
    metric: Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']
    direction: Literal['minimize'] | Literal['maximize']

class Reportinputs(Record):
    model: str
    hardware: str
    devices: int
    interconnect: list[Reportedtier]
    runtime: str
    runtime_version: str | None
    version_counts_as_mean: bool
    theoretical: bool
    workload: str
    isl: int
    osl: int
    prefix: int
    images: Reportimages | None
    concurrency: int | None
    rate: float | None
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None
    risk: Literal['p50'] | Literal['p90']
    speculation: Speculation | None
    limits: Latencylimits
    objective: str
    optimize: list[Objectiveterm]
    pareto: list[str]
    weight_formats: list[str]
    kv_formats: list[str]
    price_basis: Literal['owned'] | Literal['rented'] | None
    amortization_months: float | None
    utilization: float | None
    hours_per_day: float | None
    warnings: list[str]

class Poolreport(Record):
    role: Literal['aggregated'] | Literal['prefill'] | Literal['decode']
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
    prefill: Poolreport
    decode: Poolreport
    others: list[Poolreport]

class Quantiles(Record):
    p10: float
    p50: float
    p90: float

class Memoryreport(Record):
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
    host_bytes: float
    least_host_bytes: float

class Metricsreport(Record):
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
    near: Literal['measured'] | Literal['hardware_and_runtime'] | Literal['load'] | Literal['model'] | Literal['hardware'] | Literal['vendor'] | Literal['split'] | Literal['nothing']
    ttft_ms: Quantiles
    tpot_ms: Quantiles
    output_tok_s: Quantiles
    source: str

class Pricebound(Record):
    price: str
    source: str
    usd_per_mtok: float

class Pricebounds(Record):
    low: Pricebound
    high: Pricebound

class Reporteddeployment(Record):
    plan: Plan
    notation: str
    weight_format: str
    prefill_weight_format: str | None
    kv_format: str
    concurrency: float
    devices: int
    idle_devices: int
    feasibility: Literal['in_vram'] | Literal['with_offload'] | Literal['insufficient_memory'] | Literal['illegal']
    violations: list[str]
    memory: Memoryreport | None
    bottleneck: str | None
    metrics: Metricsreport | None
    context_bound: Literal['memory'] | Literal['model'] | Literal['server'] | None
    intervals: Intervals | None
    price_bounds: Pricebounds | None
    chosen: bool

class Sharddimension(Record):
    name: str
    whole: int
    here: int

class Shard(Record):
    shape: list[Sharddimension]
    shards: int
    replicas: int
    token_shards: int
    attention_ranks: int

class Operatorline(Record):
    phase: Literal['prefill'] | Literal['decode']
    block: str
    module: str
    part_of: Literal['attention'] | Literal['feed_forward'] | Literal['experts'] | Literal['residual'] | Literal['vocabulary'] | Literal['images'] | Literal['communication'] | Literal['overhead']
    layers: int
    time_ms: float
    fused_ms: float | None
    speed_of_light_ms: float
    efficiency: float
    flops: float
    bytes: float
    wire_bytes: float
    shard: Shard | None

class Phasetime(Record):
    phase: Literal['prefill'] | Literal['decode']
    time_ms: float
    operators_ms: float
    compute_ms: float
    memory_ms: float
    communication_ms: float
    overhead_ms: float
    flops: float
    bytes: float
    wire_bytes: float
    mfu: float
    mbu: float
    bubble_share: float
    operators: list[Operatorline]

class Poolmemory(Record):
    role: Literal['aggregated'] | Literal['prefill'] | Literal['decode']
    label: str
    memory: Memoryreport

class Latencies(Record):
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99']
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float

class Constraint(Record):
    resource: Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['memory'] | Literal['prefill_pool'] | Literal['decode_pool'] | Literal['devices'] | Literal['traffic'] | Literal['context'] | Literal['step']
    binds: bool
    used: float | None
    why: str

class Deploymentdetail(Record):
    phases: list[Phasetime]
    pools: list[Poolmemory]
    percentiles: list[Latencies]
    constraints: list[Constraint]
    prefill_tok_s: float | None
    prefill_flops: float
    prefill_flops_noncausal_without_head: float
    host_memory_peak_bytes: float
    evidence: Record

class Frontthinning(Record):
    requested: int | Literal['all']
    tolerance: float | None

class Census(Record):
    shapes: int
    candidates: int
    evaluated: int
    pruned: Record
    illegal: Record

class Nearestmiss(Record):
    candidate: Reporteddeployment
    misses: str

class Conflictset(Record):
    conditions: list[str]
    why: str | None

class Remedygain(Record):
    objective: Objectiveterm
    value: float
    output_tok_s: float
    output_tok_s_per_user: float
    usd_per_hour: float | None

class Remedy(Record):
    flags: str
    set: Record
    now: str
    claim: Literal['least'] | Literal['about'] | Literal['works']
    tighter: list[str]
    gives: Remedygain | None

class Conflictreport(Record):
    conflicts: list[Conflictset]
    remedies: list[Remedy]
    more_memory_gb: int | None
    complete: bool

class Splitratio(Record):
    verdict: Literal['do_not_split'] | Literal['split'] | Literal['split_with_both']
    split_plan: str | None
    split_output_tok_s: float | None
    one_shape_each_output_tok_s: float | None
    rows_checked: int

class Plainplan(Record):
    notation: str
    label: str
    value: float
    best: float

class Strategy(Record):
    family: Literal['any'] | Literal['single'] | Literal['tensor'] | Literal['pipeline'] | Literal['context'] | Literal['data'] | Literal['expert'] | Literal['hybrid'] | Literal['split'] | Literal['offload'] | Literal['mixed']
    plan: str | None
    weight_format: str | None
    concurrency: float | None
    value: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    none: str | None

class Handover(Record):
    below: int
    at: int
    to: Literal['any'] | Literal['single'] | Literal['tensor'] | Literal['pipeline'] | Literal['context'] | Literal['data'] | Literal['expert'] | Literal['hybrid'] | Literal['split'] | Literal['offload'] | Literal['mixed']

class Crossing(Record):
    along: Literal['concurrency'] | Literal['prompt'] | Literal['purchase']
    now: int
    least: int
    most: int
    leader: Literal['any'] | Literal['single'] | Literal['tensor'] | Literal['pipeline'] | Literal['context'] | Literal['data'] | Literal['expert'] | Literal['hybrid'] | Literal['split'] | Literal['offload'] | Literal['mixed'] | None
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
    sentence: str
    metric: str
    strategies: list[Strategy]
    crossovers: list[Crossing]
    worth: list[Gain]
    robustness: Robustness | None

class Weightsneed(Record):
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

class Lowerformat(Record):
    weight_format: str
    bits_per_weight: float
    metric: str
    now: float | None
    then: float | None
    quality: Quality | None

class Launchflag(Record):
    words: str
    why: str

class Launchworker(Record):
    name: str
    replicas: int
    devices: int
    hosts: int
    command: str
    options: list[Launchflag]
    environment: Record
    yaml: Record

class Costreport(Record):
    price_basis: Literal['owned'] | Literal['rented'] | None
    hours_per_day: float
    usd_per_hour: float
    usd_per_day: float
    usd_per_month: float
    usd_per_mtok: float
    tok_per_usd: float

class Launchfile(Record):
    path: str
    text: str

class Launchreport(Record):
    runtime: str
    runtime_version: str
    image: str | None
    workers: list[Launchworker]
    router: str | None
    cost: Costreport | None
    infeasible: list[str]
    unsupported: list[str]
    notes: list[str]
    files: list[Launchfile]

class Inputeffect(Record):
    metric: str
    elasticity: float
    at_10_percent_more: float

class Auditedinput(Record):
    symbol: str
    enters: str
    value: str
    grade: Literal['stated'] | Literal['read'] | Literal['datasheet'] | Literal['measured'] | Literal['fitted'] | Literal['assumed']
    source: str
    effects: list[Inputeffect]

class Overrideeffect(Record):
    column: str
    without: float | None

class Auditedoverride(Record):
    set: str
    effects: list[Overrideeffect]

class Leftoutpart(Record):
    part: str
    why: str

class Auditsection(Record):
    grade: Literal['stated'] | Literal['read'] | Literal['datasheet'] | Literal['measured'] | Literal['fitted'] | Literal['assumed']
    assumptions: list[Auditedinput]
    overrides: list[Auditedoverride]
    left_out: list[Leftoutpart]

class Runtimetrial(Record):
    runtime: str
    status: Literal['optimal'] | Literal['feasible'] | Literal['infeasible'] | Literal['unknown'] | None
    objective: float | None
    reason: str | None

class OptimizeAnswer(Answer):
    answer: Literal['optimize']
    theoretical: bool
    status: Literal['optimal'] | Literal['feasible'] | Literal['infeasible'] | Literal['unknown']
    proof: Proof
    scenario: Scenario | None
    question: Reportinputs
    best: Reporteddeployment | None
    detail: Deploymentdetail | None
    alternatives: list[Reporteddeployment]
    front_points: int
    front: list[Reporteddeployment]
    front_thinning: Frontthinning | None
    census: Census
    nearest: Nearestmiss | None
    conflict: Conflictreport | None
    split_ratio: Splitratio | None
    plain: Plainplan | None
    why: Why | None
    weights_need: list[Weightsneed]
    lower_format: Lowerformat | None
    launch: Launchreport | None
    audit: Auditsection | None
    runtimes: list[Runtimetrial]

class Sloodds(Record):
    meets_slos: float | None
    missed_at_p90: list[str]
    unchecked: bool

class Unreadword(Record):
    place: str
    position: int
    word: str
    reason: str
    refused: bool

class Flagchange(Record):
    flags: str
    metric: str
    now: float
    then: float

class Commandreport(Record):
    runtime: str
    runtime_version: str
    scenario: Scenario
    processes: list[str]
    unread: list[Unreadword]
    notes: list[str]
    best: Reporteddeployment | None
    changes: list[Flagchange]

class EstimateAnswer(Answer):
    answer: Literal['estimate']
    theoretical: bool
    scenario: Scenario | None
    plan: Plan
    notation: str
    weight_format: str
    prefill_weight_format: str | None
    kv_format: str
    concurrency: float
    devices: int
    idle_devices: int
    feasibility: Literal['in_vram'] | Literal['with_offload'] | Literal['insufficient_memory'] | Literal['illegal']
    violations: list[str]
    memory: Memoryreport | None
    bottleneck: str | None
    metrics: Metricsreport | None
    context_bound: Literal['memory'] | Literal['model'] | Literal['server'] | None
    intervals: Intervals | None
    price_bounds: Pricebounds | None
    chosen: bool
    question: Reportinputs
    detail: Deploymentdetail | None
    slo_odds: Sloodds | None
    chosen_load: str | None
    launch: Launchreport | None
    command: Commandreport | None
    audit: Auditsection | None

class Fewestdevices(Record):
    devices: int | None
    label: str | None
    bytes_per_device: float | None
    why: str

class Staticlayertype(Record):
    layer_type: Literal['attention'] | Literal['feed_forward'] | Literal['experts'] | Literal['residual'] | Literal['vocabulary'] | Literal['images'] | Literal['communication'] | Literal['overhead']
    layers: int
    least_devices: int
    time_ms: float
    bound_by: Literal['compute'] | Literal['memory'] | Literal['communication'] | Literal['overhead']
    flops: float
    bytes: float
    wire_bytes: float
    weight_bytes: float
    operators: list[Operatorline]

class Staticphase(Record):
    phase: Literal['prefill'] | Literal['decode']
    label: str
    devices: int
    devices_why: str
    batch: int
    weight_format: str
    kv_format: str
    time_ms: float
    tok_s: float
    bound_by: Literal['compute'] | Literal['memory'] | Literal['communication'] | Literal['overhead']
    flops: float
    bytes: float
    wire_bytes: float
    mfu: float
    mbu: float
    memory: Memoryreport
    fits: bool
    fewest_devices: Fewestdevices
    layer_types: list[Staticlayertype]

class Legaldegrees(Record):
    tp: list[int]
    ffn_tp: list[int]
    vocab_tp: list[int]
    pp: list[int]
    cp: list[int]
    dp: list[int]
    ep: list[int]
    sp: bool

class StaticAnswer(Answer):
    answer: Literal['static']
    scenario: Scenario
    model: str
    hardware: str
    runtime: str
    theoretical: list[str]
    isl: int
    osl: int
    phases: list[Staticphase]
    legal_degrees: Legaldegrees
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float

class DeployAnswer(Answer):
    answer: Literal['deploy']
    runtime: str
    runtime_version: str
    image: str | None
    workers: list[Launchworker]
    router: str | None
    cost: Costreport | None
    infeasible: list[str]
    unsupported: list[str]
    notes: list[str]
    files: list[Launchfile]

class Placementscenario(Record):
    model: str | None
    hardware: str | None
    device: list[str]
    link: list[str]
    topology: Literal['mesh'] | Literal['ring'] | Literal['star'] | Literal['chain'] | None
    objective: Literal['latency'] | Literal['request'] | Literal['throughput'] | Literal['max-context'] | Literal['largest-model']
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
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None
    set: list[str] | None

class Placementinputs(Record):
    model: str
    rig: str
    objective: str
    isl: int
    osl: int
    prefix: int
    concurrency: int
    runtimes: list[str]
    weight_format: str
    weight_format_why: str
    kv_format: str
    defaults: list[str]

class Stagereport(Record):
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
    memory_bytes: float
    usable_bytes: float
    offloaded_bytes: float
    disk_bytes: float
    experts_out: list[Any] | None

class Placementreport(Record):
    stages: list[Stagereport]
    unused: list[str]
    objective_ms: float
    token_ms: float
    prefill_ms: float
    request_ms: float
    decode_tok_s: float
    micro_batches: int
    requests_each: int

class Placementcertificate(Record):
    objective_ms: float
    lower_bound_ms: float
    proved_by: str
    gap: float
    independent_bound_ms: float
    states: int
    unlike_members: int

class Theoreticalplacement(Record):
    why: list[str]
    runtimes: list[str]
    weight_format: str
    placement: Placementreport
    certificate: Placementcertificate

class Baselinecomparison(Record):
    rule: str
    objective_ms: float | None
    times: float | None
    layers: list[list[Any]]

class Disaggregatedreport(Record):
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

class Stageshortfall(Record):
    member: str
    first_layer: int
    last_layer: int
    short_bytes: float

class Triedchange(Record):
    change: str
    stated: str
    needed: str | None

class Infeasiblereport(Record):
    code: str
    text: str
    short_bytes: float | None
    conflict: list[str]
    innocent: list[str]
    several: bool
    nearest: list[Stageshortfall]
    tried: list[Triedchange]
    fixes: list[str]

class PlaceAnswer(Answer):
    answer: Literal['place']
    status: Literal['optimal'] | Literal['feasible'] | Literal['infeasible'] | Literal['unknown']
    stopped_by: Literal['time_limit'] | Literal['interrupt'] | Literal['memory'] | None
    scenario: Placementscenario | None
    question: Placementinputs
    max_context: int | None
    placement: Placementreport | None
    certificate: Placementcertificate | None
    theoretical: Theoreticalplacement | None
    compared: list[Baselinecomparison]
    disaggregated: Disaggregatedreport | None
    alone: list[list[Any]]
    infeasible: Infeasiblereport | None
    launch: Launchreport | None
    notes: list[str]

class ExplainAnswer(Answer):
    answer: Literal['explain']

class AuditAnswer(Answer):
    answer: Literal['audit']
    scenario: Scenario
    question: Reportinputs
    notation: str
    grade: Literal['stated'] | Literal['read'] | Literal['datasheet'] | Literal['measured'] | Literal['fitted'] | Literal['assumed']
    assumptions: list[Auditedinput]
    overrides: list[Auditedoverride]
    left_out: list[Leftoutpart]
    known: list[Auditedinput]

class Diagnosedmetric(Record):
    metric: str
    measured: float
    predicted: float
    interval: Quantiles | None
    limit: float
    standing: Literal['impossible'] | Literal['fast'] | Literal['expected'] | Literal['slow']
    words: str

class Suspectoperator(Record):
    phase: Literal['prefill'] | Literal['decode']
    block: str
    module: str
    time_ms: float
    speed_of_light_ms: float
    efficiency: float
    efficiency_if_alone: float

class DiagnoseAnswer(Answer):
    answer: Literal['diagnose']
    scenario: Scenario | None
    question: Reportinputs
    notation: str
    violations: list[str]
    metrics: list[Diagnosedmetric]
    suspects: list[Suspectoperator]

class Nearestrow(Record):
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

class NearestAnswer(Answer):
    answer: Literal['nearest']
    scenario: Scenario | None
    question: Reportinputs
    notation: str
    known: int
    rows: list[Nearestrow]

class Differenceeffect(Record):
    column: str
    alone: float | None
    part: float | None

class Inputdifference(Record):
    keys: list[str]
    a: list[str]
    b: list[str]
    effects: list[Differenceeffect]

class Metricdifference(Record):
    column: str
    a: float | None
    b: float | None

class DiffAnswer(Answer):
    answer: Literal['diff']
    inputs: list[Inputdifference]
    plans: list[str]
    searched: bool
    metrics: list[Metricdifference]
    files: list[str]

class Variedkey(Record):
    key: str
    values: list[Any]

class Shardnumber(Record):
    number: int
    of: int

class Sweeprow(Record):
    sweep: str
    point: int
    points: int
    vary: Record
    status: Literal['optimal'] | Literal['feasible'] | Literal['slo_missed'] | Literal['infeasible'] | Literal['invalid']
    reason: str | None
    notation: str | None
    devices: int | None
    mean_concurrency: float | None
    bottleneck: str | None
    metrics: Metricsreport | None
    intervals: Intervals | None

class SweepAnswer(Answer):
    answer: Literal['sweep']
    sweep: str
    scenario: Scenario
    vary: list[Variedkey]
    points: int
    shard: Shardnumber | None
    rows: list[Sweeprow]

class Comparedrow(Record):
    name: str
    model: str
    hardware: str
    runtime: str
    isl: int
    osl: int
    status: Literal['optimal'] | Literal['feasible'] | Literal['slo_missed'] | Literal['infeasible'] | Literal['invalid']
    reason: str | None
    notation: str | None
    plan: str | None
    devices: int | None
    metrics: Metricsreport | None
    ratios: Record

class CompareAnswer(Answer):
    answer: Literal['compare']
    rows: list[Comparedrow]

class RecommendAnswer(Answer):
    answer: Literal['recommend']

class Trafficbucket(Record):
    isl: int
    osl: int
    rate: float
    prefix: int
    model: str | None

class Pricedoffer(Record):
    hardware: str
    terms: Literal['on-demand'] | Literal['reserved'] | Literal['spot'] | Literal['owned'] | None
    usd_per_hour: float | None
    available: int | None

class Fleetinputs(Record):
    models: list[str]
    buckets: list[Trafficbucket]
    offers: list[Pricedoffer]
    limits: Latencylimits
    aim: Literal['cost'] | Literal['devices'] | Literal['throughput']
    budget_usd_per_hour: float | None
    max_devices: int | None
    spare: bool
    headroom: float | None
    hours_per_day: float | None
    price_basis: Literal['owned'] | Literal['rented'] | None
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

class Bucketcosts(Record):
    isl: int
    osl: int
    model: str
    requests_per_s: float
    usd_per_hour: float
    usd_per_1k_requests: float
    usd_per_mtok_in: float
    usd_per_mtok_out: float

class Fleetcosts(Record):
    hours_per_day: float
    usd_per_hour: float
    usd_per_day: float
    usd_per_month: float
    usd_per_year: float
    tok_per_usd: float
    usd_per_mtok: float
    usd_per_mtok_in: float
    usd_per_mtok_out: float
    buckets: list[Bucketcosts]

class Routed(Record):
    isl: int
    osl: int
    model: str
    systems: int
    share: float
    requests_per_s: float

class Reportedvariable(Record):
    name: str
    kind: Literal['whole'] | Literal['share']
    least: int
    most: int
    cost: int
    value: float | None

class Reportedconstraint(Record):
    name: str
    columns: list[int]
    coefficients: list[int]
    sense: Literal['<='] | Literal['>='] | Literal['=']
    bound: int

class Reportedprogram(Record):
    columns: list[Reportedvariable]
    rows: list[Reportedconstraint]

class Fleetcertificate(Record):
    status: Literal['optimal'] | Literal['feasible'] | Literal['infeasible'] | Literal['unknown']
    objective: float | None
    bound: float | None
    gap: float | None
    unit: str
    prover: Literal['solver'] | Literal['own_search'] | Literal['prices'] | Literal['trivial']
    nodes: int
    columns: int
    rows: int
    rows_checked: int
    doubts: list[str]
    programme: Reportedprogram

class Relaxationhint(Record):
    what: str
    stated: float
    needed: float

class FleetAnswer(Answer):
    answer: Literal['fleet']
    scenario: Scenario
    question: Fleetinputs
    systems: list[Systems]
    costs: Fleetcosts | None
    usd_per_hour: float | None
    usd_per_hour_most: float | None
    devices: int | None
    output_tok_s: list[Any]
    routes: list[Routed]
    certificate: Fleetcertificate
    conflict: list[str]
    irreducible: bool
    most_output_tok_s: float | None
    helps: list[Relaxationhint]
    unserved: list[str]
    kinds: int
    launches: list[Launchreport]

class InspectAnswer(Answer):
    answer: Literal['inspect']

class Checkresult(Record):
    what: str
    of: int
    faults: list[str]

class VerifyAnswer(Answer):
    answer: Literal['verify']
    holds: bool
    checks: list[Checkresult]
    seed: int | None
    notes: list[str]

class ValidateAnswer(Answer):
    answer: Literal['validate']

class CalibrateAnswer(Answer):
    answer: Literal['calibrate']

class Detecteddevices(Record):
    count: int
    printed: str
    device: str | None
    memory_bytes: float | None
    used_bytes: float | None
    slot: str | None
    power_limit_w: float | None
    left_out: str | None
    fix: str | None

class Measuredbandwidth(Record):
    read: float
    triad: float
    threads: int
    bytes: float

class Detectedhost(Record):
    processor: str | None
    device: str | None
    sockets: int
    cores: int | None
    threads: int | None
    memory_bytes: float | None
    free_bytes: float | None
    catalogue_bandwidth: float | None
    measured: Measuredbandwidth | None

class Toolresult(Record):
    tool: str
    finds: str
    found: bool
    result: str

class Machinefile(Record):
    kind: Literal['system'] | Literal['rig']
    content: Any

class DetectAnswer(Answer):
    answer: Literal['detect']
    devices: list[Detecteddevices]
    host: Detectedhost
    tools: list[Toolresult]
    file: Machinefile | None
    notes: list[str]

class Linkedquestion(Record):
    request: str
    scenario: Scenario

class PermalinkAnswer(Answer):
    answer: Literal['permalink']
    link: str
    question: Linkedquestion

def optimize(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    why: bool | None = None,
    max_front_points: int | Literal['all'] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> OptimizeAnswer:
    """The best deployment and the pareto front."""

def estimate(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    command: str | None = None,
    command_files: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> EstimateAnswer:
    """The metrics of one given deployment."""

def static(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    batch: int | None = None,
    prefill_batch: int | None = None,
    decode_batch: int | None = None,
    native_layers: list[Literal['attention'] | Literal['feed_forward'] | Literal['experts'] | Literal['vocabulary']] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StaticAnswer:
    """A static batch on given degrees, without a scheduler."""

def deploy(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DeployAnswer:
    """The commands and files that launch a deployment."""

def place(
    model: str | None = None,
    hardware: str | None = None,
    link: list[str] | None = None,
    *,
    device: list[str] | None = None,
    topology: Literal['mesh'] | Literal['ring'] | Literal['star'] | Literal['chain'] | None = None,
    objective: Literal['latency'] | Literal['request'] | Literal['throughput'] | Literal['max-context'] | Literal['largest-model'] | None = None,
    isl: int | None = None,
    osl: int | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    concurrency: int | None = None,
    runtime: str | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    set: list[str] | None = None,
    scenario: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PlaceAnswer:
    """Layers on heterogeneous devices."""

def explain(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    placement: Any | None = None,
    number: Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['requests_per_s'] | Literal['usd_per_hour'] | Literal['usd_per_mtok'] | Literal['usd_per_mtok_total'] | Literal['usd_per_day'] | Literal['usd_per_month'] | Literal['tok_per_usd'] | Literal['watts'] | Literal['facility_watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context'] | Literal['concurrency'] | Literal['memory'] | None = None,
    path: str | None = None,
    depth: int | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExplainAnswer:
    """One number as formulas, figures and sources."""

def audit(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AuditAnswer:
    """The assumptions of a prediction, by their effect."""

def diagnose(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    command: str | None = None,
    command_files: dict[str, Any] | None = None,
    ttft_ms: float | None = None,
    tpot_ms: float | None = None,
    output_tok_s: float | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DiagnoseAnswer:
    """Measured numbers compared with the prediction and the roofline."""

def nearest(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    most: int | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NearestAnswer:
    """The published measurements that are nearest to a deployment, each with its own prediction."""

def diff(
    *,
    a: Any | None = None,
    b: Any | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DiffAnswer:
    """Two answers compared, with the part that each input explains."""

def sweep(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    scenario: dict[str, Any] | None = None,
    vary: list[str] | None = None,
    shard: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SweepAnswer:
    """The metrics of every combination of varied keys."""

def compare(
    model: str | None = None,
    hardware: list[str] | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    entries: list[dict[str, Any]] | None = None,
    scenario: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CompareAnswer:
    """Answers or systems side by side."""

def recommend(
    model: str | None = None,
    hardware: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    target_tok_s: float | None = None,
    users: int | None = None,
    context: str | None = None,
    budget: str | None = None,
    budget_hour: str | None = None,
    max_watts: float | None = None,
    only: list[str] | None = None,
    scenario: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RecommendAnswer:
    """Hardware for a model, or models for a machine."""

def fleet(
    model: str | None = None,
    *,
    buckets: list[dict[str, Any]] | None = None,
    offers: list[str] | None = None,
    limits: dict[str, Any] | None = None,
    fleet: dict[str, Any] | None = None,
    trace: list[dict[str, Any]] | None = None,
    aim: Literal['cost'] | Literal['devices'] | Literal['throughput'] | None = None,
    budget_hour: str | None = None,
    max_devices: int | None = None,
    spare: bool | None = None,
    headroom: float | None = None,
    hours_per_day: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    weight_format: str | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    electricity_usd_per_kwh: float | None = None,
    set: list[str] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FleetAnswer:
    """The cheapest mix of systems for a traffic mix."""

def formulas(
    word: str | None = None,
    *,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Every formula with its unit, reason and citation."""

def inspect(
    model: str | None = None,
    hardware: str | None = None,
    *,
    compared_with: str | None = None,
    overrides: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> InspectAnswer:
    """The structure of a model, or the differences of two."""

def verify(
    *,
    result: Any | None = None,
    sample: int | None = None,
    seed: int | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VerifyAnswer:
    """The checks of a saved result."""

def validate(
    *,
    tables: list[dict[str, Any]] | None = None,
    left_out: str | None = None,
    by: list[Literal['model'] | Literal['hardware'] | Literal['runtime'] | Literal['mode'] | Literal['near']] | None = None,
    mode: str | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ValidateAnswer:
    """Predictions compared with measurements."""

def calibrate(
    *,
    tables: list[dict[str, Any]] | None = None,
    runtime: list[str] | None = None,
    whole: bool | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CalibrateAnswer:
    """Runtime profiles fitted to measurements."""

def catalog(
    kind: Literal['models'] | Literal['devices'] | Literal['systems'] | Literal['rigs'] | Literal['links'] | Literal['formats'] | Literal['runtimes'] | Literal['launches'] | Literal['options'] | Literal['objectives'] | Literal['workloads'] | None = None,
    name: str | None = None,
    *,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """The entries of the catalogue."""

def detect(
    *,
    stream: bool | None = None,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DetectAnswer:
    """This machine as a file that --hardware reads."""

def permalink(
    model: str | None = None,
    hardware: str | None = None,
    link: str | None = None,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    dcp: int | None = None,
    ep: int | None = None,
    moe_tp: int | None = None,
    ffn_tp: int | None = None,
    vocab_tp: int | None = None,
    sp: bool | None = None,
    stages: list[int] | None = None,
    replicas: int | None = None,
    prefill_tp: int | None = None,
    prefill_pp: int | None = None,
    prefill_dp: int | None = None,
    prefill_cp: int | None = None,
    prefill_dcp: int | None = None,
    prefill_ep: int | None = None,
    prefill_moe_tp: int | None = None,
    prefill_ffn_tp: int | None = None,
    prefill_vocab_tp: int | None = None,
    prefill_sp: bool | None = None,
    prefill_stages: list[int] | None = None,
    prefill_replicas: int | None = None,
    decode_tp: int | None = None,
    decode_pp: int | None = None,
    decode_dp: int | None = None,
    decode_cp: int | None = None,
    decode_dcp: int | None = None,
    decode_ep: int | None = None,
    decode_moe_tp: int | None = None,
    decode_ffn_tp: int | None = None,
    decode_vocab_tp: int | None = None,
    decode_sp: bool | None = None,
    decode_stages: list[int] | None = None,
    decode_replicas: int | None = None,
    plan: str | None = None,
    offload_part: Literal['layers'] | Literal['experts'] | Literal['kv'] | None = None,
    host: str | None = None,
    host_memory: str | None = None,
    p2p: Literal['yes'] | Literal['no'] | Literal['switch'] | None = None,
    network: str | None = None,
    objective: str | None = None,
    workload: str | None = None,
    isl: int | None = None,
    osl: int | None = None,
    concurrency: int | None = None,
    rate: float | None = None,
    percentile: Literal['p50'] | Literal['p90'] | Literal['p95'] | Literal['p99'] | None = None,
    risk: Literal['p50'] | Literal['p90'] | None = None,
    prefix: int | None = None,
    prefix_groups: int | None = None,
    images: int | None = None,
    image_size: str | None = None,
    draft: str | None = None,
    draft_tokens: int | None = None,
    acceptance: float | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    e2e: str | None = None,
    runtime: str | None = None,
    runtime_version: str | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    weight_format: str | None = None,
    prefill_weight_format: str | None = None,
    decode_weight_format: str | None = None,
    kv_format: str | None = None,
    offload: Literal['auto'] | Literal['never'] | Literal['always'] | None = None,
    allow: list[Literal['custom-router'] | Literal['unmeasured']] | None = None,
    theoretical: bool | None = None,
    pareto: list[Literal['ttft'] | Literal['tpot'] | Literal['e2e'] | Literal['output_tok_s'] | Literal['output_tok_s_per_device'] | Literal['output_tok_s_per_user'] | Literal['usd_per_mtok'] | Literal['watts'] | Literal['tok_per_joule'] | Literal['devices'] | Literal['max_context']] | None = None,
    price_basis: Literal['owned'] | Literal['rented'] | None = None,
    usd_per_device_hour: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    pue: float | None = None,
    amortization_months: float | None = None,
    utilization: float | None = None,
    hours_per_day: float | None = None,
    set: list[str] | None = None,
    deployment: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    request: str | None = None,
    scenario: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PermalinkAnswer:
    """A scenario as a short text for urls, or the scenario of one."""

def schema(
    name: str | None = None,
    *,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """The json schema of a file or a result."""

def glossary(
    *,
    files: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """The terms of the reports."""
