#ifndef SERVER_PROTOCOL_GRPC_PREDICT_MESSAGE_H
#define SERVER_PROTOCOL_GRPC_PREDICT_MESSAGE_H

#include "server/protocol/grpc/infer_message.h"

/* tensorflow.serving.PredictRequest and PredictResponse. */

/* Which model a request names, found without looking at its tensors; inside the message. */
typedef struct grpc_predict_head {
    json_string model_name, label; /* text NULL: absent */
    int64_t version;               /* 0: none */
    size_t raw_bytes;              /* of `tensor_content`: they are not parsed */
    size_t repeated_bytes;         /* of elements that are not in the message, at most so many */
} grpc_predict_head;
status grpc_read_predict_head(grpc_predict_head *out, const char *message, size_t bytes) MUST_CHECK;

/* A request into `r`, which is initialised with its model and INFER_GRPC_TENSORFLOW.
 * `tensor_content` is borrowed where `c` allows it. */
status grpc_parse_predict(infer_request *r, const infer_context *c, const char *message,
                          size_t bytes) MUST_CHECK;

/* The response, as grpc_write_infer(). Elements are typed, as TensorFlow Serving has them. */
status grpc_write_predict(text_buffer *out, const infer_request *r, grpc_pieces *pieces) MUST_CHECK;

/* tensorflow.DataType. */
bool grpc_dtype_from_tensorflow(int64_t number, dtype *out);
int grpc_dtype_to_tensorflow(dtype type);

/* The one signature there is; an empty name stands for it. */
#define GRPC_SIGNATURE "serving_default"

#endif
