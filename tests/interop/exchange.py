"""What clients send, and how what they receive is checked: tensors of one model that answers what it is asked."""
import asyncio
import json

import httpx
import numpy

import serving

PATH = "/v2/models/echo/infer"
SMALL, LARGE = (numpy.random.default_rng(n).normal(size=(n, 500)).astype(numpy.float32) for n in (2, 200))  # 4 kB and 400 kB


class Exchange:
    """A request's body, in a file for programs that want one, and its headers."""

    def __init__(self, array, folder):
        self.array = array
        self.body, self.headers = serving.binary_request({"in": array})
        self.file = folder / f"body-{array.nbytes}"
        self.file.write_bytes(self.body)

    def is_answer(self, body):
        head, data = body[: -self.array.nbytes], body[-self.array.nbytes :]
        return data == self.array.tobytes() and json.loads(head)["outputs"][0]["shape"] == list(self.array.shape)

    def header_flags(self):
        """As curl, nghttp and h2load take them."""
        return [word for name, value in self.headers.items() for word in ("-H", f"{name}: {value}")]


async def _ask_all(client, url, exchanges):
    together = asyncio.Semaphore(32)

    async def ask(exchange):
        async with together:
            answer = await client.post(url + PATH, content=exchange.body, headers=exchange.headers)
            return answer.status_code, answer.http_version, exchange.is_answer(answer.content)

    return await asyncio.gather(*map(ask, exchanges))


async def _ask(url, exchanges, is_http2):
    limits = httpx.Limits(max_connections=8)
    async with httpx.AsyncClient(http1=not is_http2, http2=is_http2, verify=False, limits=limits, timeout=serving.WAIT_S) as client:
        return await _ask_all(client, url, exchanges)


def ask(url, exchanges, is_http2):
    """httpx: so many requests, 32 at a time, on at most eight connections."""
    found = asyncio.run(_ask(url, exchanges, is_http2))
    assert set(found) == {(200, "HTTP/2" if is_http2 else "HTTP/1.1", True)}, [f for f in found if f[0] != 200 or not f[2]][:3] or set(found)
