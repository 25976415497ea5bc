"""Exploration bonuses: what a visit to a state is worth beyond its reward."""
