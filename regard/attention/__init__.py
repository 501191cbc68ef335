"""Attention: a query scores keys, the scores become weights, the weights mix values.

from regard.attention import Attention, ScaledDot, Softmax, watch

attention = Attention(ScaledDot(), Softmax())
read = attention(queries, keys, values, Causal() & Padding(lengths))
read.context                        # at once, from the fused kernel
read.weights_of(heads=3, rows=[7])  # on demand, for what is looked at
"""

from regard.attention.addressing import Controls, NTMAddressing, Stages
from regard.attention.attended import Attended
from regard.attention.attention import Attention
from regard.attention.cache import KeyValueCache
from regard.attention.editing import edit, freeze, set_to, swap, uniform, zero
from regard.attention.heads import MultiHead
from regard.attention.look_sources import stitch
from regard.attention.looks import Label, Look
from regard.attention.masks import (
    Causal,
    Dense,
    Mask,
    Packed,
    Padding,
    Prefix,
    StrictlyCausal,
    Window,
)
from regard.attention.positions import (
    ALiBi,
    LearnedPositions,
    RelativeBias,
    Rotary,
    Sinusoidal,
    sinusoids,
)
from regard.attention.prepared import Prepared, PreparedMemory
from regard.attention.recording import Call, is_watched
from regard.attention.scores import (
    Additive,
    Cosine,
    Dot,
    General,
    Location,
    ScaledDot,
    Score,
)
from regard.attention.sides import Side, kind_of, make_looks, sides_of
from regard.attention.watching import Seen, attentions, watch
from regard.attention.weighings import (
    Given,
    Hard,
    HardSample,
    LocalMonotonic,
    LocalPredictive,
    Proportional,
    Softmax,
    Sparsemax,
    Weighing,
)

__all__ = [
    "ALiBi",
    "Additive",
    "Attended",
    "Attention",
    "Call",
    "Causal",
    "Controls",
    "Cosine",
    "Dense",
    "Dot",
    "General",
    "Given",
    "Hard",
    "HardSample",
    "KeyValueCache",
    "Label",
    "LearnedPositions",
    "LocalMonotonic",
    "LocalPredictive",
    "Location",
    "Look",
    "Mask",
    "MultiHead",
    "NTMAddressing",
    "Packed",
    "Padding",
    "Prefix",
    "Prepared",
    "PreparedMemory",
    "Proportional",
    "RelativeBias",
    "Rotary",
    "ScaledDot",
    "Score",
    "Seen",
    "Side",
    "Sinusoidal",
    "Softmax",
    "Sparsemax",
    "Stages",
    "StrictlyCausal",
    "Weighing",
    "Window",
    "attentions",
    "edit",
    "freeze",
    "is_watched",
    "kind_of",
    "make_looks",
    "set_to",
    "sides_of",
    "sinusoids",
    "stitch",
    "swap",
    "uniform",
    "watch",
    "zero",
]
