"""PyTorch helpers that agents and bonuses share: devices, networks, optimisers, running statistics, memory limits."""
