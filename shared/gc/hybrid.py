"""hybrid: recent rounds stay, the middle ones become a summary, older ones go."""

from __future__ import annotations

from collections.abc import Sequence

from shared.gc.base import GCConfig
from shared.gc.rounds import Round
from shared.gc.summarize import SummarizeGC


class HybridGC(SummarizeGC):
    """Summarises `summarize_middle_turns` rounds before the recent ones and drops what is older.

    Without that setting everything before the recent rounds is summarised.
    """

    name = "hybrid"

    def summarized(self, old: Sequence[Round], config: GCConfig) -> Sequence[Round]:
        """The middle: the newest of the old rounds."""
        middle = config.summarize_middle_turns
        return old if middle is None else old[max(0, len(old) - middle) :]
