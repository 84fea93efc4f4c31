"""One suite over all four providers."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from support.labs import DIALECTS, ScriptLab, WireLab

from shared.testing import FAULTS, check_provider


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_wire_provider_conforms(dialect) -> None:
    with ExitStack() as stack:
        passed = check_provider(WireLab(dialect, stack))
    assert len(passed) == 2 * (7 + len(FAULTS))


def test_script_provider_conforms() -> None:
    assert len(check_provider(ScriptLab())) == 2 * (7 + len(ScriptLab.faults))


def test_a_provider_that_swallows_a_broken_stream_is_caught() -> None:
    class Careless(ScriptLab):
        def failing(self, fault: str):
            return self.answering(*[__import__("shared.testing").testing.Reply("half")])

    with pytest.raises(AssertionError, match="but the provider answered"):
        check_provider(Careless())
