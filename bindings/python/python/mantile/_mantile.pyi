"""Types of the compiled part."""

from collections.abc import Callable, Sequence
from typing import Literal, overload

__version__: str

class MantileError(Exception): ...

def answer(name: str, body: str, progress: Callable[[int, int], None] | None = None) -> str: ...
def render(name: str, text: str, format: str) -> bytes | None: ...
def main(line: list[str]) -> int: ...
def requests() -> str: ...
def formats() -> str: ...
def format_of(name: str) -> str: ...

class StepTime:
    """Time of a step, in seconds."""

    @property
    def seconds(self) -> float:
        """Until every request of the step has its tokens."""
    @property
    def pass_s(self) -> float:
        """Until one micro-batch has passed all pipeline stages; the same without a pipeline."""
    @property
    def stage_s(self) -> float:
        """For which the slowest pipeline stage is taken by a micro-batch."""
    @property
    def compute_s(self) -> float:
        """In which the arithmetic of a device is busy."""
    @property
    def memory_s(self) -> float:
        """In which the memory of a device is busy."""

class PreparedPlan:
    """A plan whose steps are priced one by one, with the numbers of `estimate`. Every number is that of one replica."""

    def __init__(self, body: str) -> None: ...
    @overload
    def step(
        self, prefill: Sequence[tuple[float, float]] = ..., decode: Sequence[float] = ..., *, breakdown: Literal[False] = False
    ) -> float:
        """Seconds of a step with these prompts, each as (new tokens, cached tokens), and these decoding requests, each as
        its cached tokens; all times of it with `breakdown`."""
    @overload
    def step(
        self, prefill: Sequence[tuple[float, float]] = ..., decode: Sequence[float] = ..., *, breakdown: Literal[True]
    ) -> StepTime: ...
    @overload
    def decode(self, batch: int, context: float, *, breakdown: Literal[False] = False) -> float:
        """Seconds of a decode step of `batch` requests with `context` cached tokens each."""
    @overload
    def decode(self, batch: int, context: float, *, breakdown: Literal[True]) -> StepTime: ...
    @overload
    def prefill(self, tokens: float, context: float = 0.0, *, batch: int = 1, breakdown: Literal[False] = False) -> float:
        """Seconds of the prefill of a prompt of `tokens` new tokens after `context` cached ones; of `batch` such prompts."""
    @overload
    def prefill(self, tokens: float, context: float = 0.0, *, batch: int = 1, breakdown: Literal[True]) -> StepTime: ...
    @property
    def notation(self) -> str:
        """The plan in one line."""
    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds."""
    @property
    def max_num_seqs(self) -> int | None:
        """Requests at a time; None where the runtime has no limit."""
    @property
    def max_num_batched_tokens(self) -> int:
        """New tokens that the scheduler puts into one step."""
