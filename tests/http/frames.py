"""An HTTP/2 client that goes on after GOAWAY, as RFC 9113 section 6.8 has it: streams up to the last one named are finished, the rest
may be asked again elsewhere. (The h2 package ends a connection at its first GOAWAY.)"""
import collections
import socket
import ssl

import hpack
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame


class Client:
    def __init__(self, port, tls=False, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        if tls:
            context = ssl._create_unverified_context()
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
            assert self.socket.selected_alpn_protocol() == "h2"
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.next_stream, self.waiting, self.buffer = 1, {}, b""
        self.last_stream = None  # of the latest GOAWAY
        self.windows = collections.defaultdict(lambda: 65535)  # by stream: bytes of a body that it may have sent by now
        window = SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: 1 << 24})
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + window.serialize() + WindowUpdateFrame(0, 1 << 30).serialize())

    def ask(self, path, body, headers=()):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        fields = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", path), ("content-length", str(len(body))), *headers]
        head = HeadersFrame(stream, self.encoder.encode(fields), flags=["END_HEADERS"])
        frames = [head] + [DataFrame(stream, body[i : i + 16000]) for i in range(0, len(body), 16000)]
        frames[-1].flags.add("END_STREAM")
        self.waiting[stream] = [None, b""]
        self.socket.sendall(b"".join(f.serialize() for f in frames))
        return stream

    def reset(self, stream):
        self.waiting.pop(stream, None)
        self.socket.sendall(RstStreamFrame(stream, 8).serialize())

    def receive(self):
        """Finished streams: (stream, status or None when it was reset, body); None at the end of the connection."""
        data = self.socket.recv(65536)
        if not data:
            return None
        self.buffer += data
        done = []
        while len(self.buffer) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self.buffer[:9]))
            if len(self.buffer) < 9 + length:
                break
            frame.parse_body(memoryview(self.buffer[9 : 9 + length]))
            self.buffer = self.buffer[9 + length :]
            self._take(frame, done)
        return done

    def _take(self, frame, done):
        state = self.waiting.get(frame.stream_id)
        if isinstance(frame, HeadersFrame):
            fields = dict(self.decoder.decode(frame.data))  # also for streams we gave up: the table goes on
            if state:
                state[0] = int(fields[":status"])
        elif isinstance(frame, DataFrame) and state:
            state[1] += frame.data
        elif isinstance(frame, WindowUpdateFrame):
            self.windows[frame.stream_id] += frame.window_increment
        elif isinstance(frame, GoAwayFrame):
            self.last_stream = frame.last_stream_id
        elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self.socket.sendall(SettingsFrame(0, flags=["ACK"]).serialize())
        elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
            self.socket.sendall(PingFrame(0, frame.opaque_data, flags=["ACK"]).serialize())
        elif isinstance(frame, RstStreamFrame) and state:
            del self.waiting[frame.stream_id]
            done.append((frame.stream_id, None, b""))
            return
        if state and "END_STREAM" in frame.flags:
            del self.waiting[frame.stream_id]
            done.append((frame.stream_id, *state))

    def close(self):
        self.socket.close()
