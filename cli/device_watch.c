#include "cli/device_watch.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text/replace.h"
#include "devices/notice.h"
#include "devices/pjrt/device.h"

#define SOURCES_MAX 8
#define PAUSE_MIN_NS UINT64_C(1000000000) /* between tries to open a plugin; it doubles */
#define STOP_LIMIT_S 2

struct device_watch {
    device_watch_options of;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards is_stopping */
    pthread_cond_t changed;
    bool is_stopping;
    /* The thread's own. */
    char *source_text; /* split into: */
    const char *sources[SOURCES_MAX];
    bool is_unreadable[SOURCES_MAX]; /* said in the log */
    int source_count;
    uint64_t next_poll_ns;
    uint64_t next_try_ns[CONFIG_DEVICES_MAX], pause_ns[CONFIG_DEVICES_MAX]; /* of each missing */
};

void device_watch_hide_folder(char *text, size_t bytes, const char *plugin)
{
    const char *slash = strrchr(plugin, '/');
    if (slash != NULL)
        text_replace(text, bytes, plugin, slash + 1);
}

/* --- devices that come later --- */

static void show_missing(device_watch *w)
{
    const char *why = "";
    for (int i = 0; i < w->of.missing_count && why[0] == 0; i++)
        why = w->of.missing[i].why;
    server_set_missing(w->of.edge, why);
}

static void join(device_watch *w, device_watch_missing *m, int count)
{
    m->why[0] = 0;
    log_info("server", "%s: %d devices have come: they join", m->plugin, count);
    if (scheduler_join_devices(w->of.work, m->first, count)) {
        log_error("server", "%s: %s", m->plugin, status_message());
        return;
    }
    repository_join_devices(w->of.models, m->first, count);
}

static void try_to_open(device_watch *w, int i)
{
    device_watch_missing *m = &w->of.missing[i];
    uint64_t longest_ns = w->of.config->device_retry_ns;
    int count;
    if (device_pjrt_open(w->of.devices[m->first], &count) == STATUS_OK) {
        join(w, m, count);
        show_missing(w);
        return;
    }
    server_count_start_failure(w->of.edge);
    char why[STATUS_MESSAGE_BYTES_MAX];
    snprintf(why, sizeof why, "%s", status_message());
    device_watch_hide_folder(why, sizeof why, m->plugin);
    if (strcmp(why, m->why) != 0)
        log_warning("server", "still without a device: %s", status_message());
    memcpy(m->why, why, sizeof why);
    show_missing(w);
    w->pause_ns[i] = 2 * w->pause_ns[i] < longest_ns ? 2 * w->pause_ns[i] : longest_ns;
    w->next_try_ns[i] = clock_now_ns() + w->pause_ns[i];
}

/* --- notices --- */

static void drain(device_watch *w, int device_index, bool is_told, const char *source)
{
    const char *name = w->of.devices[device_index]->name;
    if (is_told == scheduler_is_draining(w->of.work, device_index))
        return;
    scheduler_drain_device(w->of.work, device_index, is_told);
    if (is_told)
        log_warning("server", "%s: %s announces its end: its work goes to others", name, source);
    else
        log_info("server", "%s: no notice any more: it takes work again", name);
}

/* What cannot be read says what it said before: devices then stay as they are. */
static bool read_sources(device_watch *w, char texts[SOURCES_MAX][DEVICE_NOTICE_BYTES])
{
    bool is_complete = true;
    for (int i = 0; i < w->source_count; i++) {
        bool is_bad = device_notice_read(w->sources[i], texts[i]) != STATUS_OK;
        if (is_bad && !w->is_unreadable[i])
            log_warning("server", "device_notice: %s", status_message());
        w->is_unreadable[i] = is_bad;
        is_complete &= !is_bad;
        if (is_bad)
            texts[i][0] = 0;
    }
    return is_complete;
}

static void poll_notices(device_watch *w)
{
    char texts[SOURCES_MAX][DEVICE_NOTICE_BYTES];
    bool is_complete = read_sources(w, texts);
    for (int d = 0; d + 1 < w->of.device_count; d++) {
        const char *teller = NULL;
        for (int i = 0; i < w->source_count; i++)
            if (device_notice_tells(texts[i], w->of.devices[d]->name))
                teller = w->sources[i];
        if (teller != NULL || is_complete)
            drain(w, d, teller != NULL, teller);
    }
    w->next_poll_ns = clock_now_ns() + w->of.config->device_notice_poll_ns;
}

/* --- the thread --- */

/* The next thing to do is due then. */
static uint64_t next_ns(const device_watch *w)
{
    uint64_t next = w->source_count > 0 ? w->next_poll_ns : UINT64_MAX;
    for (int i = 0; i < w->of.missing_count; i++)
        if (w->of.missing[i].why[0] != 0 && w->next_try_ns[i] < next)
            next = w->next_try_ns[i];
    return next;
}

/* Sleeps until something is due; false: it stops. */
static bool wait_until_due(device_watch *w)
{
    uint64_t until_ns = next_ns(w);
    if (until_ns == UINT64_MAX)
        return false; /* everything is there, for good */
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};
    pthread_mutex_lock(&w->mutex);
    while (!w->is_stopping && clock_now_ns() < until_ns)
        pthread_cond_timedwait(&w->changed, &w->mutex, &until);
    bool goes_on = !w->is_stopping;
    pthread_mutex_unlock(&w->mutex);
    return goes_on;
}

static void *watch_main(void *context)
{
    device_watch *w = context;
    pthread_setname_np(pthread_self(), "devices");
    while (wait_until_due(w)) {
        uint64_t now_ns = clock_now_ns();
        if (w->source_count > 0 && w->next_poll_ns <= now_ns)
            poll_notices(w);
        for (int i = 0; i < w->of.missing_count; i++)
            if (w->of.missing[i].why[0] != 0 && w->next_try_ns[i] <= now_ns)
                try_to_open(w, i);
    }
    return NULL;
}

static void split_sources(device_watch *w)
{
    char *rest = w->source_text;
    for (char *one; rest != NULL && (one = strsep(&rest, " ")) != NULL;)
        if (*one != 0 && w->source_count < SOURCES_MAX)
            w->sources[w->source_count++] = one;
}

static void dispose(device_watch *w)
{
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->changed);
    free(w->source_text);
    free(w);
}

status device_watch_start(const device_watch_options *options, device_watch **out)
{
    *out = NULL;
    const char *notice = options->config->device_notice;
    if (options->missing_count == 0 && notice == NULL)
        return STATUS_OK;
    assert(options->missing_count <= CONFIG_DEVICES_MAX);
    device_watch *w = calloc(1, sizeof *w);
    assert(w != NULL);
    w->of = *options;
    w->source_text = notice != NULL ? strdup(notice) : NULL;
    split_sources(w);
    uint64_t now_ns = clock_now_ns(), longest_ns = options->config->device_retry_ns;
    w->next_poll_ns = now_ns;
    for (int i = 0; i < options->missing_count; i++) {
        bool is_soon = !options->missing[i].is_permanent && PAUSE_MIN_NS < longest_ns;
        w->pause_ns[i] = is_soon ? PAUSE_MIN_NS : longest_ns;
        w->next_try_ns[i] = now_ns + w->pause_ns[i];
    }
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_t monotonic; /* as clock_now_ns() */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    show_missing(w);
    if (pthread_create(&w->thread, NULL, watch_main, w) != 0) {
        dispose(w);
        return status_fail(STATUS_IO, "cannot create the thread that watches devices");
    }
    *out = w;
    return STATUS_OK;
}

bool device_watch_stop(device_watch *w)
{
    if (w == NULL)
        return true;
    pthread_mutex_lock(&w->mutex);
    w->is_stopping = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    uint64_t until_ns = clock_now_ns() + STOP_LIMIT_S * UINT64_C(1000000000);
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};
    if (pthread_clockjoin_np(w->thread, NULL, CLOCK_MONOTONIC, &until) != 0)
        return false;
    dispose(w);
    return true;
}
