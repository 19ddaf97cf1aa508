"""A server that speaks gRPC, and calls as other programs make them: by grpcio, by tritonclient, and by hand over HTTP/2."""
import re
import struct

import grpc
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
