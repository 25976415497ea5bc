"""A laboratory for count-based exploration: bonuses, agents, environments, and true visit counts to compare with.

`cfn train` composes them from configs. The names in `__all__` are for training loops of your own: they stay as they
are. Each is imported when it is first used, so that the command starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cfn.bonuses.base import Bonus
    from cfn.bonuses.coin_flip import CoinFlipBonus
    from cfn.bonuses.counts import CountBonus
    from cfn.bonuses.library import bonus_names, make_bonus
    from cfn.bonuses.none import NoBonus
    from cfn.bonuses.pixelcnn import PixelCNNBonus
    from cfn.bonuses.rnd import RNDBonus
    from cfn.bonuses.visits import Visits
    from cfn.training.visit_counts import VisitCounts as TrueCounts
    from cfn.training.visit_counts import bonus_errors
    from cfn.wrappers.gymnasium import BonusVectorWrapper

__version__ = "0.1.0"

__all__ = [
    "Bonus",
    "BonusVectorWrapper",
    "CoinFlipBonus",
    "CountBonus",
    "NoBonus",
    "PixelCNNBonus",
    "RNDBonus",
    "TrueCounts",
    "Visits",
    "bonus_errors",
    "bonus_names",
    "make_bonus",
]

_PLACES = {
    "Bonus": "cfn.bonuses.base",
    "BonusVectorWrapper": "cfn.wrappers.gymnasium",
    "CoinFlipBonus": "cfn.bonuses.coin_flip",
    "CountBonus": "cfn.bonuses.counts",
    "NoBonus": "cfn.bonuses.none",
    "PixelCNNBonus": "cfn.bonuses.pixelcnn",
    "RNDBonus": "cfn.bonuses.rnd",
    "TrueCounts": "cfn.training.visit_counts:VisitCounts",
    "Visits": "cfn.bonuses.visits",
    "bonus_errors": "cfn.training.visit_counts",
    "bonus_names": "cfn.bonuses.library",
    "make_bonus": "cfn.bonuses.library",
}
"""Module of each public name, with the name there if it is another one."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module 'cfn' has no attribute {name!r}")
    module, _, other = _PLACES[name].partition(":")
    return getattr(import_module(module), other or name)
