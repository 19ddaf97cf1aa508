#ifndef SERVER_INFER_REFUSE_H
#define SERVER_INFER_REFUSE_H

#include "server/request/request.h"

/* Answers a request that is refused on admission before its body was parsed, with
 * status_message(): at once, or, where the connection is refused too often, a little later
 * (refusal_pace.h). */
void refuse_request(request *r, status why, uint64_t retry_after_ns);

#endif
