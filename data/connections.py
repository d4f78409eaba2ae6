"""The connections of a client that knows how many calls it makes at once. Loads httpx: import it late."""

from collections.abc import AsyncIterator

import httpx2


class Connections(httpx2.AsyncBaseTransport):
    """As many connections as slots, each taken for one whole exchange, those used last first.

    httpx's own pool looks at all of its connections before and after each request: at 64 of them that is half of all
    the work of a call. Whoever sends must hold a slot.
    """

    def __init__(self, num_slots: int) -> None:
        context = httpx2.create_ssl_context()
        one = httpx2.Limits(max_connections=1, max_keepalive_connections=1)
        self._all = [httpx2.AsyncHTTPTransport(verify=context, limits=one) for _ in range(num_slots)]
        self._free = list(self._all)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The server's response, whose end gives the connection back."""
        connection = self._free.pop()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            self._free.append(connection)
            raise
        response.stream = _Body(response.stream, connection, self._free)
        return response

    async def aclose(self) -> None:
        """Closes all of them."""
        for connection in self._all:
            await connection.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(
        self,
        stream: "httpx2.SyncByteStream | httpx2.AsyncByteStream",
        connection: httpx2.AsyncHTTPTransport,
        free: list[httpx2.AsyncHTTPTransport],
    ) -> None:
        self._stream = stream
        self._connection = connection
        self._free = free
        self._is_open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:  # type: ignore[union-attr]  # of an asynchronous transport
            yield chunk

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            try:
                await self._stream.aclose()  # type: ignore[union-attr]
            finally:
                self._free.append(self._connection)
