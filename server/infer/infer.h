#ifndef SERVER_INFER_INFER_H
#define SERVER_INFER_INFER_H

#include "server/request/request.h"

/* The handler of .../infer and ...:predict: finds the model, parses the body into jobs, admits and
 * submits them, and answers with their results when the last one is back. */
void infer_handle(request *r);

#endif
