"""What TensorRT-LLM's scheduler in Python needs around it, which is C++ and needs a device.

Real, from a checkout, is the module in REAL: the choice of requests by memory and by tokens, and the chunks of prompts.
Stood in for are a request and the manager of KV blocks, after `llmRequest.h`, `kvCacheManager.cpp` and `evictionPolicy.cpp`
of the same repository: one window of full attention, one beam, blocks on the device alone, no priorities. A record thus
tests the choices of the real scheduler, and not the real manager of blocks. Where several blocks have as many tokens in
common with a prompt's next block, the real manager takes any; here it is the next one in the order of tokens, or else the
one before.
"""

import bisect
import collections
import enum
import sys
import types
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "options"))

import standins  # noqa: E402

REAL = ("tensorrt_llm._torch.pyexecutor.scheduler.scheduler",)
WINDOW = 1 << 30
CONTEXT, GENERATION, TO_COMPLETE, COMPLETE = 2, 3, 4, 5


class State(enum.Enum):
    ENCODER_INIT = 1
    CONTEXT_INIT = CONTEXT
    GENERATION_IN_PROGRESS = GENERATION
    GENERATION_TO_COMPLETE = TO_COMPLETE
    GENERATION_COMPLETE = COMPLETE


class Policy(enum.Enum):
    MAX_UTILIZATION = "MAX_UTILIZATION"
    GUARANTEED_NO_EVICT = "GUARANTEED_NO_EVICT"
    STATIC_BATCH = "STATIC_BATCH"


class Failure(Exception):
    """The real server fails here: it has no free block, or a step has more tokens than it may.

    It comes to this rarely: the last whole block of a prompt counts as found, and is copied or computed again, because the
    last token of a prompt is computed in any case.
    """


class PrefixReuseSummary:
    """Blocks of a prompt in the tree, in use and all; and the tokens up to the end of the first one that is not."""

    def __init__(self, allocated=0, everything=0, new=None):
        self.reusable_blocks_allocated, self.reusable_blocks_all, self.first_new_block = allocated, everything, new


class Request:
    """`LlmRequest`, for text without drafts, adapters and beams."""

    is_encoder_init_state = is_disagg_generation_init_state = False
    num_draft_tokens = 0

    def __init__(self, name, tokens, limit):
        self.request_id = self.py_request_id = name
        self.tokens, self.max_new_tokens = tokens, limit
        self.prompt_len = self._chunk = len(tokens)
        self.state_value = CONTEXT
        self.context_current_position = self.prepopulated = self.estimated_reusable_tokens = 0

    is_context_init_state = property(lambda self: self.state_value == CONTEXT)
    is_generation_in_progress_state = property(lambda self: self.state_value in (GENERATION, TO_COMPLETE))
    is_first_context_chunk = property(lambda self: self.context_current_position == self.prepopulated)
    is_last_context_chunk = property(lambda self: self.context_current_position + self._chunk == self.prompt_len)
    context_remaining_length = property(lambda self: self.prompt_len - self.context_current_position)
    generated = property(lambda self: len(self.tokens) - self.prompt_len)

    @property
    def context_chunk_size(self):
        return self._chunk

    @context_chunk_size.setter
    def context_chunk_size(self, size):
        self._chunk = min(size, self.context_remaining_length)

    def get_num_tokens(self, _):
        return len(self.tokens)

    def get_unique_tokens(self, _):
        return self.tokens

    def get_beam_width_by_iter(self, for_next_iteration):
        return 1

    def has_draft_tokens(self):
        return False

    def will_complete_next_iteration(self):
        return self.generated + 1 >= self.max_new_tokens

    def set_prepopulated_prompt_len(self, length, block):
        self.prepopulated = length
        if length == 0:
            return
        size = self._chunk
        if length + size < self.prompt_len:
            size = (length + size) // block * block - length
        self.context_current_position = length
        self.context_chunk_size = size

    def move_to_next_context_chunk(self):
        self.context_current_position += self._chunk
        self._chunk = 0

    def pause(self):
        """What it has generated is prompt from now on."""
        self.max_new_tokens -= self.generated
        self.prompt_len = self._chunk = len(self.tokens)
        self.state_value = CONTEXT
        self.context_current_position = self.prepopulated = 0


class Block:
    def __init__(self, name):
        self.name, self.refs, self.scheduling_refs = name, 0, 0
        self.key, self.parent, self.children, self.order = (), None, {}, []

    def attach(self, parent, key):
        self.detach()
        self.parent, self.key = parent, key
        parent.children[key] = self
        bisect.insort(parent.order, key)

    def detach(self):
        if self.parent is not None:
            del self.parent.children[self.key]
            del self.parent.order[bisect.bisect_left(self.parent.order, self.key)]
            self.parent = None


def common(one, other):
    return next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


class BlockManager:
    """`KVCacheManager` with one `WindowBlockManager`."""

    is_variable_window = False
    max_attention_window_vec = (WINDOW,)

    def __init__(self, count, size, reuse, partial_reuse):
        self.size, self.count, self.enable_block_reuse, self.partial_reuse = size, count, reuse, partial_reuse
        self.root = Block(-1)
        self.free = collections.OrderedDict((name, Block(name)) for name in range(count))
        # Of each sequence, its blocks and its number of tokens.
        self.sequences = {}

    def chop(self, tokens, usable, partial):
        ends = range(self.size, usable + (self.size if partial and usable % self.size else 0) + 1, self.size)
        return [tuple(tokens[end - self.size:min(end, usable)]) for end in ends]

    # What the scheduler asks.

    def get_kv_cache_stats(self):
        return types.SimpleNamespace(num_free_blocks_per_window_size={WINDOW: len(self.free)})

    def analyze_prefix_reuse(self, tokens, _):
        node, used, found = self.root, 0, 0
        for key in self.chop(tokens, len(tokens), False):
            if (node := node.children.get(key)) is None:
                return PrefixReuseSummary(used, found, tuple(tokens[:(found + 1) * self.size]))
            found, used = found + 1, used + (node.refs > 0)
        return PrefixReuseSummary(used, found)

    def reusable(self, request, most, summary):
        """Of the `most` first blocks those in use by others; the estimate of tokens counts all that are there."""
        summary = summary or self.analyze_prefix_reuse(request.tokens, request)
        request.estimated_reusable_tokens = min(summary.reusable_blocks_all, most) * self.size
        return min(summary.reusable_blocks_allocated, most)

    def get_remaining_blocks_to_completion(self, request, _, cached_summary=None):
        request.estimated_reusable_tokens = 0
        context = request.prompt_len // self.size
        total = -(-(request.prompt_len + request.max_new_tokens) // self.size)
        has = len(self.sequences.get(request.request_id, ((), 0))[0])
        shared = 0
        if self.enable_block_reuse and request.is_context_init_state and request.is_first_context_chunk and not has:
            shared = self.reusable(request, context, cached_summary)
        return total - shared - has

    def get_needed_blocks_one_step(self, request, two_steps, _, cached_summary=None):
        request.estimated_reusable_tokens = 0
        if request.is_context_init_state and request.is_first_context_chunk:
            needed = -(-request.prompt_len // self.size)
            if self.enable_block_reuse:
                needed -= self.reusable(request, request.prompt_len // self.size, cached_summary)
            return needed
        if request.is_generation_in_progress_state:
            tokens = self.sequences[request.request_id][1]
            left = request.max_new_tokens - (tokens - request.prompt_len)
            following = tokens + min(2 if two_steps else 1, left)
            return -(-following // self.size) + -tokens // self.size
        return 0

    def start_scheduling(self):
        self.scheduling_free = len(self.free)
        for blocks, _ in self.sequences.values():
            for block in blocks:
                block.scheduling_refs = block.refs

    def scheduling_has_free_blocks(self, count, _):
        return self.scheduling_free >= count

    def scheduling_remove_sequence(self, name):
        for block in self.sequences[name][0]:
            block.scheduling_refs -= 1
            self.scheduling_free += block.scheduling_refs == 0

    # What the executor does.

    def take(self):
        """The free block that was unused for longest; what follows it in the tree cannot be found without it."""
        if not self.free:
            raise Failure("no free block is left")
        _, block = self.free.popitem(last=False)
        below = [block]
        while below:
            one = below.pop()
            below += one.children.values()
            one.detach()
        block.refs = 1
        return block

    def claim(self, block):
        self.free.pop(block.name, None)
        block.refs += 1

    def match(self, node, key):
        """The child of `node` with the key, or most of its beginning, and the tokens in common."""
        if key in node.children:
            return node.children[key], len(key)
        if not self.partial_reuse or not node.order:
            return None, 0
        at = bisect.bisect_left(node.order, key)
        near = [node.order[other] for other in (at, at - 1) if 0 <= other < len(node.order)]
        best = max(near, key=lambda other: common(other, key))
        return node.children[best], common(best, key)

    def claim_matching(self, request):
        """The blocks that a request begins with, None for one that is a copy, and their tokens. The last token is not
        among these, as its logits are needed."""
        node, found, tokens = self.root, [], 0
        for key in self.chop(request.tokens, request.prompt_len - 1, True):
            block, matched = self.match(node, key)
            if matched == 0:
                break
            tokens += matched
            if len(block.key) == self.size == matched:
                self.claim(block)
                found.append(block)
                node = block
                continue
            if block.refs or block.children:
                found.append(None)
            else:
                block.detach()
                self.claim(block)
                found.append(block)
            break
        return found, tokens

    def add_sequence_batch(self, requests):
        """All take what they share with others before any takes what these no longer need."""
        claimed = [self.claim_matching(request) if self.enable_block_reuse else ([], 0) for request in requests]
        for request, (found, tokens) in zip(requests, claimed):
            blocks = [block or self.take() for block in found]
            blocks += [self.take() for _ in range(-(-request.prompt_len // self.size) - len(blocks))]
            self.sequences[request.request_id] = (blocks, request.prompt_len)
            if self.enable_block_reuse:
                request.set_prepopulated_prompt_len(tokens, self.size)
            request.estimated_reusable_tokens = 0

    def add_token(self, name):
        blocks, tokens = self.sequences[name]
        if tokens % self.size == 0:
            blocks.append(self.take())
        self.sequences[name] = (blocks, tokens + 1)

    def store(self, keys, blocks):
        node = self.root
        for key, block in zip(keys, blocks):
            if key not in node.children:
                block.attach(node, key)
            node = node.children[key]

    def store_context_blocks(self, request):
        if self.enable_block_reuse and request.request_id in self.sequences:
            usable = min(request.context_current_position, len(request.tokens) - 1)
            self.store(self.chop(request.tokens, usable, False), self.sequences[request.request_id][0])

    def remove_sequence(self, request):
        blocks, _ = self.sequences.pop(request.request_id, ((), 0))
        if self.enable_block_reuse and blocks:
            usable = len(request.tokens) - 1
            if request.is_context_init_state:
                usable = min(usable, request.context_current_position)
            self.store(self.chop(request.tokens, usable, True), blocks)
        for block in reversed(blocks):
            block.refs -= 1
            if block.refs == 0:
                self.free[block.name] = block


def module(name, **values):
    found = sys.modules[name] = standins.Module(name)
    found.__path__ = []
    vars(found).update(values)


def load(folder):
    """The scheduler's own module, from a checkout in `folder`."""
    standins.install(folder, "tensorrt_llm", REAL, (), folder)
    internal = types.SimpleNamespace(batch_manager=types.SimpleNamespace(PrefixReuseSummary=PrefixReuseSummary))
    module("strenum", StrEnum=enum.StrEnum)
    module("tensorrt_llm.bindings", internal=internal)
    module("tensorrt_llm.llmapi.llm_args", CapacitySchedulerPolicy=Policy)
    module("tensorrt_llm.logger", logger=types.SimpleNamespace(debug=lambda *_: None))
    module("tensorrt_llm._torch.pyexecutor.llm_request", LlmRequest=Request, LlmRequestState=State,
           get_multimodal_encoder_token_lengths=None, is_multimodal_encoder_ready=None)
    import tensorrt_llm._torch.pyexecutor.scheduler.scheduler as scheduler

    return scheduler
