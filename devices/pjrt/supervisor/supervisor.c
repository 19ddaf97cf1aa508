#include "devices/pjrt/supervisor/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text/replace.h"
#include "devices/health.h"
#include "devices/pjrt/supervisor/internal.h"

#define ROOM "devices"
#define HOST_ENDED "the device host ended"

static status create_slots(pjrt_supervisor *s)
{
    int count = s->facts.device_count * s->options.slots_per_device;
    s->slots = calloc((size_t)count, sizeof *s->slots);
    assert(s->slots != NULL);
    for (int i = 0; i < count; i++) {
        pjrt_execution_slot *slot = &s->slots[i];
        *slot = (pjrt_execution_slot){.memory_fd = -1,
                                      .request_fd = eventfd(0, EFD_CLOEXEC),
                                      .reply_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
        s->slot_count = i + 1;
        if (slot->request_fd < 0 || slot->reply_fd < 0)
            return status_fail(STATUS_IO, "eventfd: %m");
        status result =
            pjrt_memory_create("penstock-slot", s->options.slot_memory_bytes, &slot->memory_fd);
        void *map = NULL;
        if (result == STATUS_OK)
            result = pjrt_memory_map(slot->memory_fd, s->options.slot_memory_bytes, true, &map);
        if (result)
            return result;
        slot->memory = map;
    }
    return STATUS_OK;
}

/* Waits for a packet. STATUS_UNAVAILABLE: the host ended or the server stops;
 * STATUS_DEADLINE_EXCEEDED. */
static status receive_until(pjrt_supervisor *s, uint64_t deadline_ns, pjrt_message *m, int fds[3])
{
    for (;;) {
        struct pollfd watched[4] = {{s->socket, POLLIN, 0},
                                    {s->pid_fd, POLLIN, 0},
                                    {s->stop_fd, POLLIN, 0},
                                    {s->output_fd, POLLIN, 0}};
        uint64_t now_ns = clock_now_ns();
        int timeout_ms = -1;
        if (deadline_ns != UINT64_MAX) {
            if (now_ns >= deadline_ns)
                return status_fail(STATUS_DEADLINE_EXCEEDED, "no reply in time");
            uint64_t left_ms = (deadline_ns - now_ns) / 1000000u + 1;
            timeout_ms = left_ms > 1000000 ? 1000000 : (int)left_ms;
        }
        if (poll(watched, 4, timeout_ms) < 0) {
            if (errno == EINTR)
                continue;
            return status_fail(STATUS_IO, "poll: %m");
        }
        if (watched[3].revents)
            pjrt_child_read_output(s);
        if (watched[0].revents & POLLIN) {
            status result = pjrt_receive(s->socket, m, fds);
            return result ? status_fail(result, HOST_ENDED) : STATUS_OK;
        }
        if (watched[2].revents)
            return status_fail(STATUS_CANCELLED, "the server stops");
        if (watched[1].revents || watched[0].revents)
            return status_fail(STATUS_UNAVAILABLE, HOST_ENDED);
    }
}

/* --- life of one host --- */

/* A control message from the supervising thread itself, which reads the reply: only before the host
 * is healthy. */
static status call_directly(pjrt_supervisor *s, pjrt_message *m, const int *fds, int fd_count)
{
    pthread_mutex_lock(&s->lock);
    m->id = ++s->last_id;
    pthread_mutex_unlock(&s->lock);
    uint64_t id = m->id;
    status result = pjrt_send(s->socket, m, fds, fd_count);
    while (result == STATUS_OK) {
        int reply_fds[3];
        result = receive_until(s, clock_now_ns() + s->options.start_timeout_ns, m, reply_fds);
        if (result == STATUS_OK && reply_fds[0] >= 0)
            close(reply_fds[0]);
        if (result == STATUS_OK && m->id == id)
            return m->result ? status_fail(STATUS_UNAVAILABLE, "%s", m->text) : STATUS_OK;
    }
    return result;
}

static status receive_hello(pjrt_supervisor *s)
{
    pjrt_message hello;
    int fds[3];
    status result = receive_until(s, clock_now_ns() + s->options.start_timeout_ns, &hello, fds);
    if (result == STATUS_DEADLINE_EXCEEDED)
        return status_fail(STATUS_UNAVAILABLE, "the plugin did not open its devices within %llu s",
                           (unsigned long long)(s->options.start_timeout_ns / 1000000000u));
    if (result)
        return result;
    if (hello.result)
        return status_fail(hello.result > 0 && hello.result < STATUS_COUNT ? (status)hello.result
                                                                           : STATUS_INTERNAL,
                           "%s", hello.text);
    if (s->facts.device_count != 0 && s->facts.device_count != hello.device_count)
        return status_fail(STATUS_UNAVAILABLE, "the plugin now has %d devices, before it had %d",
                           hello.device_count, s->facts.device_count);
    pthread_mutex_lock(&s->lock);
    s->facts.device_count = hello.device_count;
    s->facts.memory_bytes = hello.memory_bytes;
    memcpy(s->facts.device_kind, hello.device_kind, sizeof s->facts.device_kind);
    memcpy(s->facts.platform, hello.platform, sizeof s->facts.platform);
    memcpy(s->facts.version, hello.version, sizeof s->facts.version);
    memcpy(s->facts.fingerprint, hello.fingerprint, sizeof s->facts.fingerprint);
    pthread_mutex_unlock(&s->lock);
    return STATUS_OK;
}

static status send_slots(pjrt_supervisor *s)
{
    for (int i = 0; i < s->slot_count; i++) {
        pjrt_execution_slot *slot = &s->slots[i];
        pjrt_message m = {.kind = PJRT_SLOT,
                          .device = i / s->options.slots_per_device,
                          .slot = i % s->options.slots_per_device,
                          .bytes = s->options.slot_memory_bytes};
        uint64_t leftover;
        while (read(slot->reply_fd, &leftover, sizeof leftover) > 0)
            continue;
        atomic_store(&slot->memory->completed, atomic_load(&slot->memory->sequence));
        status result =
            pjrt_send(s->socket, &m, (int[]){slot->memory_fd, slot->request_fd, slot->reply_fd}, 3);
        if (result)
            return result;
    }
    return STATUS_OK;
}

/* Gives a new host the slots, weights and programs of the one before it. */
static status replay_all(pjrt_supervisor *s)
{
    status result = send_slots(s);
    for (uint32_t i = 0; result == STATUS_OK && i < s->weights.count; i++) {
        pjrt_replay_record *w = &s->weights.items[i];
        if (w->fd < 0)
            continue;
        pjrt_message m = {.kind = PJRT_WEIGHT, .object = i, .bytes = w->bytes, .shape = w->shape};
        result = call_directly(s, &m, &w->fd, 1);
    }
    for (uint32_t i = 0; result == STATUS_OK && i < s->programs.count; i++) {
        pjrt_replay_record *p = &s->programs.items[i];
        if (p->fd < 0)
            continue;
        pjrt_message m = pjrt_load_message(i, p);
        result = call_directly(s, &m, (int[]){p->fd, p->arguments_fd}, 2);
    }
    return result;
}

static void set_state(pjrt_supervisor *s, device_state state, const char *reason)
{
    pthread_mutex_lock(&s->lock);
    s->state = state;
    s->is_marked_failed = false;
    snprintf(s->reason, sizeof s->reason, "%s", reason);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    device_health_changed();
}

/* Starts a host and reads its replies until it is gone. */
static status run_host(pjrt_supervisor *s, uint64_t *healthy_ns)
{
    status result = pjrt_child_spawn(s);
    if (result)
        return result;
    result = receive_hello(s);
    if (result == STATUS_OK && s->slots == NULL)
        result = create_slots(s);
    if (result == STATUS_OK) {
        pthread_mutex_lock(&s->replay_lock); /* nothing is added or removed meanwhile */
        result = replay_all(s);
        if (result == STATUS_OK)
            set_state(s, DEVICE_HEALTHY, s->facts.device_kind);
        pthread_mutex_unlock(&s->replay_lock);
    }
    if (result == STATUS_OK)
        *healthy_ns = clock_now_ns();
    while (result == STATUS_OK) {
        pjrt_message m;
        int fds[3];
        result = receive_until(s, UINT64_MAX, &m, fds);
        if (result == STATUS_OK)
            pjrt_calls_complete(s, &m, fds);
    }
    return result;
}

/* True: the server stops. */
static bool pause_for(pjrt_supervisor *s, uint64_t ns)
{
    struct pollfd stop = {s->stop_fd, POLLIN, 0};
    return poll(&stop, 1, (int)(ns / 1000000u)) > 0;
}

/* The host has ended or did not start: reaps it, fails all calls, then publishes the reason. */
static void end_host(pjrt_supervisor *s, status result)
{
    char why[STATUS_MESSAGE_BYTES_MAX], how[80] = "was not started", reason[sizeof s->reason];
    snprintf(why, sizeof why, "%s", status_message());
    pthread_mutex_lock(&s->lock);
    bool has_reason = s->is_marked_failed;
    snprintf(reason, sizeof reason, "%s", s->reason);
    /* From here on calls and batches are rejected; DEVICE_FAILED follows with more of the reason.
     */
    if (!has_reason)
        snprintf(s->reason, sizeof s->reason, "the device host has ended");
    s->is_marked_failed = true;
    pthread_mutex_unlock(&s->lock);
    if (s->child > 0 && result == STATUS_CANCELLED)
        pjrt_child_ask_to_end(s);
    if (s->child > 0)
        pjrt_child_reap(s, how, sizeof how);
    pjrt_calls_fail_all(s);
    /* After a sudden end, the last error that the plugin printed is the best explanation. */
    const char *printed = s->output.last_error;
    if (!has_reason && result == STATUS_UNAVAILABLE && strcmp(why, HOST_ENDED) == 0)
        snprintf(reason, sizeof reason, "the device host %s%s%.120s", how, printed[0] ? ": " : "",
                 printed);
    else if (!has_reason)
        snprintf(reason, sizeof reason, "%.250s", why);
    s->output.last_error[0] = 0;
    set_state(s, DEVICE_FAILED, reason);
}

static void *supervise(void *argument)
{
    pjrt_supervisor *s = argument;
    uint64_t back_off_ns = s->options.back_off_min_ns;
    for (bool is_first = true;; is_first = false) {
        uint64_t healthy_ns = 0;
        status result = run_host(s, &healthy_ns);
        if (is_first)
            s->start_failure = result; /* before the state that says so */
        end_host(s, result);
        if (result == STATUS_CANCELLED || (is_first && healthy_ns == 0))
            return NULL;
        /* The back-off doubles while hosts end soon after their start. */
        if (healthy_ns != 0 && clock_now_ns() - healthy_ns > s->options.back_off_max_ns)
            back_off_ns = s->options.back_off_min_ns;
        /* `reason` changes on this thread only while the host is down. */
        log_warning(ROOM, "%s: %s; serving without it, next start in %.1f s", s->options.plugin,
                    s->reason, (double)back_off_ns * 1e-9);
        if (pause_for(s, back_off_ns))
            return NULL;
        back_off_ns = back_off_ns * 2 > s->options.back_off_max_ns ? s->options.back_off_max_ns
                                                                   : back_off_ns * 2;
        atomic_fetch_add(&s->restarts, 1);
    }
}

/* --- creation --- */

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

status pjrt_supervisor_create(const pjrt_supervisor_options *options, pjrt_supervisor **out)
{
    pjrt_supervisor *s = calloc(1, sizeof *s);
    assert(s != NULL);
    s->options = *options;
    s->options.slots_per_device = pjrt_supervisor_slots(options->slots_per_device);
    s->options.slot_memory_bytes = or_default(options->slot_memory_bytes, (size_t)256 << 20);
    s->options.start_timeout_ns = or_default(options->start_timeout_ns, 120000000000u);
    s->options.hang_timeout_ns = or_default(options->hang_timeout_ns, 30000000000u);
    s->options.hang_margin_ns = or_default(options->hang_margin_ns, 3000000000u);
    s->options.compile_timeout_ns = or_default(options->compile_timeout_ns, 1200000000000u);
    s->options.back_off_min_ns = or_default(options->back_off_min_ns, 100000000u);
    s->options.back_off_max_ns = or_default(options->back_off_max_ns, 30000000000u);
    s->options.plugin = strdup(options->plugin);
    s->host_program = strdup(options->host_program ? options->host_program : "/proc/self/exe");
    assert(s->options.plugin != NULL && s->host_program != NULL);
    s->pid_fd = s->socket = s->output_fd = -1;
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->replay_lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC); /* as clock_now_ns() */
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    snprintf(s->reason, sizeof s->reason, "starting");
    status result = STATUS_OK;
    if (s->stop_fd < 0 || pthread_create(&s->thread, NULL, supervise, s) != 0) {
        result = status_fail(STATUS_IO, "starting the supervisor of %s: %m", options->plugin);
        s->has_no_thread = true;
    } else {
        pthread_mutex_lock(&s->lock);
        while (s->state == DEVICE_STARTING)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->state == DEVICE_FAILED)
            result = status_fail(s->start_failure, "%s: %s", options->plugin, s->reason);
        pthread_mutex_unlock(&s->lock);
    }
    if (result) {
        pjrt_supervisor_destroy(s);
        return result;
    }
    *out = s;
    return STATUS_OK;
}

static void dispose_all(pjrt_replay_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        pjrt_replay_record_dispose(&list->items[i]);
    free(list->items);
}

void pjrt_supervisor_destroy(pjrt_supervisor *s)
{
    if (s == NULL)
        return;
    if (!s->has_no_thread) {
        uint64_t one = 1;
        ssize_t written = write(s->stop_fd, &one, sizeof one);
        assert(written == (ssize_t)sizeof one);
        pthread_join(s->thread, NULL);
    }
    for (int i = 0; i < s->slot_count; i++) {
        pjrt_execution_slot *slot = &s->slots[i];
        if (slot->memory != NULL)
            pjrt_memory_unmap(slot->memory, s->options.slot_memory_bytes);
        for (int k = 0; k < 3; k++) {
            int fd = (int[]){slot->memory_fd, slot->request_fd, slot->reply_fd}[k];
            if (fd >= 0)
                close(fd);
        }
    }
    dispose_all(&s->weights);
    dispose_all(&s->programs);
    free(s->slots);
    free((char *)s->options.plugin);
    free(s->host_program);
    if (s->stop_fd >= 0)
        close(s->stop_fd);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->replay_lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

void pjrt_supervisor_facts(pjrt_supervisor *s, pjrt_host_facts *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->facts;
    pthread_mutex_unlock(&s->lock);
}

int pjrt_supervisor_slots(int slots_per_device)
{
    return slots_per_device ? slots_per_device : PJRT_SLOTS_MAX;
}

status pjrt_supervisor_wait(pjrt_supervisor *s, uint64_t timeout_ns)
{
    struct timespec until = pjrt_time_after(timeout_ns);
    status result = STATUS_OK;
    pthread_mutex_lock(&s->lock);
    while (result == STATUS_OK && (s->state != DEVICE_HEALTHY || s->is_marked_failed))
        if (pthread_cond_timedwait(&s->changed, &s->lock, &until) == ETIMEDOUT)
            result = status_fail(STATUS_UNAVAILABLE, "%s", s->reason);
    pthread_mutex_unlock(&s->lock);
    return result;
}

void pjrt_supervisor_describe(pjrt_supervisor *s, device_status *out)
{
    pthread_mutex_lock(&s->lock);
    out->state = s->state == DEVICE_HEALTHY && s->is_marked_failed ? DEVICE_FAILED : s->state;
    snprintf(out->detail, sizeof out->detail, "%.199s", s->reason);
    out->restarts = atomic_load(&s->restarts);
    pthread_mutex_unlock(&s->lock);
    /* Clients see it; the log has the path. */
    const char *slash = strrchr(s->options.plugin, '/');
    if (slash != NULL)
        text_replace(out->detail, sizeof out->detail, s->options.plugin, slash + 1);
}
