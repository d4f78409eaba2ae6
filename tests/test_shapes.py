"""A shape is the schema that is sent and the check of what comes back."""

import json

import pytest

from data.reply import Reply, Unusable
from data.shapes import json_schema, read_shaped

SHAPE = {"issues": [{"id": 5, "kind": ("a", "b")}]}
GOOD = {"issues": [{"id": "1", "kind": "a"}]}


def reply(content: str, finish_reason: str = "stop", reasoning: str = "") -> Reply:
    return Reply(content, reasoning, finish_reason, 10, 5, 0.1)


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD)}\n```",
        f"<think>음, {{}}</think>\n{json.dumps(GOOD)}",
        f"생각은 여기까지.</think>{json.dumps(GOOD)}",
    ],
    ids=["plain", "fenced", "thinking before it", "a stray closing tag"],
)
def test_a_good_reply_is_read(content):
    assert read_shaped(reply(content), SHAPE) == GOOD


def test_what_a_value_quotes_is_left_in_it():
    quoting = {"issues": [{"id": "</think>", "kind": "a"}]}
    assert read_shaped(reply(f"<think>가</think> 나</think>\n{json.dumps(quoting)}"), SHAPE) == quoting
    assert read_shaped(reply('{"text": "</think>"}'), {"text": 9}) == {"text": "</think>"}


@pytest.mark.parametrize(
    ("shape", "legal", "illegal", "schema"),
    [
        (bool, [True, False], [1, 0, "true", None], {"type": "boolean"}),
        (range(3), [0, 2], [3, -1, 1.0, True, "1", None], {"type": "integer", "enum": [0, 1, 2]}),
    ],
)
def test_truth_and_numbers_are_taken_strictly(shape, legal, illegal, schema):
    assert json_schema({"it": shape})["properties"] == {"it": schema}
    assert [read_shaped(reply(json.dumps({"it": value})), {"it": shape})["it"] for value in legal] == legal
    for value in illegal:
        with pytest.raises(Unusable, match="it must be"):
            read_shaped(reply(json.dumps({"it": value})), {"it": shape})


def test_a_reply_in_the_reasoning_is_read():
    assert read_shaped(reply("", reasoning=json.dumps(GOOD)), SHAPE) == GOOD


@pytest.mark.parametrize(
    ("content", "finish_reason", "kind", "complaint"),
    [
        ("", "stop", "whitespace", "blank"),
        ('{"issues": [', "length", "length", "--max-tokens"),
        ("{}", "content_filter", "filtered", "withheld"),
        ("그 쟁점은", "stop", "unusable", "no JSON"),
        ('{"issues": [], "issues": []}', "stop", "unusable", "a key occurs twice"),
        ("[]", "stop", "unusable", "the reply must be an object with the keys issues"),
        ('{"issues": {}}', "stop", "unusable", "the reply.issues must be a list"),
        ('{"issues": [{"id": 1, "kind": "a"}]}', "stop", "unusable", r"the reply.issues\[0\].id must be a text"),
        ('{"issues": [{"id": "1", "kind": "c"}]}', "stop", "unusable", r"issues\[0\].kind must be one of a, b"),
        ('{"issues": [{"id": "1"}]}', "stop", "unusable", "must be an object with the keys id, kind"),
        ('{"issues": [{"id": "12345678901", "kind": "a"}]}', "stop", "unusable", "id must be a text"),
    ],
)
def test_another_reply_is_refused_by_place(content, finish_reason, kind, complaint):
    with pytest.raises(Unusable, match=complaint) as caught:
        read_shaped(reply(content, finish_reason), SHAPE)
    assert caught.value.kind == kind


def test_the_schema_bounds_everything():
    schema = json_schema(SHAPE)
    assert schema["required"] == ["issues"]
    assert schema["additionalProperties"] is False
    issues = schema["properties"]["issues"]
    assert issues["maxItems"] == 80
    assert issues["items"]["properties"] == {
        "id": {"type": "string", "maxLength": 5},
        "kind": {"type": "string", "enum": ["a", "b"]},
    }


def test_a_list_may_have_to_hold_something():
    assert json_schema([5, 1])["minItems"] == 1
    assert json_schema([5])["minItems"] == 0
    assert read_shaped(reply('["1"]', "stop"), [5, 1]) == ["1"]
    with pytest.raises(Unusable, match="the reply must have at least 1 entries, and has 0"):
        read_shaped(reply("[]", "stop"), [5, 1])
