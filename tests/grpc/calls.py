"""A server that speaks gRPC, and calls as other programs make them: by grpcio, by tritonclient, and by hand over HTTP/2."""
import re
import socket
import struct

import grpc
import h2.config
import h2.connection
import h2.events
import httpx
from tritonclient.grpc import service_pb2, service_pb2_grpc

import serving

INFERENCE = "/inference.GRPCInferenceService/"
TYPE = {"content-type": "application/grpc", "te": "trailers"}


class Server(serving.Server):
    def grpc_port(self, scheme="http"):
        return int(re.search(rf"listening on {scheme}://[^\"\s]*:(\d+) for gRPC", self.log())[1])


def stub(port):
    return service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(f"127.0.0.1:{port}"))


def frame(message, compressed=0):
    return struct.pack(">BI", compressed, len(message)) + message


def post(port, path, body, headers=TYPE):
    """A call by hand: the response with its trailers-only status, if it has one."""
    with httpx.Client(http1=False, http2=True) as client:
        return client.post(f"http://127.0.0.1:{port}{path}", content=body, headers=headers)


def end_of(port, path, body, headers=TYPE, is_endless=False):
    """A call by hand: the headers with its status, at the end or, if it has no messages, at the beginning. Of one that does not end, a message
    stands for success."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        c = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        c.initiate_connection()
        fields = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", path), *headers.items()]
        c.send_headers(1, fields, end_stream=not body)
        if body:
            c.send_data(1, body, end_stream=True)
        s.sendall(c.data_to_send())
        while data := s.recv(65536):
            for event in c.receive_data(data):
                found = dict(event.headers) if isinstance(event, (h2.events.TrailersReceived, h2.events.ResponseReceived)) else {}
                if "grpc-status" in found:
                    return found
                if is_endless and isinstance(event, h2.events.DataReceived):
                    return {"grpc-status": "0"}
            s.sendall(c.data_to_send())
    raise AssertionError("no status")


def status_of(call):
    """The gRPC status code and message of a call that fails."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise AssertionError("the call succeeded")


def typed_request(model, datatype, field, values, shape):
    contents = service_pb2.InferTensorContents(**{field: values})
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="in", datatype=datatype, shape=shape, contents=contents)
    return service_pb2.ModelInferRequest(model_name=model, inputs=[tensor])
