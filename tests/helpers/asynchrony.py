"""The CPU as a device that works while the program continues: the code is that for a GPU, except for pinned memory."""

from cfn.nn import device


class Event:
    """The end of the queued work; `waits` counts how often the program waited for one."""

    waits = 0

    def synchronize(self):
        Event.waits += 1


def pretend_gpu(monkeypatch):
    """Let the CPU count as an asynchronous device."""
    monkeypatch.setattr(device, "asynchronous", lambda device: True)
    monkeypatch.setattr(device, "queue_end", lambda device: Event())
