#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "devices/pjrt/supervisor/internal.h"

/* Control messages from any thread: each waits for its reply, which the supervising thread reads.
 */

void pjrt_supervisor_mark_failed(pjrt_supervisor *s, const char *why)
{
    if (s->state != DEVICE_HEALTHY || s->is_marked_failed)
        return;
    s->is_marked_failed = true;
    snprintf(s->reason, sizeof s->reason, "%s", why);
    /* Not by its number, which may already belong to another process. */
    if (s->pid_fd >= 0)
        syscall(SYS_pidfd_send_signal, s->pid_fd, SIGKILL, NULL, 0);
}

struct timespec pjrt_time_after(uint64_t ns)
{
    uint64_t until_ns = clock_now_ns() + ns; /* the clock of `changed` */
    return (struct timespec){.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
}

status pjrt_supervisor_call(pjrt_supervisor *s, pjrt_message *m, const int *fds, int fd_count,
                            int *reply_fd, uint64_t timeout_ns)
{
    pjrt_call call = {.reply_fd = -1};
    pthread_mutex_lock(&s->lock);
    if (s->state != DEVICE_HEALTHY || s->is_marked_failed) {
        status result = status_fail(STATUS_UNAVAILABLE, "%s", s->reason);
        pthread_mutex_unlock(&s->lock);
        return result;
    }
    m->id = call.id = ++s->last_id;
    call.next = s->calls;
    s->calls = &call;
    status result = pjrt_send(s->socket, m, fds, fd_count);
    struct timespec until = pjrt_time_after(timeout_ns);
    bool is_late = false;
    while (result == STATUS_OK && !call.is_done && !is_late)
        is_late = pthread_cond_timedwait(&s->changed, &s->lock, &until) == ETIMEDOUT;
    if (result == STATUS_OK && !call.is_done) {
        char why[100];
        snprintf(why, sizeof why,
                 "the device host did not reply to a control message within %llu s",
                 (unsigned long long)(timeout_ns / 1000000000u));
        pjrt_supervisor_mark_failed(s, why);
        result = status_fail(STATUS_UNAVAILABLE, "%s", why);
    }
    for (pjrt_call **link = &s->calls; *link != NULL; link = &(*link)->next)
        if (*link == &call) {
            *link = call.next;
            break;
        }
    pthread_mutex_unlock(&s->lock);
    if (result == STATUS_OK && call.is_lost)
        result = status_fail(STATUS_UNAVAILABLE, "the device host ended while it worked on this");
    if (result) {
        if (call.reply_fd >= 0)
            close(call.reply_fd);
        return result;
    }
    *m = call.reply;
    if (reply_fd != NULL)
        *reply_fd = call.reply_fd;
    else if (call.reply_fd >= 0)
        close(call.reply_fd);
    if (m->result)
        return status_fail((unsigned)m->result < STATUS_COUNT ? (status)m->result : STATUS_INTERNAL,
                           "%s", m->text);
    return STATUS_OK;
}

void pjrt_calls_complete(pjrt_supervisor *s, const pjrt_message *m, const int fds[3])
{
    pthread_mutex_lock(&s->lock);
    pjrt_call *call = s->calls;
    while (call != NULL && call->id != m->id)
        call = call->next;
    if (call != NULL) {
        call->reply = *m;
        call->reply_fd = fds[0];
        call->is_done = true;
        pthread_cond_broadcast(&s->changed);
    } else if (fds[0] >= 0) {
        close(fds[0]);
    }
    pthread_mutex_unlock(&s->lock);
}

void pjrt_calls_fail_all(pjrt_supervisor *s)
{
    pthread_mutex_lock(&s->lock);
    for (pjrt_call *call = s->calls; call != NULL; call = call->next)
        if (!call->is_done)
            call->is_done = call->is_lost = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
