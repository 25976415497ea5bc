"""Trackers: `metrics.jsonl` (the source of truth), the terminal, pictures, and mirrors (W&B and TensorBoard)."""
