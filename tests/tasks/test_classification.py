"""A label for each text: from files to a run that answers."""

import json

import pytest
import torch
from click.testing import CliRunner
from torch import nn

import regard
from regard.attention import Attention, Dot, MultiHead
from regard.cli import main
from regard.data.batches import LabelledTexts
from regard.tasks.classification import ClassLikelihood, sort_labels
from regard.training.train import train


@pytest.fixture
def run(labelled, tmp_path):
    return regard.train(labelled, tmp_path / "run")


def typed(*words, stdin=None):
    done = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    return done.exit_code, done.output


def test_a_run_keeps_its_labels_and_answers_with_them(run):
    assert run.labels == ("bad", "good", "neither")
    assert json.loads((run.folder / "labels.json").read_text()) == ["bad", "good", "neither"]
    answers = run.classify(["a great film", "the film is empty", "long"])
    assert [answer.output for answer in answers] == ["good", "bad", "neither"]
    assert all(0.5 < answer.score <= 1 for answer in answers)


def test_n_best_gives_the_likeliest_labels_with_probabilities_that_add_up_to_one(run):
    (answer,) = run.classify("a dull film", n_best=3)
    assert next(each.output for each in answer.hypotheses) == "bad"
    assert sum(each.score for each in answer.hypotheses) == pytest.approx(1)
    scores = [each.score for each in answer.hypotheses]
    assert scores == sorted(scores, reverse=True)
    assert len(run.classify("a dull film", n_best=99)[0].hypotheses) == 3


def test_metrics_are_those_of_the_answers(run, tmp_path):
    lines = (tmp_path / "test.txt").read_text().splitlines()
    texts = [line.partition(" ")[2] for line in lines]
    truth = [line.partition(" ")[0] for line in lines]
    said = [answer.output for answer in run.classify(texts)]
    values = run.evaluate("test")
    right = [mine == theirs for mine, theirs in zip(said, truth, strict=True)]
    assert values["accuracy"] == pytest.approx(sum(right) / 20)
    f1 = []
    for label in run.labels:
        both = sum(s == t == label for s, t in zip(said, truth, strict=True))
        f1.append(2 * both / (said.count(label) + truth.count(label)))
    assert values["f1"] == pytest.approx(sum(f1) / 3)
    assert values["signature"].startswith(f"accuracy {values['accuracy']:.4g} | recipe:labelled")


def test_the_best_weights_are_those_of_the_best_accuracy(labelled, tmp_path):
    folder, _ = train(str(labelled), tmp_path / "run")
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    valid = [line for line in lines if line["event"] == "valid"]
    best = max(valid, key=lambda line: line["accuracy"])  # the first of equals
    assert lines[-1]["best_step"] == best["step"]


def test_evaluation_select_names_what_chooses_and_which_way_is_up(labelled, tmp_path):
    settings = ["evaluation.select=loss"]
    folder, _ = train(str(labelled), tmp_path / "run", settings)
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    valid = [line for line in lines if line["event"] == "valid"]
    assert lines[-1]["best_step"] == min(valid, key=lambda line: line["loss"])["step"]


def test_patience_waits_for_an_accuracy_to_rise(labelled, tmp_path):
    settings = ["training.patience=2", "training.evaluate_every=12", "training.rate=0.01"]
    folder, _ = train(str(labelled), tmp_path / "run", settings)
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    found = [line["accuracy"] for line in lines if line["event"] == "valid"]
    best = found.index(max(found))
    assert best > 2  # later than patience would have waited, had it taken down for up
    assert len(found) == best + 3


def test_a_label_that_training_never_saw_is_refused(run):
    with pytest.raises(ValueError, match=r"example 2: label \('god'\) is not known; did you mean"):
        run.evaluate(examples=[("a film", "good"), ("a film", "god")])


def test_a_batch_of_texts_answers_like_each_alone(run):
    texts = ["a", "a great film is", "dull dull", "", "film"]
    together = run.classify(texts)
    for text, answer in zip(texts, together, strict=True):
        (alone,) = run.classify(text)
        assert alone.output == answer.output
        assert alone.score == pytest.approx(answer.score, abs=1e-6)
    assert together[3].output == ""


def test_the_command_reads_texts_lines_and_standard_input(run, tmp_path):
    code, output = typed("classify", run.folder, "a great film", "dull")
    assert (code, output.split()) == (0, ["good", "bad"])
    code, output = typed("classify", run.folder, "--input", "-", "--json", stdin="fine\n\nlong\n")
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["output"] for row in rows] == ["good", "", "neither"]
    assert rows[0].keys() == {"input", "output", "score"}
    code, output = typed("classify", run.folder, "dull", "--n-best", "2")
    first, second = output.splitlines()  # as the guesses of `fill`, one below the other
    assert first.startswith("bad\t0.9")
    assert float(second.split("\t")[1]) < 0.5


def test_evaluate_takes_a_split_or_files(run, tmp_path):
    code, output = typed("evaluate", run.folder, "--split", "test", "--json")
    values = json.loads(output)
    assert code == 0
    assert {"accuracy", "f1", "loss", "tokens", "seconds", "signature"} == values.keys()
    code, output = typed("evaluate", run.folder, "--data", tmp_path / "test.txt", "--json")
    assert json.loads(output)["accuracy"] == values["accuracy"]
    assert "data:--data" in json.loads(output)["signature"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["classify", "RUN"], "nothing to classify"),
        (["classify", "RUN", "a", "--n-best", "0"], "n_best (0) must be a whole number, 1 or more"),
        (["translate", "RUN", "a"], "is a run of classification, which does classify"),
        (["generate", "RUN", "a", "--stream"], "is a run of classification, which does classify"),
        (["look", "RUN", "a film"], "dan has no attention to look at"),
        (["look", "RUN", "a film", "--target", "b"], "this classifier reads one text"),
        (["evaluate", "RUN", "--split", "test", "--data", "x"], "one is enough"),
        (["evaluate", "RUN", "--split", "best"], "'best' is not one of"),
        (["classify", "RUN", "a", "--look", "look.html"], "has no attention to look at"),
    ],
)
def test_what_a_classifier_cannot_do_is_one_line_and_exit_code_2(words, said, run):
    code, output = typed(*[run.folder if word == "RUN" else word for word in words])
    assert code == 2
    assert said in output.splitlines()[-1]
    assert "Traceback" not in output


def test_valid_share_holds_out_the_last_examples(labelled, tmp_path):
    labelled.write_text(labelled.read_text().replace('valid = "valid.txt"', "valid_share = 0.25"))
    run = regard.train(labelled, tmp_path / "run", {"training.steps": 2})
    assert (len(run.task.read("train")), len(run.task.read("valid"))) == (90, 30)
    lines = (tmp_path / "train.txt").read_text().splitlines()
    assert run.task.read("valid")[-1] == (lines[-1].partition(" ")[2], lines[-1].partition(" ")[0])


def test_given_vectors_are_started_from_and_can_be_kept(labelled, tmp_path):
    vectors = {"great": [0.5] * 8, "film": [-1.0] * 8}
    rows = [f"{word} {' '.join(map(str, row))}" for word, row in vectors.items()]
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n")
    settings = {"data.vectors": str(tmp_path / "vectors.txt"), "model.train_vectors": False}
    run = regard.train(labelled, tmp_path / "run", {**settings, "training.steps": 5})
    table = run.model.embedding.weight
    for word, row in vectors.items():
        assert table[run.tokenizer.id_of(word)].tolist() == row
    assert not torch.equal(table[run.tokenizer.id_of("dull")], torch.zeros(8))


def test_a_single_label_leaves_nothing_to_learn(labelled, tmp_path):
    (tmp_path / "train.txt").write_text("good a fine film\ngood great\n")
    with pytest.raises(
        ValueError, match=r"data\.train has 1 label \(good\): nothing to tell apart"
    ):
        regard.train(labelled, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_texts_whose_label_does_not_count_are_neither_lost_nor_won():
    class Fixed(torch.nn.Module):
        def forward(self, batch):
            return torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0]])

    ids = torch.ones(3, 1, dtype=torch.long)
    labels, counted = torch.tensor([0, 0, 0]), torch.tensor([True, False, True])
    objective = ClassLikelihood(Fixed())
    batch = LabelledTexts(ids, ids > 0, labels, counted)
    outcome = objective(batch)
    # −ln σ(2) − ln σ(−1) of the first and the last; only the first of these is right.
    assert outcome.parts["loss"].item() == pytest.approx(0.126928 + 1.313262, abs=1e-5)
    assert objective.counts(batch) == {"loss": 2}
    assert (outcome.reports["accuracy"].value.item(), outcome.reports["accuracy"].items) == (1, 2)


def test_labels_are_numbered_as_numbers_or_as_words():
    assert sort_labels({"10", "2", "-1"}) == ("-1", "2", "10")
    assert sort_labels({"b", "10", "a"}) == ("10", "a", "b")


def test_labels_of_a_stranger_are_checked(run):
    from regard.checkpoints.folders import write_manifest

    for content, said in (('["a", 3]', "list of strings"), ('["a", "a", "b"]', "a label twice")):
        (run.folder / "labels.json").write_text(content)
        write_manifest(run.folder)
        with pytest.raises(ValueError, match=rf"labels\.json .*{said}"):
            regard.load(run.folder)


class Pooling(nn.Module):
    """Words look at each other, the class looks at them, and something looks that says nothing."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 6)
        self.words = MultiHead(6, 2, sides=("words", "words"))
        self.pool = Attention(Dot(), sides=("class", "words"))
        self.other = Attention(Dot())

    def forward(self, batch):
        vectors = self.words(self.embedding(batch.ids))
        self.other(vectors[:, :2], vectors, vectors)
        return self.pool(vectors[:, :1], vectors, vectors).context[:, 0, :3]


def test_every_attention_of_a_classifier_is_labelled(labelled, tmp_path):
    run = regard.train(labelled, tmp_path / "run", {"training.steps": 2})
    looks = run.task.look(Pooling(), run.resources, "a film is great")
    told = {look.path: (look.kind, [q.text for q in look.queries]) for look in looks}
    words = ["a", "film", "is", "great"]
    assert told["words"] == ("self", words)
    assert told["pool"][0] == "pool"
    assert told["pool"][1][0] in run.labels
    assert told["other"] == ("other", ["0", "1"])
    assert [key.text for key in looks[1].keys] == words
    assert looks[1].key_text[looks[1].keys[1].start : looks[1].keys[1].end] == "film"
