"""The examples, at a small size."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_crowding_measures_and_draws(tmp_path):
    command = [sys.executable, ROOT / "examples" / "crowding.py", "--cells", "4", "6", "--features", "8", "64"]
    out = tmp_path / "figure.png"
    done = subprocess.run([*command, "--seeds", "1", "--out", out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    factors = {(row[0], row[1]): float(row[3]) for row in rows}
    assert factors["36", "8"] < 0.7, "too small with more states than features"
    assert factors["36", "64"] > 0.95
    assert out.stat().st_size > 1000
