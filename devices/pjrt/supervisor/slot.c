#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "devices/pjrt/supervisor/internal.h"

/* What a device host is asked to do: keep weights and programs, run batches in slots. */

static pjrt_tensor_shape shape_of(const tensor *t)
{
    pjrt_tensor_shape shape = {.dtype = (int32_t)t->dtype, .rank = t->rank};
    memcpy(shape.dims, t->dims, sizeof shape.dims);
    return shape;
}

void pjrt_keepsake_dispose(pjrt_keepsake *k)
{
    if (k->fd >= 0)
        close(k->fd);
    if (k->table_fd >= 0)
        close(k->table_fd);
    k->fd = k->table_fd = -1;
}

pjrt_message pjrt_load_message(uint32_t number, const pjrt_keepsake *program)
{
    return (pjrt_message){.kind = PJRT_LOAD,
                          .object = number,
                          .bytes = program->bytes,
                          .argument_count = program->argument_count,
                          .output_count = program->output_count};
}

static uint32_t keep_add(pjrt_keep *keep, pjrt_keepsake item)
{
    if (keep->count == keep->capacity) {
        keep->capacity = keep->capacity ? 2 * keep->capacity : 64;
        keep->items = realloc(keep->items, keep->capacity * sizeof *keep->items);
        assert(keep->items != NULL);
    }
    keep->items[keep->count] = item;
    return keep->count++;
}

/* Numbers are never reused, so a failed addition leaves a hole (fd -1). */
static status add_kept(pjrt_supervisor *s, pjrt_keep *keep, pjrt_keepsake item, pjrt_message *m,
                       uint32_t *number)
{
    pthread_mutex_lock(&s->keep_lock);
    uint32_t made = keep_add(keep, item);
    m->object = made;
    int fds[2] = {item.fd, item.table_fd};
    status result = pjrt_supervisor_call(s, m, fds, item.table_fd >= 0 ? 2 : 1, NULL,
                                         s->options.compile_timeout_ns);
    if (result)
        pjrt_keepsake_dispose(&keep->items[made]);
    else
        *number = made;
    pthread_mutex_unlock(&s->keep_lock);
    return result;
}

status pjrt_supervisor_add_weight(pjrt_supervisor *s, const tensor *t, uint32_t *number)
{
    pjrt_keepsake item = {.fd = -1, .table_fd = -1, .bytes = tensor_bytes(t), .shape = shape_of(t)};
    status result = pjrt_memory_create_from("penstock-weight", t->data, item.bytes, &item.fd);
    if (result)
        return result;
    pjrt_message m = {.kind = PJRT_WEIGHT, .bytes = item.bytes, .shape = item.shape};
    return add_kept(s, &s->weights, item, &m, number);
}

status pjrt_supervisor_compile(pjrt_supervisor *s, const char *text, size_t bytes,
                               const pjrt_declaration *declared, int *program_fd,
                               size_t *program_bytes, uint64_t *compile_ns)
{
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
        result = pjrt_supervisor_call(s, &m, fds, declared != NULL ? 2 : 1, program_fd,
                                      s->options.compile_timeout_ns);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (result)
        return result;
    if (*program_fd < 0)
        return status_fail(STATUS_INTERNAL, "the device host compiled, and sent no program");
    *program_bytes = m.bytes;
    *compile_ns = m.elapsed_ns;
    return STATUS_OK;
}

status pjrt_supervisor_add_program(pjrt_supervisor *s, int program_fd, size_t program_bytes,
                                   const pjrt_argument *arguments, int argument_count,
                                   int output_count, uint32_t *number)
{
    pjrt_keepsake item = {.fd = fcntl(program_fd, F_DUPFD_CLOEXEC, 0),
                          .table_fd = -1,
                          .bytes = program_bytes,
                          .argument_count = (uint32_t)argument_count,
                          .output_count = (uint32_t)output_count};
    if (item.fd < 0)
        return status_fail(STATUS_IO, "dup: %m");
    status result =
        pjrt_memory_create_from("penstock-arguments", arguments,
                                (size_t)argument_count * sizeof *arguments, &item.table_fd);
    if (result) {
        pjrt_keepsake_dispose(&item);
        return result;
    }
    pjrt_message m = pjrt_load_message(0, &item);
    return add_kept(s, &s->programs, item, &m, number);
}

static void remove_kept(pjrt_supervisor *s, pjrt_keep *keep, uint32_t number,
                        pjrt_message_kind kind)
{
    pthread_mutex_lock(&s->keep_lock);
    assert(number < keep->count && keep->items[number].fd >= 0);
    pjrt_keepsake_dispose(&keep->items[number]);
    pjrt_message m = {.kind = kind, .object = number};
    /* A host that is gone has forgotten it anyway. */
    status ignored = pjrt_supervisor_call(s, &m, NULL, 0, NULL, s->options.start_timeout_ns);
    (void)ignored;
    pthread_mutex_unlock(&s->keep_lock);
}

void pjrt_supervisor_remove_program(pjrt_supervisor *s, uint32_t number)
{
    remove_kept(s, &s->programs, number, PJRT_RELEASE);
}

void pjrt_supervisor_remove_weight(pjrt_supervisor *s, uint32_t number)
{
    remove_kept(s, &s->weights, number, PJRT_RELEASE_WEIGHT);
}

/* --- batches --- */

static status place_tensors(pjrt_supervisor *s, pjrt_slot_tensor *places, const tensor *tensors,
                            int count, size_t *offset)
{
    for (int i = 0; i < count; i++) {
        size_t bytes = tensor_bytes(&tensors[i]);
        if (*offset > s->options.slot_bytes || s->options.slot_bytes - *offset < bytes)
            return status_fail(STATUS_TOO_LARGE, "a batch's tensors exceed the slot of %zu bytes",
                               s->options.slot_bytes);
        places[i] = (pjrt_slot_tensor){shape_of(&tensors[i]), *offset, bytes};
        *offset = (*offset + bytes + 63) & ~(size_t)63;
    }
    return STATUS_OK;
}

static void condemn(pjrt_supervisor *s, const char *why)
{
    pthread_mutex_lock(&s->lock);
    pjrt_supervisor_condemn(s, why);
    pthread_mutex_unlock(&s->lock);
}

static uint64_t patience_ns(const pjrt_supervisor *s, uint64_t longest_ns)
{
    uint64_t adapted_ns = s->options.hang_margin_ns + 50 * longest_ns;
    return longest_ns == 0 || adapted_ns > s->options.hang_timeout_ns ? s->options.hang_timeout_ns
                                                                      : adapted_ns;
}

static status wait_for_answer(pjrt_supervisor *s, pjrt_lane *lane, uint64_t sequence, int pid_fd,
                              uint64_t limit_ns)
{
    uint64_t deadline_ns = clock_now_ns() + limit_ns;
    for (;;) {
        if (atomic_load_explicit(&lane->slot->answered, memory_order_acquire) == sequence)
            return STATUS_OK;
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns) {
            char why[120];
            snprintf(why, sizeof why, "the device host hung: a batch took over %llu ms",
                     (unsigned long long)(limit_ns / 1000000u));
            condemn(s, why);
            return status_fail(STATUS_UNAVAILABLE, "%s", why);
        }
        struct pollfd watched[2] = {{lane->reply_fd, POLLIN, 0}, {pid_fd, POLLIN, 0}};
        poll(watched, 2, (int)((deadline_ns - now_ns) / 1000000u) + 1);
        uint64_t count;
        if (watched[0].revents & POLLIN && read(lane->reply_fd, &count, sizeof count) > 0)
            continue;
        if (watched[1].revents)
            return status_fail(STATUS_UNAVAILABLE, "the device host ended during the batch");
    }
}

static status run_in_slot(pjrt_supervisor *s, pjrt_lane *lane, int pid_fd,
                          _Atomic uint64_t *longest_ns)
{
    pjrt_slot *slot = lane->slot;
    uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed) + 1, one = 1;
    atomic_store_explicit(&slot->sequence, sequence, memory_order_release);
    if (write(lane->request_fd, &one, sizeof one) != (ssize_t)sizeof one)
        return status_fail(STATUS_UNAVAILABLE, "waking the device host: %m");
    uint64_t start_ns = clock_now_ns(), longest = atomic_load(longest_ns);
    status result = wait_for_answer(s, lane, sequence, pid_fd, patience_ns(s, longest));
    if (result)
        return result;
    if (slot->result == STATUS_OK) {
        uint64_t took_ns = clock_now_ns() - start_ns;
        while (took_ns > longest && !atomic_compare_exchange_weak(longest_ns, &longest, took_ns))
            continue;
        return STATUS_OK;
    }
    char text[PJRT_TEXT_BYTES_MAX];
    memcpy(text, slot->text, sizeof text);
    text[sizeof text - 1] = 0;
    /* INTERNAL and UNAVAILABLE have often needed a new process on hardware (FACTS.md). Other
     * failures spare the host; for all, the batch can be run elsewhere, since a compiled program
     * does not fail by a request's data. */
    if (slot->result == STATUS_UNAVAILABLE)
        condemn(s, text);
    return status_fail(STATUS_UNAVAILABLE, "%s", text);
}

status pjrt_supervisor_execute(pjrt_supervisor *s, int device_number, int lane_number,
                               uint32_t program, _Atomic uint64_t *longest_ns, const tensor *inputs,
                               int input_count, tensor *outputs, int output_count)
{
    assert(lane_number >= 0 && lane_number < s->options.lanes_per_device);
    assert(input_count <= PJRT_SLOT_TENSORS_MAX && output_count <= PJRT_SLOT_TENSORS_MAX);
    pthread_mutex_lock(&s->lock);
    if (s->state != DEVICE_HEALTHY || s->is_condemned) {
        status down = status_fail(STATUS_UNAVAILABLE, "%s", s->reason);
        pthread_mutex_unlock(&s->lock);
        return down;
    }
    s->executing++;
    int pid_fd = s->pid_fd;
    pthread_mutex_unlock(&s->lock);

    pjrt_lane *lane = &s->lanes[device_number * s->options.lanes_per_device + lane_number];
    pjrt_slot *slot = lane->slot;
    size_t offset = PJRT_SLOT_DATA_OFFSET;
    status result = place_tensors(s, slot->inputs, inputs, input_count, &offset);
    size_t output_offset = offset;
    if (result == STATUS_OK)
        result = place_tensors(s, slot->outputs, outputs, output_count, &offset);
    if (result == STATUS_OK) {
        for (int i = 0; i < input_count; i++)
            memcpy((char *)slot + slot->inputs[i].offset, inputs[i].data, tensor_bytes(&inputs[i]));
        slot->program = program;
        slot->input_count = (uint32_t)input_count;
        slot->output_count = (uint32_t)output_count;
        result = run_in_slot(s, lane, pid_fd, longest_ns);
        /* The host is not trusted with offsets: ours are computed again. */
        for (int i = 0; result == STATUS_OK && i < output_count; i++) {
            memcpy(outputs[i].data, (char *)slot + output_offset, tensor_bytes(&outputs[i]));
            output_offset += (tensor_bytes(&outputs[i]) + 63) & ~(size_t)63;
        }
    }

    pthread_mutex_lock(&s->lock);
    s->executing--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return result;
}
