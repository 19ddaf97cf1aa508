#ifndef SERVER_INFER_RESULTS_H
#define SERVER_INFER_RESULTS_H

#include "server/request/request.h"

/* The request's jobs are back: answers with their outputs, or with the first failure. Nothing
 * happens if the request has ended meanwhile. */
void respond_with_results(request *r);

#endif
