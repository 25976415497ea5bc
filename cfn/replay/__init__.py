"""Replay buffers: transitions of agents and coin flips of the bonus, with each distinct frame stored once."""
