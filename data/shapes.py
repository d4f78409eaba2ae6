"""What a reply must look like: one small description is both the JSON schema sent and the check of what comes back.

A shape is a number (a text of at most so many characters), a tuple of texts (one of them), `bool` (true or false), a
range (one of its numbers), a list of one shape (any number of it; with a number behind it, at least so many), or a dict
(an object with exactly these keys).
"""

import json
import re
from typing import Any

from data.reply import Reply, Unusable

Shape = int | tuple[str, ...] | type[bool] | range | list[Any] | dict[str, Any]

MAX_ITEMS = 80
ANY_LENGTH = 1_000_000  # for a text that is asked for with a bound, and read whatever its length
_OPENINGS = ("{", "[", "`")
_CODE_BLOCK = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def json_schema(shape: Shape) -> dict[str, Any]:
    """The JSON schema of a shape, every string and list bounded, or else a grammar-bound model may never end.

    >>> json_schema({"facts": [400]})["properties"]["facts"]["items"]
    {'type': 'string', 'maxLength': 400}
    """
    if isinstance(shape, int):
        return {"type": "string", "maxLength": shape}
    if isinstance(shape, tuple):
        return {"type": "string", "enum": list(shape)}
    if isinstance(shape, range):
        return {"type": "integer", "enum": list(shape)}
    if isinstance(shape, type):
        return {"type": "boolean"}
    if isinstance(shape, list):
        bounds = {"minItems": sum(shape[1:]), "maxItems": MAX_ITEMS}
        return {"type": "array", "items": json_schema(shape[0]), **bounds}
    properties = {key: json_schema(value) for key, value in shape.items()}
    return {"type": "object", "properties": properties, "required": list(shape), "additionalProperties": False}


def json_format(name: str, shape: Shape) -> dict[str, Any]:
    """The structured output to ask an endpoint for.

    Not `strict`: that adds nothing in vLLM and llama.cpp, and endpoints differ in whether they take a bound with it.
    """
    return {"type": "json_schema", "json_schema": {"name": name, "schema": json_schema(shape)}}


def read_shaped(reply: Reply, shape: Shape) -> Any:
    """The JSON value that the reply is, of that shape.

    Read strictly, for what is half understood would be data: nothing before or after the value but a code fence or
    closed thinking, each key once. It is looked for in the reasoning when the content is blank.

    Raises:
        Unusable: of the kind whitespace, length (cut off at max_tokens), filtered or unusable.
    """
    text = reply.text.strip()
    if not text:
        raise Unusable(f"the reply is blank (finish_reason {reply.finish_reason!r})", "whitespace")
    if reply.finish_reason == "length":
        raise Unusable(f"cut off after {reply.tokens_out} tokens (--max-tokens, judge_max_tokens): {text}", "length")
    if reply.finish_reason == "content_filter":
        raise Unusable("withheld by the endpoint's content filter", "filtered")
    while "</think>" in text and not text.startswith(_OPENINGS):  # within the value, it is quoted
        text = text.partition("</think>")[2].strip()
    if block := _CODE_BLOCK.fullmatch(text):
        text = block[1]
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"no JSON ({error}): {text}") from None
    if wrong := _mismatch(value, shape, "the reply"):
        raise Unusable(f"{wrong}: {text}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _mismatch(value: Any, shape: Shape, place: str) -> str | None:
    """What is wrong with the value, None if it has the shape."""
    if isinstance(shape, int):
        # A server that enforces no schema may exceed a bound by a little: that is no reason to ask again.
        return None if isinstance(value, str) and len(value) <= 2 * shape else f"{place} must be a text"
    if isinstance(shape, type):
        return None if isinstance(value, bool) else f"{place} must be true or false"
    if isinstance(shape, range):
        is_one = type(value) is int and value in shape  # no bool, which is a number to Python
        return None if is_one else f"{place} must be a whole number from {shape[0]} to {shape[-1]}"
    if isinstance(shape, tuple):
        return None if value in shape else f"{place} must be one of {', '.join(shape)}"
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{place} must be a list"
        if len(value) < sum(shape[1:]):
            return f"{place} must have at least {shape[1]} entries, and has {len(value)}"
        found = (_mismatch(item, shape[0], f"{place}[{i}]") for i, item in enumerate(value))
    elif not isinstance(value, dict) or set(value) != set(shape):
        return f"{place} must be an object with the keys {', '.join(shape)}"
    else:
        found = (_mismatch(value[key], shape[key], f"{place}.{key}") for key in shape)
    return next((wrong for wrong in found if wrong), None)
