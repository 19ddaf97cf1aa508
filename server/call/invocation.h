#ifndef SERVER_CALL_INVOCATION_H
#define SERVER_CALL_INVOCATION_H

#include "server/request/request.h"

/* POST /invocations, which SageMaker asks of an image, and the route of AIP_PREDICT_ROUTE, which
 * Vertex AI does: no model is named, or that of /models/M/invoke, and the body is of any API. */

/* Finds the model and the API, from the content type or the body: the request's route becomes that
 * of KServe's or TensorFlow Serving's inference. STATUS_NOT_FOUND: there is no model, or more than
 * one. STATUS_UNSUPPORTED_CODING: of the content type. */
status invocation_open(request *r) MUST_CHECK;

/* How the rows of the response are written, by the header Accept. */
infer_rows_as invocation_rows_as(const request *r);

/* "...;json-header-size=N": SageMaker's name for Inference-Header-Content-Length. False: it is
 * another type. */
bool invocation_find_header_size(request_text type, request_text *digits);

#endif
