"""Layers: a tensor in, a tensor out, and no paper's name.

Recurrent networks whose gates can be watched, embeddings, the feed-forward network, layer norm, the
residual connection, the Transformer's layer, dropout, positions (which live with attention), and a
probe of how far a gradient reaches back in time.
"""

from regard.attention import ALiBi, LearnedPositions, RelativeBias, Rotary, Sinusoidal
from regard.layers.cells import Cell, GRUCell, LSTMCell, RNNCell
from regard.layers.dropout import Dropout
from regard.layers.embedding import Embedding
from regard.layers.feedforward import FeedForward
from regard.layers.flow import gradient_flow
from regard.layers.gates import Gates, GRUGates, LSTMGates, RNNGates, watch_gates
from regard.layers.norm import LayerNorm, Residual, add_residual
from regard.layers.recurrent import Recurrent
from regard.layers.state import RecurrentState
from regard.layers.transformer import TransformerLayer

__all__ = [
    "ALiBi",
    "Cell",
    "Dropout",
    "Embedding",
    "FeedForward",
    "GRUCell",
    "GRUGates",
    "Gates",
    "LSTMCell",
    "LSTMGates",
    "LayerNorm",
    "LearnedPositions",
    "RNNCell",
    "RNNGates",
    "Recurrent",
    "RecurrentState",
    "RelativeBias",
    "Residual",
    "Rotary",
    "Sinusoidal",
    "TransformerLayer",
    "add_residual",
    "gradient_flow",
    "watch_gates",
]
