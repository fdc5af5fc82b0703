"""Tables that frames of other packages take."""

import html
import importlib
import itertools
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas
    import polars

_SHOWN = 20
"""Rows that a notebook shows."""


class NativeFrame(Protocol):
    """A table of a native module."""

    def __len__(self) -> int: ...
    def rows(self, most: int) -> list[dict[str, Any]]: ...
    def arrow_schema(self) -> object: ...
    def arrow_array(self) -> tuple[object, object]: ...
    def arrow_stream(self) -> object: ...


class Frame:
    """A table. It implements the Arrow PyCapsule interface.

    ``pyarrow.table(frame)``, ``polars.DataFrame(frame)`` and ``pandas.DataFrame.from_arrow(frame)`` take it, and DuckDB by its
    name. `len` is the number of rows.
    """

    __module__ = "thinair"
    __slots__ = ("_table",)

    def __init__(self, table: NativeFrame) -> None:
        self._table = table

    def _frame(self) -> NativeFrame:
        return self._table

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """The first rows, at most `most`, as dictionaries by the names of columns. Default: all rows."""
        return self._frame().rows(len(self) if most is None else most)

    def to_pandas(self) -> "pandas.DataFrame":
        """The table as a frame of pandas. Needs pandas and pyarrow."""
        optional("pandas", "pandas")
        frame: "pandas.DataFrame" = optional("pyarrow", "pandas").table(self).to_pandas()
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """The table as a frame of polars. Needs polars."""
        frame: "polars.DataFrame" = optional("polars", "polars").DataFrame(self)
        return frame

    def __arrow_c_schema__(self) -> object:
        return self._frame().arrow_schema()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._frame().arrow_array()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame().arrow_stream()

    def __len__(self) -> int:
        return len(self._frame())

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__}: {len(self)} rows>"

    def _repr_html_(self) -> str:
        rows = [[_text(value) for value in row.values()] for row in self.rows(_SHOWN)]
        names = list(itertools.chain.from_iterable(self.rows(1)))
        more = f"<p>and {len(self) - _SHOWN:,} rows more</p>" if len(self) > _SHOWN else ""
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{html_table(names, rows)}{more}"


def optional(module: str, extra: str) -> Any:
    """A package of an extra. Raises ModuleNotFoundError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is missing: pip install 'thinair[{extra}]'", name=error.name) from None


def html_table(names: list[str], rows: list[list[str]]) -> str:
    """A table as HTML."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
