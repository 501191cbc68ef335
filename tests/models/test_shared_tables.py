import pytest

from regard.models import build

SIZES = {"vocabulary_size": 13, "embedding_size": 7, "hidden_size": 7, "layers": 2}


@pytest.mark.parametrize("name", ["luong", "seq2seq"])
def test_one_table_serves_source_target_and_output(name):
    model = build(name, **SIZES, tied=True, shared=True)
    tables = [p for p in model.parameters() if tuple(p.shape) == (13, 7)]
    assert len(tables) == 1
    assert model.encoder.embedding.weight is tables[0]
    assert model.output.weight is tables[0]
    assert model.encoder.embedding.scaled  # or source words would come in seven times too small


@pytest.mark.parametrize("name", ["luong", "seq2seq"])
def test_one_table_for_two_vocabularies_is_refused(name):
    wanted = r"source_vocabulary_size \(11\) must be vocabulary_size \(13\)"
    with pytest.raises(ValueError, match=wanted):
        build(name, **SIZES, source_vocabulary_size=11, shared=True)
