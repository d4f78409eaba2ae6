"""Solve, grade, and look at checkpoints."""
