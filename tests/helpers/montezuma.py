"""Real frames of Montezuma's Revenge, and what they take in a coin-flip buffer."""

import hashlib
import itertools

import numpy as np
from measuring import resident

from cfn.envs.atari import make
from cfn.replay.coins import CoinReplay
from cfn.replay.frames import FrameStore

D = 20


def played():
    """Frames, without end, of a policy that keeps an action for a while and so gets around."""
    env, rng, action = make(), np.random.default_rng(0), 0
    for episode in itertools.count():
        frame, ended = env.reset(seed=episode)[0], False
        while not ended:
            yield frame
            action = int(rng.integers(18)) if rng.random() < 0.15 else action
            frame, _, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated


def buffer_bytes(steps):
    """Return the growth of this process for a number of entries, and the number of distinct frames; check every frame.

    Frame, coins, cached prior, priority, counts and index together.
    """
    frames, rng = played(), np.random.default_rng(0)
    fill(frames, 100, rng)  # compiled, and little of it to be used again
    before = resident()
    hashes, slots, replay = fill(frames, steps, rng)
    taken, store = resident() - before - hashes.nbytes - slots.nbytes, replay.frames
    for i in rng.choice(steps, min(steps, 20_000), replace=False):
        (frame,) = store[slots[i : i + 1]]
        assert hashed(frame) == hashes[i].tobytes()
    return taken, len(store)


def fill(frames, steps, rng):
    """A buffer of so many entries."""
    store = FrameStore((84, 84), np.uint8)
    store.keep_features(D)
    replay = CoinReplay(steps, D, store)
    hashes, slots = np.zeros((steps, 8), np.uint8), np.zeros(steps, np.int64)
    for i, frame in enumerate(itertools.islice(frames, steps)):
        slots[i] = store.put(frame)
        store.features[slots[i]] = i
        replay.add(slots[i : i + 1], np.sign(rng.random((1, D)) - 0.5))
        hashes[i] = np.frombuffer(hashed(frame), np.uint8)
    return hashes, slots, replay


def hashed(frame):
    return hashlib.blake2b(np.ascontiguousarray(frame).data, digest_size=8).digest()
