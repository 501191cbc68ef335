"""The page "Look inside your own model", run as it stands."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

transformers = pytest.importorskip("transformers")

PAGE = (Path(__file__).parents[2] / "docs" / "own_model.md").read_text(encoding="utf-8")
SENTENCE = "The animal did not cross the street because it was too tired"
WORDS = ["[UNK]", *SENTENCE.split()]


def blocks(language):
    return "".join(re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL))


def save_model(folder):
    """A GPT-2 with random weights and a tokenizer for the page's sentence."""
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": 3, "n_embd": 24, "n_positions": 32, "vocab_size": len(WORDS)}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, initializer_range=0.5)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    made = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
    fast.save_pretrained(folder)


def test_the_page_runs_from_top_to_bottom_and_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_model(tmp_path / "my-model")
    Path("page.py").write_text(blocks("python"), encoding="utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path("page.py")
    assert printed.getvalue().endswith(blocks("text"))
    assert "transformer.h.0.attn" in printed.getvalue()
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert "transformer.h.1.attn" in page and "street" in page


def test_from_a_folder_to_a_picture_takes_ten_lines():
    first = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
    assert len([line for line in first.splitlines() if line.strip()]) <= 10
