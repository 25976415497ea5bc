"""Checkpoints: the state_dict contract, a safe encoding of states, and the folder that keeps them."""
