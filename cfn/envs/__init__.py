"""Environments; importing this package registers the Gymnasium ids `cfn/Gridworld-v0` and `cfn/Taxi-v0`."""

import gymnasium as gym

gym.register("cfn/Gridworld-v0", entry_point="cfn.envs.gridworld:Gridworld")
gym.register("cfn/Taxi-v0", entry_point="cfn.envs.taxi:Taxi")
