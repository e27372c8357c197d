"""Sharded sweeps: what is finished is kept, whoever ends first, fails, or is killed."""

import concurrent.futures
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import mantile
import pytest
from mantile import _shards

SWEEP = {"model": "Qwen3-0.6B", "hardware": "1xl40s", "vary": ["concurrency=1..8+1", "isl=128,512"]}


@pytest.fixture(scope="module")
def whole() -> str:
    return mantile.sweep(**SWEEP).to_json()


class Made:
    """An executor whose futures have only `result()`."""

    class Made:
        def __init__(self, *work):
            self.work = work

        def result(self):
            function, *arguments = self.work
            return function(*arguments)

    def submit(self, *work):
        return self.Made(*work)


class ByHand:
    """An executor whose futures the test finishes, in an order of its own."""

    def __init__(self):
        self.futures: list[tuple[Future, tuple]] = []

    def submit(self, *work):
        self.futures.append((Future(), work))
        return self.futures[-1][0]

    def finish(self, at):
        future, (function, *arguments) = self.futures[at]
        future.set_result(function(*arguments))


def until(holds):
    last = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < last
        time.sleep(0.02)


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor, Made])
def test_the_shards_are_the_sweep_byte_for_byte(executor, tmp_path, whole):
    made = executor(2) if executor is not Made else Made()
    if executor is ProcessPoolExecutor:
        made = executor(2, mp_context=multiprocessing.get_context("spawn"))
    assert mantile.sharded_sweep(made, shards=3, directory=tmp_path / "a" / "b", **SWEEP).to_json() == whole
    assert len(list((tmp_path / "a" / "b").iterdir())) == 3
    # All are there: the executor has nothing to do.
    assert mantile.sharded_sweep(ByHand(), shards=3, directory=tmp_path / "a" / "b", **SWEEP).to_json() == whole
    if executor is not Made:
        made.shutdown()


def test_a_shard_is_kept_as_soon_as_it_is_finished(tmp_path, whole):
    hands, answers = ByHand(), []
    asking = threading.Thread(
        target=lambda: answers.append(mantile.sharded_sweep(hands, shards=3, directory=tmp_path, **SWEEP))
    )
    asking.start()
    until(lambda: len(hands.futures) == 3)
    for count, at in enumerate([2, 0, 1], 1):
        hands.finish(at)
        until(lambda: len(list(tmp_path.glob("*.json"))) == count)
        assert list(tmp_path.glob(f"*-{at + 1}-of-3.json"))
    asking.join()
    assert answers[0].to_json() == whole


def test_what_fails_is_raised_once_the_others_are_kept(tmp_path, whole):
    class Failing(ThreadPoolExecutor):
        def submit(self, function, body, call):
            if body["shard"]["number"] == 1:
                return super().submit(lambda: 1 // 0)
            return super().submit(function, body, call)

    with Failing(2) as executor, pytest.raises(ZeroDivisionError):
        mantile.sharded_sweep(executor, shards=3, directory=tmp_path, **SWEEP)
    assert sorted(file.name[-11:] for file in tmp_path.iterdir()) == ["2-of-3.json", "3-of-3.json"]
    with ThreadPoolExecutor(2) as executor:
        assert mantile.sharded_sweep(executor, shards=3, directory=tmp_path, **SWEEP).to_json() == whole
        with pytest.raises(mantile.MantileError) as fault:
            mantile.sharded_sweep(executor, shards=2, directory=tmp_path, model="no-such-model", vary=["tp=1"])
    assert fault.value.key == "model"
    with pytest.raises(TypeError, match="no submit"):
        mantile.sharded_sweep(object(), shards=2, directory=tmp_path, **SWEEP)


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"rows": []}', '{"shard": {"number": 2, "of": 3}, "rows": []}'])
def test_a_file_that_is_no_whole_shard_is_computed_again(broken, tmp_path, whole):
    with ThreadPoolExecutor(2) as executor:
        mantile.sharded_sweep(executor, shards=3, directory=tmp_path, **SWEEP)
        first = sorted(tmp_path.iterdir())[0]
        kept = first.read_bytes()
        first.write_text(broken)
        assert mantile.sharded_sweep(executor, shards=3, directory=tmp_path, **SWEEP).to_json() == whole
        assert first.read_bytes() == kept


def test_a_file_of_another_sweep_is_computed_again(tmp_path, whole):
    with ThreadPoolExecutor(2) as executor:
        mantile.sharded_sweep(executor, shards=2, directory=tmp_path, **SWEEP)
        first = sorted(tmp_path.iterdir())[0]
        first.write_text(json.dumps({**json.loads(first.read_text()), "sweep": "another"}))
        assert mantile.sharded_sweep(executor, shards=2, directory=tmp_path, **SWEEP).to_json() == whole
    assert json.loads(first.read_text())["sweep"] != "another"


SCRIPT = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import mantile

if __name__ == "__main__":
    threads, folder = sys.argv[1] == "threads", sys.argv[2]
    spawn = multiprocessing.get_context("spawn")
    executor = ThreadPoolExecutor(1) if threads else ProcessPoolExecutor(1, mp_context=spawn)
    with executor:
        print("begun", flush=True)
        mantile.sharded_sweep(
            executor, shards=60, directory=folder, model="Qwen3-0.6B", hardware="1xl40s",
            vary=["concurrency=1..240+1"],
        )
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("executor", "end"), [("threads", signal.SIGINT), ("processes", signal.SIGINT), ("threads", signal.SIGKILL)]
)
def test_an_interrupted_sweep_keeps_what_is_finished(executor, end, tmp_path):
    folder, script = tmp_path / "shards", tmp_path / "script.py"
    script.write_text(SCRIPT)
    words = [sys.executable, str(script), executor, str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        until(lambda: len(list(folder.glob("*.json"))) >= 3)
        process.send_signal(end)
        signalled = time.monotonic()
        _, said = process.communicate(timeout=60)
        assert time.monotonic() - signalled < 10
    assert process.returncode == -end
    assert end == signal.SIGKILL or "KeyboardInterrupt" in said
    kept = sorted(folder.glob("*.json"))
    assert 3 <= len(kept) < 60
    before = {file: file.stat().st_mtime_ns for file in kept}
    numbers = [json.loads(file.read_text())["shard"]["number"] for file in kept]
    # The same call goes on where it ended.
    sweep = {"model": "Qwen3-0.6B", "hardware": "1xl40s", "vary": ["concurrency=1..240+1"]}
    submitted = []

    class Counted(ThreadPoolExecutor):
        def submit(self, function, body, call):
            submitted.append(body["shard"]["number"])
            return super().submit(function, body, call)

    with Counted(2) as executor:
        again = mantile.sharded_sweep(executor, shards=60, directory=folder, **sweep)
    assert sorted(submitted) == sorted(set(range(1, 61)) - set(numbers))
    assert {file: file.stat().st_mtime_ns for file in kept} == before
    assert again.to_json() == mantile.sweep(**sweep).to_json()


def test_two_calls_share_a_folder(tmp_path, whole):
    with ThreadPoolExecutor(4) as shards, ThreadPoolExecutor(3) as calls:
        call = lambda: mantile.sharded_sweep(shards, shards=4, directory=tmp_path, **SWEEP).to_json()
        assert {future.result() for future in [calls.submit(call) for _ in range(3)]} == {whole}
    # Nothing half-written is left.
    assert len(list(tmp_path.iterdir())) == 4




def killed_once(folder):
    """The function of a shard, which kills its own process the first time; it travels by value."""
    folder = str(folder)

    def shard(body, call):
        import os
        import signal

        from mantile._shards import _shard

        if body["shard"]["number"] == 2:
            try:
                os.close(os.open(os.path.join(folder, "killed"), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                import threading

                # While the search runs.
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
                for _ in range(100):
                    _shard(body, call)
        return _shard(body, call)

    return shard


def test_dask_computes_again_what_a_killed_worker_had(tmp_path, whole, monkeypatch):
    distributed = pytest.importorskip("dask.distributed")
    monkeypatch.setattr(_shards, "_shard", killed_once(tmp_path))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        answer = mantile.sharded_sweep(client, shards=4, directory=tmp_path / "shards", **SWEEP)
    assert (tmp_path / "killed").exists()
    assert answer.to_json() == whole


def test_ray_computes_again_what_a_killed_worker_had(tmp_path, whole, monkeypatch):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with pytest.raises(mantile.MantileError) as fault:
            mantile.sharded_sweep(ray, shards=1, directory=tmp_path / "shards", model="none", vary=["tp=1"])
        assert type(fault.value) is mantile.MantileError and fault.value.key == "model"
        monkeypatch.setattr(_shards, "_shard", killed_once(tmp_path))
        answer = mantile.sharded_sweep(ray, shards=4, directory=tmp_path / "shards", **SWEEP)
    finally:
        ray.shutdown()
    assert (tmp_path / "killed").exists()
    assert answer.to_json() == whole


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_process_ends_the_call_and_the_finished_shards_are_kept(tmp_path, whole):
    killed = {}

    class Killed(ProcessPoolExecutor):
        def submit(self, function, body, call):
            if body["shard"]["number"] == 3:
                killed["by"] = super().submit(os._exit, 9)
                return killed["by"]
            return super().submit(function, body, call)

    spawn = multiprocessing.get_context("spawn")
    with Killed(1, mp_context=spawn) as executor, pytest.raises(concurrent.futures.BrokenExecutor):
        mantile.sharded_sweep(executor, shards=4, directory=tmp_path, **SWEEP)
    assert len(list(tmp_path.glob("*.json"))) >= 1
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        assert mantile.sharded_sweep(executor, shards=4, directory=tmp_path, **SWEEP).to_json() == whole


def test_an_edited_model_is_another_sweep(tmp_path):
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    }
    file, folder = tmp_path / "config.json", tmp_path / "shards"
    call = {"model": file, "hardware": "1xl40s", "vary": ["concurrency=1..4+1"]}
    answers = []
    for layers in (28, 14):
        file.write_text(json.dumps(config | {"num_hidden_layers": layers}))
        with ThreadPoolExecutor(2) as executor:
            answer = mantile.sharded_sweep(executor, shards=2, directory=folder, **call)
        assert answer.to_json() == mantile.sweep(**call).to_json()
        answers.append(answer)
    assert answers[0].sweep != answers[1].sweep and answers[0].rows[0].metrics != answers[1].rows[0].metrics
    assert len(list(folder.iterdir())) == 4
