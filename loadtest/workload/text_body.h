#ifndef LOADTEST_WORKLOAD_TEXT_BODY_H
#define LOADTEST_WORKLOAD_TEXT_BODY_H

#include "loadtest/workload/request_source.h"

/* Appends the body of a request for one text, in that format: OpenAI's embeddings, the routes of
 * text-embeddings-inference, or the input "text" of KServe and TensorFlow Serving.
 * STATUS_INVALID_ARGUMENT: it is not UTF-8. */
status text_body_write(text_buffer *body, source_format format, const char *model,
                       const char *text) MUST_CHECK;

#endif
