"""Special tokens of a recipe, in a run that was trained with them."""

from regard.running import load
from regard.training.train import train

SHARED = """
[text.roles]
end = "<|endoftext|>"
"""
MASKED = f'{SHARED}mask = "[MASK]"\n'


def test_the_roles_of_a_recipe_are_those_of_its_run(written, tmp_path):
    folder, _ = train(str(written("lstm", MASKED)), tmp_path / "run")
    made = load(folder).tokenizer
    assert made.specials == ("<unk>", "<|endoftext|>", "[MASK]")
    assert made.roles == {"unknown": 0, "start": 1, "end": 1, "mask": 2}
    recipe = (folder / "recipe.toml").read_text()
    assert '[text.roles]\nend = "<|endoftext|>"\nmask = "[MASK]"\n' in recipe


def test_a_text_comes_to_an_end_though_the_same_token_starts_it(written, tmp_path):
    folder, _ = train(str(written("lstm", SHARED)), tmp_path / "run")
    [answer] = load(folder).generate("the", longest=200, method="sample", seed=1)
    # A line of the corpus has nine words at most, so that none in two hundred is an end is a bar.
    assert len(answer.output.split()) < 200
