"""AllenNLP's folders that are not what they should be are refused in one line."""

import json
import sys

import pytest

from regard.checkpoints.allennlp import is_elmo, read_elmo

h5py = pytest.importorskip("h5py")
np = pytest.importorskip("numpy")
OPTIONS = {
    "lstm": {"dim": 7, "projection_dim": 5, "n_layers": 2, "cell_clip": 3, "proj_clip": None},
    "char_cnn": {"embedding": {"dim": 3}, "filters": [[1, 2], [3, 4]], "n_highway": 1},
}
ARRAYS = {
    "char_embed": (261, 3),
    "CNN/W_cnn_0": (1, 1, 3, 2),
    "CNN/b_cnn_0": (2,),
    "CNN/W_cnn_1": (1, 3, 3, 4),
    "CNN/b_cnn_1": (4,),
    **{f"CNN_high_0/W_{name}": (6, 6) for name in ("carry", "transform")},
    **{f"CNN_high_0/b_{name}": (6,) for name in ("carry", "transform")},
    "CNN_proj/W_proj": (6, 5),
    "CNN_proj/b_proj": (5,),
    **{
        f"RNN_{side}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/{name}": shape
        for side in (0, 1)
        for layer in (0, 1)
        for name, shape in (("W_0", (10, 28)), ("B", (28,)), ("W_P_0", (7, 5)))
    },
}


@pytest.fixture
def folder(tmp_path):
    """Write a folder, with some of it otherwise."""

    def write(options=OPTIONS, **shapes):
        (tmp_path / "options.json").write_text(json.dumps(options))
        with h5py.File(tmp_path / "weights.hdf5", "w") as file:
            for name, shape in {**ARRAYS, **shapes}.items():
                if shape is not None:
                    file[name] = np.zeros(shape, dtype=np.float32)
        return tmp_path

    return write


def changed(section, **values):
    return {**OPTIONS, section: {**OPTIONS[section], **values}}


def test_a_folder_is_read_with_its_clipping_and_residual_as_it_says(folder):
    settings, weights = read_elmo(folder())
    assert is_elmo(folder())
    assert settings["filters"] == ((1, 2), (3, 4))
    assert (settings["cell_clip"], settings["projection_clip"]) == (3.0, 0.0)
    assert settings["residual"] is False
    bias = weights["reader.layers.1.bias"]
    assert bias.shape == (2, 28)
    assert bias.sum(dim=0).tolist() == [0.0] * 7 + [2.0] * 7 + [0.0] * 14  # 1 for each f gate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"char_embed": None}, "char_embed is missing"),
        ({"char_embed": (300, 3)}, r"char_embed is float32 \(300, 3\) and should be"),
        ({"CNN_proj/W_proj": (6, 4)}, r"W_proj is float32 \(6, 4\) and should be float32 \(6, 5\)"),
        ({"softmax/W": (5, 9)}, r"'softmax/W' is not one of its weights"),
        ({"options": changed("lstm", dim="many")}, r"options.json: lstm.dim: Input should be"),
        ({"options": {"lstm": {}}}, r"options.json: lstm.dim: Field required"),
        ({"options": changed("char_cnn", n_characters=261)}, r"n_characters \(261\) must be 262"),
        ({"options": changed("char_cnn", activation="gelu")}, r"activation \('gelu'\) must be one"),
        ({"options": changed("lstm", n_layers=3)}, r"Cell2/LSTMCell/W_0 is missing, .* and 3 more"),
    ],
)
def test_what_does_not_fit_is_named(folder, change, message):
    with pytest.raises(ValueError, match=message) as told:
        read_elmo(folder(**change))
    assert "\n" not in str(told.value)


def test_files_may_go_by_the_names_they_are_published_under(folder):
    place = folder()
    settings, _ = read_elmo(place)
    for name in ("options.json", "weights.hdf5"):
        (place / name).rename(place / f"elmo_2x4096_512_2048cnn_2xhighway_{name}")
    assert is_elmo(place) and read_elmo(place)[0] == settings
    (place / "elmo_2x1024_128_2048cnn_1xhighway_options.json").write_text("{}")
    assert not is_elmo(place)  # which of the two goes with the weights?


def test_a_folder_without_the_two_files_is_no_elmo(tmp_path):
    assert not is_elmo(tmp_path)
    with pytest.raises(ValueError, match=r"must hold options.json and one .hdf5 file"):
        read_elmo(tmp_path)


def test_a_file_that_is_no_hdf5_is_refused(folder):
    place = folder()
    (place / "weights.hdf5").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"weights.hdf5 is no HDF5 file of numbers"):
        read_elmo(place)


def test_an_array_that_lies_in_another_file_is_not_read(folder):
    place = folder(char_embed=None)
    secret = place / "secret"
    secret.write_bytes(bytes(261 * 3 * 4))
    with h5py.File(place / "weights.hdf5", "a") as file:
        elsewhere = [(str(secret), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("char_embed", (261, 3), dtype="f4", external=elsewhere)
    with pytest.raises(ValueError, match="char_embed is in another file"):
        read_elmo(place)


def test_a_missing_h5py_is_said_with_what_to_install(folder, monkeypatch):
    place = folder()
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        ValueError, match=r"h5py, which is not installed: pip install 'regard\[elmo"
    ):
        read_elmo(place)
