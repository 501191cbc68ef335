"""Decoding: greedy, sampling and beam search.

from regard.decoding import DecodingConfig, decode, prepare_prompts

batch, first = prepare_prompts([[5, 3, 8], [2]], first=end)
answers = decode(model, batch, first, DecodingConfig(method="beam", n_best=3), end=end)
answers[0][0].ids  # the best answer to the first prompt

All of it asks a model for `start(batch)`, `step(ids, state)` and a state whose rows can be picked.
"""

from regard.decoding.ancestry import Ancestry, trace_attention
from regard.decoding.answers import decode, stream
from regard.decoding.beams import beam
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.paths import greedy
from regard.decoding.prompts import prepare_prompts
from regard.decoding.sampling import sample
from regard.decoding.seam import Model, State
from regard.decoding.watched import WatchedHypothesis, decode_watched
from regard.decoding.windowed import WindowedGenerator

__all__ = [
    "Ancestry",
    "DecodingConfig",
    "Hypothesis",
    "Model",
    "State",
    "WatchedHypothesis",
    "WindowedGenerator",
    "beam",
    "decode",
    "decode_watched",
    "greedy",
    "prepare_prompts",
    "sample",
    "stream",
    "trace_attention",
]
