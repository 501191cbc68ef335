"""Corpora, images, episodes and generators become batches with masks."""
