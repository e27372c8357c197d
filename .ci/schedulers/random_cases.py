"""Random cases for the schedulers, as lines of JSON: the same seed gives the same cases everywhere.

    python .ci/schedulers/random_cases.py SEED COUNT

They are small, for a case is to run in a fraction of a second, and uneven on purpose: KV memory that is ample or for a few
requests only, prompts that share a prefix of whole or broken blocks or are the same, later turns that repeat an earlier
prompt and some of its answer, budgets smaller than a prompt, bursts and trickles. The settings are those of vLLM's v1
scheduler; an older version may lack some, which its drive then says. A case's name is its seed and its number.
"""

import json
import random
import sys

# Nothing is left beside the scripts.
sys.dont_write_bytecode = True

import cases

LONGEST_PROMPT = 3000
LONGEST_OUTPUT = 200


def blocks(tokens, size):
    return -(-tokens // size)


class Prompts:
    """Draws prompts as runs of token ids; ids are given out once, so only what is meant to be shared is."""

    def __init__(self, rng, block_size):
        self.rng, self.block_size, self.next = rng, block_size, 0
        self.limit = rng.choice((60, 300, 1000, LONGEST_PROMPT))
        self.families = [[self.fresh(self.prefix())] for _ in range(rng.randint(1, 4))]
        self.shared, self.turns, self.same = rng.choice((0, 0.3, 0.8)), rng.choice((0, 0, 0.3, 0.6)), rng.choice((0, 0.1))

    def fresh(self, length):
        self.next += length
        assert self.next < cases.ANSWERS
        return [self.next - length, length]

    def prefix(self):
        """Half of the prefixes end at the end of a block, and some are longer than most prompts."""
        whole = self.rng.randint(1, max(1, self.limit // 2 // self.block_size)) * self.block_size
        return whole if self.rng.random() < 0.5 else whole + self.rng.randint(1, self.block_size - 1)

    def turn(self, earlier):
        """What a client sends after it has read an answer, or has cut it: the whole earlier exchange and a few words."""
        said = earlier["output"] if self.rng.random() < 0.7 else self.rng.randint(1, earlier["output"])
        return [*earlier["prompt"], [cases.output_token(earlier["id"], 0), said], self.fresh(self.rng.randint(1, 60))]

    def draw(self, earlier):
        """The runs of a prompt, and the request that it follows, if it is a later turn."""
        rng = self.rng
        if earlier and rng.random() < self.same:
            return rng.choice(earlier)["prompt"], None
        if earlier and rng.random() < self.turns:
            before = rng.choice(earlier)
            return self.turn(before), before
        runs = list(rng.choice(self.families)) if rng.random() < self.shared else []
        length = rng.randint(1, self.limit)
        if rng.random() < 0.3:
            length = blocks(length, self.block_size) * self.block_size
        return [*runs, self.fresh(length)], None


def size(runs):
    return sum(length for _, length in runs)


def requests_of(rng, prompts, count):
    """Requests in the order of their arrival; a later turn comes after the request that it follows."""
    longest = rng.choice((3, 30, LONGEST_OUTPUT, LONGEST_OUTPUT))
    burst, gap = rng.choice((0, 0.5, 0.9)), rng.choice((1, 3, 10, 60))
    levels = rng.choice((1, 2, 5, 100))
    found, step = [], rng.choice((0, 0, 4))
    for number in range(count):
        if number and rng.random() >= burst:
            step += rng.randint(0, gap)
        runs, before = prompts.draw(found)
        if size(runs) > LONGEST_PROMPT:
            runs, before = [prompts.fresh(rng.randint(1, prompts.limit))], None
        if before and rng.random() < 0.8:
            step = max(step, before["arrives_before_step"] + before["output"] + rng.randint(0, 20))
        found.append({"id": number, "arrives_before_step": step, "prompt": runs, "output": rng.randint(1, longest),
                      "priority": rng.randrange(levels)})
    return found


def settings_of(rng, block_size, found):
    """Settings under which every request can end."""
    totals = [size(one["prompt"]) + one["output"] for one in found]
    longest = max(totals)
    length = longest + rng.choice((0, 1, 500))
    needs = [blocks(total, block_size) for total in totals]
    # Under pressure a few of the requests fit together; an ample cache holds them all with something left.
    if rng.random() < 0.6:
        count = max(max(needs), int(max(1.0, rng.uniform(1, 5)) * sum(needs) / len(needs)))
        count += rng.choice((0, 0, 1, 7))
    else:
        count = sum(needs) + rng.randint(1, 200)
    chunked = rng.random() < 0.85
    seqs = rng.choice((1, 2, 4, 8, 16, 32, 64, 64))
    policy = "fcfs" if rng.random() < 0.75 else "priority"
    # A budget close to the number of sequences leaves prompts what the decodes do not take.
    budget = rng.choice((16, 48, 64, 128, 250, 512, 1024, 2048, 4096))
    if rng.random() < (0.15 if policy == "fcfs" else 0.5):
        budget = max(16, seqs + rng.choice((0, 5, 20)))
    budget = max(budget, seqs)
    settings = {"max_num_batched_tokens": budget if chunked else max(budget, length), "max_num_seqs": seqs,
                "block_size": block_size, "num_blocks": count, "max_model_len": length, "enable_chunked_prefill": chunked,
                "long_prefill_token_threshold": rng.choice((0, 0, 0, min(length, rng.choice((7, 32, 100, 400))))),
                "enable_prefix_caching": rng.random() < 0.8, "policy": policy,
                "async_scheduling": rng.random() < 0.3}
    if rng.random() < 0.25:
        settings["watermark"] = rng.choice((0.01, 0.05, 0.1, 0.25))
    # With priorities a victim may have been scheduled in the same call, mostly where a prompt is let in by its first chunk.
    if rng.random() < (0.3 if policy == "fcfs" else 0.7):
        settings["scheduler_reserve_full_isl"] = False
    return settings


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        rng = random.Random(seed * 1_000_003 + number)
        block_size = rng.choice((8, 16, 16, 16, 32, 64))
        found = requests_of(rng, Prompts(rng, block_size), rng.randint(5, 60))
        settings = settings_of(rng, block_size, found)
        if settings["max_num_seqs"] <= 2:
            # One after the other takes as many steps as there are tokens of output.
            found = found[:15]
        print(json.dumps({"name": f"{seed}-{number}", "settings": settings, "requests": found}, separators=(",", ":")))


if __name__ == "__main__":
    main()
