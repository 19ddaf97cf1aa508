#include "devices/pjrt_plugin.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every args struct is zeroed and carries its own size (pjrt_abi.h, rules). */
#define PJRT_ARGS(type, name) type name = {.struct_size = sizeof(type)}

/* A slot exists when it lies inside the table the plugin says it has, and is not NULL. */
#define HAS_SLOT(p, slot)                                                                          \
    (offsetof(pjrt_api, slot) + sizeof((p)->api->slot) <= (p)->api_bytes && (p)->api->slot != NULL)

/* CompileOptionsProto { executable_build_options { num_replicas: 1 num_partitions: 1 } }: the least
 * that all plugins accept. */
static const char compile_options[] = {0x1a, 4, 0x20, 1, 0x28, 1, 0x20, 1};

pjrt_type pjrt_type_of(dtype type)
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

static status status_of_code(pjrt_code code)
{
    switch (code) {
    case PJRT_CODE_OK:
        return STATUS_OK;
    case PJRT_CODE_CANCELLED:
        return STATUS_CANCELLED;
    case PJRT_CODE_DEADLINE_EXCEEDED:
        return STATUS_DEADLINE_EXCEEDED;
    case PJRT_CODE_NOT_FOUND:
        return STATUS_NOT_FOUND;
    case PJRT_CODE_RESOURCE_EXHAUSTED:
        return STATUS_RESOURCE_EXHAUSTED;
    case PJRT_CODE_UNIMPLEMENTED:
        return STATUS_UNSUPPORTED;
    case PJRT_CODE_ABORTED:
    case PJRT_CODE_INTERNAL:
    case PJRT_CODE_UNAVAILABLE:
    case PJRT_CODE_DATA_LOSS:
        return STATUS_UNAVAILABLE;
    default:
        return STATUS_INVALID_ARGUMENT;
    }
}

/* `*found`: the plugin's code. Takes the error. */
static status check_code(const pjrt_plugin *p, pjrt_error *error, const char *what,
                         pjrt_code *found)
{
    *found = PJRT_CODE_OK;
    if (error == NULL)
        return STATUS_OK;
    PJRT_ARGS(pjrt_error_message_args, message);
    message.error = error;
    p->api->error_message(&message);
    PJRT_ARGS(pjrt_error_get_code_args, code);
    code.error = error;
    pjrt_error *nested = p->api->error_get_code(&code);
    if (nested != NULL)
        code.code = PJRT_CODE_UNKNOWN;
    status result = status_of_code(code.code);
    size_t bytes = message.message_size < 600 ? message.message_size : 600;
    status s = status_fail(result ? result : STATUS_INTERNAL, "%s: %.*s (PJRT code %d)", what,
                           (int)bytes, message.message, (int)code.code);
    for (pjrt_error *e = error; e != NULL; e = e == error ? nested : NULL) {
        PJRT_ARGS(pjrt_error_destroy_args, destroy);
        destroy.error = e;
        p->api->error_destroy(&destroy);
    }
    *found = code.code;
    return s;
}

status pjrt_check(const pjrt_plugin *p, pjrt_error *error, const char *what)
{
    pjrt_code ignored;
    return check_code(p, error, what, &ignored);
}

/* Does opening a device fail with this while another process still holds it, or while its driver
 * comes up? Not NOT_FOUND: that is libtpu without a TPU. UNKNOWN is how libtpu passes on EBUSY. */
static bool may_pass(pjrt_code code)
{
    switch (code) {
    case PJRT_CODE_UNKNOWN:
    case PJRT_CODE_DEADLINE_EXCEEDED:
    case PJRT_CODE_ALREADY_EXISTS:
    case PJRT_CODE_RESOURCE_EXHAUSTED:
    case PJRT_CODE_ABORTED:
    case PJRT_CODE_INTERNAL:
    case PJRT_CODE_UNAVAILABLE:
        return true;
    default:
        return false;
    }
}

static void describe_version(pjrt_plugin *p)
{
    int used = snprintf(p->version_text, sizeof p->version_text, "api %d.%d", p->major, p->minor);
    PJRT_ARGS(pjrt_plugin_attributes_args, attributes);
    if (!HAS_SLOT(p, plugin_attributes) ||
        pjrt_check(p, p->api->plugin_attributes(&attributes), "reading the plugin's attributes"))
        return;
    for (size_t i = 0; i < attributes.num_attributes; i++) {
        const pjrt_named_value *a = &attributes.attributes[i];
        size_t room = sizeof p->version_text - (size_t)used;
        int more = 0;
        if (a->type == PJRT_VALUE_INT64)
            more = snprintf(p->version_text + used, room, ", %.*s %lld", (int)a->name_size, a->name,
                            (long long)a->int64_value);
        else if (a->type == PJRT_VALUE_INT64_LIST && a->value_size == 3 &&
                 strncmp(a->name, "stablehlo_current", 17) == 0)
            more = snprintf(p->version_text + used, room, ", stablehlo %lld.%lld.%lld",
                            (long long)a->int64_array_value[0], (long long)a->int64_array_value[1],
                            (long long)a->int64_array_value[2]);
        if (more < 0 || (size_t)more >= room) {
            p->version_text[used] = 0;
            return;
        }
        used += more;
    }
}

static status require_slots(const pjrt_plugin *p, const char *path)
{
#define REQUIRE(slot)                                                                              \
    if (!HAS_SLOT(p, slot))                                                                        \
    return status_fail(STATUS_UNSUPPORTED,                                                         \
                       "%s: PJRT api %d.%d lacks the function " #slot                              \
                       ", which penstock (built for %d.%d) needs",                                 \
                       path, p->major, p->minor, PJRT_ABI_MAJOR, PJRT_ABI_MINOR)
    REQUIRE(error_destroy);
    REQUIRE(error_message);
    REQUIRE(error_get_code);
    REQUIRE(plugin_initialize);
    REQUIRE(event_destroy);
    REQUIRE(event_await);
    REQUIRE(client_create);
    REQUIRE(client_platform_name);
    REQUIRE(client_platform_version);
    REQUIRE(client_addressable_devices);
    REQUIRE(client_compile);
    REQUIRE(client_buffer_from_host);
    REQUIRE(device_get_description);
    REQUIRE(device_description_kind);
    REQUIRE(executable_destroy);
    REQUIRE(executable_num_outputs);
    REQUIRE(executable_serialize);
    REQUIRE(loaded_executable_destroy);
    REQUIRE(loaded_executable_get_executable);
    REQUIRE(loaded_executable_execute);
    REQUIRE(executable_deserialize_and_load);
    REQUIRE(buffer_destroy);
    REQUIRE(buffer_to_host);
#undef REQUIRE
    return STATUS_OK;
}

status pjrt_plugin_open(const char *path, pjrt_plugin *out)
{
    if (access(path, R_OK) != 0)
        return status_fail(STATUS_NOT_FOUND, "%s: cannot be read: %m", path);
    pjrt_plugin p = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (p.library == NULL)
        return status_fail(STATUS_UNSUPPORTED, "%s: not a loadable library: %s", path, dlerror());
    pjrt_get_api_fn get_api = NULL;
    *(void **)&get_api = dlsym(p.library, PJRT_GET_API_SYMBOL);
    if (get_api == NULL)
        return status_fail(STATUS_UNSUPPORTED, "%s: not a PJRT plugin: it has no symbol %s", path,
                           PJRT_GET_API_SYMBOL);
    p.api = get_api();
    if (p.api == NULL || p.api->struct_size < offsetof(pjrt_api, error_destroy))
        return status_fail(STATUS_UNSUPPORTED, "%s: %s gave no usable table", path,
                           PJRT_GET_API_SYMBOL);
    p.api_bytes = p.api->struct_size;
    p.major = p.api->version.major_version;
    p.minor = p.api->version.minor_version;
    if (p.major != PJRT_ABI_MAJOR)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: the plugin speaks PJRT api %d.%d, penstock was built for %d.%d: "
                           "the major versions "
                           "must be equal; use a plugin release of the other major",
                           path, p.major, p.minor, PJRT_ABI_MAJOR, PJRT_ABI_MINOR);
    status s = require_slots(&p, path);
    if (s)
        return s;
    PJRT_ARGS(pjrt_plugin_initialize_args, initialize);
    pjrt_code code;
    s = check_code(&p, p.api->plugin_initialize(&initialize), "initialising the plugin", &code);
    if (s)
        return status_prefix(may_pass(code) ? STATUS_UNAVAILABLE : STATUS_UNSUPPORTED, "%s", path);
    describe_version(&p);
    *out = p;
    return STATUS_OK;
}

static void copy_text(char *to, size_t room, const char *from, size_t bytes)
{
    if (bytes >= room)
        bytes = room - 1;
    memcpy(to, from, bytes);
    to[bytes] = 0;
}

static status await_event(const pjrt_plugin *p, pjrt_event *event, const char *what)
{
    if (event == NULL)
        return STATUS_OK;
    PJRT_ARGS(pjrt_event_args, await);
    await.event = event;
    status s = pjrt_check(p, p->api->event_await(&await), what);
    PJRT_ARGS(pjrt_event_args, destroy);
    destroy.event = event;
    status ignored = pjrt_check(p, p->api->event_destroy(&destroy), what);
    return s ? s : ignored;
}

static status kind_of_description(const pjrt_plugin *p, pjrt_device_description *description,
                                  char out[64])
{
    PJRT_ARGS(pjrt_device_description_kind_args, kind);
    kind.device_description = description;
    status s = pjrt_check(p, p->api->device_description_kind(&kind), "reading the device kind");
    if (s == STATUS_OK)
        copy_text(out, 64, kind.kind, kind.kind_size);
    return s;
}

status pjrt_session_open(const pjrt_plugin *p, pjrt_session *out)
{
    pjrt_session session = {.plugin = p};
    PJRT_ARGS(pjrt_client_create_args, create);
    pjrt_code code;
    status s = check_code(p, p->api->client_create(&create), "opening the devices", &code);
    if (s)
        return status_prefix(may_pass(code) ? STATUS_UNAVAILABLE : STATUS_NOT_FOUND,
                             "the plugin found no device it can use");
    session.client = create.client;

    PJRT_ARGS(pjrt_client_text_args, name);
    name.client = session.client;
    s = pjrt_check(p, p->api->client_platform_name(&name), "reading the platform");
    if (s)
        return s;
    copy_text(session.platform, sizeof session.platform, name.text, name.text_size);
    PJRT_ARGS(pjrt_client_text_args, version);
    version.client = session.client;
    s = pjrt_check(p, p->api->client_platform_version(&version), "reading the platform version");
    if (s)
        return s;
    copy_text(session.platform_version, sizeof session.platform_version, version.text,
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
        s = kind_of_description(p, description.device_description, session.device_kind);
    if (s == STATUS_OK)
        *out = session;
    return s;
}

static pjrt_program mlir_program(const char *program, size_t bytes)
{
    return (pjrt_program){.struct_size = sizeof(pjrt_program),
                          .code = (char *)program, /* the plugin only reads it */
                          .code_size = bytes,
                          .format = "mlir",
                          .format_size = 4};
}

status pjrt_session_compile(const pjrt_session *s, int device, const char *program, size_t bytes,
                            pjrt_loaded_executable **out)
{
    (void)device; /* one replica, not bound: execute_device chooses at run time where the plugin
                     allows it */
    pjrt_program source = mlir_program(program, bytes);
    PJRT_ARGS(pjrt_client_compile_args, compile);
    compile.client = s->client;
    compile.program = &source;
    compile.compile_options = compile_options;
    compile.compile_options_size = sizeof compile_options;
    status result = pjrt_check(s->plugin, s->plugin->api->client_compile(&compile), "compiling");
    if (result == STATUS_OK)
        *out = compile.executable;
    return result;
}

static void destroy_executable(const pjrt_plugin *p, pjrt_executable *e)
{
    PJRT_ARGS(pjrt_executable_args, destroy);
    destroy.executable = e;
    status ignored =
        pjrt_check(p, p->api->executable_destroy(&destroy), "destroying an executable");
    (void)ignored;
}

static status serialize(const pjrt_plugin *p, pjrt_executable *e, pjrt_bytes *out)
{
    PJRT_ARGS(pjrt_executable_serialize_args, args);
    args.executable = e;
    status s = pjrt_check(p, p->api->executable_serialize(&args), "serialising a program");
    if (s)
        return s;
    pjrt_bytes bytes = {malloc(args.serialized_bytes_size ? args.serialized_bytes_size : 1),
                        args.serialized_bytes_size};
    if (bytes.data != NULL)
        memcpy(bytes.data, args.serialized_bytes, bytes.bytes);
    if (args.serialized_executable_deleter != NULL)
        args.serialized_executable_deleter(args.serialized_executable);
    if (bytes.data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program of %zu bytes",
                           bytes.bytes);
    *out = bytes;
    return STATUS_OK;
}

static status executable_of(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_executable **out)
{
    PJRT_ARGS(pjrt_loaded_executable_get_executable_args, get);
    get.loaded_executable = e;
    status result = pjrt_check(s->plugin, s->plugin->api->loaded_executable_get_executable(&get),
                               "reading a loaded program");
    if (result == STATUS_OK)
        *out = get.executable;
    return result;
}

status pjrt_session_serialize(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_bytes *out)
{
    pjrt_executable *executable;
    status result = executable_of(s, e, &executable);
    if (result)
        return result;
    result = serialize(s->plugin, executable, out);
    destroy_executable(s->plugin, executable);
    return result;
}

status pjrt_session_load(const pjrt_session *s, const void *serialized, size_t bytes,
                         pjrt_loaded_executable **out)
{
    PJRT_ARGS(pjrt_executable_deserialize_args, load);
    load.client = s->client;
    load.serialized_executable = serialized;
    load.serialized_executable_size = bytes;
    status result = pjrt_check(s->plugin, s->plugin->api->executable_deserialize_and_load(&load),
                               "loading a program");
    if (result == STATUS_OK)
        *out = load.loaded_executable;
    return result;
}

status pjrt_session_output_count(const pjrt_session *s, pjrt_loaded_executable *e, int *out)
{
    pjrt_executable *executable;
    status result = executable_of(s, e, &executable);
    if (result)
        return result;
    PJRT_ARGS(pjrt_executable_num_outputs_args, count);
    count.executable = executable;
    result =
        pjrt_check(s->plugin, s->plugin->api->executable_num_outputs(&count), "counting outputs");
    destroy_executable(s->plugin, executable);
    if (result == STATUS_OK)
        *out = (int)count.num_outputs;
    return result;
}

void pjrt_session_release(const pjrt_session *s, pjrt_loaded_executable *e)
{
    PJRT_ARGS(pjrt_loaded_executable_args, destroy);
    destroy.executable = e;
    status ignored = pjrt_check(s->plugin, s->plugin->api->loaded_executable_destroy(&destroy),
                                "releasing a program");
    (void)ignored;
}

status pjrt_session_upload(const pjrt_session *s, int device, const tensor *t, pjrt_buffer **out)
{
    assert(device >= 0 && device < s->device_count);
    PJRT_ARGS(pjrt_client_buffer_from_host_args, upload);
    upload.client = s->client;
    upload.data = t->data;
    upload.type = pjrt_type_of(t->dtype);
    upload.dims = t->dims;
    upload.num_dims = (size_t)t->rank;
    upload.host_buffer_semantics = PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES;
    upload.device = s->devices[device];
    status result =
        pjrt_check(s->plugin, s->plugin->api->client_buffer_from_host(&upload), "uploading");
    if (result)
        return result;
    result = await_event(s->plugin, upload.done_with_host_buffer, "uploading");
    if (result) {
        pjrt_session_free_buffer(s, upload.buffer);
        return result;
    }
    *out = upload.buffer;
    return STATUS_OK;
}

status pjrt_session_download(const pjrt_session *s, pjrt_buffer *b, const tensor *t)
{
    /* A TPU chooses the layout of its buffers; ours is row-major. */
    int64_t minor_to_major[TENSOR_RANK_MAX];
    for (int i = 0; i < t->rank; i++)
        minor_to_major[i] = t->rank - 1 - i;
    PJRT_ARGS(pjrt_memory_layout, layout);
    layout.tiled.struct_size = sizeof layout.tiled;
    layout.tiled.minor_to_major = minor_to_major;
    layout.tiled.minor_to_major_size = (size_t)t->rank;
    PJRT_ARGS(pjrt_buffer_to_host_args, size);
    size.src = b;
    size.host_layout = &layout;
    status result =
        pjrt_check(s->plugin, s->plugin->api->buffer_to_host(&size), "sizing an output");
    if (result)
        return result;
    if (size.dst_size != tensor_bytes(t))
        return status_fail(STATUS_INTERNAL,
                           "an output has %zu bytes on the device, %zu were expected",
                           size.dst_size, tensor_bytes(t));
    PJRT_ARGS(pjrt_buffer_to_host_args, copy);
    copy.src = b;
    copy.host_layout = &layout;
    copy.dst = t->data;
    copy.dst_size = size.dst_size;
    result = pjrt_check(s->plugin, s->plugin->api->buffer_to_host(&copy), "downloading");
    return result ? result : await_event(s->plugin, copy.event, "downloading");
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
                            pjrt_buffer **outputs, int output_count)
{
    assert(device >= 0 && device < s->device_count);
    for (int i = 0; i < output_count; i++)
        outputs[i] = NULL;
    PJRT_ARGS(pjrt_execute_options, options);
    PJRT_ARGS(pjrt_execute_args, execute);
    pjrt_event *done = NULL;
    execute.executable = e;
    execute.options = &options;
    execute.argument_lists = &arguments;
    execute.num_devices = 1;
    execute.num_args = (size_t)argument_count;
    execute.output_lists = &outputs;
    execute.device_complete_events = &done;
    execute.execute_device = s->devices[device];
    status result =
        pjrt_check(s->plugin, s->plugin->api->loaded_executable_execute(&execute), "executing");
    if (result)
        return result;
    result = await_event(s->plugin, done, "executing");
    for (int i = 0; result && i < output_count; i++)
        if (outputs[i] != NULL) {
            pjrt_session_free_buffer(s, outputs[i]);
            outputs[i] = NULL;
        }
    return result;
}

void pjrt_ahead_of_time_dispose(pjrt_ahead_of_time *a)
{
    free(a->serialized.data);
    free(a->optimized_hlo.data);
    *a = (pjrt_ahead_of_time){0};
}

/* Best effort: a plugin may keep its optimized program to itself. */
static void read_optimized(const pjrt_plugin *p, pjrt_executable *e, pjrt_bytes *out)
{
    if (!HAS_SLOT(p, executable_optimized_program))
        return;
    PJRT_ARGS(pjrt_program, program);
    PJRT_ARGS(pjrt_executable_optimized_program_args, get);
    get.executable = e;
    get.program = &program;
    if (pjrt_check(p, p->api->executable_optimized_program(&get), "reading the optimized program"))
        return;
    program.code = malloc(program.code_size ? program.code_size : 1);
    if (program.code == NULL)
        return;
    if (pjrt_check(p, p->api->executable_optimized_program(&get),
                   "reading the optimized program")) {
        free(program.code);
        return;
    }
    *out = (pjrt_bytes){program.code, program.code_size};
}

void pjrt_session_optimized(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_bytes *out)
{
    pjrt_executable *executable;
    if (executable_of(s, e, &executable))
        return;
    read_optimized(s->plugin, executable, out);
    destroy_executable(s->plugin, executable);
}

static void read_memory(const pjrt_plugin *p, pjrt_executable *e, pjrt_ahead_of_time *out)
{
    out->code_bytes = out->argument_bytes = out->output_bytes = out->temporary_bytes =
        out->peak_bytes = -1;
    PJRT_ARGS(pjrt_executable_code_size_args, code);
    code.executable = e;
    if (HAS_SLOT(p, executable_code_size) &&
        pjrt_check(p, p->api->executable_code_size(&code), "reading the code size") == STATUS_OK)
        out->code_bytes = code.size_in_bytes;
    PJRT_ARGS(pjrt_executable_memory_stats_args, memory);
    memory.executable = e;
    if (!HAS_SLOT(p, executable_get_compiled_memory_stats) ||
        pjrt_check(p, p->api->executable_get_compiled_memory_stats(&memory),
                   "reading the memory plan"))
        return;
    out->argument_bytes = memory.argument_bytes;
    out->output_bytes = memory.output_bytes;
    out->temporary_bytes = memory.temp_bytes;
    out->peak_bytes = memory.peak_memory_bytes;
}

static void close_topology(const pjrt_plugin *p, pjrt_topology *t)
{
    PJRT_ARGS(pjrt_topology_args, destroy);
    destroy.topology = t;
    status ignored = pjrt_check(p, p->api->topology_destroy(&destroy), "releasing the target");
    (void)ignored;
}

/* A target without a device, and what its chips are called. */
static status open_topology(const pjrt_plugin *p, const char *name, pjrt_topology **out,
                            char device_kind[64])
{
    if (!HAS_SLOT(p, topology_create) || !HAS_SLOT(p, compile) || !HAS_SLOT(p, topology_destroy) ||
        !HAS_SLOT(p, topology_get_device_descriptions))
        return status_fail(STATUS_UNSUPPORTED, "this plugin cannot compile without a device");
    PJRT_ARGS(pjrt_topology_create_args, create);
    create.topology_name = name;
    create.topology_name_size = strlen(name);
    status s = pjrt_check(p, p->api->topology_create(&create), "describing the target");
    if (s)
        return status_prefix(s, "target \"%s\"", name);
    PJRT_ARGS(pjrt_topology_descriptions_args, descriptions);
    descriptions.topology = create.topology;
    s = pjrt_check(p, p->api->topology_get_device_descriptions(&descriptions),
                   "describing the target");
    device_kind[0] = 0;
    if (s == STATUS_OK && descriptions.num_descriptions > 0)
        s = kind_of_description(p, descriptions.descriptions[0], device_kind);
    if (s)
        close_topology(p, create.topology);
    else
        *out = create.topology;
    return s;
}

status pjrt_topology_kind(const pjrt_plugin *p, const char *topology, char device_kind[64])
{
    pjrt_topology *t;
    status s = open_topology(p, topology, &t, device_kind);
    if (s == STATUS_OK)
        close_topology(p, t);
    return s;
}

status pjrt_compile_ahead(const pjrt_plugin *p, const char *topology, const char *program,
                          size_t bytes, pjrt_ahead_of_time *out)
{
    pjrt_ahead_of_time made = {0};
    pjrt_topology *target;
    status s = open_topology(p, topology, &target, made.device_kind);
    if (s)
        return s;
    pjrt_program source = mlir_program(program, bytes);
    PJRT_ARGS(pjrt_compile_args, compile);
    compile.topology = target;
    compile.program = &source;
    compile.compile_options = compile_options;
    compile.compile_options_size = sizeof compile_options;
    s = pjrt_check(p, p->api->compile(&compile), "compiling");
    if (s == STATUS_OK) {
        read_memory(p, compile.executable, &made);
        read_optimized(p, compile.executable, &made.optimized_hlo);
        s = serialize(p, compile.executable, &made.serialized);
        destroy_executable(p, compile.executable);
    }
    close_topology(p, target);
    if (s)
        pjrt_ahead_of_time_dispose(&made);
    else
        *out = made;
    return s;
}
