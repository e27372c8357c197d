"""The package as installed, in an environment of its own."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import mantile
import pytest

SMALL = {"model": "Qwen3-0.6B", "hardware": "1xl40s"}


def test_an_answer_has_attributes_rows_and_pictures(tmp_path):
    answer = mantile.optimize(**SMALL)
    assert answer.status == "optimal"
    assert answer.best.metrics.tpot_ms == json.loads(answer.to_json())["best"]["metrics"]["tpot_ms"]
    assert answer.to_pandas().shape[0] == answer.front_points
    answer.save(tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_bytes().startswith(b"model")
    with pytest.raises(AttributeError, match="status"):
        answer.statuss


def test_arguments_are_the_keys_of_the_request():
    plain = mantile.request("estimate", {"scenario": {**SMALL, "concurrency": 4, "deployment": {"both": {"tp": 1}}}})
    assert mantile.estimate("Qwen3-0.6B", "1xl40s", tp=1, concurrency=4) == plain
    split = mantile.estimate(model="Llama-3.1-8B", hardware="4xh100", prefill_tp=1, decode_tp=2, concurrency=4)
    assert split.plan.mode == "disaggregated"
    with pytest.raises(TypeError, match="did you mean ttft"):
        mantile.optimize(ttfd="1s")
    with pytest.raises(mantile.MantileError) as fault:
        mantile.optimize(model="no-such-model")
    assert fault.value.key == "model"
    assert {entry["term"] for entry in mantile.glossary()["items"]} >= {"ttft_ms"}


def test_progress_is_called_and_its_error_ends_the_search():
    seen = []
    mantile.sweep(**SMALL, vary=["concurrency=1..64+1"], progress=lambda done, all: seen.append((done, all)))
    assert seen and seen[-1][1] == 64

    def fails(done, all):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        mantile.sweep(**SMALL, vary=["concurrency=1..64+1"], progress=fails)


def check_shards(executor, folder):
    sweep = {**SMALL, "vary": ["concurrency=1..8+1", "isl=128,512"]}
    whole = mantile.sweep(**sweep)
    merged = mantile.sharded_sweep(executor, shards=3, directory=folder, **sweep)
    assert merged.to_dict() == whole.to_dict()
    # What is there is not computed again; what is missing is.
    files = sorted(folder.iterdir())
    times = [file.stat().st_mtime_ns for file in files]
    files[1].unlink()
    assert mantile.sharded_sweep(executor, shards=3, directory=folder, **sweep).to_dict() == whole.to_dict()
    again = [file.stat().st_mtime_ns for file in files]
    assert again[0] == times[0] and again[1] > times[1] and again[2] == times[2]


def test_sharded_sweeps_are_the_whole_sweep(tmp_path):
    with ThreadPoolExecutor(2) as executor:
        check_shards(executor, tmp_path)


def test_sharded_sweeps_run_on_a_dask_cluster(tmp_path):
    distributed = pytest.importorskip("dask.distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        check_shards(client, tmp_path)


def test_the_wheel_has_the_command_line():
    words = [sys.executable, "-c", "import sys, mantile; sys.exit(mantile._main())", "estimate", "--model", "Qwen3-0.6B", "--hardware", "1xl40s", "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == mantile.estimate(**SMALL).to_json()
    assert subprocess.run([*words[:3], "estimate", "--model", "none"], capture_output=True).returncode == 2

