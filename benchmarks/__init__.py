"""Measurements, run by hand: each prints its figures with both sides from one run."""
