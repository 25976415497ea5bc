"""Where a run is written down: `metrics.jsonl` (the truth), the terminal, and Weights & Biases (a mirror)."""
