"""A page of text, tables and figures, written as Markdown and as one self-contained HTML file."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    """text (str): A section's title."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """text (str): Plain text; backquotes mark code."""

    text: str


@dataclass(frozen=True)
class Table:
    """Cells of plain text.

    header (Sequence[str]): The columns' names; the first column holds the rows' names.
    rows (Sequence[Sequence[str]]): The cells.
    best (Set[Tuple[int, int]]): (row, column) of the cells to emphasise.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Figure:
    """A drawing.

    name (str): The file's name without its suffix.
    svg (str): The drawing for the HTML page.
    png (bytes): The drawing for the Markdown page.
    caption (str): What it shows.
    """

    name: str
    svg: str
    png: bytes
    caption: str


Block = Heading | Paragraph | Table | Figure


@dataclass
class Page:
    """title (str): The headline. blocks (List[Block]): The content, in order."""

    title: str
    blocks: list[Block] = field(default_factory=list)

    def add(self, *blocks: Block) -> None:
        """blocks (Block): What comes next."""
        self.blocks.extend(blocks)

    def write_markdown(self, path: Path) -> None:
        """Write the page and, beside it, its figures as PNG files.

        path (Path): The .md file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"# {self.title}"]
        for block in self.blocks:
            parts.append(_markdown(block))
            if isinstance(block, Figure):
                (path.parent / f"{block.name}.png").write_bytes(block.png)
        path.write_text("\n\n".join(parts) + "\n", encoding="utf8")

    def write_html(self, path: Path) -> None:
        """Write the page as one file that needs no other.

        path (Path): The .html file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        body = "\n".join(_html(block) for block in self.blocks)
        title = html.escape(self.title)
        path.write_text(
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n</body>\n</html>\n",
            encoding="utf8",
        )


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Paragraph(text):
            return text
        case Figure(name=name, caption=caption):
            return f"![{caption}]({name}.png)\n\n*{caption}*"
        case Table(header, rows, best):
            lines = [
                "| " + " | ".join(header) + " |",
                "| --- |" + " ---: |" * (len(header) - 1),
            ]
            for i, row in enumerate(rows):
                cells = (
                    f"**{cell}**" if (i, j) in best else cell.replace("|", "\\|")
                    for j, cell in enumerate(row)
                )
                lines.append("| " + " | ".join(cells) + " |")
            return "\n".join(lines)


def _html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case Paragraph(text):
            pieces = html.escape(text).split("`")
            marked = (f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
            return f"<p>{''.join(marked)}</p>"
        case Figure(svg=svg, caption=caption):
            return f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>"
        case Table(header, rows, best):
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
            body = "".join(
                "<tr>"
                + "".join(
                    f"<td{' class=best' if (i, j) in best else ''}>{html.escape(cell)}</td>"
                    for j, cell in enumerate(row)
                )
                + "</tr>"
                for i, row in enumerate(rows)
            )
            return (
                f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
                f"<tbody>{body}</tbody></table></div>"
            )


_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1c2733; background: #fff; margin: 0; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.8rem; line-height: 1.2; } h2 { margin-top: 2.2rem; font-size: 1.3rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem; text-align: right; border-bottom: 1px solid #dde3ea; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #8b98a7; }
td.best { font-weight: 700; background: #e8f5ec; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #5b6875; font-size: .9rem; }
code { background: #f2f4f7; padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
"""
