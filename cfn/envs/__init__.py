"""Environments. Importing this package registers `cfn/DeepSea-v0`, `cfn/Gridworld-v0`, `cfn/Taxi-v0` with Gymnasium."""

import gymnasium as gym

gym.register("cfn/DeepSea-v0", entry_point="cfn.envs.deep_sea:DeepSea")
gym.register("cfn/Gridworld-v0", entry_point="cfn.envs.gridworld:Gridworld")
gym.register("cfn/Taxi-v0", entry_point="cfn.envs.taxi:Taxi")
