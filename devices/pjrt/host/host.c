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
#include "devices/pjrt/host/profile.h"
#include "devices/pjrt/host/slot.h"
#include "devices/pjrt/plugin/fingerprint.h"
#include "devices/pjrt/protocol/signature.h"

/* Threads: the main one reads control messages; each message is worked on by a thread of its own;
 * each execution slot has one. */

static struct {
    pjrt_plugin plugin;
    pjrt_session session;
    int socket;
    pthread_mutex_t send_lock;
    host_objects objects;
    host_slot *slots; /* the main thread's */
} host = {.send_lock = PTHREAD_MUTEX_INITIALIZER,
          .objects = {.session = &host.session, .lock = PTHREAD_MUTEX_INITIALIZER}};

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

/* --- control messages --- */

typedef struct host_request {
    pjrt_message message;
    int fds[3];
} host_request;

/* Compares the program with what model.json declares. */
static status check_declared(const host_request *r, const pjrt_bytes *hlo)
{
    pjrt_declaration d = {.argument_count = (int)r->message.argument_count,
                          .output_count = (int)r->message.output_count};
    size_t table_bytes = (size_t)(d.argument_count + d.output_count) * sizeof *d.items;
    void *table = NULL;
    status s = pjrt_memory_map(r->fds[1], table_bytes, false, &table);
    if (s)
        return s;
    d.items = table;
    s = pjrt_declaration_check(&d, hlo->data, hlo->bytes);
    pjrt_memory_unmap(table, table_bytes);
    return s;
}

/* Reads the optimized program, where the plugin shows its programs. */
static status examine(const host_request *r, pjrt_loaded_executable *e, pjrt_message *result)
{
    pjrt_bytes hlo = {0};
    pjrt_session_optimized(&host.session, e, &hlo);
    if (hlo.bytes == 0)
        return STATUS_OK;
    status s = r->fds[1] >= 0 ? check_declared(r, &hlo) : STATUS_OK;
    if (s == STATUS_OK && hlo_summarise(hlo.data, hlo.bytes, &result->hlo))
        result->hlo = (hlo_summary){0};
    free(hlo.data);
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
    s = examine(r, e, result);
    pjrt_memory_plan plan = pjrt_session_memory_plan(&host.session, e);
    result->code_bytes = plan.code;
    result->output_bytes = plan.outputs;
    result->temporary_bytes = plan.temporary;
    result->peak_bytes = plan.peak;
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
        s = host_objects_load_weight(&host.objects, &r->message, r->fds);
        break;
    case PJRT_COMPILE:
        s = compile_program(r, &message, &fd);
        break;
    case PJRT_LOAD:
        s = host_objects_load_program(&host.objects, &r->message, r->fds);
        break;
    case PJRT_RELEASE:
        host_objects_release_program(&host.objects, r->message.object);
        break;
    case PJRT_RELEASE_WEIGHT:
        host_objects_release_weight(&host.objects, r->message.object);
        break;
    case PJRT_PROFILE:
        s = host_profile_start(&host.plugin, r->message.elapsed_ns);
        break;
    case PJRT_PROFILE_TAKE:
        s = host_profile_take(&fd, &message.bytes);
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
    *slot = (host_slot){.objects = &host.objects,
                        .device = m->device,
                        .request_fd = fds[1],
                        .reply_fd = fds[2],
                        .bytes = m->bytes,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .next = host.slots};
    void *memory = NULL;
    if (m->device < 0 || m->device >= host.session.device_count ||
        pjrt_memory_map(fds[0], m->bytes, true, &memory)) {
        fprintf(stderr, "penstock device-host: slot %d of device %d: %s\n", m->slot, m->device,
                status_message());
        _exit(1);
    }
    close(fds[0]);
    slot->memory = memory;
    host.slots = slot;
    start_thread(host_slot_serve, slot);
}

/* The server closed its end. No exit handlers: the plugin's threads still run. */
__attribute__((noreturn)) static void end(void)
{
    for (host_slot *slot = host.slots; slot != NULL; slot = slot->next)
        host_slot_end(slot);
    _exit(0);
}

static void send_hello(status s)
{
    pjrt_message hello = {.kind = PJRT_HELLO};
    if (s == STATUS_OK) {
        hello.device_count = host.session.device_count;
        hello.memory_bytes = host.session.memory_bytes;
        snprintf(hello.device_kind, sizeof hello.device_kind, "%s", host.session.device_kind);
        snprintf(hello.platform, sizeof hello.platform, "%s", host.session.platform);
        snprintf(hello.version, sizeof hello.version, "%s", host.plugin.version_text);
        pjrt_session_fingerprint(&host.session, hello.fingerprint);
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
    if (s == STATUS_OK && host.session.device_count > HOST_DEVICES_MAX)
        s = status_fail(STATUS_UNSUPPORTED, "%d devices; the limit is %d",
                        host.session.device_count, HOST_DEVICES_MAX);
    send_hello(s);
    if (s)
        _exit(3);
    for (;;) {
        host_request *r = malloc(sizeof *r);
        assert(r != NULL);
        if (pjrt_receive(host.socket, &r->message, r->fds))
            end();
        if (r->message.kind == PJRT_SLOT) {
            add_slot(&r->message, r->fds);
            free(r);
        } else {
            start_thread(serve_message, r);
        }
    }
}
