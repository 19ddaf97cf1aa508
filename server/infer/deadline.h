#ifndef SERVER_INFER_DEADLINE_H
#define SERVER_INFER_DEADLINE_H

#include "server/request/request.h"

/* When the request must be answered, by its header, its body, its model's objective or the options;
 * UINT64_MAX: it has no deadline. The model may not be known yet. */
uint64_t infer_deadline_of(const request *r);

#endif
