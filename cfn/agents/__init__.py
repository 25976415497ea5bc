"""Agents: they act, and learn from the sum of extrinsic and intrinsic reward."""
