#ifndef SERVER_REQUEST_AUTHORIZE_H
#define SERVER_REQUEST_AUTHORIZE_H

#include "server/request/request.h"

/* Who asks, and may they? By the key (`Authorization: Bearer`, `X-API-Key`), by the certificate, or
 * by the listener that they reached. What is told of a refusal depends on nobody else's key. */

/* Finds out, before anything else is done for the request; sets r->identity and r->rights. False:
 * it may not what its route asks for; authorize_refuse() answers it. */
bool authorize_request(request *r) MUST_CHECK;
/* May it run that model? */
bool authorize_model(const request *r, const char *name, size_t bytes) MUST_CHECK;
/* 400, 401 or 403; counted. */
void authorize_refuse(request *r);

#endif
