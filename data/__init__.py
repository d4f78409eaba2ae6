"""Cases and their issue trees: loading, samples, the mini world."""
