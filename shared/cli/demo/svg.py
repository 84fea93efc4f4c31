"""An animated SVG of a film: it plays a few times, rests on its last picture, and is readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rich.cells import cell_len

from shared.cli.demo.film import WIDTH, Line, Picture, Piece

CELL, ROW, MARGIN, BAR = 7.8, 18, 16, 30  # sizes in pixels
TIMES = 3  # that it plays
REST = 4.0  # seconds that the last picture stays before it begins again
#: colour → (in the light, in the dark)
COLOURS = {
    "green": ("#1a7f37", "#56d364"),
    "yellow": ("#9a6700", "#e3b341"),
    "red": ("#cf222e", "#ff7b72"),
    "cyan": ("#0b7285", "#56d4dd"),
    "blue": ("#0550ae", "#79c0ff"),
    "magenta": ("#8250df", "#d2a8ff"),
}


def draw(pictures: Sequence[Picture], *, title: str) -> str:
    """The whole file. Lines that look the same are drawn once and used again."""
    rows = max(len(picture.lines) for picture in pictures)
    width, height = round(WIDTH * CELL + 2 * MARGIN), rows * ROW + BAR + MARGIN
    length = pictures[-1].at + REST
    known: dict[Line, str] = {}
    strips = [_strip(picture, index * height, known) for index, picture in enumerate(pictures)]
    shapes = [f'<g id="{name}">{_drawn(line)}</g>' for line, name in known.items()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_style_sheet(pictures, height, length)}</style>",
            "<defs>",
            *shapes,
            f'<clipPath id="screen"><rect width="{width}" height="{height - BAR}"/></clipPath>',
            "</defs>",
            f'<rect class="back" width="{width}" height="{height}" rx="8"/>',
            *_bar(width, title),
            f'<g transform="translate(0 {BAR})" clip-path="url(#screen)"><g class="film">',
            *strips,
            "</g></g>",
            "</svg>",
            "",
        ]
    )


def _bar(width: int, title: str) -> Iterator[str]:
    for index, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        yield f'<circle cx="{18 + 18 * index}" cy="15" r="5" fill="{colour}"/>'
    yield f'<text class="dim" x="{width / 2:g}" y="19" text-anchor="middle">{escape(title)}</text>'


def _strip(picture: Picture, top: int, known: dict[Line, str]) -> str:
    uses = []
    for index, line in enumerate(picture.lines):
        if line:
            name = known.setdefault(line, f"l{len(known)}")
            uses.append(f'<use href="#{name}" y="{index * ROW}"/>')
    return f'<g transform="translate(0 {top})">{"".join(uses)}</g>'


def _drawn(line: Line) -> str:
    """The pieces of a line side by side, each exactly as wide as its characters are in a terminal."""
    found, column = [], 0
    for piece in line:
        text = piece.text.strip(" ")  # what is empty at the ends is a matter of place: some viewers would drop it
        if text:
            indent = cell_len(piece.text) - cell_len(piece.text.lstrip(" "))
            found.append(_text(Piece(text, piece.style), column + indent, cell_len(text)))
        column += cell_len(piece.text)
    return "".join(found)


def _text(piece: Piece, column: int, cells: int) -> str:
    x, wide = MARGIN + column * CELL, cells * CELL
    style = f' class="{piece.style}"' if piece.style else ""
    return f'<text{style} x="{x:.1f}" y="14" textLength="{wide:.1f}" xml:space="preserve">{escape(piece.text)}</text>'


def _style_sheet(pictures: Sequence[Picture], height: int, length: float) -> str:
    stops = [
        f"{100 * picture.at / length:.3f}%{{transform:translateY({-index * height}px)}}"
        for index, picture in enumerate(pictures)
    ]
    last = f"{-(len(pictures) - 1) * height}px"
    light = "".join(f".{name}{{fill:{colour}}}" for name, (colour, _) in COLOURS.items())
    dark = "".join(f".{name}{{fill:{colour}}}" for name, (_, colour) in COLOURS.items())
    return (
        "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328}"
        ".back{fill:#fff;stroke:#d0d7de}.bold{font-weight:600}.dim{fill:#656d76}"
        f"{light}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117;stroke:#30363d}.dim{fill:#8d96a0}"
        f"{dark}}}"
        f"@keyframes play{{{''.join(stops)}100%{{transform:translateY({last})}}}}"
        f".film{{animation:play {length:.1f}s step-end {TIMES} forwards}}"
        f"@media(prefers-reduced-motion:reduce){{.film{{animation:none;transform:translateY({last})}}}}"
    )
