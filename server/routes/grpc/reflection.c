/* grpc.reflection.v1 and v1alpha, whose messages are the same: which services there are, and what
 * their .proto files say. */
#include "server/protocol/grpc/descriptors.h"
#include "server/protocol/grpc/reflection_v1.pb-c.h"
#include "server/protocol/route_method.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

#define SERVICES_MAX 16
enum { NOT_FOUND = 5, UNIMPLEMENTED = 12 };

typedef Grpc__Reflection__V1__ServerReflectionRequest asked_message;
typedef Grpc__Reflection__V1__ServerReflectionResponse answer_message;

static void reply_error(request *r, answer_message *out, int code, const char *text)
{
    Grpc__Reflection__V1__ErrorResponse error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    error.error_code = code;
    error.error_message = (char *)(uintptr_t)text;
    out->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    out->error_response = &error;
    method_reply(r, &out->base);
}

static void reply_services(request *r, answer_message *out)
{
    Grpc__Reflection__V1__ListServiceResponse list =
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    Grpc__Reflection__V1__ServiceResponse services[SERVICES_MAX], *pointers[SERVICES_MAX];
    const char *const *names = route_method_services();
    for (; names[list.n_service] != NULL && list.n_service < SERVICES_MAX; list.n_service++) {
        size_t i = list.n_service;
        services[i] =
            (Grpc__Reflection__V1__ServiceResponse)GRPC__REFLECTION__V1__SERVICE_RESPONSE__INIT;
        services[i].name = (char *)(uintptr_t)names[i];
        pointers[i] = &services[i];
    }
    list.service = pointers;
    out->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    out->list_services_response = &list;
    method_reply(r, &out->base);
}

static void reply_file(request *r, answer_message *out, bool is_found,
                       const grpc_descriptor *descriptor)
{
    Grpc__Reflection__V1__FileDescriptorResponse file =
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    if (!is_found) {
        reply_error(r, out, NOT_FOUND, "there is no such file or symbol");
        return;
    }
    ProtobufCBinaryData data = {descriptor->bytes, (uint8_t *)(uintptr_t)descriptor->data};
    file.file_descriptor_proto = &data;
    file.n_file_descriptor_proto = 1;
    out->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    out->file_descriptor_response = &file;
    method_reply(r, &out->base);
}

void method_reflection(request *r, const ProtobufCMessage *in, arena *memory)
{
    asked_message *asked = (asked_message *)(uintptr_t)in;
    answer_message out = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    grpc_descriptor found = {NULL, 0};
    (void)memory;
    out.valid_host = asked->host;
    out.original_request = asked;
    switch (asked->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        reply_services(r, &out);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        reply_file(r, &out, grpc_descriptor_of_file(asked->file_by_filename, &found), &found);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        reply_file(r, &out, grpc_descriptor_of_symbol(asked->file_containing_symbol, &found),
                   &found);
        break;
    default:
        reply_error(r, &out, UNIMPLEMENTED, "there are no extensions");
    }
}
