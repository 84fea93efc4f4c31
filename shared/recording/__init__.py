"""Model exchanges of whole agent trees, recorded to a file and answered from it again."""

from __future__ import annotations

from shared.recording.recorder import Recorder, record
from shared.recording.replayer import Replayer, replay

__all__ = ["Recorder", "Replayer", "record", "replay"]
