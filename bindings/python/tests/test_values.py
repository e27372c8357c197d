"""Arguments as users have them: numbers of numpy, paths, configurations, tables; signatures; types."""

import enum
import inspect
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import mantile
import numpy
import pandas
import pytest
from mantile._requests import TABLE
from mantile._schema import places

SMALL = {"model": "Qwen3-0.6B", "hardware": "1xl40s"}
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 2816,
    "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 8, "vocab_size": 32000,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
    "id2label": {0: "LABEL_0"}, "unused": float("inf"),
}


class Basis(enum.Enum):
    RENTED = "rented"


class Config:
    """As one of transformers."""

    def to_dict(self):
        return {**CONFIG, "_name_or_path": "me/own-llama/"}


def test_values_of_other_packages_are_those_of_python():
    plain = mantile.estimate(**SMALL, tp=1, concurrency=4, rate=None, usd_per_device_hour=1.5, price_basis="rented", sp=False)
    given = mantile.estimate(
        **SMALL, tp=numpy.int64(1), concurrency=Decimal(4), usd_per_device_hour=numpy.float32(1.5), price_basis=Basis.RENTED,
        sp=numpy.bool_(False),
    )
    assert given == plain
    wanted = mantile.optimize(**SMALL, pareto=["ttft", "tpot"])
    for metrics in (("ttft", "tpot"), numpy.array(["ttft", "tpot"]), pandas.Series(["ttft", "tpot"]), iter(["ttft", "tpot"])):
        assert mantile.optimize(**SMALL, pareto=metrics) == wanted
    assert mantile.optimize(**SMALL, pareto={"tpot", "ttft"}).front_points == wanted.front_points


@pytest.mark.parametrize("value", [float("nan"), numpy.float64("inf"), Decimal("NaN")])
def test_what_is_no_number_is_refused_by_name(value):
    with pytest.raises(ValueError, match="rate: (nan|inf|NaN) is no number"):
        mantile.optimize(**SMALL, rate=value)
    with pytest.raises(ValueError, match=r"estimate.scenario.rate"):
        mantile.request("estimate", {"scenario": {**SMALL, "rate": value}})


def test_what_json_has_not_is_refused_by_name():
    with pytest.raises(TypeError, match="workload: bytes is no value of JSON"):
        mantile.optimize(**SMALL, workload=b"chat")


def test_a_path_is_never_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("Qwen3-0.6B").mkdir()
    Path("Qwen3-0.6B/config.json").write_text(json.dumps({**CONFIG, "unused": 1}))
    own = mantile.estimate(model=Path("Qwen3-0.6B"), hardware="1xl40s")
    assert own.metrics.tpot_ms != mantile.estimate(**SMALL).metrics.tpot_ms
    assert own.metrics == mantile.estimate(model=tmp_path / "Qwen3-0.6B" / "config.json", hardware="1xl40s").metrics


def test_a_configuration_is_a_model():
    given = mantile.estimate(model=CONFIG, hardware="1xl40s")
    assert mantile.estimate(model=Config(), hardware="1xl40s").metrics == given.metrics
    assert mantile.estimate(model=Config(), hardware="1xl40s").question.model == "own-llama"
    small = {**CONFIG, "num_hidden_layers": 4}
    found = mantile.inspect(model=CONFIG, compared_with=small)
    assert "layers" in str(found)
    assert mantile.prepare(model=CONFIG, hardware="1xl40s").decode(1, 100) > mantile.prepare(model=small, hardware="1xl40s").decode(1, 100)


def test_the_content_of_a_file_is_hardware():
    device = mantile.catalog("devices", "l40s")
    assert mantile.estimate(model="Qwen3-0.6B", hardware=device).metrics == mantile.estimate(**SMALL).metrics
    half = device.to_dict()
    half["id"] = "mine"
    assert mantile.estimate(model="Qwen3-0.6B", hardware=half).devices == 1
    with pytest.raises(ValueError, match="hardware: the content of a device, system or rig"):
        mantile.estimate(model="Qwen3-0.6B", hardware={"gpu": "l40s"})


def test_rows_of_a_table_are_records():
    table = pandas.DataFrame({"isl": [512, 1024], "osl": [128, 256], "rate": [1.0, float("nan")]})
    from mantile._values import plain

    assert plain(table, "buckets") == [{"isl": 512, "osl": 128, "rate": 1.0}, {"isl": 1024, "osl": 256}]
    polars = pytest.importorskip("polars")
    assert plain(polars.DataFrame({"isl": [1, 2], "rate": [None, 2.0]}), "buckets") == [{"isl": 1}, {"isl": 2, "rate": 2.0}]


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["name"])
def test_signatures_and_help_have_every_argument(entry):
    function = getattr(mantile, entry["name"])
    found = inspect.signature(function).parameters
    assert [*found] == [*(key for key in places(entry["request"]) if key.isidentifier()), "progress"]
    assert all(one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) for one in found.values())
    for name in found:
        assert f"\n{name} : " in function.__doc__
    assert " --" not in function.__doc__


def test_functions_that_take_arguments_of_a_request_name_them():
    sharded = inspect.signature(mantile.sharded_sweep).parameters
    assert [*sharded][:3] == ["executor", "shards", "directory"]
    assert {"vary", "model"} < sharded.keys() and "arguments" not in sharded
    assert "in shards by `executor`" in mantile.sharded_sweep.__doc__ and "\nvary : " in mantile.sharded_sweep.__doc__
    assert {"model", "hardware", "plan", "tp"} < inspect.signature(mantile.prepare).parameters.keys()


PROGRAM = '''
from pathlib import Path
import mantile
from mantile.types import EstimateAnswer, OptimizeAnswer, ReportedDeployment, SweepAnswer

answer: OptimizeAnswer = mantile.optimize("Qwen3-0.6B", Path("rig.json"), ttft="1s", pareto=("ttft", "tpot"))
best: ReportedDeployment | None = answer.best
if best is not None and best.metrics is not None:
    milliseconds: float = best.metrics.tpot_ms
estimate: EstimateAnswer = mantile.request("estimate", {"scenario": {}})
rows: SweepAnswer = mantile.sweep(model={"model_type": "llama"}, vary=["tp=1,2"])
plan = mantile.prepare(model="Qwen3-0.6B", hardware="1xl40s", tp=1)
seconds: float = plan.step(prefill=[(512, 0)], decode=[100.0, 200])
whole = plan.step(decode=[1], breakdown=True)
other: float = whole.seconds + plan.decode(8, 100) + plan.prefill(512)
answer.save(Path("a.json"))
table: str = str(answer) + answer.to_json()
'''
WRONG = '''
import mantile

mantile.optimize(ttfd="1s")  # E
mantile.optimize(tp="two")  # E
mantile.optimize("m").bset  # E
mantile.optimize(price_basis="stolen")  # E
mantile.sharded_sweep(None, shards=1, directory="d")  # E
mantile.nothing()  # E
'''


@pytest.mark.parametrize("checker", [["mypy", "--strict", "--no-error-summary"], ["pyright", "--pythonpath", sys.executable]], ids=["mypy", "pyright"])
def test_a_program_is_checked_by_its_types(checker, tmp_path):
    pytest.importorskip(checker[0])
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", *checker]
    right = subprocess.run([*command, "right.py"], cwd=tmp_path, capture_output=True, text=True)
    assert right.returncode == 0, right.stdout + right.stderr
    wrong = subprocess.run([*command, "wrong.py"], cwd=tmp_path, capture_output=True, text=True).stdout
    for number, line in enumerate(WRONG.splitlines(), 1):
        assert (f"wrong.py:{number}:" in wrong) == line.endswith("# E"), (line, wrong)
