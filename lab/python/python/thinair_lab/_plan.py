"""Plans as dictionaries."""

import json
from collections.abc import Mapping
from typing import Any


def to_toml(plan: Mapping[str, Any]) -> str:
    """A plan as TOML: a line for each key."""
    return "".join(f"{_text(str(key))} = {_value(value, str(key))}\n" for key, value in plan.items())


def _value(value: Any, key: str) -> str:
    """A value as TOML, in one line. `key` is its place, for errors."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inner = (f"{_text(str(name))} = {_value(item, f'{key}.{name}')}" for name, item in value.items())
        return f"{{ {', '.join(inner)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(item, key) for item in value)}]"
    if hasattr(value, "__index__"):
        return str(int(value))
    if hasattr(value, "__float__"):
        return repr(float(value))
    raise TypeError(f"{key} is {type(value).__name__}: a plan has texts, numbers, true and false, lists and dictionaries")


def _text(text: str) -> str:
    """A basic string of TOML, which has the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
