#include "config/config.h"

#include <string.h>

#include "models/start/start_budget.h"

void config_default(config *c)
{
    memset(c, 0, sizeof *c);
    server_options_default(&c->server);
    c->repository.load.batch_max = 16;
    c->repository.load.queue_rows_max = 2048;
    c->repository.load.cache_bytes_max = INT64_C(16) << 30;
    c->repository.models = c->model_list;
    c->repository.readiness.kind = READINESS_STARTED;
    c->repository.load.activation_bytes_max = (int64_t)4 << 30;
    c->repository.load.operations_max = INT64_C(100000000000000);
    c->repository.load.start_operations_max = START_OPERATIONS_DEFAULT;
    c->repository.load_limit_ns = 1800000000000u;
    c->repository.orders_max = 16;
    c->scheduler.fallback = FALLBACK_WHEN_SOONER;
    c->devices[0] = "cpu";
    c->device_count = 1;
    c->device_start_timeout_ns = 60000000000u;
    c->device_retry_ns = 60000000000u;
    c->device_notice_poll_ns = 1000000000u;
    c->log_level = LOG_INFO;
}

void config_dispose(config *c)
{
    arena_dispose(&c->memory);
    memset(c, 0, sizeof *c);
}
