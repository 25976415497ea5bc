"""Trackers: `metrics.jsonl` (the source of truth), the terminal, pictures, and Weights & Biases (a mirror)."""
