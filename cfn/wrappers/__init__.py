"""Bonuses in training loops outside this package: Gymnasium's vector environments, Stable-Baselines3 and TorchRL.

Stable-Baselines3 and TorchRL are optional, so their wrappers are imported by their modules:
`cfn.wrappers.stable_baselines3.VecBonus` and `cfn.wrappers.torchrl.BonusTransform`.
"""

from cfn.wrappers.gymnasium import BonusVectorWrapper

__all__ = ["BonusVectorWrapper"]
