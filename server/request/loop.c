#include "server/request/loop.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What idle requests for routes that take text keep. */
#define IDLE_LANGUAGES_MAX 256
#define IDLE_LANGUAGE_BYTES 65536

status request_loop_init(request_loop *l, service *s, const struct request_routes *routes,
                         int index)
{
    *l = (request_loop){.service = s,
                        .routes = routes,
                        .index = index,
                        .capacity = server_capacity_of(s->options),
                        .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    access_log_init(&l->log, service_is_health_loop(s, index) ? -1 : s->log_fd,
                    &s->loops[index].log_dropped);
    mailbox_init(&l->returned);
    mailbox_init(&l->messages);
    job_pool_init(&l->jobs, l->capacity.jobs_max, l->capacity.idle_bytes_max);
    l->requests = malloc((size_t)l->capacity.requests_max * sizeof(request *));
    l->parsed_jobs = malloc((size_t)s->options->limits.request_jobs_max * sizeof(job *));
    l->access = service_acquire_access(s);
    l->hasher = access_hasher_create();
    status failure = deadlines_init(&l->deadlines, (size_t)l->capacity.requests_max);
    if (!failure && (l->requests == NULL || l->parsed_jobs == NULL || l->hasher == NULL))
        failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for loop %d", index);
    if (!failure && l->wake_fd < 0)
        failure = status_fail(STATUS_IO, "no descriptors left for loop %d", index);
    if (failure)
        request_loop_dispose(l);
    return failure;
}

void request_loop_dispose(request_loop *l)
{
    for (int i = 0; i < l->request_count; i++)
        free(l->requests[i]);
    job_pool_dispose(&l->jobs);
    deadlines_dispose(&l->deadlines);
    infer_scratch_dispose(&l->scratch);
    tokenizer_scratch_destroy(l->text_scratch);
    for (language_request *idle = l->idle_languages, *next; idle != NULL; idle = next) {
        next = idle->next;
        arena_dispose(&idle->memory);
        free(idle);
    }
    text_buffer_dispose(&l->text);
    shared_texts_dispose(&l->shared_texts);
    access_log_dispose(&l->log);
    access_table_release(l->access);
    access_hasher_destroy(l->hasher);
    free(l->requests);
    free(l->parsed_jobs);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    *l = (request_loop){.wake_fd = -1};
}

void request_loop_renew_access(request_loop *l)
{
    access_table *old = l->access;
    l->access = service_acquire_access(l->service);
    access_table_release(old);
}

language_request *request_loop_acquire_language(request_loop *l)
{
    language_request *language = l->idle_languages;
    if (language == NULL)
        return calloc(1, sizeof(*language));
    l->idle_languages = language->next;
    l->idle_language_count--;
    language->next = NULL;
    return language;
}

void request_loop_release_language(request_loop *l, language_request *language)
{
    if (l->idle_language_count == IDLE_LANGUAGES_MAX) {
        arena_dispose(&language->memory);
        free(language);
        return;
    }
    language_request_reset(language, IDLE_LANGUAGE_BYTES);
    language->next = l->idle_languages;
    l->idle_languages = language;
    l->idle_language_count++;
}

void request_loop_wake(request_loop *l)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&l->is_awake, memory_order_relaxed))
        return; /* it looks into the mailboxes before it sleeps */
    uint64_t one = 1;
    ssize_t n = write(l->wake_fd, &one, sizeof(one));
    (void)n; /* full: the loop has been woken already */
}
