"""TensorFlow Serving's messages and ORCA's, written down from their documentation and not from the server's .proto files: a wrong number
there is no match here. The library that has them needs all of TensorFlow."""
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MESSAGES = {
    "google.protobuf": {
        "Int64Value": ["int64 value 1"],
        "Any": ["string type_url 1", "bytes value 2"],
        "Duration": ["int64 seconds 1", "int32 nanos 2"],
    },
    "tensorflow": {
        "Dim": ["int64 size 1", "string name 2"],
        "TensorShapeProto": ["repeated tensorflow.Dim dim 2", "bool unknown_rank 3"],
        "TensorProto": [
            "int32 dtype 1", "tensorflow.TensorShapeProto tensor_shape 2", "int32 version_number 3", "bytes tensor_content 4", "repeated float float_val 5",
            "repeated double double_val 6", "repeated int32 int_val 7", "repeated bytes string_val 8", "repeated float scomplex_val 9",
            "repeated int64 int64_val 10", "repeated bool bool_val 11", "repeated int32 half_val 13", "repeated uint32 uint32_val 16",
            "repeated uint64 uint64_val 17",
        ],
        "TensorInfo": ["string name 1", "int32 dtype 2", "tensorflow.TensorShapeProto tensor_shape 3"],
        "SignatureDef": ["map tensorflow.TensorInfo inputs 1", "map tensorflow.TensorInfo outputs 2", "string method_name 3"],
    },
    "tensorflow.serving": {
        "ModelSpec": ["string name 1", "google.protobuf.Int64Value version 2", "string signature_name 3", "string version_label 4"],
        "RequestOptions": ["bytes client_id 1", "bool return_all_stoptokens 9"],
        "PredictRequest": [
            "tensorflow.serving.ModelSpec model_spec 1", "map tensorflow.TensorProto inputs 2", "repeated string output_filter 3",
            "bytes predict_streamed_options 5", "bytes client_id 6", "tensorflow.serving.RequestOptions request_options 7",
        ],
        "PredictResponse": ["map tensorflow.TensorProto outputs 1", "tensorflow.serving.ModelSpec model_spec 2"],
        "GetModelMetadataRequest": ["tensorflow.serving.ModelSpec model_spec 1", "repeated string metadata_field 2"],
        "GetModelMetadataResponse": ["tensorflow.serving.ModelSpec model_spec 1", "map google.protobuf.Any metadata 2"],
        "SignatureDefMap": ["map tensorflow.SignatureDef signature_def 1"],
        "ClassificationRequest": ["tensorflow.serving.ModelSpec model_spec 1", "bytes input 2"],
        "InferenceTask": ["tensorflow.serving.ModelSpec model_spec 1", "string method_name 2"],
        "MultiInferenceRequest": ["repeated tensorflow.serving.InferenceTask tasks 1", "bytes input 2"],
        "GetModelStatusRequest": ["tensorflow.serving.ModelSpec model_spec 1"],
        "StatusProto": ["int32 error_code 1", "string error_message 2"],
        "ModelVersionStatus": ["int64 version 1", "int32 state 2", "tensorflow.serving.StatusProto status 3"],
        "GetModelStatusResponse": ["repeated tensorflow.serving.ModelVersionStatus model_version_status 1"],
        "ReloadConfigRequest": ["bytes config 1"],
        "Nothing": [],
    },
    "xds.data.orca.v3": {
        "OrcaLoadReport": ["double cpu_utilization 1", "double mem_utilization 2", "map double named_metrics 8", "double application_utilization 9"],
    },
    "xds.service.orca.v3": {"OrcaLoadReportRequest": ["google.protobuf.Duration report_interval 1", "repeated string request_cost_names 2"]},
}  # fmt: skip


def set_field(to, line):
    *label, kind, name, number = line.split()
    to.name, to.number = name, int(number)
    to.label = to.LABEL_REPEATED if label else to.LABEL_OPTIONAL
    if "." in kind:
        to.type, to.type_name = to.TYPE_MESSAGE, "." + kind
    else:
        to.type = getattr(to, f"TYPE_{kind.upper()}")


def add_field(message, line, package):
    if not line.startswith("map "):
        set_field(message.field.add(), line)
        return
    _, kind, name, number = line.split()
    entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
    entry.options.map_entry = True
    set_field(entry.field.add(), "string key 1")
    set_field(entry.field.add(), f"{kind} value 2")
    set_field(message.field.add(), f"repeated {package}.{message.name}.{entry.name} {name} {number}")


def make_classes():
    pool, names = descriptor_pool.DescriptorPool(), []
    for package, messages in MESSAGES.items():
        file = descriptor_pb2.FileDescriptorProto(name=package, package=package, syntax="proto3", dependency=names)
        for name, fields in messages.items():
            message = file.message_type.add(name=name)
            for line in fields:
                add_field(message, line, package)
        pool.Add(file)
        names.append(package)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{p}.{n}")) for p, messages in MESSAGES.items() for n in messages}


CLASSES = make_classes()


def method(channel, path, request, response):
    """A unary method that takes and gives those messages."""
    return channel.unary_unary(path, CLASSES[request].SerializeToString, CLASSES[response].FromString)
