"""Metrics: predictions and references become a number with a signature of how it was computed.

Likelihoods, classification, text (BLEU and chrF by sacrebleu, exact matches) and word alignment;
and a catalog that tells for every metric which way is up.
"""

from regard.metrics.alignment import Link, Links, aer, grow_diag_final, intersect, read_links, union
from regard.metrics.catalog import METRICS, Metric, is_better, metric
from regard.metrics.classification import ClassScores, Confusion, Label, accuracy, confusion, f1
from regard.metrics.likelihood import likelihood_scores
from regard.metrics.score import Score
from regard.metrics.text import bleu, chrf, exact_match

__all__ = [
    "METRICS",
    "ClassScores",
    "Confusion",
    "Label",
    "Link",
    "Links",
    "Metric",
    "Score",
    "accuracy",
    "aer",
    "bleu",
    "chrf",
    "confusion",
    "exact_match",
    "f1",
    "grow_diag_final",
    "intersect",
    "is_better",
    "likelihood_scores",
    "metric",
    "read_links",
    "union",
]
