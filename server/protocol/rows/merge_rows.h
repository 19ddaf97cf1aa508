#ifndef SERVER_PROTOCOL_ROWS_MERGE_ROWS_H
#define SERVER_PROTOCOL_ROWS_MERGE_ROWS_H

#include "server/protocol/infer.h"

/* The outputs of a request whose rows went to several jobs, as one tensor each, in the order of the
 * rows: in place of the outputs of jobs[0], with its memory. Rows shorter than the longest are
 * filled with zeros. Any thread. STATUS_OUT_OF_MEMORY. */
status merge_rows(const infer_request *r) MUST_CHECK;

#endif
