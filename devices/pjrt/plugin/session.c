#include "devices/pjrt/plugin/session.h"

#include <assert.h>

#include "base/log.h"
#include "devices/pjrt/plugin/internal.h"

/* PJRT_TYPE_INVALID for strings. */
static pjrt_type type_of(dtype type)
{
    static const pjrt_type types[DTYPE_COUNT] = {
        [DTYPE_BOOL] = PJRT_TYPE_PRED, [DTYPE_U8] = PJRT_TYPE_U8,
        [DTYPE_U16] = PJRT_TYPE_U16,   [DTYPE_U32] = PJRT_TYPE_U32,
        [DTYPE_U64] = PJRT_TYPE_U64,   [DTYPE_I8] = PJRT_TYPE_S8,
        [DTYPE_I16] = PJRT_TYPE_S16,   [DTYPE_I32] = PJRT_TYPE_S32,
        [DTYPE_I64] = PJRT_TYPE_S64,   [DTYPE_F16] = PJRT_TYPE_F16,
        [DTYPE_BF16] = PJRT_TYPE_BF16, [DTYPE_F32] = PJRT_TYPE_F32,
        [DTYPE_F64] = PJRT_TYPE_F64,   [DTYPE_BYTES] = PJRT_TYPE_INVALID,
    };
    return types[type];
}

status pjrt_kind_of_description(const pjrt_plugin *p, pjrt_device_description *description,
                                char out[64])
{
    PJRT_ARGS(pjrt_device_description_kind_args, kind);
    kind.device_description = description;
    status s = pjrt_check(p, p->api->device_description_kind(&kind), "reading the device kind");
    if (s == STATUS_OK)
        pjrt_copy_text(out, 64, kind.kind, kind.kind_size);
    return s;
}

static int64_t least_memory(const pjrt_session *s)
{
    int64_t least = 0;
    for (int i = 0; i < s->device_count && PJRT_HAS_FUNCTION(s->plugin, device_memory_stats); i++) {
        PJRT_ARGS(pjrt_device_memory_stats_args, stats);
        stats.device = s->devices[i];
        if (pjrt_check(s->plugin, s->plugin->api->device_memory_stats(&stats),
                       "reading the memory of a device") ||
            !stats.bytes_limit_is_set)
            return 0;
        least = i == 0 || stats.bytes_limit < least ? stats.bytes_limit : least;
    }
    return least;
}

void pjrt_session_close(pjrt_session *s)
{
    PJRT_ARGS(pjrt_client_destroy_args, end);
    end.client = s->client;
    if (PJRT_HAS_FUNCTION(s->plugin, client_destroy) &&
        pjrt_check(s->plugin, s->plugin->api->client_destroy(&end), "closing the devices"))
        log_warning("devices", "%s", status_message());
    *s = (pjrt_session){0};
}

status pjrt_session_open(const pjrt_plugin *p, pjrt_session *out)
{
    pjrt_session session = {.plugin = p};
    PJRT_ARGS(pjrt_client_create_args, create);
    pjrt_code code;
    status s = pjrt_check_code(p, p->api->client_create(&create), "opening the devices", &code);
    if (s)
        return status_prefix(pjrt_is_transient(code) ? STATUS_UNAVAILABLE : STATUS_NOT_FOUND,
                             "the plugin found no device it can use");
    session.client = create.client;

    PJRT_ARGS(pjrt_client_text_args, name);
    name.client = session.client;
    s = pjrt_check(p, p->api->client_platform_name(&name), "reading the platform");
    if (s)
        return s;
    pjrt_copy_text(session.platform, sizeof session.platform, name.text, name.text_size);
    PJRT_ARGS(pjrt_client_text_args, version);
    version.client = session.client;
    s = pjrt_check(p, p->api->client_platform_version(&version), "reading the platform version");
    if (s)
        return s;
    pjrt_copy_text(session.platform_version, sizeof session.platform_version, version.text,
                   version.text_size);

    PJRT_ARGS(pjrt_client_addressable_devices_args, devices);
    devices.client = session.client;
    s = pjrt_check(p, p->api->client_addressable_devices(&devices), "listing the devices");
    if (s)
        return s;
    if (devices.num_devices == 0)
        return status_fail(STATUS_NOT_FOUND, "platform %s has no addressable device",
                           session.platform);
    session.devices = devices.devices;
    session.device_count = (int)devices.num_devices;
    PJRT_ARGS(pjrt_device_get_description_args, description);
    description.device = session.devices[0];
    s = pjrt_check(p, p->api->device_get_description(&description), "describing a device");
    if (s == STATUS_OK)
        s = pjrt_kind_of_description(p, description.device_description, session.device_kind);
    session.memory_bytes = least_memory(&session);
    if (s == STATUS_OK)
        *out = session;
    return s;
}

status pjrt_session_await(const pjrt_session *s, pjrt_event *event, const char *what)
{
    if (event == NULL)
        return STATUS_OK;
    PJRT_ARGS(pjrt_event_args, await);
    await.event = event;
    status result = pjrt_check(s->plugin, s->plugin->api->event_await(&await), what);
    PJRT_ARGS(pjrt_event_args, destroy);
    destroy.event = event;
    status ignored = pjrt_check(s->plugin, s->plugin->api->event_destroy(&destroy), what);
    return result ? result : ignored;
}

/* The transfer managers of the API (CreateBuffersForAsyncHostToDevice) are not used: they take
 * bytes as the device lays them out, and a TPU's layouts are tiled. This call converts, and does
 * not wait either. */
status pjrt_session_upload(const pjrt_session *s, int device, const tensor *t, pjrt_buffer **out,
                           pjrt_event **done)
{
    assert(device >= 0 && device < s->device_count);
    PJRT_ARGS(pjrt_client_buffer_from_host_args, upload);
    upload.client = s->client;
    upload.data = t->data;
    upload.type = type_of(t->dtype);
    upload.dims = t->dims;
    upload.num_dims = (size_t)t->rank;
    upload.host_buffer_semantics = PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES;
    upload.device = s->devices[device];
    status result =
        pjrt_check(s->plugin, s->plugin->api->client_buffer_from_host(&upload), "uploading");
    if (result)
        return result;
    *out = upload.buffer;
    *done = upload.done_with_host_buffer;
    return STATUS_OK;
}

/* The size is that of the shape: no result has to exist yet. */
static status check_size(const pjrt_session *s, pjrt_buffer *b, pjrt_memory_layout *layout,
                         const tensor *t)
{
    PJRT_ARGS(pjrt_buffer_to_host_args, size);
    size.src = b;
    size.host_layout = layout;
    status result =
        pjrt_check(s->plugin, s->plugin->api->buffer_to_host(&size), "sizing an output");
    if (result)
        return result;
    if (size.dst_size != tensor_bytes(t))
        return status_fail(STATUS_INTERNAL,
                           "an output has %zu bytes on the device, %zu were expected",
                           size.dst_size, tensor_bytes(t));
    return STATUS_OK;
}

status pjrt_session_download(const pjrt_session *s, pjrt_buffer *b, const tensor *t,
                             pjrt_event **done)
{
    /* A TPU chooses the layout of its buffers; ours is row-major. */
    int64_t minor_to_major[TENSOR_RANK_MAX];
    for (int i = 0; i < t->rank; i++)
        minor_to_major[i] = t->rank - 1 - i;
    PJRT_ARGS(pjrt_memory_layout, layout);
    layout.tiled.struct_size = sizeof layout.tiled;
    layout.tiled.minor_to_major = minor_to_major;
    layout.tiled.minor_to_major_size = (size_t)t->rank;
    status result = check_size(s, b, &layout, t);
    if (result)
        return result;
    PJRT_ARGS(pjrt_buffer_to_host_args, copy);
    copy.src = b;
    copy.host_layout = &layout;
    copy.dst = t->data;
    copy.dst_size = tensor_bytes(t);
    result = pjrt_check(s->plugin, s->plugin->api->buffer_to_host(&copy), "downloading");
    if (result == STATUS_OK)
        *done = copy.event;
    return result;
}

void pjrt_session_free_buffer(const pjrt_session *s, pjrt_buffer *b)
{
    PJRT_ARGS(pjrt_buffer_args, destroy);
    destroy.buffer = b;
    status ignored =
        pjrt_check(s->plugin, s->plugin->api->buffer_destroy(&destroy), "freeing a buffer");
    (void)ignored;
}

status pjrt_session_execute(const pjrt_session *s, int device, pjrt_loaded_executable *e,
                            pjrt_buffer *const *arguments, int argument_count,
                            pjrt_buffer **outputs, pjrt_event **done)
{
    assert(device >= 0 && device < s->device_count);
    PJRT_ARGS(pjrt_execute_options, options);
    PJRT_ARGS(pjrt_execute_args, execute);
    execute.executable = e;
    execute.options = &options;
    execute.argument_lists = &arguments;
    execute.num_devices = 1;
    execute.num_args = (size_t)argument_count;
    execute.output_lists = &outputs;
    execute.device_complete_events = done;
    execute.execute_device = s->devices[device];
    return pjrt_check(s->plugin, s->plugin->api->loaded_executable_execute(&execute), "executing");
}

/* --- pinned memory --- */

status pjrt_session_pin(const pjrt_session *s, void *data, size_t bytes)
{
    const pjrt_plugin *p = s->plugin;
    if (!PJRT_HAS_FUNCTION(p, client_dma_map) || !PJRT_HAS_FUNCTION(p, client_dma_unmap))
        return status_fail(STATUS_UNSUPPORTED, "the plugin pins no memory");
    PJRT_ARGS(pjrt_client_dma_map_args, map);
    map.client = s->client;
    map.data = data;
    map.size = bytes;
    return pjrt_check(p, p->api->client_dma_map(&map), "pinning memory");
}

void pjrt_session_unpin(const pjrt_session *s, void *data)
{
    PJRT_ARGS(pjrt_client_dma_unmap_args, unmap);
    unmap.client = s->client;
    unmap.data = data;
    status ignored =
        pjrt_check(s->plugin, s->plugin->api->client_dma_unmap(&unmap), "unpinning memory");
    (void)ignored;
}
