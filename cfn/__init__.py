"""A laboratory for count-based exploration: bonuses, agents, environments, and true visit counts to compare with.

`cfn train` composes them from configs. Every class also takes plain arguments and works in any training loop.
"""

__version__ = "0.1.0"
