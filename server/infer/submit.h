#ifndef SERVER_INFER_SUBMIT_H
#define SERVER_INFER_SUBMIT_H

#include "server/request/request.h"

/* The jobs are ready, or `failure` says why there are none: admits and submits them, and answers
 * with their results when the last one is back; or refuses the request. */
void infer_submit(request *r, status failure);

#endif
