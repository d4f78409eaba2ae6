"""The GRPO recipe, its configuration and its probes."""
