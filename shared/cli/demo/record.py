"""A recording of the demo: the real engine and the real tools on a folder, in made-up time, as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from shared.cli.demo.conductor import Conductor
from shared.cli.demo.film import Film
from shared.cli.demo.sample import plant
from shared.cli.demo.show import open_show
from shared.cli.demo.svg import draw
from shared.cli.demo.timeline import TOOL_SECONDS, Moment, Timeline

TITLE = "jaato demo"


def recording(folder: Path | None = None) -> str:
    """The demo as an animated SVG; without a folder, on a small sample, so that the picture is always the same."""
    with _place(folder) as place:
        moments = list(_moments(place))
    return draw(list(Film().pictures(moments)), title=TITLE)


def _moments(folder: Path) -> Iterator[Moment]:
    conductor, timeline = Conductor(), Timeline()
    with open_show(folder, conductor.answer) as client:
        for step in conductor.conduct(client, pause=TOOL_SECONDS):
            yield from timeline.moments(step)


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory(prefix="jaato-demo-") as temporary:
        yield plant(Path(temporary))
