"""Training: the loop of Algorithm 1, evaluation, visit counts, checkpoints, signals, resuming and playing."""
