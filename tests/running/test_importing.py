"""Hugging Face folders in use, as runs, and back."""

import json
import random

import pytest
import torch
from click.testing import CliRunner
from tokenizers import pre_tokenizers
from torch.testing import assert_close

import regard
from regard.cli import main
from regard.running import export_hugging_face, import_hugging_face

transformers = pytest.importorskip("transformers")

CLOSE = {"atol": 1e-5, "rtol": 0}
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w"), ("Ġ", "t"), ("Ġt", "he")]
TOKENS = [*BYTES, *("".join(pair) for pair in MERGES), "<|endoftext|>"]
TEXT = "hello the world — żółw, 東京!\n\nthe end"


def typed(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def folder(tmp_path):
    """A small GPT-2 with byte-level words, in the files of GPT2Tokenizer; 5 rows have no word."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(TOKENS) + 5,
        n_positions=64,
        n_embd=12,
        n_layer=2,
        n_head=3,
        bos_token_id=len(TOKENS) - 1,
        eos_token_id=len(TOKENS) - 1,
    )
    place = tmp_path / "gpt2"
    model = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
        model.transformer.ln_f.bias[0] = 2.0  # what must not be said is the likeliest
        model.transformer.wte.weight[len(TOKENS) :, 0] = 4.0
    model.save_pretrained(place)
    (place / "vocab.json").write_text(json.dumps({t: n for n, t in enumerate(TOKENS)}))
    merges = "\n".join(f"{left} {right}" for left, right in MERGES)
    (place / "merges.txt").write_text(f"#version: 0.2\n{merges}\n")
    return place


def their_logits(place, ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(place).eval()
    with torch.no_grad():
        return model(ids).logits


def test_a_folder_is_used_as_it_is(folder):
    run = regard.load(folder)
    words = transformers.GPT2Tokenizer.from_pretrained(folder)
    ids = words(TEXT).input_ids
    assert run.tokenizer.encode(TEXT).ids == ids
    assert run.tokenizer.end == run.tokenizer.start == len(TOKENS) - 1
    assert_close(
        run.logits(torch.tensor([ids])), their_logits(folder, torch.tensor([ids])), **CLOSE
    )
    looks = run.look("hello the end")
    assert [look.path for look in looks] == ["layers.0.attention", "layers.1.attention"]
    assert run.generate("hello", longest=9)[0].text.startswith("hello")


def test_looks_say_what_tokens_write_and_not_their_alphabet_of_bytes(folder):
    run = regard.load(folder)
    [look, _] = run.look("hello the żw")
    assert run.tokenizer.encode("hello the żw").tokens == ["hello", "Ġthe", "Ġ", "Å", "¼", "w"]
    assert [label.text for label in look.queries] == ["hello", " the", " ", "ż", "ż", "w"]
    [other, _] = regard.look(run.model, run.tokenizer, "hello the")
    assert [label.text for label in other.queries] == ["hello", " the"]
    ids = [*run.tokenizer.encode("żhello the").ids, run.tokenizer.end]
    assert run.tokenizer.pieces_of(ids) == ["Å", "¼", "hello", " the", "<|endoftext|>"]
    [answer] = run.generate("hello the", longest=5)
    for look in run.look_at(answer):
        assert not any("Ġ" in label.text for label in look.queries)


def test_perplexity_is_that_of_the_whole_text_between_two_ends(folder):
    run = regard.load(folder)
    ids = torch.tensor([[len(TOKENS) - 1, *run.tokenizer.encode(TEXT).ids, len(TOKENS) - 1]])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        loss = model(ids, labels=ids).loss
    assert run.perplexity(TEXT) == pytest.approx(float(loss.exp()), rel=1e-5)


def test_a_text_longer_than_the_positions_is_scored_window_by_window(folder, tmp_path):
    run = regard.load(folder)
    (tmp_path / "text.txt").write_text("the end of the world, " * 40)
    values = run.evaluate(files=[tmp_path / "text.txt"])
    assert values["tokens"] > 200 and values["perplexity"] > 1


def test_ids_without_a_word_are_never_said(folder):
    run = regard.load(folder)
    likeliest = run.logits(torch.tensor([[5, 7]]))[0, -1].argmax()
    assert likeliest >= len(TOKENS)
    for settings in ({}, {"beam": 3}, {"temperature": 2.0, "seed": 3}):
        assert run.generate(["he", "x"], longest=7, **settings)


def test_import_and_export_on_the_command_line_keep_every_logit(folder, tmp_path):
    done = typed("import", folder, tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "gpt2, " in done.output and "parameters" in done.output
    done = typed("export", tmp_path / "run", tmp_path / "out", "--to", "hf")
    assert done.exit_code == 0, done.output
    assert done.output.strip().endswith("GPT2LMHeadModel")
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert words.eos_token == words.bos_token == "<|endoftext|>"
    run = regard.load(tmp_path / "run")
    ids = torch.tensor(words([TEXT]).input_ids)
    assert ids[0].tolist() == run.tokenizer.encode(TEXT).ids
    assert words.decode(ids[0]) == TEXT
    first = their_logits(folder, ids)
    assert_close(run.logits(ids), first, **CLOSE)
    assert_close(their_logits(tmp_path / "out", ids), first, **CLOSE)
    assert_close(regard.load(tmp_path / "out").logits(ids), first, **CLOSE)
    assert typed("verify", tmp_path / "run").exit_code == 0


def test_commands_take_a_folder_as_it_is(folder, tmp_path):
    done = typed("look", folder, "hello the end")
    assert done.exit_code == 0, done.output
    assert "2 attentions over" in done.output
    done = typed("generate", folder, "hello", "--longest", 3)
    assert done.exit_code == 0 and done.output.startswith("hello")
    (tmp_path / "t.txt").write_text(TEXT)
    done = typed("evaluate", folder, "--data", tmp_path / "t.txt", "--json")
    assert done.exit_code == 0, done.output
    assert "perplexity" in json.loads(done.output)
    done = typed("verify", folder)
    assert done.exit_code == 0 and "there is no manifest" in done.output


def test_a_prompt_that_is_too_long_is_told_the_limit(folder):
    done = typed("generate", folder, "the " * 70)
    assert done.exit_code == 2
    assert "the prompt has" in done.output and "the model has 64 positions" in done.output
    assert typed("generate", folder, "the " * 70, "--sliding", "--longest", 3).exit_code == 0
    done = typed("look", folder, "the " * 70)
    assert done.exit_code == 2 and "this model has 64 positions" in done.output


def test_a_folder_of_others_has_no_data_to_be_judged_on(folder):
    done = typed("evaluate", folder)
    assert done.exit_code == 2
    assert done.output == "regard: there is no data.valid to evaluate on; --data names files\n"


def test_wrong_folders_are_one_line_and_exit_code_2(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").write_text("mine")
    for words, told in (
        (("import", tmp_path / "empty", tmp_path / "run"), "is no Hugging Face folder"),
        (("import", tmp_path / "none", tmp_path / "run"), "is no Hugging Face folder"),
        (("import", folder, tmp_path / "full"), "is not empty"),
        (("export", folder, tmp_path / "full", "--to", "hf"), "is not empty"),
        (("export", folder, tmp_path / "x", "--to", "tf"), "hf"),
        (("look", tmp_path / "empty", "x"), "config.json"),
    ):
        done = typed(*words)
        assert done.exit_code == 2, done.output
        assert told in done.output and done.output.count("\n") == 1
    assert (tmp_path / "full" / "diary.txt").read_text() == "mine"
    assert not (tmp_path / "run").exists() and not (tmp_path / "x").exists()


def test_a_run_trained_here_loads_there_with_equal_logits(written, tmp_path):
    """Without biases, which they have: zeros stand for them."""
    settings = {"training.steps": 3, "training.evaluate_every": 3, "model.bias": False}
    run = regard.train(written("transformer"), tmp_path / "run", settings)
    assert export_hugging_face(run, tmp_path / "out") == "GPT2LMHeadModel"
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = words("the old cat sees a bird", return_tensors="pt").input_ids
    assert ids[0].tolist() == run.tokenizer.encode("the old cat sees a bird").ids
    assert_close(their_logits(tmp_path / "out", ids), run.logits(ids), **CLOSE)
    assert words.eos_token == "</s>"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"model.norm": "post"}, r"norm \('post'\) has no counterpart in gpt2, which has 'pre'"),
        ({"model.positions": "rotary"}, r"positions \('rotary'\) has no counterpart"),
    ],
)
def test_what_they_do_not_have_is_not_exported(written, tmp_path, setting, told):
    settings = {"training.steps": 1, "training.evaluate_every": 1, **setting}
    run = regard.train(written("transformer"), tmp_path / "run", settings)
    with pytest.raises(ValueError, match=told):
        export_hugging_face(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_model_they_do_not_have_is_not_exported(written, tmp_path):
    settings = {"training.steps": 1, "training.evaluate_every": 1}
    run = regard.train(written("lstm"), tmp_path / "run", settings)
    with pytest.raises(ValueError, match="rnn has no counterpart at Hugging Face; these models"):
        export_hugging_face(run, tmp_path / "out")


def test_gpt2_finetune_goes_on_from_a_folder(folder, tmp_path):
    """Its settings, weights and words, and a loss that falls."""
    chance = random.Random(1)
    lines = [" ".join(chance.choices(["hello", "the", "world", "end"], k=9)) for _ in range(400)]
    (tmp_path / "input.txt").write_text("\n".join(lines))
    settings = {
        "model.from": str(folder),
        "text.from": str(folder),
        "data.train": str(tmp_path / "input.txt"),
        "training.steps": 20,
        "training.length": 32,
        "training.rate": 3e-3,
        "training.evaluate_every": 10,
    }
    before = regard.load(folder).evaluate(examples=["\n".join(lines[-20:])])["loss"]
    run = regard.train("gpt2-finetune", tmp_path / "tuned", settings)
    assert run.recipe.model["heads"] == 3 and run.recipe.model["vocabulary_size"] == len(TOKENS) + 5
    assert run.evaluate("valid")["loss"] < 0.9 * before
    again = regard.load(tmp_path / "tuned")
    assert again.tokenizer.encode(TEXT).ids == regard.load(folder).tokenizer.encode(TEXT).ids
    still = regard.train(
        "gpt2-finetune", tmp_path / "still", {**settings, "training.rate": 0.0, "training.steps": 1}
    )
    ids = torch.tensor([[1, 2, 3]])
    assert_close(still.logits(ids), their_logits(folder, ids), **CLOSE)


def test_a_bert_folder_answers_fill_embed_classify_and_look(tmp_path):
    torch.manual_seed(1)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sees", "."]
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=9,
        id2label={0: "bad", 1: "good"},
    )
    for kind in ("BertForMaskedLM", "BertForSequenceClassification"):
        getattr(transformers, kind)(config).save_pretrained(tmp_path / kind)
        (tmp_path / kind / "vocab.txt").write_text("\n".join(pieces))
    words = transformers.BertTokenizer.from_pretrained(tmp_path / "BertForMaskedLM")
    run = regard.load(tmp_path / "BertForMaskedLM")
    text = "The CATS sees, thé."
    assert words(text).input_ids == [2, *run.tokenizer.encode(text).ids, 3]
    [answer] = run.answers("fill", ["the [MASK] sees"])
    theirs = transformers.BertForMaskedLM.from_pretrained(tmp_path / "BertForMaskedLM").eval()
    ids = torch.tensor([words("the [MASK] sees").input_ids])
    with torch.no_grad():
        odds = theirs(ids).logits[0, 2].softmax(dim=-1)
    assert answer.hypotheses[0].score == pytest.approx(float(odds.max()), rel=1e-4)
    assert len(run.look("the cat sees.")) == 2
    with pytest.raises(ValueError, match=r"write \[MASK\]"):
        list(run.answers("fill", ["the cat"]))
    theirs.bert.save_pretrained(tmp_path / "BertModel")
    (tmp_path / "BertModel" / "vocab.txt").write_text("\n".join(pieces))
    body = regard.load(tmp_path / "BertModel")
    assert len(next(body.answers("embed", ["the cat"])).output) == 12
    with pytest.raises(ValueError, match="guesses no words"):
        body.evaluate(examples=["the cat sees.", "the cats."])
    judge = regard.load(tmp_path / "BertForSequenceClassification")
    assert judge.classify("the cats")[0].output in ("bad", "good")
    import_hugging_face(tmp_path / "BertForMaskedLM", tmp_path / "run")
    export_hugging_face(regard.load(tmp_path / "run"), tmp_path / "out")
    back = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert back(text).input_ids == words(text).input_ids
    assert (back.mask_token, back.cls_token, back.pad_token) == ("[MASK]", "[CLS]", "[PAD]")
