"""The worked examples of the lectures, each computed with the parts the package is made of.

from regard.lectures import play

lesson = play("aaba")
print(lesson)                                 # the steps, with their numbers
lesson.numbers["base_3"]["weights"]           # the same for programs
lesson.looks                                  # and what there is to draw
"""

from regard.lectures.catalog import NAMES, TITLES, play
from regard.lectures.lesson import Lesson, Step

__all__ = ["NAMES", "TITLES", "Lesson", "Step", "play"]
