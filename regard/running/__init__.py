"""A run in use: load it, ask it, evaluate it, look into it, verify it.

import regard

run = regard.train("numbers-de")               # or regard.load("runs/numbers-de")
run.translate(["forty-two"])[0].output
run.evaluate(split="test")
run.look("forty-two thousand").save("look.html")
"""

from regard.running.exporting import export_hugging_face
from regard.running.importing import import_folder, import_hugging_face
from regard.running.loading import load
from regard.running.run import Run
from regard.running.training import Stopped, train
from regard.running.verifying import Proof, verify
from regard.tasks.answers import Answer, Candidate

__all__ = [
    "Answer",
    "Candidate",
    "Proof",
    "Run",
    "Stopped",
    "export_hugging_face",
    "import_folder",
    "import_hugging_face",
    "load",
    "train",
    "verify",
]
