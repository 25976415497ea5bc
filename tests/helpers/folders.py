"""Folders as runs leave them, in no time."""

import json

import yaml

HEADER = "state,count,true_bonus,predicted_bonus"


def make_run(
    root, bonus="cfn", seed=0, env="gridworld", agent="rainbow", returns=(0, 1), mse=(0.1, 0.01), every=100,
    config=None, overrides=(), state="finished", tables=1,
):  # fmt: skip
    """A run folder under `root`; `config` adds keys such as `"bonus.lr": 1`."""
    folder = root / env / f"{agent}-{bonus}" / f"{len(list(root.rglob('metrics.jsonl')))}" / f"seed={seed}"
    (folder / ".hydra").mkdir(parents=True)
    (folder / "counts").mkdir()
    keys = {"steps": 1000, "seed": seed, "env": {"_target_": "e"}, "agent": {"_target_": "a"}, "bonus": {}}
    for key, value in (config or {}).items():
        place = keys
        *parents, name = key.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = value
    (folder / ".hydra" / "config.yaml").write_text(yaml.safe_dump(keys))
    (folder / ".hydra" / "overrides.yaml").write_text(yaml.safe_dump(list(overrides)))
    rows = [
        {
            "step": (i + 1) * every,
            "bonus/mse": error + seed * 0.002,
            "bonus/floor_mse": 0.002,
            "eval/return": score,
            "explore/states": 10 * (i + 1),
            "train/return": seed if i == 0 else 1,
            "train/episodes": i + 1,
            "speed/steps_per_second": 50 + seed,
        }
        for i, (error, score) in enumerate(zip(mse, returns, strict=True))
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = {
        "state": state, "env": env, "agent": agent, "bonus": bonus, "seed": seed, "setting": f"{env}/{agent}-{bonus}",
        "steps": len(rows) * every, "total_steps": 1000, "memory_mb": 500 + seed, "metrics": rows[-1] if rows else {},
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))
    for table in range(tables):
        lines = [f"{i} {table},{i + 1},{(i + 1) ** -0.5},{(i + 1) ** -0.5 + 0.01 * seed}" for i in range(5)]
        (folder / "counts" / f"step_{(table + 1) * every:09}.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    return folder
