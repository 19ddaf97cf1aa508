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

void method_health_check(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Grpc__Health__V1__HealthCheckRequest *asked =
        (const Grpc__Health__V1__HealthCheckRequest *)in;
    Grpc__Health__V1__HealthCheckResponse out = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    bool is_serving;
    (void)memory;
    if (!find_status(request_service(r), asked->service, &is_serving)) {
        respond_error(r, 404, "unknown service");
        return;
    }
    out.status = is_serving ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                            : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
    method_reply(r, &out.base);
}
