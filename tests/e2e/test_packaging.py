"""The wheel that users install works by itself, in an empty folder."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_package_and_every_config(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    configs = {f"cfn/conf/{path.relative_to(ROOT / 'conf')}" for path in (ROOT / "conf").rglob("*.yaml")}
    assert configs <= names
    assert {"cfn/py.typed", "cfn/analysis/report/page.html", "cfn/analysis/report/page.js"} <= names
    assert not any(name.startswith(("tests/", "outputs/")) for name in names)


def test_it_trains_from_an_installed_wheel_in_an_empty_folder(wheel, tmp_path):
    """In a virtual environment of its own, which borrows only the dependencies of this one."""
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / "bin"
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
    (tmp_path / "empty").mkdir()
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(command, *arguments):
        return subprocess.run(
            [str(scripts / command), *arguments],
            cwd=tmp_path / "empty",
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    installed = run("python", "-m", "pip", "install", "--no-deps", "--force-reinstall", "--no-index", str(wheel))
    assert installed.returncode == 0, installed.stderr
    show = "import cfn, cfn.config; print(cfn.__file__); print(cfn.config.CONF)"
    assert run("python", "-c", show).stdout.splitlines() == [
        str(site / "cfn" / "__init__.py"),
        str(site / "cfn" / "conf"),
    ]
    done = run("cfn", "train", "steps=200", "tracker=none")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "empty").rglob("metrics.jsonl"))
