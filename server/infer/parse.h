#ifndef SERVER_INFER_PARSE_H
#define SERVER_INFER_PARSE_H

#include "server/request/request.h"

/* Stage parse: unpacks the body and makes jobs of it, in r->infer; sets the deadline. Takes over
 * the caller's reference to `m`, also if it fails. The message may lie in the request's memory. */
status parse_request(request *r, const model *m) MUST_CHECK;

#endif
