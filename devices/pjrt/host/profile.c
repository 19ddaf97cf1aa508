#include "devices/pjrt/host/profile.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "devices/pjrt/plugin/profiler.h"
#include "devices/pjrt/protocol/protocol.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_running, has_result; /* a result that was not taken */
    const pjrt_plugin *plugin;
    pjrt_profiler *profiler;
    uint64_t duration_ns;
    status result;
    char text[PJRT_TEXT_BYTES_MAX];
    pjrt_bytes data;
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void *record(void *unused)
{
    (void)unused;
    struct timespec left = {.tv_sec = (time_t)(profile.duration_ns / 1000000000u),
                            .tv_nsec = (long)(profile.duration_ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
    pjrt_bytes data = {0};
    status s = pjrt_profiler_finish(profile.plugin, profile.profiler, &data);
    pthread_mutex_lock(&profile.lock);
    profile.is_running = false;
    profile.has_result = true;
    profile.result = s;
    profile.data = data;
    snprintf(profile.text, sizeof profile.text, "%s", s ? status_message() : "");
    pthread_cond_broadcast(&profile.ended);
    pthread_mutex_unlock(&profile.lock);
    return NULL;
}

static void drop_result(void)
{
    free(profile.data.data);
    profile.data = (pjrt_bytes){0};
    profile.has_result = false;
}

static status start(const pjrt_plugin *p, uint64_t duration_ns)
{
    pthread_t thread;
    if (profile.is_running)
        return status_fail(STATUS_RESOURCE_EXHAUSTED, "a profile is being recorded");
    drop_result();
    status s = pjrt_profiler_start(p, &profile.profiler);
    if (s)
        return s;
    profile.plugin = p;
    profile.duration_ns = duration_ns;
    if (pthread_create(&thread, NULL, record, NULL) != 0) {
        pjrt_bytes nothing = {0};
        status ignored = pjrt_profiler_finish(p, profile.profiler, &nothing);
        (void)ignored;
        free(nothing.data);
        return status_fail(STATUS_OUT_OF_MEMORY, "no thread for a profile");
    }
    pthread_detach(thread);
    profile.is_running = true;
    return STATUS_OK;
}

status host_profile_start(const pjrt_plugin *p, uint64_t duration_ns)
{
    pthread_mutex_lock(&profile.lock);
    status s = start(p, duration_ns);
    pthread_mutex_unlock(&profile.lock);
    return s;
}

status host_profile_take(int *fd, uint64_t *bytes)
{
    status s;
    pthread_mutex_lock(&profile.lock);
    while (profile.is_running)
        pthread_cond_wait(&profile.ended, &profile.lock);
    if (!profile.has_result)
        s = status_fail(STATUS_NOT_FOUND, "no profile was recorded");
    else if (profile.result)
        s = status_fail(profile.result, "%s", profile.text);
    else
        s = pjrt_memory_create_from("penstock-profile", profile.data.data, profile.data.bytes, fd);
    *bytes = profile.data.bytes;
    drop_result();
    pthread_mutex_unlock(&profile.lock);
    return s;
}
