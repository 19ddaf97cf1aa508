#include "devices/pjrt/host/host.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "devices/pjrt/plugin/session.h"
#include "devices/pjrt/protocol/protocol.h"
#include "devices/pjrt/protocol/signature.h"

/* Threads: the main one reads control messages; each message is worked on by a thread of its own;
 * each execution slot has one. `lock` guards the tables. An object in a table does not change until
 * it is released, and the server releases a program only when no batch uses it. */

#define DEVICES_MAX 64
#define ARGUMENTS_MAX 4096 /* of a program: inputs and weights */

typedef struct host_weight {
    pjrt_buffer *buffers[DEVICES_MAX];
} host_weight;

typedef struct host_program {
    pjrt_loaded_executable *executable;
    pjrt_argument *arguments;
    int argument_count, output_count;
} host_program;

typedef struct host_table {
    void **items; /* by object number */
    uint32_t capacity;
} host_table;

static struct {
    pjrt_plugin plugin;
    pjrt_session session;
    int socket;
    pthread_mutex_t lock, send_lock;
    host_table weights, programs;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER, .send_lock = PTHREAD_MUTEX_INITIALIZER};

static void *table_get(host_table *t, uint32_t number)
{
    pthread_mutex_lock(&host.lock);
    void *item = number < t->capacity ? t->items[number] : NULL;
    pthread_mutex_unlock(&host.lock);
    return item;
}

static void *table_set(host_table *t, uint32_t number, void *item)
{
    pthread_mutex_lock(&host.lock);
    if (number >= t->capacity) {
        uint32_t capacity = (number + 64) * 2;
        t->items = realloc(t->items, capacity * sizeof *t->items);
        assert(t->items != NULL);
        memset(t->items + t->capacity, 0, (capacity - t->capacity) * sizeof *t->items);
        t->capacity = capacity;
    }
    void *before = t->items[number];
    t->items[number] = item;
    pthread_mutex_unlock(&host.lock);
    return before;
}

static void reply(pjrt_message *m, status result, int fd)
{
    m->result = (int32_t)result;
    snprintf(m->text, sizeof m->text, "%s", result ? status_message() : "");
    pthread_mutex_lock(&host.send_lock);
    status s = pjrt_send(host.socket, m, &fd, fd >= 0 ? 1 : 0);
    pthread_mutex_unlock(&host.send_lock);
    if (s)
        _exit(0); /* the server is gone. No exit handlers: the plugin's threads still run */
}

static void tensor_of_shape(const pjrt_tensor_shape *shape, void *data, tensor *out)
{
    assert(shape->rank >= 0 && shape->rank <= TENSOR_RANK_MAX &&
           (unsigned)shape->dtype < DTYPE_COUNT);
    *out = (tensor){.dtype = (dtype)shape->dtype, .rank = shape->rank, .data = data};
    memcpy(out->dims, shape->dims, sizeof out->dims);
}

/* --- control messages --- */

typedef struct host_request {
    pjrt_message message;
    int fds[3];
} host_request;

static status load_weight(const host_request *r)
{
    void *data = NULL;
    status s = pjrt_memory_map(r->fds[0], r->message.bytes, false, &data);
    if (s)
        return s;
    host_weight *w = calloc(1, sizeof *w);
    assert(w != NULL);
    tensor t;
    tensor_of_shape(&r->message.shape, data, &t);
    for (int d = 0; s == STATUS_OK && d < host.session.device_count; d++)
        s = pjrt_session_upload(&host.session, d, &t, &w->buffers[d]);
    pjrt_memory_unmap(data, r->message.bytes);
    if (s == STATUS_OK) {
        table_set(&host.weights, r->message.object, w);
        return STATUS_OK;
    }
    for (int d = 0; d < host.session.device_count; d++)
        if (w->buffers[d] != NULL)
            pjrt_session_free_buffer(&host.session, w->buffers[d]);
    free(w);
    return s;
}

/* Compares the program with what model.json declares, where the plugin shows its programs. */
static status check_declared(const host_request *r, pjrt_loaded_executable *e)
{
    pjrt_declaration d = {.argument_count = (int)r->message.argument_count,
                          .output_count = (int)r->message.output_count};
    size_t table_bytes = (size_t)(d.argument_count + d.output_count) * sizeof *d.items;
    void *table = NULL;
    pjrt_bytes hlo = {0};
    status s = pjrt_memory_map(r->fds[1], table_bytes, false, &table);
    if (s)
        return s;
    d.items = table;
    pjrt_session_optimized(&host.session, e, &hlo);
    if (hlo.bytes > 0)
        s = pjrt_declaration_check(&d, hlo.data, hlo.bytes);
    free(hlo.data);
    pjrt_memory_unmap(table, table_bytes);
    return s;
}

static status compile_program(const host_request *r, pjrt_message *result, int *fd)
{
    void *text = NULL;
    status s = pjrt_memory_map(r->fds[0], r->message.bytes, false, &text);
    if (s)
        return s;
    pjrt_loaded_executable *e = NULL;
    s = pjrt_session_compile(&host.session, r->message.device, text, r->message.bytes, &e);
    pjrt_memory_unmap(text, r->message.bytes);
    if (s)
        return s;
    pjrt_bytes bytes = {0};
    if (r->fds[1] >= 0)
        s = check_declared(r, e);
    if (s == STATUS_OK)
        s = pjrt_session_serialize(&host.session, e, &bytes);
    pjrt_session_release(&host.session, e);
    if (s)
        return s;
    s = pjrt_memory_create_from("penstock-program", bytes.data, bytes.bytes, fd);
    result->bytes = bytes.bytes;
    free(bytes.data);
    return s;
}

static void destroy_program(host_program *p)
{
    if (p == NULL)
        return;
    if (p->executable != NULL)
        pjrt_session_release(&host.session, p->executable);
    free(p->arguments);
    free(p);
}

static status load_program(const host_request *r)
{
    void *serialized = NULL, *table = NULL;
    size_t table_bytes = r->message.argument_count * sizeof(pjrt_argument);
    host_program *p = calloc(1, sizeof *p);
    assert(p != NULL);
    status s = pjrt_memory_map(r->fds[0], r->message.bytes, false, &serialized);
    if (s == STATUS_OK)
        s = pjrt_memory_map(r->fds[1], table_bytes, false, &table);
    if (s)
        goto done;
    p->argument_count = (int)r->message.argument_count;
    p->arguments = malloc(table_bytes ? table_bytes : 1);
    assert(p->arguments != NULL);
    memcpy(p->arguments, table, table_bytes);
    for (int i = 0; i < p->argument_count; i++)
        if (p->arguments[i].is_weight && table_get(&host.weights, p->arguments[i].index) == NULL) {
            s = status_fail(STATUS_INTERNAL, "the program needs weight %u, which was not uploaded",
                            p->arguments[i].index);
            goto done;
        }
    s = pjrt_session_load(&host.session, serialized, r->message.bytes, &p->executable);
    if (s == STATUS_OK)
        s = pjrt_session_output_count(&host.session, p->executable, &p->output_count);
    if (s == STATUS_OK && (uint32_t)p->output_count != r->message.output_count)
        s = status_fail(STATUS_INVALID_ARGUMENT, "the program has %d outputs, the model %u",
                        p->output_count, r->message.output_count);
    if (s == STATUS_OK) {
        destroy_program(table_set(&host.programs, r->message.object, p));
        p = NULL;
    }
done:
    if (serialized != NULL)
        pjrt_memory_unmap(serialized, r->message.bytes);
    if (table != NULL)
        pjrt_memory_unmap(table, table_bytes);
    destroy_program(p);
    return s;
}

static void release_weight(uint32_t number)
{
    host_weight *w = table_set(&host.weights, number, NULL);
    if (w == NULL)
        return;
    for (int d = 0; d < host.session.device_count; d++)
        pjrt_session_free_buffer(&host.session, w->buffers[d]);
    free(w);
}

static void *serve_message(void *argument)
{
    host_request *r = argument;
    pjrt_message message = {
        .kind = r->message.kind, .id = r->message.id, .object = r->message.object};
    uint64_t start_ns = clock_now_ns();
    int fd = -1;
    status s = STATUS_OK;
    switch ((pjrt_message_kind)r->message.kind) {
    case PJRT_WEIGHT:
        s = load_weight(r);
        break;
    case PJRT_COMPILE:
        s = compile_program(r, &message, &fd);
        break;
    case PJRT_LOAD:
        s = load_program(r);
        break;
    case PJRT_RELEASE:
        destroy_program(table_set(&host.programs, r->message.object, NULL));
        break;
    case PJRT_RELEASE_WEIGHT:
        release_weight(r->message.object);
        break;
    default:
        s = status_fail(STATUS_INTERNAL, "message kind %d", r->message.kind);
    }
    message.elapsed_ns = clock_now_ns() - start_ns;
    reply(&message, s, fd);
    if (fd >= 0)
        close(fd);
    for (int i = 0; i < 3; i++)
        if (r->fds[i] >= 0)
            close(r->fds[i]);
    free(r);
    return NULL;
}

/* --- execution slots --- */

typedef struct host_slot {
    int device, request_fd, reply_fd;
    pjrt_slot_memory *memory;
} host_slot;

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
    pjrt_slot_memory *memory = slot->memory;
    host_program *p = table_get(&host.programs, memory->program);
    status s = check_slot(slot, p);
    if (s)
        return s;
    uint64_t start_ns = clock_now_ns();
    pjrt_buffer *inputs[PJRT_SLOT_TENSORS_MAX] = {0}, *outputs[PJRT_SLOT_TENSORS_MAX] = {0};
    pjrt_buffer *arguments[ARGUMENTS_MAX];
    tensor t;
    for (uint32_t i = 0; s == STATUS_OK && i < memory->input_count; i++) {
        tensor_of_shape(&memory->inputs[i].shape, (char *)memory + memory->inputs[i].offset, &t);
        s = pjrt_session_upload(&host.session, slot->device, &t, &inputs[i]);
    }
    if (s)
        goto done;
    for (int i = 0; i < p->argument_count; i++) {
        const pjrt_argument *a = &p->arguments[i];
        arguments[i] =
            a->is_weight
                ? ((host_weight *)table_get(&host.weights, a->index))->buffers[slot->device]
                : inputs[a->index];
    }
    uint64_t uploaded_ns = clock_now_ns();
    s = pjrt_session_execute(&host.session, slot->device, p->executable, arguments,
                             p->argument_count, outputs, p->output_count);
    uint64_t executed_ns = clock_now_ns();
    for (uint32_t i = 0; s == STATUS_OK && i < memory->output_count; i++) {
        tensor_of_shape(&memory->outputs[i].shape, (char *)memory + memory->outputs[i].offset, &t);
        s = pjrt_session_download(&host.session, outputs[i], &t);
    }
    memory->upload_ns = uploaded_ns - start_ns;
    memory->execute_ns = executed_ns - uploaded_ns;
    memory->download_ns = clock_now_ns() - executed_ns;
done:
    for (int i = 0; i < PJRT_SLOT_TENSORS_MAX; i++) {
        if (inputs[i] != NULL)
            pjrt_session_free_buffer(&host.session, inputs[i]);
        if (outputs[i] != NULL)
            pjrt_session_free_buffer(&host.session, outputs[i]);
    }
    return s;
}

static void *serve_slot(void *argument)
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

static void start_thread(void *(*body)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 16u << 20); /* compilers recurse deeply */
    pthread_t thread;
    int failed = pthread_create(&thread, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    if (failed) {
        fprintf(stderr, "penstock device-host: no thread: %s\n", strerror(failed));
        _exit(1);
    }
}

static void add_slot(const pjrt_message *m, const int fds[3])
{
    host_slot *slot = calloc(1, sizeof *slot);
    assert(slot != NULL);
    *slot = (host_slot){.device = m->device, .request_fd = fds[1], .reply_fd = fds[2]};
    void *memory = NULL;
    if (m->device < 0 || m->device >= host.session.device_count ||
        pjrt_memory_map(fds[0], m->bytes, true, &memory)) {
        fprintf(stderr, "penstock device-host: slot %d of device %d: %s\n", m->slot, m->device,
                status_message());
        _exit(1);
    }
    close(fds[0]);
    slot->memory = memory;
    start_thread(serve_slot, slot);
}

static void send_hello(status s)
{
    pjrt_message hello = {.kind = PJRT_HELLO};
    if (s == STATUS_OK) {
        hello.device_count = host.session.device_count;
        snprintf(hello.device_kind, sizeof hello.device_kind, "%s", host.session.device_kind);
        snprintf(hello.platform, sizeof hello.platform, "%s", host.session.platform);
        snprintf(hello.version, sizeof hello.version, "%s", host.plugin.version_text);
    }
    reply(&hello, s, -1);
}

int pjrt_host_main(const char *plugin_path)
{
    host.socket = PJRT_HOST_CONTROL_FD;
    /* End with the server, even when it is killed with SIGKILL; the server handles Ctrl-C. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct pollfd server = {host.socket, 0, 0};
    if (poll(&server, 1, 0) > 0)
        return 0; /* the server ended before prctl() */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    /* Outside a TPU VM, libtpu would query a metadata server for ten minutes. */
    if (access("/dev/accel0", F_OK) != 0 && access("/dev/vfio", F_OK) != 0)
        setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    status s = pjrt_plugin_open(plugin_path, &host.plugin);
    if (s == STATUS_OK)
        s = pjrt_session_open(&host.plugin, &host.session);
    if (s == STATUS_OK && host.session.device_count > DEVICES_MAX)
        s = status_fail(STATUS_UNSUPPORTED, "%d devices; the limit is %d",
                        host.session.device_count, DEVICES_MAX);
    send_hello(s);
    if (s)
        _exit(3);
    for (;;) {
        host_request *r = malloc(sizeof *r);
        assert(r != NULL);
        if (pjrt_receive(host.socket, &r->message, r->fds))
            _exit(0); /* the server closed its end */
        if (r->message.kind == PJRT_SLOT) {
            add_slot(&r->message, r->fds);
            free(r);
        } else {
            start_thread(serve_message, r);
        }
    }
}
