#ifndef SERVER_ROUTES_METRICS_METRICS_H
#define SERVER_ROUTES_METRICS_METRICS_H

#include "server/request/request.h"

/* GET /metrics, in Prometheus' text exposition format 0.0.4. */
void serve_metrics(request *r);

#endif
