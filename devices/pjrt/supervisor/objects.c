#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "devices/pjrt/supervisor/internal.h"

/* Weights and programs of a host: each has a number and a replay record. */

void pjrt_replay_record_dispose(pjrt_replay_record *r)
{
    if (r->fd >= 0)
        close(r->fd);
    if (r->arguments_fd >= 0)
        close(r->arguments_fd);
    r->fd = r->arguments_fd = -1;
}

pjrt_message pjrt_load_message(uint32_t number, const pjrt_replay_record *program)
{
    return (pjrt_message){.kind = PJRT_LOAD,
                          .object = number,
                          .bytes = program->bytes,
                          .argument_count = program->argument_count,
                          .output_count = program->output_count};
}

static uint32_t append(pjrt_replay_list *list, pjrt_replay_record item)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        assert(list->items != NULL);
    }
    list->items[list->count] = item;
    return list->count++;
}

/* A number is never used again, so a failed addition leaves an entry with fd -1. */
static status add_object(pjrt_supervisor *s, pjrt_replay_list *list, pjrt_replay_record item,
                         pjrt_message *m, uint32_t *number)
{
    pthread_mutex_lock(&s->replay_lock);
    uint32_t made = append(list, item);
    m->object = made;
    int fds[2] = {item.fd, item.arguments_fd};
    status result = pjrt_supervisor_call(s, m, fds, item.arguments_fd >= 0 ? 2 : 1, NULL,
                                         s->options.compile_timeout_ns);
    if (result)
        pjrt_replay_record_dispose(&list->items[made]);
    else
        *number = made;
    pthread_mutex_unlock(&s->replay_lock);
    return result;
}

status pjrt_supervisor_add_weight(pjrt_supervisor *s, const tensor *t, uint32_t *number)
{
    pjrt_replay_record item = {
        .fd = -1, .arguments_fd = -1, .bytes = tensor_bytes(t), .shape = pjrt_tensor_shape_of(t)};
    status result = pjrt_memory_create_from("penstock-weight", t->data, item.bytes, &item.fd);
    if (result)
        return result;
    pjrt_message m = {.kind = PJRT_WEIGHT, .bytes = item.bytes, .shape = item.shape};
    return add_object(s, &s->weights, item, &m, number);
}

status pjrt_supervisor_compile(pjrt_supervisor *s, const char *text, size_t bytes,
                               const pjrt_declaration *declared, pjrt_host_compiled *out)
{
    int program_fd = -1;
    int fds[2] = {-1, -1};
    status result = pjrt_memory_create_from("penstock-stablehlo", text, bytes, &fds[0]);
    if (result)
        return result;
    pjrt_message m = {.kind = PJRT_COMPILE, .bytes = bytes};
    if (declared != NULL) {
        m.argument_count = (uint32_t)declared->argument_count;
        m.output_count = (uint32_t)declared->output_count;
        size_t items = (size_t)(declared->argument_count + declared->output_count);
        result = pjrt_memory_create_from("penstock-declared", declared->items,
                                         items * sizeof *declared->items, &fds[1]);
    }
    if (result == STATUS_OK)
        result = pjrt_supervisor_call(s, &m, fds, declared != NULL ? 2 : 1, &program_fd,
                                      s->options.compile_timeout_ns);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (result)
        return result;
    if (program_fd < 0)
        return status_fail(STATUS_INTERNAL, "the device host compiled but sent no program");
    *out = (pjrt_host_compiled){.fd = program_fd,
                                .bytes = m.bytes,
                                .compile_ns = m.elapsed_ns,
                                .code_bytes = m.code_bytes,
                                .output_bytes = m.output_bytes,
                                .temporary_bytes = m.temporary_bytes,
                                .peak_bytes = m.peak_bytes,
                                .hlo = m.hlo};
    return STATUS_OK;
}

status pjrt_supervisor_add_program(pjrt_supervisor *s, int program_fd, size_t program_bytes,
                                   const pjrt_argument *arguments, int argument_count,
                                   int output_count, uint32_t *number)
{
    pjrt_replay_record item = {.fd = fcntl(program_fd, F_DUPFD_CLOEXEC, 0),
                               .arguments_fd = -1,
                               .bytes = program_bytes,
                               .argument_count = (uint32_t)argument_count,
                               .output_count = (uint32_t)output_count};
    if (item.fd < 0)
        return status_fail(STATUS_IO, "dup: %m");
    status result =
        pjrt_memory_create_from("penstock-arguments", arguments,
                                (size_t)argument_count * sizeof *arguments, &item.arguments_fd);
    if (result) {
        pjrt_replay_record_dispose(&item);
        return result;
    }
    pjrt_message m = pjrt_load_message(0, &item);
    return add_object(s, &s->programs, item, &m, number);
}

static void remove_object(pjrt_supervisor *s, pjrt_replay_list *list, uint32_t number,
                          pjrt_message_kind kind)
{
    pthread_mutex_lock(&s->replay_lock);
    assert(number < list->count && list->items[number].fd >= 0);
    pjrt_replay_record_dispose(&list->items[number]);
    pjrt_message m = {.kind = kind, .object = number};
    /* A failure does not matter: a host that is gone has no objects. */
    status ignored = pjrt_supervisor_call(s, &m, NULL, 0, NULL, s->options.start_timeout_ns);
    (void)ignored;
    pthread_mutex_unlock(&s->replay_lock);
}

void pjrt_supervisor_remove_program(pjrt_supervisor *s, uint32_t number)
{
    remove_object(s, &s->programs, number, PJRT_RELEASE);
}

void pjrt_supervisor_remove_weight(pjrt_supervisor *s, uint32_t number)
{
    remove_object(s, &s->weights, number, PJRT_RELEASE_WEIGHT);
}
