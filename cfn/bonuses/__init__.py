"""Exploration bonuses: intrinsic rewards for visits to novel states."""
