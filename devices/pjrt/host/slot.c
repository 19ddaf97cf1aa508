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

/* --- pinned memory --- */

#define PIN_BYTES_MIN ((size_t)64 << 10)

static uint64_t end_of(const pjrt_slot_tensor *tensors, uint32_t count, uint64_t end)
{
    for (uint32_t i = 0; i < count; i++)
        if (tensors[i].offset + tensors[i].bytes > end)
            end = tensors[i].offset + tensors[i].bytes;
    return end;
}

/* Of the slot's tensors, so many bytes that batches like this one fit. Pinned pages cost memory
 * even where nothing was ever written: not all of the slot. */
static size_t bytes_to_pin(const host_slot *slot)
{
    const pjrt_slot_memory *m = slot->memory;
    uint64_t end = end_of(m->inputs, m->input_count, PJRT_SLOT_DATA_OFFSET);
    size_t needed = end_of(m->outputs, m->output_count, end) - PJRT_SLOT_DATA_OFFSET;
    size_t all = slot->bytes - PJRT_SLOT_DATA_OFFSET, bytes = PIN_BYTES_MIN;
    while (bytes < needed && bytes < all)
        bytes *= 2;
    return bytes < all ? bytes : all;
}

static void unpin(host_slot *slot)
{
    if (slot->pinned_bytes > 0)
        pjrt_session_unpin(slot->objects->session, (char *)slot->memory + PJRT_SLOT_DATA_OFFSET);
    slot->memory->pinned_bytes = slot->pinned_bytes = 0;
}

/* Optional: without it, transfers take a copy more. A plugin that fails once is not asked again. */
static void pin(host_slot *slot)
{
    static atomic_bool was_said;
    size_t bytes = bytes_to_pin(slot);
    if (bytes <= slot->pinned_bytes || slot->cannot_pin)
        return;
    unpin(slot);
    status s = pjrt_session_pin(slot->objects->session,
                                (char *)slot->memory + PJRT_SLOT_DATA_OFFSET, bytes);
    slot->cannot_pin = s != STATUS_OK;
    if (s == STATUS_OK)
        slot->memory->pinned_bytes = slot->pinned_bytes = bytes;
    else if (s != STATUS_UNSUPPORTED && !atomic_exchange(&was_said, true))
        fprintf(stderr, "penstock device-host: slots are not pinned: %s\n", status_message());
}

void host_slot_end(host_slot *slot)
{
    if (pthread_mutex_trylock(&slot->lock) == 0) /* else a batch uses it */
        unpin(slot);
}

/* --- a batch --- */

/* A batch between its first call of the plugin and its last. */
typedef struct flight {
    const pjrt_session *session;
    status result; /* of what failed first, and its message */
    char text[PJRT_TEXT_BYTES_MAX];
    pjrt_buffer *inputs[PJRT_SLOT_TENSORS_MAX], *outputs[PJRT_SLOT_TENSORS_MAX];
    pjrt_event *uploads[PJRT_SLOT_TENSORS_MAX], *downloads[PJRT_SLOT_TENSORS_MAX], *execution;
} flight;

static void note(flight *f, status s)
{
    if (s == STATUS_OK || f->result)
        return;
    f->result = s;
    snprintf(f->text, sizeof f->text, "%s", status_message());
}

static tensor tensor_at(const pjrt_slot_memory *memory, const pjrt_slot_tensor *where)
{
    tensor t;
    pjrt_tensor_from_shape(&where->shape, (char *)memory + where->offset, &t);
    return t;
}

/* Nothing of it waits: the device goes from one to the next without this process. */
static void start_all(const host_slot *slot, const host_program *p, flight *f)
{
    const pjrt_slot_memory *memory = slot->memory;
    pjrt_buffer *arguments[ARGUMENTS_MAX];
    for (uint32_t i = 0; f->result == STATUS_OK && i < memory->input_count; i++) {
        tensor t = tensor_at(memory, &memory->inputs[i]);
        note(f, pjrt_session_upload(f->session, slot->device, &t, &f->inputs[i], &f->uploads[i]));
    }
    if (f->result)
        return;
    for (int i = 0; i < p->argument_count; i++) {
        const pjrt_argument *a = &p->arguments[i];
        arguments[i] = a->is_weight ? host_objects_weight(slot->objects, a->index, slot->device)
                                    : f->inputs[a->index];
    }
    note(f, pjrt_session_execute(f->session, slot->device, p->executable, arguments,
                                 p->argument_count, f->outputs, &f->execution));
    for (uint32_t i = 0; f->result == STATUS_OK && i < memory->output_count; i++) {
        tensor t = tensor_at(memory, &memory->outputs[i]);
        note(f, pjrt_session_download(f->session, f->outputs[i], &t, &f->downloads[i]));
    }
}

/* All that was started ends here, also after a failure: the slot's memory is used until then. */
static void await_all(flight *f, pjrt_slot_memory *memory)
{
    for (uint32_t i = 0; i < memory->input_count; i++)
        note(f, pjrt_session_await(f->session, f->uploads[i], "uploading"));
    memory->times.uploaded_ns = clock_now_ns();
    note(f, pjrt_session_await(f->session, f->execution, "executing"));
    memory->times.executed_ns = clock_now_ns();
    for (uint32_t i = 0; i < memory->output_count; i++)
        note(f, pjrt_session_await(f->session, f->downloads[i], "downloading"));
    memory->times.downloaded_ns = clock_now_ns();
}

static status run_batch(host_slot *slot)
{
    flight f = {.session = slot->objects->session};
    pjrt_slot_memory *memory = slot->memory;
    host_program *p = host_objects_program(slot->objects, memory->program);
    status s = check_slot(slot, p);
    if (s)
        return s;
    pin(slot);
    start_all(slot, p, &f);
    await_all(&f, memory);
    for (int i = 0; i < PJRT_SLOT_TENSORS_MAX; i++) {
        if (f.inputs[i] != NULL)
            pjrt_session_free_buffer(f.session, f.inputs[i]);
        if (f.outputs[i] != NULL)
            pjrt_session_free_buffer(f.session, f.outputs[i]);
    }
    return f.result ? status_fail(f.result, "%s", f.text) : STATUS_OK;
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
        pthread_mutex_lock(&slot->lock);
        status s = run_batch(slot);
        pthread_mutex_unlock(&slot->lock);
        slot->memory->result = (int32_t)s;
        snprintf(slot->memory->text, sizeof slot->memory->text, "%s", s ? status_message() : "");
        atomic_store_explicit(&slot->memory->completed, sequence, memory_order_release);
        uint64_t one = 1;
        ssize_t written = write(slot->reply_fd, &one, sizeof one);
        assert(written == (ssize_t)sizeof one);
    }
    return NULL;
}
