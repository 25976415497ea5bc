"""Sessions of nox. Every session installs what it needs.

`nox -s fast` after each edit; `nox` (the whole suite) and `nox -s lint types docs` before a commit; `nox -s slow bench`
on request.
"""

import nox

nox.options.sessions = ["tests"]
nox.options.reuse_existing_virtualenvs = True

CONSTRAINTS = ("-c", "constraints.txt")
EVERYTHING = ".[paper,minigrid,sb3,torchrl,tensorboard,trackio,slurm,optuna,joblib]"
PARALLEL = ("-n", "auto", "--dist", "worksteal")


def install_project(session: nox.Session, group: str) -> None:
    """Install the package as users get it (not editable) with all its extras, and the tools of one dependency group."""
    session.install(
        *CONSTRAINTS, EVERYTHING, *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), group)
    )


@nox.session
def fast(session: nox.Session) -> None:
    """Run the tests that need neither a process nor seconds: at most 3 minutes on two cores."""
    install_project(session, "test")
    session.run(
        "pytest",
        *PARALLEL,
        "-m",
        "not slow and not bench and not slurm and not process and not thorough",
        *session.posargs,
    )


@nox.session
def tests(session: nox.Session) -> None:
    """Run the whole suite except `slow` and `bench`: at most 10 minutes on two cores."""
    install_project(session, "test")
    session.run("pytest", *PARALLEL, *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that take minutes each."""
    install_project(session, "test")
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session
def slurm(session: nox.Session) -> None:
    """Run sweeps on a real Slurm, which is started if it is missing; the tests are skipped if it cannot be."""
    install_project(session, "test")
    session.run("pytest", "-m", "slurm", "-p", "no:randomly", "-rs", "tests/slurm", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks at full size, and write bench.json; they need an otherwise idle machine."""
    install_project(session, "test")
    session.run("pytest", "--bench", "-m", "bench", "-s", "-p", "no:randomly", "tests/bench", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install(*CONSTRAINTS, *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    install_project(session, "types")
    session.run("mypy", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the website into docs/_build/html. A warning or a dead internal link is an error."""
    install_project(session, "docs")
    session.run("sphinx-build", "-W", "--keep-going", "-n", "-b", "html", "docs", "docs/_build/html", *session.posargs)
