"""Models: one file a paper, from batch to logits."""
