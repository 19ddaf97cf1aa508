#ifndef SERVER_REQUEST_AUTHORIZE_H
#define SERVER_REQUEST_AUTHORIZE_H

#include "server/request/request.h"

/* Who asks, and may they? By the key (`Authorization: Bearer`, `X-API-Key`), by the certificate, or
 * by the listener that they reached. What is told of a refusal depends on nobody else's key. */

/* Finds out, before anything else is done for the request; sets r->identity and r->rights. False:
 * it may not what its route asks for; authorize_refuse() answers it. */
bool authorize_request(request *r) MUST_CHECK;
/* What the head of a request says of who asks. */
typedef struct authorize_claim {
    request_text api_key, authorization; /* X-API-Key, Authorization; no data: not there */
    bool is_ambiguous;                   /* one of them is there twice */
} authorize_claim;
/* Before a body is received that somebody has to hold: is who sends it known here, or was it sent
 * where everybody may? False: 401, whatever the route. */
bool authorize_body(request_loop *l, const request_connection *c,
                    const authorize_claim *claim) MUST_CHECK;
/* Is a key sent? */
bool authorize_has_key(const authorize_claim *claim);

/* May it run that model? */
bool authorize_model(const request *r, const char *name, size_t bytes) MUST_CHECK;
/* The model that the route names, if the request may run it; the caller releases it. Else the
 * request is answered: false. */
bool authorize_find_model(request *r, const model **out) MUST_CHECK;
/* 400, 401 or 403; counted. */
void authorize_refuse(request *r);

#endif
