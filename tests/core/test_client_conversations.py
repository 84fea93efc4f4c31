"""A client and kept conversations where there is no store that could keep them: the reason is told, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import connected

from shared.errors import StoreCorrupt, StoreError
from shared.store.place import USUAL


def test_a_store_that_cannot_be_used_is_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAATO_STORE")
    path = tmp_path / USUAL
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database at all " * 100)
    with connected(tmp_path) as client:
        assert client.send_message("hello") == "said: hello", "the work goes on without a store"
        for ask in (client.list_conversations, client.resume_conversation, lambda: client.resume_conversation("c")):
            with pytest.raises(StoreCorrupt, match=r"runs\.db: it is not a database of runs: move it away"):
                ask()


def test_without_a_store_it_is_said_how_to_have_one(tmp_path: Path) -> None:
    with connected(tmp_path, store=False) as client, pytest.raises(StoreError, match="give a store"):
        client.resume_conversation()
