"""Files with what was said are for their owner alone, also those that were there before and open to all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from shared.cli.chat.history_file import open_history
from shared.recording.tape import TapeWriter


def test_a_recording_into_a_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_text("")
    os.chmod(path, 0o666)
    TapeWriter(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_was_typed(tmp_path: Path) -> None:
    path = tmp_path / "chat_history"
    path.write_text("")
    os.chmod(path, 0o666)
    open_history(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
