"""The training loop a few steps at a time, without evaluations, so that it can be timed."""

import dataclasses

import pytest

from cfn.runs.folder import Run
from cfn.tracking.metrics_file import MetricsFile
from cfn.training.evaluation import Evaluation
from cfn.training.loop import Training


class Looping:
    """A training whose loop goes on as far as it is told."""

    def __init__(self, folder, config):
        self.training = Training(config)
        self.run = Run(
            folder, config.env.name, config.agent.name, config.bonus.name, 0, "a setting", {"steps": config.steps}
        )
        self.run.claim({}, [])
        self._tracker = MetricsFile(self.run)

    def __call__(self, steps):
        """Go on for so many steps."""
        self.training.config = dataclasses.replace(self.training.config, steps=self.training.step + steps)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Evaluation, "__call__", lambda *_: {})
            self.training.loop(self.run, self._tracker, save=lambda training: None)
