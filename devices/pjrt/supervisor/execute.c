#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "devices/pjrt/supervisor/internal.h"

/* One batch: into the slot's shared memory, to the host, and back. */

static status lay_out(pjrt_supervisor *s, pjrt_slot_tensor *layout, const tensor *tensors,
                      int count, size_t *offset)
{
    for (int i = 0; i < count; i++) {
        size_t bytes = tensor_bytes(&tensors[i]);
        if (*offset > s->options.slot_memory_bytes ||
            s->options.slot_memory_bytes - *offset < bytes)
            return status_fail(STATUS_TOO_LARGE,
                               "the batch's tensors do not fit in a slot's memory of %zu bytes",
                               s->options.slot_memory_bytes);
        layout[i] = (pjrt_slot_tensor){pjrt_tensor_shape_of(&tensors[i]), *offset, bytes};
        *offset = (*offset + bytes + 63) & ~(size_t)63;
    }
    return STATUS_OK;
}

static void lock_and_mark_failed(pjrt_supervisor *s, const char *why)
{
    pthread_mutex_lock(&s->lock);
    pjrt_supervisor_mark_failed(s, why);
    pthread_mutex_unlock(&s->lock);
}

/* A program that has run before gets hang_margin_ns and 50 times its longest run. */
static uint64_t time_limit_ns(const pjrt_supervisor *s, uint64_t longest_ns)
{
    uint64_t limit_ns = s->options.hang_margin_ns + 50 * longest_ns;
    return longest_ns == 0 || limit_ns > s->options.hang_timeout_ns ? s->options.hang_timeout_ns
                                                                    : limit_ns;
}

static status wait_for_reply(pjrt_supervisor *s, pjrt_execution_slot *slot, uint64_t sequence,
                             int pid_fd, uint64_t limit_ns)
{
    uint64_t deadline_ns = clock_now_ns() + limit_ns;
    for (;;) {
        if (atomic_load_explicit(&slot->memory->completed, memory_order_acquire) == sequence)
            return STATUS_OK;
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns) {
            char why[120];
            snprintf(why, sizeof why, "the device host hung: a batch took over %llu ms",
                     (unsigned long long)(limit_ns / 1000000u));
            lock_and_mark_failed(s, why);
            return status_fail(STATUS_UNAVAILABLE, "%s", why);
        }
        struct pollfd watched[2] = {{slot->reply_fd, POLLIN, 0}, {pid_fd, POLLIN, 0}};
        poll(watched, 2, (int)((deadline_ns - now_ns) / 1000000u) + 1);
        uint64_t count;
        if (watched[0].revents & POLLIN && read(slot->reply_fd, &count, sizeof count) > 0)
            continue;
        if (watched[1].revents)
            return status_fail(STATUS_UNAVAILABLE, "the device host ended during the batch");
    }
}

/* The host's times, or zeros where they are impossible. */
static pjrt_times check_times(const pjrt_slot_memory *memory, uint64_t start_ns, uint64_t end_ns)
{
    pjrt_times t = memory->times;
    t.submitted_ns = start_ns;
    bool is_possible = start_ns <= t.uploaded_ns && t.uploaded_ns <= t.executed_ns &&
                       t.executed_ns <= t.downloaded_ns && t.downloaded_ns <= end_ns;
    return is_possible ? t : (pjrt_times){0};
}

static status run_in_slot(pjrt_supervisor *s, pjrt_execution_slot *slot, int pid_fd,
                          pjrt_run_statistics *run)
{
    pjrt_slot_memory *memory = slot->memory;
    uint64_t sequence = atomic_load_explicit(&memory->sequence, memory_order_relaxed) + 1, one = 1;
    atomic_store_explicit(&memory->sequence, sequence, memory_order_release);
    uint64_t start_ns = clock_now_ns(), longest = atomic_load(run->longest_ns);
    if (write(slot->request_fd, &one, sizeof one) != (ssize_t)sizeof one)
        return status_fail(STATUS_UNAVAILABLE, "waking the device host: %m");
    status result = wait_for_reply(s, slot, sequence, pid_fd, time_limit_ns(s, longest));
    if (result)
        return result;
    if (memory->result == STATUS_OK) {
        uint64_t end_ns = clock_now_ns(), took_ns = end_ns - start_ns;
        while (took_ns > longest &&
               !atomic_compare_exchange_weak(run->longest_ns, &longest, took_ns))
            continue;
        run->times = check_times(memory, start_ns, end_ns);
        run->pinned_bytes = memory->pinned_bytes;
        return STATUS_OK;
    }
    char text[PJRT_TEXT_BYTES_MAX];
    memcpy(text, memory->text, sizeof text);
    text[sizeof text - 1] = 0;
    /* On hardware, PJRT errors that become UNAVAILABLE often needed a new process. After any
     * failure the batch may run elsewhere: a compiled program does not fail because of a request's
     * data. */
    if (memory->result == STATUS_UNAVAILABLE)
        lock_and_mark_failed(s, text);
    return status_fail(STATUS_UNAVAILABLE, "%s", text);
}

status pjrt_supervisor_execute(pjrt_supervisor *s, int device_number, int slot_number,
                               uint32_t program, pjrt_run_statistics *run, const tensor *inputs,
                               int input_count, tensor *outputs, int output_count)
{
    assert(slot_number >= 0 && slot_number < s->options.slots_per_device);
    assert(input_count <= PJRT_SLOT_TENSORS_MAX && output_count <= PJRT_SLOT_TENSORS_MAX);
    pthread_mutex_lock(&s->lock);
    if (s->state != DEVICE_HEALTHY || s->is_marked_failed) {
        status down = status_fail(STATUS_UNAVAILABLE, "%s", s->reason);
        pthread_mutex_unlock(&s->lock);
        return down;
    }
    s->executing++;
    int pid_fd = s->pid_fd;
    pthread_mutex_unlock(&s->lock);

    pjrt_execution_slot *slot =
        &s->slots[device_number * s->options.slots_per_device + slot_number];
    pjrt_slot_memory *memory = slot->memory;
    size_t offset = PJRT_SLOT_DATA_OFFSET;
    status result = lay_out(s, memory->inputs, inputs, input_count, &offset);
    size_t output_offset = offset;
    if (result == STATUS_OK)
        result = lay_out(s, memory->outputs, outputs, output_count, &offset);
    if (result == STATUS_OK) {
        for (int i = 0; i < input_count; i++)
            memcpy((char *)memory + memory->inputs[i].offset, inputs[i].data,
                   tensor_bytes(&inputs[i]));
        memory->program = program;
        memory->input_count = (uint32_t)input_count;
        memory->output_count = (uint32_t)output_count;
        result = run_in_slot(s, slot, pid_fd, run);
        /* The host may have changed the offsets: they are computed again. */
        for (int i = 0; result == STATUS_OK && i < output_count; i++) {
            memcpy(outputs[i].data, (char *)memory + output_offset, tensor_bytes(&outputs[i]));
            output_offset += (tensor_bytes(&outputs[i]) + 63) & ~(size_t)63;
        }
    }

    pthread_mutex_lock(&s->lock);
    s->executing--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return result;
}
