"""Several trackers at once."""

import pytest

from cfn.tracking.base import Tracker, Trackers


class Ends(Tracker):
    """Notes its end, and fails if asked to."""

    def __init__(self, name, notes, error=None):
        self.name, self.notes, self.error = name, notes, error

    def finish(self, failed=False):
        self.notes.append((self.name, failed))
        if self.error:
            raise self.error


@pytest.mark.parametrize("failed", [False, True])
def test_every_tracker_is_finished_in_order_although_one_fails(failed):
    notes = []
    trackers = [Ends("first", notes), Ends("second", notes, ValueError("no network")), Ends("third", notes)]
    with pytest.raises(ValueError, match="no network"):
        Trackers(trackers).finish(failed)
    assert notes == [("first", failed), ("second", failed), ("third", failed)]
