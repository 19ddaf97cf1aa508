#ifndef SERVER_INFER_TOKENIZE_H
#define SERVER_INFER_TOKENIZE_H

#include "server/request/request.h"

/* Stage tokenize: texts become tokens, in jobs in r->infer. */

/* Texts of r->infer, or of r->language. Much text is tokenized on a helper thread: as
 * parse_request(). Errors of text_rows_make(); STATUS_UNAVAILABLE: too much waits. */
status tokenize_request(request *r, request_handler resume, bool *is_later) MUST_CHECK;

/* A request that waited: what tokenize_request() would have returned. It may have ended meanwhile;
 * then nothing is left of the jobs. */
status tokenize_finish(request *r) MUST_CHECK;

#endif
