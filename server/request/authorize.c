#include "server/request/authorize.h"

#include <string.h>

#include "server/request/respond.h"

/* A header that says who asks, absent or once: of two, a proxy in front may have checked the other.
 */
static bool find_once(const request *r, const char *name, request_text *out)
{
    *out = request_header(r, name);
    return out->data == NULL || !request_has_twice(r, name);
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

/* The key that was sent, or nothing. False: there are two. */
static bool find_key(const request *r, request_text *out)
{
    request_text bearer;
    if (!find_once(r, "x-api-key", out) || !find_once(r, "authorization", &bearer))
        return false;
    if (out->data == NULL)
        *out = key_of_bearer(bearer);
    return true;
}

static const access_identity *find_certificate(const request *r, const access_table *t)
{
    const access_identity *found = NULL;
    const char *name = r->connection->certificate_names;
    for (; name != NULL && name[0] != 0 && found == NULL; name += strlen(name) + 1)
        found = access_find_certificate(t, name);
    return found;
}

/* False: it cannot be told. */
static bool identify(request *r)
{
    request_loop *l = r->loop;
    access_table *t = l->access;
    request_text key;
    if (t->count == 0)
        return true;
    if (!find_key(r, &key))
        return false;
    r->has_key = key.data != NULL;
    const access_identity *who =
        r->has_key ? access_find_key(t, l->hasher, key.data, key.bytes) : find_certificate(r, t);
    if (who != NULL) {
        r->identity = who;
        r->access = access_table_retain(t);
    }
    return true;
}

static unsigned rights_of(const request *r)
{
    const access_table *t = r->loop->access;
    const request_connection *c = r->connection;
    if (c->listener_rights != 0 && (!t->is_enforced || c->is_local))
        return c->listener_rights;
    if (t->is_enforced)
        return r->identity != NULL ? r->identity->rights : 0;
    const server_options *o = request_service(r)->options;
    return ACCESS_INFER | ACCESS_READ | (o->repository_control ? ACCESS_ADMIN : 0) |
           (o->shared_memory ? ACCESS_SHARED_MEMORY : 0);
}

bool authorize_request(request *r)
{
    access_right needed = access_right_of(r->route.kind);
    r->is_ambiguous = !identify(r);
    r->rights = rights_of(r);
    return needed == ACCESS_OPEN || (!r->is_ambiguous && (r->rights & needed) != 0);
}

bool authorize_model(const request *r, const char *name, size_t bytes)
{
    bool is_bound =
        r->loop->access->is_enforced && r->identity != NULL && r->connection->listener_rights == 0;
    return !is_bound || access_may_run(r->identity, name, bytes);
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
