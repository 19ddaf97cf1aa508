#ifndef SERVER_INFER_PARSE_H
#define SERVER_INFER_PARSE_H

#include "server/request/request.h"

/* Stage parse: makes jobs of the body, in r->infer, and sets the deadline. A body that would hold
 * the loop is parsed on a helper thread (server/offload/pool.h).
 *
 * Takes over the caller's reference to `m`, also if it fails. `*is_later`: the request waits;
 * `resume` is called then, and calls parse_finish(). The message may lie in the request's memory.
 * STATUS_UNAVAILABLE: too many bodies wait. */
status parse_request(request *r, const model *m, request_handler resume, bool *is_later) MUST_CHECK;

/* A request that waited: what parse_request() would have returned. It may have ended meanwhile;
 * then nothing is left of the jobs. */
status parse_finish(request *r) MUST_CHECK;

/* The same of a body of a route that takes text, into r->language: the model is not known yet, and
 * there are no jobs. */
status parse_language(request *r, request_handler resume, bool *is_later) MUST_CHECK;

#endif
