"""Tests share their cores with whatever else is running; programs they start inherit it."""

from regard.openmp import spin_briefly

spin_briefly()
