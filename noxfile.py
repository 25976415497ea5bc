"""Sessions: `nox` runs the tests; `nox -s lint types slow bench` the rest. Every session installs what it needs."""

import nox

nox.options.sessions = ["tests"]
nox.options.reuse_existing_virtualenvs = True

CONSTRAINTS = ("-c", "constraints.txt")


def install_project(session: nox.Session, group: str) -> None:
    """The package as its users get it (not editable), and the tools of one dependency group."""
    session.install(*CONSTRAINTS, ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), group))


@nox.session
def tests(session: nox.Session) -> None:
    """Everything that ends within the suite's 15 minutes on two cores."""
    install_project(session, "test")
    session.run("pytest", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """What takes longer."""
    install_project(session, "test")
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Speed, measured side by side; wants an otherwise idle machine."""
    install_project(session, "bench")
    session.run("pytest", "-m", "bench", "-s", "-p", "no:randomly", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format."""
    session.install(*CONSTRAINTS, *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    install_project(session, "types")
    session.run("mypy", *session.posargs)
