#include "devices/pjrt/host/slot.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define ARGUMENTS_MAX 4096 /* of a program: inputs and weights */

static status check_slot(const host_slot *slot, const host_program *p)
{
    const pjrt_slot_memory *memory = slot->memory;
    if (p == NULL)
        return status_fail(STATUS_INTERNAL, "program %u is not loaded", memory->program);
    if (memory->input_count > PJRT_SLOT_TENSORS_MAX ||
        memory->output_count > PJRT_SLOT_TENSORS_MAX ||
        memory->output_count != (uint32_t)p->output_count || p->argument_count > ARGUMENTS_MAX)
        return status_fail(STATUS_INTERNAL, "program %u takes other tensors", memory->program);
    for (int i = 0; i < p->argument_count; i++)
        if (!p->arguments[i].is_weight && p->arguments[i].index >= memory->input_count)
            return status_fail(STATUS_INTERNAL, "program %u needs input %u", memory->program,
                               p->arguments[i].index);
    return STATUS_OK;
}

/* Upload, execute, download; each is timed. */
static status run_batch(const host_slot *slot)
{
    const pjrt_session *session = slot->objects->session;
    pjrt_slot_memory *memory = slot->memory;
    host_program *p = host_objects_program(slot->objects, memory->program);
    status s = check_slot(slot, p);
    if (s)
        return s;
    uint64_t start_ns = clock_now_ns();
    pjrt_buffer *inputs[PJRT_SLOT_TENSORS_MAX] = {0}, *outputs[PJRT_SLOT_TENSORS_MAX] = {0};
    pjrt_buffer *arguments[ARGUMENTS_MAX];
    tensor t;
    for (uint32_t i = 0; s == STATUS_OK && i < memory->input_count; i++) {
        pjrt_tensor_from_shape(&memory->inputs[i].shape, (char *)memory + memory->inputs[i].offset,
                               &t);
        s = pjrt_session_upload(session, slot->device, &t, &inputs[i]);
    }
    if (s)
        goto done;
    for (int i = 0; i < p->argument_count; i++) {
        const pjrt_argument *a = &p->arguments[i];
        arguments[i] = a->is_weight ? host_objects_weight(slot->objects, a->index, slot->device)
                                    : inputs[a->index];
    }
    uint64_t uploaded_ns = clock_now_ns();
    s = pjrt_session_execute(session, slot->device, p->executable, arguments, p->argument_count,
                             outputs, p->output_count);
    uint64_t executed_ns = clock_now_ns();
    for (uint32_t i = 0; s == STATUS_OK && i < memory->output_count; i++) {
        pjrt_tensor_from_shape(&memory->outputs[i].shape,
                               (char *)memory + memory->outputs[i].offset, &t);
        s = pjrt_session_download(session, outputs[i], &t);
    }
    memory->upload_ns = uploaded_ns - start_ns;
    memory->execute_ns = executed_ns - uploaded_ns;
    memory->download_ns = clock_now_ns() - executed_ns;
done:
    for (int i = 0; i < PJRT_SLOT_TENSORS_MAX; i++) {
        if (inputs[i] != NULL)
            pjrt_session_free_buffer(session, inputs[i]);
        if (outputs[i] != NULL)
            pjrt_session_free_buffer(session, outputs[i]);
    }
    return s;
}

void *host_slot_serve(void *argument)
{
    host_slot *slot = argument;
    for (;;) {
        uint64_t count;
        ssize_t bytes = read(slot->request_fd, &count, sizeof count);
        if (bytes != (ssize_t)sizeof count) {
            if (bytes < 0 && errno == EINTR)
                continue;
            _exit(1);
        }
        uint64_t sequence = atomic_load_explicit(&slot->memory->sequence, memory_order_acquire);
        if (sequence == atomic_load_explicit(&slot->memory->completed, memory_order_relaxed))
            continue; /* the wake-up was meant for the host before this one */
        status s = run_batch(slot);
        slot->memory->result = (int32_t)s;
        snprintf(slot->memory->text, sizeof slot->memory->text, "%s", s ? status_message() : "");
        atomic_store_explicit(&slot->memory->completed, sequence, memory_order_release);
        uint64_t one = 1;
        ssize_t written = write(slot->reply_fd, &one, sizeof one);
        assert(written == (ssize_t)sizeof one);
    }
    return NULL;
}
