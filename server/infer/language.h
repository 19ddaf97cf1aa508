#ifndef SERVER_INFER_LANGUAGE_H
#define SERVER_INFER_LANGUAGE_H

#include "server/request/request.h"

/* The handler of the routes that take text: parses the body, finds the model that it or the path
 * names, tokenizes, and goes on as infer_handle(). /tokenize and /decode are answered without a
 * device. */
void language_handle(request *r);

/* The model of a request that names none: server.default_model, or the only one that takes text.
 * The caller releases it. STATUS_NOT_FOUND: there is none, or more than one; STATUS_UNAVAILABLE. */
status language_default_model(const request *r, const model **out) MUST_CHECK;

#endif
