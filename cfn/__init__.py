"""Count-based exploration by flipping coins: bonuses, agents, environments and the true counts beside them.

`cfn train` composes them from configs; every class also works by itself, from plain arguments, in anyone's loop.
"""

__version__ = "0.1.0"
