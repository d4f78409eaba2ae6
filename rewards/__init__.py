"""Rubric, judge, judgment, score, reward."""
