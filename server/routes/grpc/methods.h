#ifndef SERVER_ROUTES_GRPC_METHODS_H
#define SERVER_ROUTES_GRPC_METHODS_H

#include "server/protocol/grpc/message.h"
#include "server/request/request.h"

/* The handler of gRPC's methods without tensors: unpacks the message, and calls the method's own.
 */
void serve_method(request *r);

/* The methods. Each answers the request, at once or later; `in` goes when it returns, and what is
 * allocated in `memory`. */
typedef void grpc_method(request *r, const ProtobufCMessage *in, arena *memory);
grpc_method method_live, method_ready, method_model_ready, method_server_metadata,
    method_model_metadata, method_model_config, method_model_statistics, method_index, method_load,
    method_unload, method_shared_status, method_shared_register, method_shared_unregister,
    method_cuda_status, method_cuda_register, method_cuda_unregister, method_trace_setting,
    method_log_settings, method_health_check, method_health_watch, method_reflection,
    method_tensorflow_metadata, method_tensorflow_status, method_tensorflow_classify,
    method_tensorflow_regress, method_tensorflow_multi, method_tensorflow_reload,
    method_load_report;

/* Answers with a message. */
void method_reply(request *r, const ProtobufCMessage *message);

/* The model of that name and version (digits, or empty); the caller releases it. False: the request
 * is answered. */
bool method_find_model(request *r, const char *name, const char *version, const model **out);

#endif
