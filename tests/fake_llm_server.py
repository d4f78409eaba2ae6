"""A scripted OpenAI-compatible server on a real local socket: what the tests put in place of a judge or a policy.

    with FakeLLM(lambda request: verdict(True, False)) as server:
        endpoint = Endpoint(server.base_url, "fake", ...)
    assert server.requests[0].messages == [...]

A script maps each request to a Reply; `in_turn` scripts a fixed sequence.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    """One chat request as it arrived; `index` counts from 0 in order of arrival."""

    index: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat's messages."""
        return self.body["messages"]

    @property
    def text(self) -> str:
        """The contents of all messages, joined."""
        return "\n".join(message["content"] for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """What goes over the wire: after `delay_s`, the first `send_frac` of the body; then the connection lives or dies.

    With `drop` the connection closes before anything is sent. With `send_frac` below 1 it closes in mid-body.
    With `dribble_s` the body goes out one byte per so many seconds.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    delay_s: float = 0.0
    send_frac: float = 1.0
    drop: bool = False
    dribble_s: float = 0.0


Script = Callable[[Request], Reply]


def completion(
    content: str | None,
    *,
    reasoning_content: str | None = None,
    finish_reason: str = "stop",
    tokens_in: int = 100,
    tokens_out: int = 10,
    delay_s: float = 0.0,
    **message: Any,
) -> Reply:
    """A well-formed chat completion; further keywords become further keys of the message."""
    if reasoning_content is not None:
        message["reasoning_content"] = reasoning_content
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}}
    return payload(
        {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": 0,
            "model": "fake",
            "choices": [{**choice, "finish_reason": finish_reason}],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            },
        },
        delay_s=delay_s,
    )


def verdict(contains_issue: bool, correct_conclusion: bool, rationales: str | None = "근거", **options: Any) -> Reply:
    """A judge's well-formed verdict; `rationales=None` leaves that key out. Options go to `completion`."""
    fields: dict[str, Any] = {} if rationales is None else {"rationales": rationales}
    fields |= {"contains_issue": contains_issue, "correct_conclusion": correct_conclusion}
    return completion(json.dumps(fields, ensure_ascii=False), **options)


def payload(value: Any, **options: Any) -> Reply:
    """Any JSON value as the body of a reply."""
    return Reply(json.dumps(value, ensure_ascii=False).encode(), **options)


def error(status: int, message: str = "scripted", retry_after: str | None = None) -> Reply:
    """An OpenAI-style error with that status."""
    headers = {"Content-Type": "application/json"} | ({} if retry_after is None else {"Retry-After": retry_after})
    body = {"error": {"message": message, "type": "scripted", "code": str(status)}}
    return Reply(json.dumps(body).encode(), status=status, headers=headers)


def html_page(status: int = 200) -> Reply:
    """What a proxy answers when nothing is behind it."""
    page = b"<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>nginx</body></html>"
    return Reply(page, status=status, headers={"Content-Type": "text/html"})


DROPPED = Reply(drop=True)
TORN = Reply(completion("a body that breaks off in the middle").body, send_frac=0.5)
HANGING = completion("too late", delay_s=3600.0)


def in_turn(*replies: Reply) -> Script:
    """A script that gives the replies in order of arrival, and the last one ever after."""
    return lambda request: replies[min(request.index, len(replies) - 1)]


class FakeLLM:
    """Serves POST /v1/chat/completions by the script, and GET /v1/models, from a thread of its own.

    `requests` holds what arrived; `max_in_flight` is the greatest number of requests that were being answered at
    one time; `num_connections` counts the sockets opened.
    """

    def __init__(self, script: Script, model: str = "fake", host: str = "127.0.0.1", port: int = 0) -> None:
        self.requests: list[Request] = []
        self.max_in_flight = 0
        self.num_connections = 0
        self._in_flight = 0
        self._script = script
        self._model = model
        self._address = host, port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._serve, *self._address, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.num_connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the test ended
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; True while the connection may serve another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if method == "GET":
            reply = payload({"object": "list", "data": [{"id": self._model, "object": "model"}]})
            return await self._send(reply, writer)
        request = Request(len(self.requests), path, headers, json.loads(body))
        self.requests.append(request)
        self._in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            return await self._send(self._script(request), writer)
        finally:
            self._in_flight -= 1

    async def _send(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(reply.delay_s)
        if reply.drop:
            return False
        headers = {**reply.headers, "Content-Length": str(len(reply.body))}
        writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n".encode())
        writer.write("".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode() + b"\r\n")
        sent = reply.body[: int(len(reply.body) * reply.send_frac)]
        if not reply.dribble_s:
            writer.write(sent)
        for byte in sent if reply.dribble_s else b"":
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(reply.dribble_s)
        await writer.drain()
        return reply.send_frac >= 1
