#include "server/request/authorize.h"

#include <string.h>

#include "server/request/respond.h"

/* Of two headers that say who asks, a proxy in front may have checked the other. */
static authorize_claim claim_of(const request *r)
{
    authorize_claim claim = {request_header(r, "x-api-key"), request_header(r, "authorization"),
                             false};
    claim.is_ambiguous =
        (claim.api_key.data != NULL && request_has_twice(r, "x-api-key")) ||
        (claim.authorization.data != NULL && request_has_twice(r, "authorization"));
    return claim;
}

/* The key of `Bearer KEY`, or nothing. */
static request_text key_of_bearer(request_text value)
{
    static const char scheme[] = "bearer ";
    size_t n = sizeof(scheme) - 1;
    if (value.bytes <= n || strncasecmp(value.data, scheme, n) != 0)
        return (request_text){NULL, 0};
    while (n < value.bytes && value.data[n] == ' ')
        n++;
    return (request_text){value.data + n, value.bytes - n};
}

/* The key that was sent, or nothing. */
static request_text find_key(const authorize_claim *claim)
{
    return claim->api_key.data != NULL ? claim->api_key : key_of_bearer(claim->authorization);
}

bool authorize_has_key(const authorize_claim *claim)
{
    return find_key(claim).data != NULL;
}

static const access_identity *find_certificate(const request_connection *c, const access_table *t)
{
    const access_identity *found = NULL;
    const char *name = c->certificate_names;
    for (; name != NULL && name[0] != 0 && found == NULL; name += strlen(name) + 1)
        found = access_find_certificate(t, name);
    return found;
}

/* NULL: nobody that is known. */
static const access_identity *identify(request_loop *l, const request_connection *c,
                                       const authorize_claim *claim)
{
    request_text key = find_key(claim);
    return key.data != NULL ? access_find_key(l->access, l->hasher, key.data, key.bytes)
                            : find_certificate(c, l->access);
}

/* False: it cannot be told. */
static bool identify_request(request *r)
{
    if (r->loop->access->count == 0)
        return true;
    authorize_claim claim = claim_of(r);
    if (claim.is_ambiguous)
        return false;
    r->has_key = authorize_has_key(&claim);
    r->identity = identify(r->loop, r->connection, &claim);
    if (r->identity != NULL)
        r->access = access_table_retain(r->loop->access);
    return true;
}

static unsigned rights_of(const request_loop *l, const request_connection *c,
                          const access_identity *who)
{
    const access_table *t = l->access;
    if (c->listener_rights != 0 && (!t->is_enforced || c->is_local))
        return c->listener_rights;
    if (t->is_enforced)
        return who != NULL ? who->rights : 0;
    const server_options *o = l->service->options;
    return ACCESS_INFER | ACCESS_READ | (o->repository_control ? ACCESS_ADMIN : 0) |
           (o->shared_memory ? ACCESS_SHARED_MEMORY : 0);
}

bool authorize_body(request_loop *l, const request_connection *c, const authorize_claim *claim)
{
    if (!l->access->is_enforced || claim->is_ambiguous)
        return !l->access->is_enforced;
    return rights_of(l, c, identify(l, c, claim)) != 0;
}

bool authorize_request(request *r)
{
    access_right needed = access_right_of(r->route.kind);
    r->is_ambiguous = !identify_request(r);
    r->rights = rights_of(r->loop, r->connection, r->identity);
    return needed == ACCESS_OPEN || (!r->is_ambiguous && (r->rights & needed) != 0);
}

bool authorize_model(const request *r, const char *name, size_t bytes)
{
    bool is_bound =
        r->loop->access->is_enforced && r->identity != NULL && r->connection->listener_rights == 0;
    return !is_bound || access_may_run(r->identity, name, bytes);
}

bool authorize_find_model(request *r, const model **out)
{
    if (!authorize_model(r, r->route.name, r->route.name_bytes)) {
        authorize_refuse(r);
        return false;
    }
    status failure = request_find_model(r, out);
    if (failure)
        respond_status(r, failure, status_message());
    return failure == STATUS_OK;
}

void authorize_refuse(request *r)
{
    static const char challenge[] = "Bearer realm=\"penstock\"";
    service *s = request_service(r);
    if (r->is_ambiguous) {
        respond_error(r, 400,
                      "a header that names who asks (X-API-Key, Authorization) is there twice");
        return;
    }
    service_refusal why = r->identity != NULL || !r->loop->access->is_enforced
                              ? SERVICE_REFUSED_NO_RIGHT
                          : r->has_key ? SERVICE_REFUSED_WRONG_KEY
                                       : SERVICE_REFUSED_NO_KEY;
    atomic_fetch_add_explicit(&s->refusals[why], 1, memory_order_relaxed);
    if (why != SERVICE_REFUSED_NO_RIGHT) {
        respond_header(r, "www-authenticate", challenge, sizeof(challenge) - 1);
        respond_error(r, 401, "a valid key is needed: Authorization: Bearer KEY, or X-API-Key");
    } else if (!r->loop->access->is_enforced &&
               access_right_of(r->route.kind) == ACCESS_SHARED_MEMORY) {
        respond_error(r, 403,
                      "shared memory is turned off: it needs a key with the right shared_memory "
                      "(access.keys_file), an address of its own (server.listen_admin), or "
                      "server.shared_memory");
    } else if (!r->loop->access->is_enforced) {
        respond_error(r, 403,
                      "loading and unloading over HTTP is turned off: it needs a key "
                      "(access.keys_file), an address of its own (server.listen_admin), or "
                      "server.repository_control");
    } else {
        respond_error(r, 403, "this key does not allow that");
    }
}
