"""Tasks: one file each, from data to feeds, objective, metrics, verbs and looks.

from regard.tasks import make_task

task = make_task(recipe)
corpus = task.read("train")
resources = task.prepare(corpus, None)       # words and labels
feed = task.training_feed(corpus, resources)
objective = task.objective(model)            # named parts, each a sum with its count
"""

from regard.tasks.answers import Answer, Candidate
from regard.tasks.catalog import TASKS, find_task, make_task
from regard.tasks.objective import Objective, Outcome, Sum
from regard.tasks.resources import Resources
from regard.tasks.task import Check, Task, Verb

__all__ = [
    "TASKS",
    "Answer",
    "Candidate",
    "Check",
    "Objective",
    "Outcome",
    "Resources",
    "Sum",
    "Task",
    "Verb",
    "find_task",
    "make_task",
]
