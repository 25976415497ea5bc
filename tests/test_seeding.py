import torch

from cfn import seeding


def test_a_stream_is_known_by_its_name():
    draws = {path: seeding.generator(7, *path).integers(2**60) for path in [("agent",), ("bonus",), ("train", 0, 1)]}
    assert len(set(draws.values())) == 3
    assert draws["agent",] == seeding.generator(7, "agent").integers(2**60)
    assert draws["agent",] != seeding.generator(8, "agent").integers(2**60)


def test_integers_fit_everyone_and_do_not_repeat():
    seeds = {
        seeding.integer(seed, "train", env, episode) for seed in range(5) for env in range(5) for episode in range(40)
    }
    assert len(seeds) == 1000
    assert all(0 <= s < 2**31 for s in seeds)


def test_torch_is_seeded():
    draws = []
    for seed in (0, 0, 1):
        seeding.seed_everything(seed)
        draws.append(torch.rand(3).tolist())
    assert draws[0] == draws[1] != draws[2]
