"""Agents: what acts, and learns from extrinsic plus intrinsic reward."""
