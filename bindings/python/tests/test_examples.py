"""The examples in Python: each runs as a program of its own."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mantile
import pytest

GOODPUT = Path(__file__).parents[3] / "examples" / "goodput.py"


@pytest.mark.parametrize(("executor", "module"), [([], "dask.distributed"), (["--ray"], "ray")])
def test_goodput_is_drawn_against_the_rate_by_several_workers(executor, module, tmp_path):
    pytest.importorskip(module)
    line = [sys.executable, str(GOODPUT), str(tmp_path), *executor]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split()[:2] == ["plan", "requests/s"] and len(rows) == 15
    within = [float(row.split()[-1].rstrip("%")) for row in rows]
    # Of each plan, less is within the SLOs at the highest rate than at the lowest.
    assert all(within[first] >= within[first + 4] for first in (0, 5, 10)) and min(within) < 90 < max(within)
    assert len(list((tmp_path / "shards").glob("*-of-6.json"))) == 6
    picture = (tmp_path / "goodput.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg") and "goodput" in picture


def test_a_sharded_sweep_under_traffic_is_the_whole_and_other_traffic_is_another_sweep(tmp_path):
    call = {"model": "Qwen3-0.6B", "hardware": "1xl40s", "tp": 1, "vary": ["rate=1..4+1"], "isl": 200, "osl": 20}
    answers = []
    for seed in (1, 2):
        traffic = {"requests": 60, "seed": seed}
        with ThreadPoolExecutor(2) as executor:
            answer = mantile.sharded_sweep(executor, shards=2, directory=tmp_path, traffic=traffic, **call)
        assert answer.to_json() == mantile.sweep(traffic=traffic, **call).to_json()
        answers.append(answer)
    assert answers[0].sweep != answers[1].sweep and len(list(tmp_path.iterdir())) == 4
    first, second = (answer.rows[3].simulated for answer in answers)
    assert first.latencies[0].p99_ms != second.latencies[0].p99_ms
    pytest.importorskip("pandas")
    assert list(answers[0].to_pandas()["simulated_output_tok_s"]) == [row.simulated.output_tok_s for row in answers[0].rows]
