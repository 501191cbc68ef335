"""One step of a decoder, which has one query a sentence, against the formulas written out.

    python -m benchmarks.decoding

Additive attention: 64 sentences, 50 keys, 500 wide, keys already projected on both sides.
Multi-head self-attention: a batch padded on the left behind a cache of 199 keys; the peer is
torch's kernel with the two products around it, into a cache and with a mask that are there already.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.racing import Row, both_ways, compared, forward, print_table, race
from regard.attention import Additive, Attention, KeyValueCache, MultiHead, Padding
from regard.attention.additive import key_exponentials
from regard.attention.prepared import AdditiveKeys

BATCH, KEYS, SIZE = 64, 50, 500


def additive_step() -> list[Row]:
    """One query against keys that were projected once, with the softmax and the context."""
    attention = Attention(Additive(SIZE, SIZE, SIZE))
    score = attention.score
    assert isinstance(score, Additive)
    query = torch.randn(BATCH, 1, SIZE, requires_grad=True)
    memory = torch.randn(BATCH, KEYS, SIZE)
    keys = score.key(memory).detach().requires_grad_()
    mask = Padding(torch.randint(KEYS // 2, KEYS + 1, (BATCH,)))
    visible = mask.dense(1, KEYS)  # (batch, 1, key)
    prepared = AdditiveKeys(keys, key_exponentials(keys))

    def ours() -> Tensor:
        return attention(query, prepared, memory, mask).context

    def naive() -> Tensor:
        scores = torch.tanh(score.query(query) + keys) @ score.direction  # (batch, key)
        hidden = ~visible.squeeze(1)
        return scores.masked_fill(hidden, float("-inf")).softmax(dim=-1).unsqueeze(1) @ memory

    torch.testing.assert_close(ours(), naive(), atol=1e-5, rtol=1e-5)
    what = f"additive step, {BATCH} × 1 × {KEYS}, {SIZE} wide"
    rows = []
    for way, name in ((forward, "forward"), (both_ways, "forward+backward")):
        mine, theirs = race([way(ours), way(naive)], rounds=51)
        rows.append(compared(f"{what}, {name} (naive)", mine, theirs, at_least=1.0))
    return rows


def self_attention_step(size: int, heads: int, batch: int = 8, before: int = 199) -> Row:
    """The next word of sentences of different lengths, padded on the left."""
    model = MultiHead(size, heads)
    past = torch.randn(2, batch, heads, before, size // heads)
    word = torch.randn(batch, 1, size)
    mask = Padding(torch.randint(before // 2, before + 2, (batch,)), side="left")
    cache = KeyValueCache()
    with torch.no_grad():
        cache.append(past[0], past[1])
    step_mask = mask.write_out(1, before + 1)
    visible = mask.dense(1, before + 1).unsqueeze(1)  # (batch, 1, 1, key)
    stores = torch.empty(2, batch, heads, before + 1, size // heads)
    stores[..., :before, :] = past
    bare_keys, bare_values = stores
    weight, bias = model.projection.weight, model.projection.bias
    output = model.output

    def ours() -> Tensor:
        assert cache._store is not None
        cache._store.written = before  # else a second branch would have to copy the first one's
        return model(word, mask=step_mask, cache=cache.branch())

    def bare() -> Tensor:
        projected = F.linear(word, weight, bias).view(batch, 1, 3, heads, size // heads)
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # (batch, head, 1, size)
        bare_keys[:, :, before:] = key
        bare_values[:, :, before:] = value
        context = F.scaled_dot_product_attention(query, bare_keys, bare_values, visible)
        context = context.transpose(1, 2).reshape(batch, 1, size)
        return F.linear(context, output.weight, output.bias)

    with torch.no_grad():
        torch.testing.assert_close(ours(), bare(), atol=1e-5, rtol=1e-5)
    mine, theirs = race([forward(ours), forward(bare)], rounds=201)
    what = f"multi-head step, {batch} × {before + 1} keys, {size} wide, {heads} heads (bare kernel)"
    return compared(what, mine, theirs, at_most=1.3)


def main() -> None:
    torch.manual_seed(0)
    rows = [*additive_step(), self_attention_step(768, 12), self_attention_step(128, 4)]
    print_table(f"decoding, torch {torch.__version__}, {torch.get_num_threads()} threads", rows)


if __name__ == "__main__":
    main()
