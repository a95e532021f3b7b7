"""The typer application that every command of the package joins."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

app = typer.Typer(
    name="robust-ner",
    help="Named entity recognition on incompletely annotated data: corpus tools and diagnostics.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


def command(
    name: str, *, group: typer.Typer = app
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to the application. An error with one of our codes is shown as a message and
    ends with exit code 1; any other error is a bug and keeps its stack trace.

    name (str): The command's name.
    group (Typer): The application, or a group of commands that was added to it.
    RETURNS (Callable): The decorator.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def shell(*args: Any, **kwargs: Any) -> None:
            try:
                function(*args, **kwargs)
            except (ValueError, OSError, ImportError) as error:
                if not str(error).startswith("[R"):
                    raise
                msg.fail(str(error))
                raise typer.Exit(1) from error

        group.command(name)(shell)
        return shell

    return register


def write_figures(figures: dict[str, Any], report_path: Path | None, *, as_json: bool) -> bool:
    """Write a command's figures where its options say.

    figures (Dict[str, Any]): JSON-serializable data.
    report_path (Optional[Path]): A file for them.
    as_json (bool): Print them.
    RETURNS (bool): Whether they were printed, so that nothing else shall be.
    """
    if report_path is not None:
        write_json(figures, report_path)
    if as_json:
        write_json(figures, None)
    return as_json


def write_json(result: Any, output: Path | None) -> None:
    """Print a command's result as JSON, or write it to a file.

    result (Any): JSON-serializable data.
    output (Optional[Path]): The file; None for standard output.
    """
    text = json.dumps(result, ensure_ascii=False, indent=2)
    if output is None:
        typer.echo(text)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text + "\n", encoding="utf8")
