"""HTTP/2 frames by hand, right and wrong ones, and sockets that read slowly or never."""
import socket
import ssl
import struct

from serving import wait_until  # noqa: F401

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
PRIORITY_UPDATE = 16
END_STREAM, ACK, END_HEADERS = 1, 1, 4
FRAME_BYTES_MAX = 16384
WINDOW_MAX = 0x7FFFFFFF
NO_ERROR, ENHANCE_YOUR_CALM = 0, 11


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def settings(**values):
    ids = dict(table=1, push=2, streams=3, window=4, frame=5, list=6)
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", ids[k], v) for k, v in values.items()))


def window(stream, increment):
    return frame(WINDOW, 0, stream, struct.pack(">I", increment))


def reset(stream, code=8):
    return frame(RESET, 0, stream, struct.pack(">I", code))


def number(n, bits, first):
    """An integer of HPACK (RFC 7541, section 5.1)."""
    most = (1 << bits) - 1
    if n < most:
        return bytes((first | n,))
    out, n = bytes((first | most,)), n - most
    while n >= 128:
        out, n = out + bytes((n % 128 + 128,)), n // 128
    return out + bytes((n,))


def field(name, value, is_indexed=False):
    """A literal field; `is_indexed`: it goes into the table, where byte 0xbe names the latest one."""
    name, value = (v.encode() if isinstance(v, str) else v for v in (name, value))
    return (number(0, 6, 0x40) if is_indexed else b"\0") + number(len(name), 7, 0) + name + number(len(value), 7, 0) + value


LATEST = b"\xbe"


def head(method="GET", path="/v2/health/live", **more):
    pairs = {":method": method, ":scheme": "http", ":authority": "a", ":path": path, **{k.replace("_", "-"): v for k, v in more.items()}}
    return b"".join(field(k, v) for k, v in pairs.items())


def head_frames(stream, block, flags=0):
    """HEADERS, and CONTINUATION for what does not fit."""
    parts = [block[i : i + FRAME_BYTES_MAX] for i in range(0, len(block), FRAME_BYTES_MAX)]
    out = frame(HEADERS, flags | (END_HEADERS if len(parts) == 1 else 0), stream, parts[0])
    for i, part in enumerate(parts[1:], 2):
        out += frame(CONTINUATION, END_HEADERS if i == len(parts) else 0, stream, part)
    return out


def connect(port, tls=False, is_slow=False, timeout=60, protocols=("h2",)):
    """`is_slow`: with as little room for what it receives as the system allows."""
    s = socket.socket()
    if is_slow:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    s.settimeout(timeout)
    s.connect(("127.0.0.1", port))
    if tls:
        context = ssl._create_unverified_context()
        context.set_alpn_protocols(list(protocols))
        s = context.wrap_socket(s)
    return s


def http2(port, tls=False, is_slow=False, timeout=60, **values):
    s = connect(port, tls, is_slow, timeout)
    s.sendall(PREFACE + settings(**values))
    return s


class Reader:
    """Frames as they come: (type, flags, stream, payload); None at the end of the connection."""

    def __init__(self, connection):
        self.connection, self.buffer = connection, b""

    def next(self):
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            try:
                data = self.connection.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self.buffer += data
        length = int.from_bytes(self.buffer[:3], "big")
        found = self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big") & WINDOW_MAX, self.buffer[9 : 9 + length]
        self.buffer = self.buffer[9 + length :]
        return found

    def until(self, kind, flags=0):
        """The frames up to the first of that kind with these flags; the end counts too."""
        found = []
        while (got := self.next()) is not None:
            found.append(got)
            if got[0] == kind and got[1] & flags == flags:
                break
        return found


def send_while_taken(connection, data, times, stop=lambda: False):
    """Sends the same bytes again and again. Returns how often, before the server ended the connection or took nothing for the time limit."""
    for sent in range(times):
        if stop():
            return sent
        try:
            connection.sendall(data)
        except OSError:
            return sent
    return times


def drain_quietly(connection):
    """Takes whatever comes until the end."""
    try:
        while connection.recv(1 << 16):
            pass
    except OSError:
        pass
