/* grpc.health.v1.Health. */
#include <string.h>

#include "server/protocol/grpc/health.pb-c.h"
#include "server/protocol/route_method.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

/* The whole server, one of its services, or a model by its name. False: there is none of that name.
 */
static bool find_status(const service *s, const char *name, bool *is_serving)
{
    const model *m;
    *is_serving = service_is_ready(s);
    if (name[0] == 0)
        return true;
    for (const char *const *at = route_method_services(); *at != NULL; at++) {
        if (strcmp(*at, name) == 0)
            return true;
    }
    if (!service_is_open(s))
        return false;
    status failure = repository_find(s->models, name, strlen(name), 0, &m);
    if (!failure)
        model_release(m);
    *is_serving = !failure && !atomic_load(&s->is_draining);
    return failure != STATUS_NOT_FOUND;
}

typedef Grpc__Health__V1__HealthCheckRequest asked_message;
typedef Grpc__Health__V1__HealthCheckResponse answer_message;

static void reply(request *r, Grpc__Health__V1__HealthCheckResponse__ServingStatus found)
{
    answer_message out = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    out.status = found;
    method_reply(r, &out.base);
}

static void reply_serving(request *r, bool is_serving)
{
    reply(r, is_serving ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                        : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING);
}

void method_health_check(request *r, const ProtobufCMessage *in, arena *memory)
{
    bool is_serving;
    (void)memory;
    if (find_status(request_service(r), ((const asked_message *)in)->service, &is_serving))
        reply_serving(r, is_serving);
    else
        respond_error(r, 404, "unknown service");
}

/* Asked again every second: what is new is sent (server/http2/call.c). */
void method_health_watch(request *r, const ProtobufCMessage *in, arena *memory)
{
    bool is_serving;
    (void)memory;
    if (find_status(request_service(r), ((const asked_message *)in)->service, &is_serving))
        reply_serving(r, is_serving);
    else
        reply(r, GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN);
}
