#ifndef SERVER_PROTOCOL_LANGUAGE_ERROR_H
#define SERVER_PROTOCOL_LANGUAGE_ERROR_H

#include "base/text/text_buffer.h"
#include "server/protocol/language/language.h"

/* Errors of the routes that take text, as the API of each has them. Pure. */

/* The HTTP code of a failure; `fault` may be NULL. Not for KServe and TensorFlow Serving, whose
 * codes respond_code() knows. */
int language_error_code(route_dialect dialect, status s, const language_fault *fault);

/* Appends the body of an error with that HTTP code. OpenAI: {"error": {"message", "type", "param",
 * "code"}}; TEI: {"error", "error_type"}; Cohere and Jina: {"message", "detail"}. */
void language_write_error(text_buffer *out, route_dialect dialect, int code, const char *message,
                          const language_fault *fault);

#endif
