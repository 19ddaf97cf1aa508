/* TensorFlow Serving's services, but for Predict, which is an inference. */
#include <stdlib.h>
#include <string.h>

#include "server/protocol/grpc/predict_message.h"
#include "server/protocol/grpc/tensorflow_serving.pb-c.h"
#include "server/protocol/signature.h"
#include "server/request/authorize.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

#define METADATA_FIELD "signature_def"
#define TYPE_URL "type.googleapis.com/tensorflow.serving.SignatureDefMap"

typedef Tensorflow__Serving__ModelSpec spec_message;
typedef Tensorflow__SignatureDef signature_message;

/* The model that it names becomes the route's. */
static status read_spec(request *r, const spec_message *spec)
{
    const char *name = spec != NULL ? spec->name : "", *label = "";
    int64_t version = 0;
    if (spec != NULL &&
        spec->version_choice_case == TENSORFLOW__SERVING__MODEL_SPEC__VERSION_CHOICE_VERSION) {
        version = spec->version->value;
        if (version <= 0)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "field \"model_spec.version\" is %lld: versions begin with 1",
                               (long long)version);
    } else if (spec != NULL && spec->version_choice_case ==
                                   TENSORFLOW__SERVING__MODEL_SPEC__VERSION_CHOICE_VERSION_LABEL) {
        label = spec->version_label;
    }
    r->route.version = version;
    status failure = route_set_name(&r->route, "model_spec.name", name, strlen(name));
    if (!failure && label[0] != 0)
        failure = route_set_label(&r->route, "model_spec.version_label", label, strlen(label));
    return failure;
}

/* The same, and the model itself, for the caller to release. False: the request is answered. */
static bool find_model(request *r, const spec_message *spec, const model **out)
{
    status failure = read_spec(r, spec);
    if (!failure)
        failure = request_find_model(r, out);
    if (failure)
        respond_status(r, failure, status_message());
    return failure == STATUS_OK;
}

/* protobuf-c's strings are not const. */
static char *borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Memory of the response is the arena's; NULL where there is none. */

static Tensorflow__TensorShapeProto *make_shape(const model_tensor *t, arena *memory)
{
    Tensorflow__TensorShapeProto *shape = arena_allocate(memory, sizeof *shape);
    Tensorflow__TensorShapeProto__Dim *dims =
        arena_allocate(memory, sizeof *dims * TENSOR_RANK_MAX);
    Tensorflow__TensorShapeProto__Dim **list =
        arena_allocate(memory, sizeof *list * TENSOR_RANK_MAX);
    if (shape == NULL || dims == NULL || list == NULL)
        return NULL;
    *shape = (Tensorflow__TensorShapeProto)TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
    for (int i = 0; i < t->rank; i++) {
        dims[i] = (Tensorflow__TensorShapeProto__Dim)TENSORFLOW__TENSOR_SHAPE_PROTO__DIM__INIT;
        dims[i].size = signature_dim(t, i);
        list[i] = &dims[i];
    }
    shape->dim = list;
    shape->n_dim = (size_t)t->rank;
    return shape;
}

static Tensorflow__TensorInfo *make_info(const model_tensor *t, arena *memory)
{
    Tensorflow__TensorInfo *info = arena_allocate(memory, sizeof *info);
    if (info == NULL)
        return NULL;
    *info = (Tensorflow__TensorInfo)TENSORFLOW__TENSOR_INFO__INIT;
    info->name = borrow(t->name);
    info->dtype = (Tensorflow__DataType)grpc_dtype_to_tensorflow(t->dtype);
    info->tensor_shape = make_shape(t, memory);
    return info->tensor_shape != NULL ? info : NULL;
}

static bool fill_inputs(signature_message *to, const model *m, arena *memory)
{
    typedef Tensorflow__SignatureDef__InputsEntry entry;
    entry *entries = arena_allocate(memory, (size_t)m->input_count * sizeof *entries + 1);
    to->inputs = arena_allocate(memory, (size_t)m->input_count * sizeof *to->inputs + 1);
    if (entries == NULL || to->inputs == NULL)
        return false;
    for (int i = 0; i < m->input_count; i++) {
        entries[i] = (entry)TENSORFLOW__SIGNATURE_DEF__INPUTS_ENTRY__INIT;
        entries[i].key = borrow(m->inputs[i].name);
        entries[i].value = make_info(&m->inputs[i], memory);
        if (entries[i].value == NULL)
            return false;
        to->inputs[to->n_inputs++] = &entries[i];
    }
    return true;
}

static bool fill_outputs(signature_message *to, const model *m, arena *memory)
{
    typedef Tensorflow__SignatureDef__OutputsEntry entry;
    entry *entries = arena_allocate(memory, (size_t)m->output_count * sizeof *entries + 1);
    to->outputs = arena_allocate(memory, (size_t)m->output_count * sizeof *to->outputs + 1);
    if (entries == NULL || to->outputs == NULL)
        return false;
    for (int i = 0; i < m->output_count; i++) {
        entries[i] = (entry)TENSORFLOW__SIGNATURE_DEF__OUTPUTS_ENTRY__INIT;
        entries[i].key = borrow(m->outputs[i].name);
        entries[i].value = make_info(&m->outputs[i], memory);
        if (entries[i].value == NULL)
            return false;
        to->outputs[to->n_outputs++] = &entries[i];
    }
    return true;
}

/* A SignatureDefMap, packed. */
static bool pack_signatures(text_buffer *out, const model *m, arena *memory)
{
    Tensorflow__Serving__SignatureDefMap map = TENSORFLOW__SERVING__SIGNATURE_DEF_MAP__INIT;
    Tensorflow__Serving__SignatureDefMap__SignatureDefEntry
        entry = TENSORFLOW__SERVING__SIGNATURE_DEF_MAP__SIGNATURE_DEF_ENTRY__INIT,
        *list = &entry;
    signature_message signature = TENSORFLOW__SIGNATURE_DEF__INIT;
    signature.method_name = borrow("tensorflow/serving/predict");
    if (!fill_inputs(&signature, m, memory) || !fill_outputs(&signature, m, memory))
        return false;
    entry.key = borrow(GRPC_SIGNATURE);
    entry.value = &signature;
    map.signature_def = &list;
    map.n_signature_def = 1;
    grpc_pack(out, &map.base);
    return !out->is_broken;
}

static void reply_metadata(request *r, const model *m, const text_buffer *signatures)
{
    Tensorflow__Serving__GetModelMetadataResponse out =
        TENSORFLOW__SERVING__GET_MODEL_METADATA_RESPONSE__INIT;
    Tensorflow__Serving__GetModelMetadataResponse__MetadataEntry
        entry = TENSORFLOW__SERVING__GET_MODEL_METADATA_RESPONSE__METADATA_ENTRY__INIT,
        *list = &entry;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    Google__Protobuf__Int64Value version = GOOGLE__PROTOBUF__INT64_VALUE__INIT;
    spec_message spec = TENSORFLOW__SERVING__MODEL_SPEC__INIT;
    any.type_url = borrow(TYPE_URL);
    any.value = (ProtobufCBinaryData){signatures->bytes, (uint8_t *)signatures->data};
    entry.key = borrow(METADATA_FIELD);
    entry.value = &any;
    version.value = m->version;
    spec.name = borrow(m->name);
    spec.version_choice_case = TENSORFLOW__SERVING__MODEL_SPEC__VERSION_CHOICE_VERSION;
    spec.version = &version;
    out.model_spec = &spec;
    out.metadata = &list;
    out.n_metadata = 1;
    method_reply(r, &out.base);
}

static status check_metadata_fields(const Tensorflow__Serving__GetModelMetadataRequest *asked)
{
    if (asked->n_metadata_field == 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "field \"metadata_field\" is empty: there is " METADATA_FIELD);
    for (size_t i = 0; i < asked->n_metadata_field; i++) {
        if (strcmp(asked->metadata_field[i], METADATA_FIELD) != 0)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "metadata field \"%.200s\" is not supported: there is %s",
                               asked->metadata_field[i], METADATA_FIELD);
    }
    return STATUS_OK;
}

void method_tensorflow_metadata(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Tensorflow__Serving__GetModelMetadataRequest *asked =
        (const Tensorflow__Serving__GetModelMetadataRequest *)in;
    const model *m;
    text_buffer signatures = {0};
    status failure = check_metadata_fields(asked);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    if (!find_model(r, asked->model_spec, &m))
        return;
    if (pack_signatures(&signatures, m, memory))
        reply_metadata(r, m, &signatures);
    else
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    text_buffer_dispose(&signatures);
    model_release(m);
}

typedef Tensorflow__Serving__ModelVersionStatus version_message;

static version_message *make_version(const repository_entry *entry, arena *memory)
{
    version_message *to = arena_allocate(memory, sizeof *to);
    Tensorflow__Serving__StatusProto *result = arena_allocate(memory, sizeof *result);
    if (to == NULL || result == NULL)
        return NULL;
    *to = (version_message)TENSORFLOW__SERVING__MODEL_VERSION_STATUS__INIT;
    *result = (Tensorflow__Serving__StatusProto)TENSORFLOW__SERVING__STATUS_PROTO__INIT;
    to->version = entry->version;
    to->state =
        entry->state == MODEL_LOADING ? TENSORFLOW__SERVING__MODEL_VERSION_STATUS__STATE__LOADING
        : entry->state == MODEL_READY ? TENSORFLOW__SERVING__MODEL_VERSION_STATUS__STATE__AVAILABLE
                                      : TENSORFLOW__SERVING__MODEL_VERSION_STATUS__STATE__END;
    to->status = result;
    if (entry->state == MODEL_FAILED) {
        result->error_code = 2; /* UNKNOWN */
        result->error_message = arena_format(memory, "%s", entry->reason);
    }
    return result->error_message != NULL ? to : NULL;
}

/* `version`: 0: all. */
static void reply_status(request *r, int64_t version, arena *memory)
{
    Tensorflow__Serving__GetModelStatusResponse out =
        TENSORFLOW__SERVING__GET_MODEL_STATUS_RESPONSE__INIT;
    int count;
    repository_entry *entries = repository_list_all(request_service(r)->models, &count);
    out.model_version_status =
        arena_allocate(memory, (size_t)count * sizeof *out.model_version_status + 1);
    bool is_whole = out.model_version_status != NULL;
    for (int i = 0; is_whole && i < count; i++) {
        if (strcmp(entries[i].name, r->route.name) != 0 ||
            (version != 0 && version != entries[i].version))
            continue;
        version_message *found = make_version(&entries[i], memory);
        out.model_version_status[out.n_model_version_status++] = found;
        is_whole = found != NULL;
    }
    free(entries);
    if (!is_whole)
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    else if (out.n_model_version_status == 0)
        respond_error(r, 404, "no such model or version");
    else
        method_reply(r, &out.base);
}

void method_tensorflow_status(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Tensorflow__Serving__GetModelStatusRequest *asked =
        (const Tensorflow__Serving__GetModelStatusRequest *)in;
    const model *m;
    status failure = read_spec(r, asked->model_spec);
    int64_t version = r->route.version;
    if (!failure && r->route.label_bytes > 0) {
        failure = request_find_model(r, &m);
        if (!failure) {
            version = m->version;
            model_release(m);
        }
    }
    if (failure)
        respond_status(r, failure, status_message());
    else
        reply_status(r, version, memory);
}

/* What a model that has only the signature of Predict says to the others. */
static void refuse_signature(request *r, const spec_message *spec, bool is_classify)
{
    const model *m;
    status failure = read_spec(r, spec);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    if (!authorize_model(r, r->route.name, r->route.name_bytes)) {
        authorize_refuse(r);
        return;
    }
    if (!find_model(r, spec, &m))
        return;
    model_release(m);
    respond_error(r, 400,
                  is_classify ? "Expected classification signature method_name to be "
                                "tensorflow/serving/classify. Was: tensorflow/serving/predict"
                              : "Expected regression signature method_name to be "
                                "tensorflow/serving/regress. Was: tensorflow/serving/predict");
}

void method_tensorflow_classify(request *r, const ProtobufCMessage *in, arena *memory)
{
    (void)memory;
    refuse_signature(r, ((const Tensorflow__Serving__ClassificationRequest *)in)->model_spec, true);
}

void method_tensorflow_regress(request *r, const ProtobufCMessage *in, arena *memory)
{
    (void)memory;
    refuse_signature(r, ((const Tensorflow__Serving__RegressionRequest *)in)->model_spec, false);
}

void method_tensorflow_multi(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Tensorflow__Serving__MultiInferenceRequest *asked =
        (const Tensorflow__Serving__MultiInferenceRequest *)in;
    (void)memory;
    if (asked->n_tasks == 0) {
        respond_error(r, 400, "field \"tasks\" is empty");
        return;
    }
    refuse_signature(r, asked->tasks[0]->model_spec,
                     strcmp(asked->tasks[0]->method_name, "tensorflow/serving/regress") != 0);
}

void method_tensorflow_reload(request *r, const ProtobufCMessage *in, arena *memory)
{
    (void)in, (void)memory;
    respond_error(r, 501,
                  "HandleReloadConfigRequest is not supported: models are loaded by "
                  "inference.GRPCInferenceService/RepositoryModelLoad");
}
