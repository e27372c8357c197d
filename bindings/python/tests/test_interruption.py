"""Signals, threads and forked processes while a search runs, in processes of their own."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mantile
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")

SMALL = {"model": "Qwen3-0.6B", "hardware": "1xl40s"}
# One search after another: no computer is so fast that none runs when the signal comes.
LONG = "[mantile.optimize('DeepSeek-V3', '512xh100', workload='chat') for _ in range(1000)]"
MANY = "mantile.sweep('Qwen3-0.6B', '1xl40s', vary=['concurrency=1..40000+1'])"


class Script:
    """A script in a process group of its own, which says where it is line by line."""

    def __init__(self, text: str):
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", text], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.watch = threading.Timer(120, self.kill)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)

    def __enter__(self):
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.watch.cancel()
        if self.process.poll() is None:
            self.kill()
        self.process.wait()
        self.process.stdout.close()

    def line(self) -> str:
        return self.process.stdout.readline().strip()


def output(text: str) -> list[str]:
    with Script(text) as script:
        lines = script.process.stdout.read().split("\n")
        assert script.process.wait() == 0, lines
        return lines[:-1]


@pytest.mark.parametrize("search", [LONG, MANY])
@pytest.mark.parametrize("delay", [0.02, 0.3, 1.0, 2.5])
def test_ctrl_c_ends_a_search_at_once_and_the_next_one_runs(search, delay):
    text = f"""
import mantile
print('begun')
try:
    {search}
    print('an answer')
except KeyboardInterrupt:
    print('interrupted')
print(mantile.estimate('Qwen3-0.6B', '1xl40s').feasibility)
print('after')
"""
    with Script(text) as script:
        assert script.line() == "begun"
        time.sleep(delay)
        signalled = time.monotonic()
        script.process.send_signal(signal.SIGINT)
        assert script.line() == "interrupted"
        assert time.monotonic() - signalled < 1
        assert [script.line(), script.line()] == ["in_vram", "after"]
        assert script.process.wait() == 0


def test_ctrl_c_ends_a_script_that_does_not_catch_it():
    with Script(f"import mantile\nprint('begun')\n{LONG}") as script:
        script.line()
        time.sleep(0.5)
        signalled = time.monotonic()
        script.process.send_signal(signal.SIGINT)
        assert script.process.wait(timeout=30) == -signal.SIGINT
        assert time.monotonic() - signalled < 2


def test_a_handler_of_signals_runs_while_a_search_does_and_its_exception_ends_it():
    handled = []

    def late(*_):
        handled.append(threading.current_thread())
        if len(handled) == 2:
            raise TimeoutError("late")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        with pytest.raises(TimeoutError, match="late"):
            exec(LONG, {"mantile": mantile})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # One more may come before the timer is off.
    assert len(handled) >= 2


def test_progress_is_called_on_the_calling_thread():
    seen = []
    mantile.sweep(
        **SMALL,
        vary=["concurrency=1..12+1"],
        progress=lambda done, all: seen.append((done, all, threading.get_ident(), mantile.estimate(**SMALL).to_json())),
    )
    assert seen[-1][:2] == (12, 12)
    assert {thread for _, _, thread, _ in seen} == {threading.get_ident()}


def test_an_exception_of_progress_ends_the_search_at_once():
    called = []

    def enough(done, all):
        called.append(time.monotonic())
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        mantile.sweep(**SMALL, vary=["concurrency=1..40000+1"], progress=enough)
    assert len(called) == 1 and time.monotonic() - called[0] < 1


def test_threads_search_at_the_same_time():
    alone = mantile.optimize(**SMALL).to_json()
    with ThreadPoolExecutor(4) as threads:
        assert {threads.submit(lambda: mantile.optimize(**SMALL).to_json()).result() for _ in range(8)} == {alone}


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_search_after_their_parent_has(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import mantile

def text(concurrency):
    answer = mantile.estimate('Qwen3-0.6B', '1xl40s', concurrency=concurrency)
    assert answer.render('svg')
    return mantile.optimize('Qwen3-0.6B', '1xl40s').to_json() + answer.to_json()

if __name__ == '__main__':
    here = [text(number) for number in range(1, 4)]
    context = multiprocessing.get_context({method!r})
    with ProcessPoolExecutor(2, mp_context=context) as workers:
        print(list(workers.map(text, range(1, 4))) == here)
    with context.Pool(2) as workers:
        print(workers.map(text, range(1, 4)) == here)
    print(text(1) == here[0])
"""
    )
    assert output(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')") == ["True"] * 3


def test_a_process_that_is_forked_while_a_search_runs_searches_too():
    lines = output(
        f"""
import os, threading, time
import mantile
thread = threading.Thread(target=lambda: {LONG}, daemon=True)
thread.start()
for _ in range(4):
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        os._exit(0 if mantile.optimize('Qwen3-0.6B', '1xl40s').best else 1)
    print(os.waitpid(child, 0)[1], thread.is_alive())
os._exit(0)
"""
    )
    assert lines == ["0 True"] * 4
