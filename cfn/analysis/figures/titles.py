"""Titles of panels, and names of settings, in figures of the paper's experiments."""

from collections.abc import Sequence

from cfn.analysis.grouping import Group

TITLES = {
    "gridworld": "Visual Gridworld",
    "gridworld_small": "Visual Gridworld, small",
    "taxi5": "Visual Taxi, 5x5",
    "taxi10": "Visual Taxi, 10x10",
    "antmaze": "Ant U-Maze",
    "pen": "Pen",
    "door": "Door",
    "hammer": "Hammer",
    "relocate": "Relocate",
    "fetch_push": "FetchPush",
    "fetch_slide": "FetchSlide",
    "fetch_pick_and_place": "FetchPickAndPlace",
    "montezuma": "Montezuma's Revenge",
}
"""Names of the environments in the paper."""


def title_of(task: str) -> str:
    """Return the paper's name of a task, with its mode."""
    env, _, mode = task.partition(" ")
    return ", ".join(filter(None, [TITLES.get(env, env), mode]))


def title_of_tasks(groups: Sequence[Group]) -> str:
    """Return the names of all tasks of the groups."""
    return "; ".join(dict.fromkeys(title_of(one.task) for one in groups))


def names_of(groups: Sequence[Group], *keys: str) -> dict[int, str]:
    """Return a name per group, by `id`: without keys that an axis shows, with the task if there are several."""
    several = len({one.task for one in groups}) > 1
    return {id(one): one.label_without(*keys) + (f", {title_of(one.task)}" if several else "") for one in groups}
