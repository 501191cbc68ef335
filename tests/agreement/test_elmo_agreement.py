"""ELMo against the numbers of the original TensorFlow model, as AllenNLP's tests hold them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.checkpoints.allennlp import read_elmo
from regard.data.spelled import pad_spellings
from regard.models.elmo import ELMo, ELMoConfig
from regard.running import import_folder, load
from regard.text.spelling import END_SPELLING, START_SPELLING, spell

pytest.importorskip("h5py")
MARKS = {"<S>": START_SPELLING, "</S>": END_SPELLING}


@pytest.fixture(scope="module")
def fixture() -> Path:
    here = Path(__file__).parents[2].parent / "shared/data"
    folder = Path(os.environ.get("REGARD_DATA", here)) / "elmo_fixture"
    if not folder.is_dir():
        pytest.skip("no elmo_fixture: set REGARD_DATA to the folder of the data sets")
    return folder


@pytest.fixture(scope="module")
def model(fixture) -> ELMo:
    settings, weights = read_elmo(fixture)
    made = ELMo(ELMoConfig(**settings))
    made.load_state_dict(weights)
    return made.eval()


@torch.no_grad()
def test_words_by_themselves_have_the_vectors_of_the_original(fixture, model):
    words = (fixture / "tokens.txt").read_text(encoding="utf-8").split()
    expected = torch.from_numpy(np.load(fixture / "expected_token_embeddings.npy"))
    spelled = torch.tensor([[MARKS.get(word) or spell(word) for word in words]])
    found = model.reader.words(spelled)[0]
    assert found.shape == expected.shape == (366, 16)
    assert (found - expected).abs().max() <= 1e-5


@torch.no_grad()
def test_the_top_layer_is_the_original_s_when_the_state_is_carried_from_batch_to_batch(
    fixture, model
):
    lists = json.loads((fixture / "sentences.json").read_text(encoding="utf-8"))
    expected = np.load(fixture / "expected_top_layer.npz")
    state, compared = None, 0
    for number, sentences in enumerate(zip(*lists, strict=True)):
        texts = [[spell(word) for word in sentence.split()] for sentence in sentences]
        layers, state = model.reader(*pad_spellings(texts), state)
        for place, text in enumerate(texts):
            top = torch.stack(layers[-1][place, 1 : len(text) + 1].chunk(2, dim=-1))
            wanted = torch.from_numpy(expected[f"list{place}_sent{number}"])
            assert (top - wanted).abs().max() <= 1e-5
            compared += 1
    assert compared == len(expected.files) == 21


def test_an_imported_run_embeds_as_the_original_and_carries_its_state_if_asked(fixture, tmp_path):
    import_folder(fixture, tmp_path / "run")
    run = load(tmp_path / "run")
    sentences = json.loads((fixture / "sentences.json").read_text(encoding="utf-8"))[1]
    expected = np.load(fixture / "expected_top_layer.npz")
    for settings, agreeing in (({}, 1), ({"stateful": True}, 7)):
        answers = run.answers("embed", sentences, layer=2, **settings)
        found = [np.array(answer.output).reshape(-1, 2, 16).swapaxes(0, 1) for answer in answers]
        worst = [np.abs(v - expected[f"list1_sent{i}"]).max() for i, v in enumerate(found)]
        assert [each <= 1e-5 for each in worst] == [i < agreeing for i in range(7)]
