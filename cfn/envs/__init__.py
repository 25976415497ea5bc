"""Environments. Importing this package registers their Gymnasium ids."""

import gymnasium as gym

gym.register("cfn/Gridworld-v0", entry_point="cfn.envs.gridworld:Gridworld")
gym.register("cfn/Taxi-v0", entry_point="cfn.envs.taxi:Taxi")
