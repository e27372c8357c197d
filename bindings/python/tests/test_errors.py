"""The exception of faulty requests."""

import copy
import multiprocessing
import pickle
import re
import traceback
from concurrent.futures import ProcessPoolExecutor

import mantile
import pytest

SMALL = {"model": "Qwen3-0.6B", "hardware": "1xl40s"}
PARTS = ("file", "key", "found", "expected", "fix")


def fault(function, *positional, **arguments) -> mantile.MantileError:
    with pytest.raises(mantile.MantileError) as raised:
        function(*positional, **arguments)
    return raised.value


def parts(error: mantile.MantileError) -> list[str]:
    return [str(error), *(getattr(error, part) for part in PARTS)]


def test_an_error_has_its_parts_and_the_text_of_the_command_line():
    error = fault(mantile.optimize, "no-such-model")
    assert (error.file, error.key, error.found) == ("", "model", "unknown name `no-such-model`")
    assert error.fix == '`mantile.catalog("models")` lists the known names'
    assert str(error) == f"`model`\n  found:    {error.found}\n  expected: {error.expected}\n  fix:      {error.fix}"
    assert repr(error) == "MantileError(" + ", ".join(f"{part}={getattr(error, part)!r}" for part in PARTS) + ")"
    assert traceback.format_exception_only(error)[0].startswith("mantile.MantileError: `model`\n  found:")
    assert mantile.catalog("models").to_json()


def test_an_error_is_pickled_and_copied():
    error = fault(mantile.optimize, **SMALL, ttft="soon")
    error.seen = "by a test"
    error.__cause__ = None
    for same in (
        *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
        copy.copy(error),
        copy.deepcopy(error),
    ):
        assert type(same) is mantile.MantileError
        assert parts(same) == parts(error) and same.seen == "by a test"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_error_and_an_answer_cross_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as workers:
        raised = workers.submit(mantile.optimize, "no-such-model").exception(timeout=100)
        answer = workers.submit(mantile.estimate, **SMALL).result(timeout=100)
    assert parts(raised) == parts(fault(mantile.optimize, "no-such-model"))
    assert answer == mantile.estimate(**SMALL)


def test_keys_are_arguments():
    for key, call, arguments in [
        ("ttft", mantile.optimize, {"ttft": "soon"}),
        ("ttft", mantile.optimize, {"ttft": [3]}),
        ("tp", mantile.estimate, {"tp": "x"}),
        ("prefill_tp", mantile.estimate, {"prefill_tp": "x"}),
        ("vary", mantile.sweep, {}),
    ]:
        assert fault(call, **SMALL, **arguments).key == key
    error = fault(mantile.estimate, **SMALL, tp="x")
    assert error.fix == 'correct it; `mantile.schema("estimate-request")` lists the valid values'
    assert mantile.schema("estimate-request").to_json()
    assert "decode_tp" in fault(mantile.estimate, **SMALL, prefill_tp=2).fix


#: Faulty requests: name and arguments.
FAULTY = [
    ("optimize", {"model": "none"}),
    ("optimize", {**SMALL, "hardware": "8xnone"}),
    ("optimize", {**SMALL, "objective": "none"}),
    ("optimize", {**SMALL, "runtime": "none"}),
    ("optimize", {**SMALL, "workload": "none"}),
    ("optimize", {**SMALL, "weight_format": "none"}),
    ("optimize", {**SMALL, "kv_format": "none"}),
    ("optimize", {**SMALL, "isl": 10**9}),
    ("optimize", {**SMALL, "isl": -1}),
    ("optimize", {**SMALL, "rate": 0}),
    ("optimize", {**SMALL, "rate": 1, "concurrency": 1}),
    ("optimize", {**SMALL, "set": ["device.none=1"]}),
    ("optimize", {**SMALL, "set": ["none"]}),
    ("optimize", {**SMALL, "budget_hour": -1}),
    ("optimize", {**SMALL, "draft": "none"}),
    ("optimize", {**SMALL, "images": -1}),
    ("optimize", {**SMALL, "images": 2}),
    ("estimate", {**SMALL, "tp": 3}),
    ("estimate", {**SMALL, "tp": 0}),
    ("estimate", {**SMALL, "plan": "none"}),
    ("estimate", {**SMALL, "plan": "1 x tp1 @4", "tp": 1}),
    ("estimate", {**SMALL, "prefill_tp": 1}),
    ("estimate", {**SMALL, "tp": 1, "prefill_tp": 1, "decode_tp": 1}),
    ("sweep", SMALL),
    ("sweep", {**SMALL, "vary": ["none=1"]}),
    ("sweep", {**SMALL, "vary": ["tp=1", "tp=2"]}),
    ("sweep", {**SMALL, "vary": ["tp=1"], "shard": {"number": 3, "of": 2}}),
    ("compare", {}),
    ("compare", {"answers": [{}]}),
    ("diff", {"a": {}, "b": {}}),
    ("verify", {"answer": {}}),
    ("explain", {**SMALL, "number": "none"}),
    ("explain", {"answer": {}}),
    ("explain", {"number": "ttft", "answer": {"answer": "optimize"}}),
    ("place", SMALL),
    ("place", {"model": "Qwen3-0.6B"}),
    ("place", {"model": "Qwen3-0.6B", "hardware": "none"}),
    ("recommend", {}),
    ("recommend", {**SMALL, "only": ["none"]}),
    ("fleet", {"model": "Qwen3-0.6B", "offers": ["none"]}),
    ("deploy", {**SMALL, "runtime": "none"}),
    ("inspect", {"model": "none"}),
    ("catalog", {"kind": "none"}),
    ("catalog", {"kind": "devices", "name": "none"}),
    ("permalink", {"link": "none"}),
    ("schema", {"name": "none"}),
    ("glossary", {"word": "none"}),
    ("formulas", {"word": "none"}),
    ("validate", {"left_out": "none"}),
    ("nearest", {**SMALL, "most": -1}),
    ("static", {**SMALL, "tp": 5}),
    ("diagnose", SMALL),
    ("audit", {**SMALL, "tp": 7}),
]


def test_no_error_speaks_of_the_command_line():
    class Searches(Exception):
        """The request has no fault that is found before its search."""

    def searches(done, all):
        raise Searches

    raised = 0
    for name, arguments in FAULTY:
        try:
            getattr(mantile, name)(**arguments, progress=searches)
        except mantile.MantileError as error:
            raised += 1
            assert not re.search(r"(?<![\w-])--[a-z]|mantile-opt", str(error)), f"{name} {arguments}:\n{error}"
            # A function that an error names is there.
            for function in re.findall(r"`mantile\.(\w+)\(", str(error)):
                assert callable(getattr(mantile, function)), error
        except (Searches, TypeError):
            pass  # TypeError: arguments that Python refuses
    assert raised > len(FAULTY) // 2


def test_rendering_has_the_same_error():
    answer = mantile.estimate(**SMALL)
    broken = mantile.Answer("estimate", '{"best": 3}')
    assert fault(broken.render, "csv").fix == 'correct it; `mantile.schema("estimate-answer")` lists the valid values'
    assert answer.render("csv")
