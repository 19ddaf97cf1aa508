#include "server/service/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/offload/pool.h"

service *service_create(const server_options *options, int loop_count)
{
    service *s = aligned_alloc(_Alignof(service), sizeof(*s));
    if (s == NULL)
        return NULL;
    *s = (service){.options = options,
                   .loop_count = loop_count,
                   .missing_device = "",
                   .log_fd = -1,
                   .start_ns = clock_now_ns(),
                   .recorder = recorder_create(loop_count)};
    pthread_mutex_init(&s->progress_lock, NULL);
    if (s->recorder == NULL) {
        service_destroy(s);
        return NULL;
    }
    return s;
}

void service_destroy(service *s)
{
    if (s == NULL)
        return;
    offload_pool_destroy(s->helpers);
    recorder_destroy(s->recorder);
    if (s->log_fd >= 0)
        close(s->log_fd);
    pthread_mutex_destroy(&s->progress_lock);
    free(s);
}

bool service_is_open(const service *s)
{
    return atomic_load_explicit(&s->is_open, memory_order_acquire);
}

void service_set_progress(service *s, const char *progress)
{
    pthread_mutex_lock(&s->progress_lock);
    snprintf(s->progress, sizeof(s->progress), "%s", progress);
    pthread_mutex_unlock(&s->progress_lock);
}

void service_get_progress(service *s, char progress[SERVICE_PROGRESS_BYTES])
{
    pthread_mutex_lock(&s->progress_lock);
    snprintf(progress, SERVICE_PROGRESS_BYTES, "%s", s->progress);
    pthread_mutex_unlock(&s->progress_lock);
}

int service_open_requests(const service *s)
{
    int open = 0;
    for (int i = 0; i < s->loop_count; i++)
        open += atomic_load_explicit(&s->loops[i].requests, memory_order_relaxed);
    return open;
}
