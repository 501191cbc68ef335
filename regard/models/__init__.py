"""Models: one file a paper, from batch to logits.

from regard.models import build

model = build("rnn", vocabulary_size=10_000, kind="lstm")
features, state = model.features(batch)      # what model.output turns into logits
state = model.start(prompts)                 # then word by word:
logits, state = model.step(ids, state)
"""

from regard.models.attentive import AttentiveConfig, AttentiveLM
from regard.models.backpack import Backpack, BackpackConfig
from regard.models.bahdanau import Bahdanau, BahdanauConfig
from regard.models.catalog import MODELS, Entry, build, entry
from regard.models.dan import DAN, DANConfig
from regard.models.gpt2 import GPT2, GPT2Config
from regard.models.han import HAN, HANConfig
from regard.models.luong import Luong, LuongConfig
from regard.models.ngram import Ngram, NgramConfig
from regard.models.recurrent import RecurrentConfig, RecurrentLM
from regard.models.seq2seq import Seq2Seq, Seq2SeqConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.window import WindowConfig, WindowLM

__all__ = [
    "DAN",
    "GPT2",
    "HAN",
    "MODELS",
    "AttentiveConfig",
    "AttentiveLM",
    "Backpack",
    "BackpackConfig",
    "Bahdanau",
    "BahdanauConfig",
    "DANConfig",
    "Entry",
    "GPT2Config",
    "HANConfig",
    "Luong",
    "LuongConfig",
    "Ngram",
    "NgramConfig",
    "RecurrentConfig",
    "RecurrentLM",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Transformer",
    "TransformerConfig",
    "WindowConfig",
    "WindowLM",
    "build",
    "entry",
]
