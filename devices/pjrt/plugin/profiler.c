#include "devices/pjrt/plugin/profiler.h"

#include <stdlib.h>
#include <string.h>

#include "devices/pjrt/plugin/internal.h"

/* ProfileOptions (tsl/profiler/protobuf/profiler_options.proto): version 1, host tracer level 2,
 * device tracer level 1, with the programs. */
static const char options[] = {0x08, 1, 0x10, 2, 0x18, 1, 0x28, 1, 0x38, 1};

static const pjrt_profiler_api *find(const pjrt_plugin *p)
{
    const pjrt_profiler_extension *e = pjrt_extension(p, PJRT_EXTENSION_PROFILER);
    const pjrt_profiler_api *api = e != NULL ? e->api : NULL;
    if (api == NULL || api->struct_size < sizeof *api || api->create == NULL ||
        api->start == NULL || api->stop == NULL || api->collect == NULL || api->destroy == NULL ||
        api->error_message == NULL || api->error_destroy == NULL)
        return NULL;
    return api;
}

/* Its errors are of a kind of their own. Takes the error. */
static status check(const pjrt_profiler_api *api, pjrt_profiler_error *error, const char *what)
{
    if (error == NULL)
        return STATUS_OK;
    pjrt_profiler_error_message_args message = {.struct_size = sizeof message, .error = error};
    api->error_message(&message);
    int bytes = message.message_size < 600 ? (int)message.message_size : 600;
    status s = status_fail(STATUS_UNAVAILABLE, "%s: %.*s", what, bytes, message.message);
    pjrt_profiler_error_args destroy = {.struct_size = sizeof destroy, .error = error};
    api->error_destroy(&destroy);
    return s;
}

static void destroy(const pjrt_profiler_api *api, pjrt_profiler *profiler)
{
    pjrt_profiler_args args = {.struct_size = sizeof args, .profiler = profiler};
    status ignored = check(api, api->destroy(&args), "ending the profiler");
    (void)ignored;
}

status pjrt_profiler_start(const pjrt_plugin *p, pjrt_profiler **out)
{
    const pjrt_profiler_api *api = find(p);
    if (api == NULL)
        return status_fail(STATUS_UNSUPPORTED, "the plugin has no profiler");
    pjrt_profiler_create_args create = {
        .struct_size = sizeof create, .options = options, .options_size = sizeof options};
    status s = check(api, api->create(&create), "making the profiler");
    if (s)
        return s;
    pjrt_profiler_args start = {.struct_size = sizeof start, .profiler = create.profiler};
    s = check(api, api->start(&start), "starting the profiler");
    if (s)
        destroy(api, create.profiler);
    else
        *out = create.profiler;
    return s;
}

static bool skip_varint(const unsigned char *data, size_t bytes, size_t *at, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; *at < bytes && shift < 64; shift += 7) {
        unsigned char byte = data[(*at)++];
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* libtpu counts a zero byte after the message, which readers of protobuf reject: no field has
 * number 0. Returns the bytes of the message's own fields. */
static size_t message_bytes(const void *message, size_t bytes)
{
    const unsigned char *data = message;
    size_t at = 0, end = 0;
    uint64_t tag, value;
    while (at < bytes && skip_varint(data, bytes, &at, &tag) && tag >> 3 != 0) {
        bool is_long = (tag & 7) == 2; /* an XSpace has planes and texts only */
        if (!is_long || !skip_varint(data, bytes, &at, &value) || value > bytes - at)
            return bytes;
        at += value;
        end = at;
    }
    return end;
}

static status copy(const void *data, size_t bytes, pjrt_bytes *out)
{
    char *own = malloc(bytes ? bytes : 1);
    if (own == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a profile of %zu bytes", bytes);
    memcpy(own, data, bytes);
    *out = (pjrt_bytes){own, bytes};
    return STATUS_OK;
}

/* As the header has it: the size first, then the bytes. Plugins made from XLA's own code, libtpu
 * among them, give a buffer of theirs at once, and write into no other. */
static status collect(const pjrt_profiler_api *api, pjrt_profiler *profiler, pjrt_bytes *out)
{
    pjrt_profiler_collect_args args = {.struct_size = sizeof args, .profiler = profiler};
    status s = check(api, api->collect(&args), "reading the profile");
    if (s)
        return s;
    if (args.buffer != NULL)
        return copy(args.buffer, message_bytes(args.buffer, args.buffer_bytes), out);
    size_t bytes = args.buffer_bytes;
    args.buffer = calloc(1, bytes ? bytes : 1);
    if (args.buffer == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a profile of %zu bytes", bytes);
    s = check(api, api->collect(&args), "reading the profile");
    if (s)
        free(args.buffer);
    else
        *out = (pjrt_bytes){(char *)args.buffer, message_bytes(args.buffer, bytes)};
    return s;
}

status pjrt_profiler_finish(const pjrt_plugin *p, pjrt_profiler *profiler, pjrt_bytes *out)
{
    const pjrt_profiler_api *api = find(p);
    pjrt_profiler_args stop = {.struct_size = sizeof stop, .profiler = profiler};
    status s = check(api, api->stop(&stop), "stopping the profiler");
    if (s == STATUS_OK)
        s = collect(api, profiler, out);
    destroy(api, profiler);
    return s;
}
