"""Training runs: their folders on disk, and the loop that fills them."""

from consmimic.runs.folder import RunFolder, RunParams
from consmimic.runs.training import TrainingStopped, train

__all__ = ["RunFolder", "RunParams", "TrainingStopped", "train"]
