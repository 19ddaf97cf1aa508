/* Requests that are refused before their body is complete. */

#include <string.h>

#include "server/connection/accept.h"
#include "server/http2/internal.h"
#include "server/request/authorize.h"
#include "server/request/respond.h"

void http2_respond_large_head(request *r)
{
    respond_error(r, 431, "the request head is larger than 65536 bytes");
}

void http2_respond_large_body(request *r)
{
    respond_error(r, 413, "the body is larger than the limit");
}

void http2_respond_no_memory(request *r)
{
    r->sample.reason = RECORD_OVERLOADED;
    respond_error(r, 503, "there is no room for the body now");
}

void http2_respond_unauthenticated(request *r)
{
    if (!authorize_request(r) || r->rights == 0)
        authorize_refuse(r);
    else /* the keys were read again meanwhile */
        respond_error(r, 503, "the keys have changed");
}

static authorize_claim claim_of(const http2_head *head)
{
    authorize_claim claim = {0};
    for (int i = 0; i < head->field_count; i++) {
        const http2_field *f = &head->fields[i];
        request_text *to = f->name_bytes == 9 && memcmp(f->name, "x-api-key", 9) == 0
                               ? &claim.api_key
                           : f->name_bytes == 13 && memcmp(f->name, "authorization", 13) == 0
                               ? &claim.authorization
                               : NULL;
        if (to == NULL)
            continue;
        claim.is_ambiguous |= to->data != NULL;
        *to = (request_text){f->value, f->value_bytes};
    }
    return claim;
}

bool http2_may_send(const http2_exchange *x)
{
    const connection *c = x->on->base;
    if (!c->base.loop->access->is_enforced)
        return true;
    authorize_claim claim = claim_of(x->head);
    return authorize_body(c->base.loop, &c->base, &claim);
}

bool http2_may_add(const http2_exchange *x, size_t bytes)
{
    bool is_large_now = x->body_bytes <= UNAUTHENTICATED_BODY_BYTES_MAX &&
                        bytes > UNAUTHENTICATED_BODY_BYTES_MAX - x->body_bytes;
    return !is_large_now || http2_may_send(x);
}
