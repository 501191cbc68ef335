"""Decoding: the choice of the next word, by greed, by chance or by a beam.

from regard.decoding import DecodingConfig, decode, prompted

batch, first = prompted([[5, 3, 8], [2]], first=end)
answers = decode(model, batch, first, DecodingConfig(method="beam", n_best=3), end=end)
answers[0][0].ids  # the best answer to the first prompt

All of it asks a model for `start(batch)`, `step(ids, state)` and a state whose rows can be picked.
"""

from regard.decoding.ancestry import Ancestry, traced
from regard.decoding.answers import decode, stream
from regard.decoding.beams import beam
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.paths import greedy
from regard.decoding.pieces import Continuing
from regard.decoding.prompts import prompted
from regard.decoding.sampling import sample
from regard.decoding.seam import Model, State

__all__ = [
    "Ancestry",
    "Continuing",
    "DecodingConfig",
    "Hypothesis",
    "Model",
    "State",
    "beam",
    "decode",
    "greedy",
    "prompted",
    "sample",
    "stream",
    "traced",
]
