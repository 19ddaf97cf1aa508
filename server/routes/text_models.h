#ifndef SERVER_ROUTES_TEXT_MODELS_H
#define SERVER_ROUTES_TEXT_MODELS_H

#include "base/text/text_buffer.h"
#include "server/service/service.h"

/* The members of OpenAI's object "model": TensorFlow Serving has its own on the same path, so the
 * response has both. */
void text_models_write_members(text_buffer *out, const service *s, const char *name);

#endif
