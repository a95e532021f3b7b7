"""A page of text, tables and figures, written as Markdown and as one self-contained HTML file."""

import base64
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

# The page fetches nothing, whatever comes into it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Heading:
    """text (str): A section's title.
    level (int): 2 for a section, 3 for a part of one.
    """

    text: str
    level: int = 2


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
    text_columns (Set[int]): Columns of words, which stand at the left.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()
    text_columns: frozenset[int] = frozenset({0})


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


@dataclass(frozen=True)
class Html:
    """A part that only the HTML page has.

    html (str): Its markup.
    style (str): Its style sheet.
    script (str): Its script, which runs after the page is there.
    markdown (str): What stands in the Markdown page instead.
    """

    html: str
    style: str = ""
    script: str = ""
    markdown: str = ""


@dataclass(frozen=True)
class Details:
    """Something to unfold.

    summary (str): What is in it.
    blocks (Sequence[Block]): The content.
    """

    summary: str
    blocks: "Sequence[Block]"


Block = Heading | Paragraph | Table | Figure | Html | Details


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
        parts = [f"# {_escape_markdown(self.title)}", *map(_markdown, self.blocks)]
        for block in _flatten(self.blocks):
            if isinstance(block, Figure):
                (path.parent / f"{block.name}.png").write_bytes(block.png)
        path.write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf8")

    def write_html(self, path: Path) -> None:
        """Write the page as one file that needs no other.

        path (Path): The .html file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [block for block in _flatten(self.blocks) if isinstance(block, Html)]
        style = files(__package__).joinpath("page.css").read_text(encoding="utf8")
        style += "".join(part.style for part in parts)
        scripts = "".join(f"<script>{part.script}</script>\n" for part in parts if part.script)
        title = html.escape(self.title)
        body = "\n".join(map(_html, self.blocks))
        path.write_text(
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n"
            f"<body>\n<main>\n<h1>{title}</h1>\n{self._contents()}{body}\n</main>\n{scripts}"
            f"</body>\n</html>\n",
            encoding="utf8",
        )

    def _contents(self) -> str:
        sections = [b for b in self.blocks if isinstance(b, Heading) and b.level == 2]
        links = "".join(
            f'<li><a href="#{_anchor(section)}">{html.escape(section.text)}</a></li>'
            for section in sections
        )
        return f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n' if links else ""


def _flatten(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from _flatten(block.blocks)


def _anchor(heading: Heading) -> str:
    return re.sub(r"\W+", "-", heading.text.lower()).strip("-")


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_escape_markdown(text)}"
        case Paragraph(text):
            return _escape_markdown(text)
        case Html(markdown=markdown):
            return markdown
        case Details(summary, blocks):
            inner = "\n\n".join(map(_markdown, blocks))
            return f"<details><summary>{html.escape(summary)}</summary>\n\n{inner}\n\n</details>"
        case Figure(name=name, caption=caption):
            return f"![{_escape_markdown(caption)}]({name}.png)\n\n*{_escape_markdown(caption)}*"
        case Table():
            return _markdown_table(block)


def _markdown_table(table: Table) -> str:
    header, *rows = (
        [_escape_markdown(cell).replace("|", "\\|") for cell in row]
        for row in (table.header, *table.rows)
    )
    ruler = ("---" if i in table.text_columns else "---:" for i in range(len(header)))
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join(ruler)} |"]
    for i, row in enumerate(rows):
        cells = (f"**{cell}**" if (i, j) in table.best else cell for j, cell in enumerate(row))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _escape_markdown(text: str) -> str:
    # Code keeps its text; elsewhere a "<" would start HTML and a "*" emphasis.
    pieces = text.split("`")
    return "`".join(
        piece if i % 2 else re.sub(r"\*|\b_|_\b", r"\\\g<0>", piece).replace("<", "&lt;")
        for i, piece in enumerate(pieces)
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            name = f' id="{_anchor(block)}"' if level == 2 else ""
            return f"<h{level}{name}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            pieces = html.escape(text).split("`")
            marked = (f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
            return f"<p>{''.join(marked)}</p>"
        case Html(html=markup):
            return markup
        case Details(summary, blocks):
            inner = "\n".join(map(_html, blocks))
            return f"<details><summary>{html.escape(summary)}</summary>\n{inner}\n</details>"
        case Figure(svg=svg, caption=caption):
            # As an image of its own a drawing can't share identifiers with another.
            data = base64.b64encode(svg.encode("utf8")).decode("ascii")
            text = html.escape(caption)
            return (
                f'<figure><div class="scroll" tabindex="0" role="group" aria-label="Drawing">'
                f'<img src="data:image/svg+xml;base64,{data}" alt="{text}"></div>'
                f"<figcaption>{text}</figcaption></figure>"
            )
        case Table():
            return _html_table(block)


def _html_table(table: Table) -> str:
    def kind(i: int, j: int) -> str:
        names = ["text"] * (j in table.text_columns) + ["best"] * ((i, j) in table.best)
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(
        f'<th scope="col"{kind(-1, j)}>{html.escape(cell)}</th>'
        for j, cell in enumerate(table.header)
    )
    body = "".join(
        f'<tr><th scope="row" class="text">{html.escape(name)}</th>'
        + "".join(f"<td{kind(i, j)}>{html.escape(c)}</td>" for j, c in enumerate(cells, 1))
        + "</tr>\n"
        for i, (name, *cells) in enumerate(table.rows)
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )
