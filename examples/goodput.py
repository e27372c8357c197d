"""Goodput against rate: plans x rates, each point simulated request by request, on several workers.

    python examples/goodput.py [FOLDER] [--ray]

The workers are processes of this machine, by Dask or Ray; `Client("scheduler:8786")` has those of a cluster. Shards are
kept in FOLDER as they are finished: the same call goes on after an interruption. The picture is FOLDER/goodput.svg.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mantile

PLANS = ["4 x tp1", "2 x tp2", "1 x tp4"]


@contextlib.contextmanager
def workers(of_ray: bool) -> Iterator[Any]:
    """An executor with two workers."""
    if of_ray:
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            yield ray  # the module itself is the executor
        finally:
            ray.shutdown()
    else:
        from dask.distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            yield client


def main(folder: Path, of_ray: bool) -> None:
    with workers(of_ray) as executor:
        answer = mantile.sharded_sweep(
            executor,
            shards=6,
            directory=folder / "shards",
            model="Qwen3-14B",
            hardware="4xh100",
            isl=1000,
            osl=200,
            ttft="400ms",
            tpot="25ms",
            vary=[f"plan={';'.join(PLANS)}", "rate=8..40+8"],
            traffic={"requests": 600, "isl_variation": 0.5, "osl_variation": 0.5},
        )
    answer.save(folder / "goodput.svg")
    print("plan     requests/s  within the SLOs")
    for row in answer.rows:
        within = "not simulated" if row.simulated.goodput is None else f"{row.simulated.goodput:.0%}"
        print(f"{row.vary['plan']:9}{row.vary['rate']:10}  {within:>15}")


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--ray"]
    main(Path(given[0] if given else "goodput"), "--ray" in sys.argv)
