#ifndef DEVICES_PJRT_PLUGIN_ABI_H
#define DEVICES_PJRT_PLUGIN_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Our own declarations of the part of the PJRT C API that we call, from its documented layout
 * (OpenXLA, xla/pjrt/c/pjrt_c_api.h, written at version 0.81). tests/abi compares every size and
 * offset with the header that ships in the xla-cpu-pjrt wheel.
 * One long file on purpose: it mirrors one table, and a reader compares it with one header.
 *
 * Rules of that ABI, followed by all files of this folder:
 *  - every args struct begins with its own size, so either side may be older; it is zeroed before
 * use;
 *  - a function may be called only if its pointer lies inside api->struct_size and is not NULL;
 *  - the major version must match; minors only append;
 *  - an error is owned by the caller and destroyed by Error_Destroy; names and messages are
 * borrowed from their object. */

#define PJRT_ABI_MAJOR 0
#define PJRT_ABI_MINOR 81

#define PJRT_ARGS_HEAD                                                                             \
    size_t struct_size;                                                                            \
    void *extension_start

/* Opaque objects of the plugin. */
typedef struct pjrt_error pjrt_error;
typedef struct pjrt_event pjrt_event;
typedef struct pjrt_client pjrt_client;
typedef struct pjrt_device_handle pjrt_device_handle;
typedef struct pjrt_device_description pjrt_device_description;
typedef struct pjrt_memory pjrt_memory;
typedef struct pjrt_executable pjrt_executable;
typedef struct pjrt_loaded_executable pjrt_loaded_executable;
typedef struct pjrt_serialized_executable pjrt_serialized_executable;
typedef struct pjrt_buffer pjrt_buffer;
typedef struct pjrt_topology pjrt_topology;

/* absl::StatusCode numbers. */
typedef enum pjrt_code {
    PJRT_CODE_OK = 0,
    PJRT_CODE_CANCELLED = 1,
    PJRT_CODE_UNKNOWN = 2,
    PJRT_CODE_INVALID_ARGUMENT = 3,
    PJRT_CODE_DEADLINE_EXCEEDED = 4,
    PJRT_CODE_NOT_FOUND = 5,
    PJRT_CODE_ALREADY_EXISTS = 6,
    PJRT_CODE_PERMISSION_DENIED = 7,
    PJRT_CODE_RESOURCE_EXHAUSTED = 8,
    PJRT_CODE_FAILED_PRECONDITION = 9,
    PJRT_CODE_ABORTED = 10,
    PJRT_CODE_OUT_OF_RANGE = 11,
    PJRT_CODE_UNIMPLEMENTED = 12,
    PJRT_CODE_INTERNAL = 13,
    PJRT_CODE_UNAVAILABLE = 14,
    PJRT_CODE_DATA_LOSS = 15,
    PJRT_CODE_UNAUTHENTICATED = 16,
} pjrt_code;

typedef enum pjrt_type {
    PJRT_TYPE_INVALID,
    PJRT_TYPE_PRED,
    PJRT_TYPE_S8,
    PJRT_TYPE_S16,
    PJRT_TYPE_S32,
    PJRT_TYPE_S64,
    PJRT_TYPE_U8,
    PJRT_TYPE_U16,
    PJRT_TYPE_U32,
    PJRT_TYPE_U64,
    PJRT_TYPE_F16,
    PJRT_TYPE_F32,
    PJRT_TYPE_F64,
    PJRT_TYPE_BF16,
} pjrt_type;

typedef enum pjrt_host_buffer_semantics {
    PJRT_IMMUTABLE_ONLY_DURING_CALL,
    PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES,
    PJRT_IMMUTABLE_ZERO_COPY,
    PJRT_MUTABLE_ZERO_COPY,
} pjrt_host_buffer_semantics;

typedef enum pjrt_value_kind {
    PJRT_VALUE_STRING,
    PJRT_VALUE_INT64,
    PJRT_VALUE_INT64_LIST,
    PJRT_VALUE_FLOAT,
    PJRT_VALUE_BOOL,
} pjrt_value_kind;

typedef struct pjrt_named_value {
    PJRT_ARGS_HEAD;
    const char *name;
    size_t name_size;
    pjrt_value_kind type;
    union {
        const char *string_value;
        int64_t int64_value;
        const int64_t *int64_array_value;
        float float_value;
        bool bool_value;
    };
    size_t value_size; /* characters, or list items */
} pjrt_named_value;

typedef struct pjrt_error_destroy_args {
    PJRT_ARGS_HEAD;
    pjrt_error *error;
} pjrt_error_destroy_args;

typedef struct pjrt_error_message_args {
    PJRT_ARGS_HEAD;
    const pjrt_error *error;
    const char *message; /* out; lives as long as the error; not zero-terminated */
    size_t message_size;
} pjrt_error_message_args;

typedef struct pjrt_error_get_code_args {
    PJRT_ARGS_HEAD;
    const pjrt_error *error;
    pjrt_code code; /* out */
} pjrt_error_get_code_args;

typedef struct pjrt_plugin_initialize_args {
    PJRT_ARGS_HEAD;
} pjrt_plugin_initialize_args;

typedef struct pjrt_plugin_attributes_args {
    PJRT_ARGS_HEAD;
    const pjrt_named_value *attributes; /* out; lives as long as the plugin */
    size_t num_attributes;
} pjrt_plugin_attributes_args;

typedef struct pjrt_event_args { /* destroy, error, await */
    PJRT_ARGS_HEAD;
    pjrt_event *event;
} pjrt_event_args;

typedef struct pjrt_client_create_args {
    PJRT_ARGS_HEAD;
    const pjrt_named_value *create_options;
    size_t num_options;
    void *kv_get_callback; /* multi-host only: not used here */
    void *kv_get_user_arg;
    void *kv_put_callback;
    void *kv_put_user_arg;
    pjrt_client *client; /* out */
    void *kv_try_get_callback;
    void *kv_try_get_user_arg;
} pjrt_client_create_args;

typedef struct pjrt_client_destroy_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
} pjrt_client_destroy_args;

typedef struct pjrt_client_text_args { /* platform name, platform version */
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    const char *text; /* out; lives as long as the client */
    size_t text_size;
} pjrt_client_text_args;

typedef struct pjrt_client_addressable_devices_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    pjrt_device_handle *const *devices; /* out; live as long as the client */
    size_t num_devices;
} pjrt_client_addressable_devices_args;

typedef struct pjrt_program {
    PJRT_ARGS_HEAD;
    char *code;
    size_t code_size;
    const char *format; /* "mlir" for StableHLO text or bytecode */
    size_t format_size;
} pjrt_program;

typedef struct pjrt_client_compile_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    const pjrt_program *program;
    const char *compile_options; /* serialised CompileOptionsProto */
    size_t compile_options_size;
    pjrt_loaded_executable *executable; /* out */
} pjrt_client_compile_args;

typedef struct pjrt_client_buffer_from_host_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    const void *data;
    pjrt_type type;
    const int64_t *dims;
    size_t num_dims;
    const int64_t *byte_strides;
    size_t num_byte_strides;
    pjrt_host_buffer_semantics host_buffer_semantics;
    pjrt_device_handle *device;
    pjrt_memory *memory;
    void *device_layout;
    pjrt_event *done_with_host_buffer; /* out */
    pjrt_buffer *buffer;               /* out */
} pjrt_client_buffer_from_host_args;

typedef struct pjrt_client_dma_map_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    void *data;
    size_t size;
} pjrt_client_dma_map_args;

typedef struct pjrt_client_dma_unmap_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    void *data;
} pjrt_client_dma_unmap_args;

typedef struct pjrt_device_description_kind_args {
    PJRT_ARGS_HEAD;
    pjrt_device_description *device_description;
    const char *kind; /* out */
    size_t kind_size;
} pjrt_device_description_kind_args;

typedef struct pjrt_device_get_description_args {
    PJRT_ARGS_HEAD;
    pjrt_device_handle *device;
    pjrt_device_description *device_description; /* out */
} pjrt_device_get_description_args;

typedef struct pjrt_device_memory_stats_args {
    PJRT_ARGS_HEAD;
    pjrt_device_handle *device;
    int64_t bytes_in_use; /* out, all of it; the others only where `..._is_set` */
    int64_t peak_bytes_in_use;
    bool peak_bytes_in_use_is_set;
    int64_t num_allocs;
    bool num_allocs_is_set;
    int64_t largest_alloc_size;
    bool largest_alloc_size_is_set;
    int64_t bytes_limit;
    bool bytes_limit_is_set;
    int64_t bytes_reserved;
    bool bytes_reserved_is_set;
    int64_t peak_bytes_reserved;
    bool peak_bytes_reserved_is_set;
    int64_t bytes_reservable_limit;
    bool bytes_reservable_limit_is_set;
    int64_t largest_free_block_bytes;
    bool largest_free_block_bytes_is_set;
    int64_t pool_bytes;
    bool pool_bytes_is_set;
    int64_t peak_pool_bytes;
    bool peak_pool_bytes_is_set;
} pjrt_device_memory_stats_args;

typedef struct pjrt_executable_args { /* destroy */
    PJRT_ARGS_HEAD;
    pjrt_executable *executable;
} pjrt_executable_args;

typedef struct pjrt_loaded_executable_args { /* destroy */
    PJRT_ARGS_HEAD;
    pjrt_loaded_executable *executable;
} pjrt_loaded_executable_args;

typedef struct pjrt_loaded_executable_get_executable_args {
    PJRT_ARGS_HEAD;
    pjrt_loaded_executable *loaded_executable;
    pjrt_executable *executable; /* out; the caller destroys it */
} pjrt_loaded_executable_get_executable_args;

typedef struct pjrt_executable_num_outputs_args {
    PJRT_ARGS_HEAD;
    pjrt_executable *executable;
    size_t num_outputs; /* out */
} pjrt_executable_num_outputs_args;

typedef struct pjrt_executable_code_size_args {
    PJRT_ARGS_HEAD;
    pjrt_executable *executable;
    int64_t size_in_bytes; /* out */
} pjrt_executable_code_size_args;

typedef struct pjrt_executable_memory_stats_args {
    PJRT_ARGS_HEAD;
    pjrt_executable *executable;
    int64_t generated_code_bytes, argument_bytes, output_bytes, alias_bytes, temp_bytes; /* out */
    int64_t host_generated_code_bytes, host_argument_bytes, host_output_bytes, host_alias_bytes,
        host_temp_bytes;
    int64_t peak_memory_bytes;
} pjrt_executable_memory_stats_args;

typedef struct pjrt_executable_optimized_program_args {
    PJRT_ARGS_HEAD;
    pjrt_executable *executable;
    pjrt_program *program; /* in/out: called once for the size, once with code set */
} pjrt_executable_optimized_program_args;

typedef struct pjrt_executable_serialize_args {
    PJRT_ARGS_HEAD;
    const pjrt_executable *executable;
    const char *serialized_bytes; /* out; lives until the deleter is called */
    size_t serialized_bytes_size;
    pjrt_serialized_executable *serialized_executable;
    void (*serialized_executable_deleter)(pjrt_serialized_executable *);
} pjrt_executable_serialize_args;

typedef struct pjrt_executable_deserialize_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    const char *serialized_executable;
    size_t serialized_executable_size;
    pjrt_loaded_executable *loaded_executable; /* out */
    const char *overridden_serialized_compile_options;
    size_t overridden_serialized_compile_options_size;
} pjrt_executable_deserialize_args;

typedef struct pjrt_execute_options {
    PJRT_ARGS_HEAD;
    void **send_callbacks;
    void **recv_callbacks;
    size_t num_send_ops;
    size_t num_recv_ops;
    int launch_id;
    const int64_t *non_donatable_input_indices;
    size_t num_non_donatable_input_indices;
    void *context;
    const char *call_location;
    size_t num_tasks;
    int *task_ids;
    int64_t *incarnation_ids;
} pjrt_execute_options;

typedef struct pjrt_execute_args {
    PJRT_ARGS_HEAD;
    pjrt_loaded_executable *executable;
    pjrt_execute_options *options;
    pjrt_buffer *const *const *argument_lists; /* [num_devices][num_args] */
    size_t num_devices;
    size_t num_args;
    pjrt_buffer **const
        *output_lists; /* [num_devices][num_outputs]; the caller destroys the buffers */
    pjrt_event **device_complete_events;
    pjrt_device_handle *execute_device; /* for an executable that is not bound to one device */
} pjrt_execute_args;

typedef struct pjrt_buffer_args { /* destroy */
    PJRT_ARGS_HEAD;
    pjrt_buffer *buffer;
} pjrt_buffer_args;

typedef struct pjrt_tiled_layout {
    PJRT_ARGS_HEAD;
    const int64_t *minor_to_major;
    size_t minor_to_major_size;
    const int64_t *tile_dims;
    const size_t *tile_dim_sizes;
    size_t num_tiles;
} pjrt_tiled_layout;

typedef struct pjrt_memory_layout {
    PJRT_ARGS_HEAD;
    pjrt_tiled_layout tiled; /* in a union with a smaller struct of strides */
    int type;                /* 0: tiled */
} pjrt_memory_layout;

typedef struct pjrt_buffer_to_host_args {
    PJRT_ARGS_HEAD;
    pjrt_buffer *src;
    pjrt_memory_layout *host_layout; /* NULL: the buffer's own, which need not be row-major */
    void *dst;                       /* NULL asks for the size */
    size_t dst_size;
    pjrt_event *event; /* out */
} pjrt_buffer_to_host_args;

typedef struct pjrt_topology_create_args {
    PJRT_ARGS_HEAD;
    const char *topology_name; /* "v5e:1x1" */
    size_t topology_name_size;
    const pjrt_named_value *create_options;
    size_t num_options;
    pjrt_topology *topology; /* out */
} pjrt_topology_create_args;

typedef struct pjrt_topology_args { /* destroy */
    PJRT_ARGS_HEAD;
    pjrt_topology *topology;
} pjrt_topology_args;

typedef struct pjrt_topology_descriptions_args {
    PJRT_ARGS_HEAD;
    const pjrt_topology *topology;
    pjrt_device_description *const *descriptions; /* out; live as long as the topology */
    size_t num_descriptions;
} pjrt_topology_descriptions_args;

typedef struct pjrt_client_topology_args {
    PJRT_ARGS_HEAD;
    pjrt_client *client;
    pjrt_topology *topology; /* out; lives as long as the client */
} pjrt_client_topology_args;

typedef struct pjrt_topology_fingerprint_args { /* later than 0.81 */
    PJRT_ARGS_HEAD;
    const pjrt_topology *topology;
    uint64_t fingerprint; /* out */
} pjrt_topology_fingerprint_args;

typedef struct pjrt_compile_args {
    PJRT_ARGS_HEAD;
    const pjrt_topology *topology;
    const pjrt_program *program;
    const char *compile_options;
    size_t compile_options_size;
    pjrt_client *client;         /* may be NULL */
    pjrt_executable *executable; /* out */
} pjrt_compile_args;

typedef struct pjrt_api_version {
    PJRT_ARGS_HEAD;
    int major_version;
    int minor_version;
} pjrt_api_version;

/* A slot returns NULL for success. Slots we do not call are untyped, so that a wrong call cannot
 * compile. */
#define PJRT_SLOT(args, name) pjrt_error *(*name)(args *)
#define PJRT_SKIP(name) void *skip_##name

typedef struct pjrt_api {
    PJRT_ARGS_HEAD;
    pjrt_api_version version;
    void (*error_destroy)(pjrt_error_destroy_args *);
    void (*error_message)(pjrt_error_message_args *);
    PJRT_SLOT(pjrt_error_get_code_args, error_get_code);
    PJRT_SLOT(pjrt_plugin_initialize_args, plugin_initialize);
    PJRT_SLOT(pjrt_plugin_attributes_args, plugin_attributes);
    PJRT_SLOT(pjrt_event_args, event_destroy);
    PJRT_SKIP(event_is_ready);
    PJRT_SLOT(pjrt_event_args, event_error);
    PJRT_SLOT(pjrt_event_args, event_await);
    PJRT_SKIP(event_on_ready);
    PJRT_SLOT(pjrt_client_create_args, client_create);
    PJRT_SLOT(pjrt_client_destroy_args, client_destroy);
    PJRT_SLOT(pjrt_client_text_args, client_platform_name);
    PJRT_SKIP(client_process_index);
    PJRT_SLOT(pjrt_client_text_args, client_platform_version);
    PJRT_SKIP(client_devices);
    PJRT_SLOT(pjrt_client_addressable_devices_args, client_addressable_devices);
    PJRT_SKIP(client_lookup_device);
    PJRT_SKIP(client_lookup_addressable_device);
    PJRT_SKIP(client_addressable_memories);
    PJRT_SLOT(pjrt_client_compile_args, client_compile);
    PJRT_SKIP(client_default_device_assignment);
    PJRT_SLOT(pjrt_client_buffer_from_host_args, client_buffer_from_host);
    PJRT_SKIP(device_description_id);
    PJRT_SKIP(device_description_process_index);
    PJRT_SKIP(device_description_attributes);
    PJRT_SLOT(pjrt_device_description_kind_args, device_description_kind);
    PJRT_SKIP(device_description_debug_string);
    PJRT_SKIP(device_description_to_string);
    PJRT_SLOT(pjrt_device_get_description_args, device_get_description);
    PJRT_SKIP(device_is_addressable);
    PJRT_SKIP(device_local_hardware_id);
    PJRT_SKIP(device_addressable_memories);
    PJRT_SKIP(device_default_memory);
    PJRT_SLOT(pjrt_device_memory_stats_args, device_memory_stats);
    PJRT_SKIP(memory_id);
    PJRT_SKIP(memory_kind);
    PJRT_SKIP(memory_debug_string);
    PJRT_SKIP(memory_to_string);
    PJRT_SKIP(memory_addressable_by_devices);
    PJRT_SLOT(pjrt_executable_args, executable_destroy);
    PJRT_SKIP(executable_name);
    PJRT_SKIP(executable_num_replicas);
    PJRT_SKIP(executable_num_partitions);
    PJRT_SLOT(pjrt_executable_num_outputs_args, executable_num_outputs);
    PJRT_SLOT(pjrt_executable_code_size_args, executable_code_size);
    PJRT_SKIP(executable_get_cost_analysis);
    PJRT_SKIP(executable_output_memory_kinds);
    PJRT_SLOT(pjrt_executable_optimized_program_args, executable_optimized_program);
    PJRT_SLOT(pjrt_executable_serialize_args, executable_serialize);
    PJRT_SLOT(pjrt_loaded_executable_args, loaded_executable_destroy);
    PJRT_SLOT(pjrt_loaded_executable_get_executable_args, loaded_executable_get_executable);
    PJRT_SKIP(loaded_executable_addressable_devices);
    PJRT_SKIP(loaded_executable_delete);
    PJRT_SKIP(loaded_executable_is_deleted);
    PJRT_SLOT(pjrt_execute_args, loaded_executable_execute);
    PJRT_SLOT(pjrt_executable_deserialize_args, executable_deserialize_and_load);
    PJRT_SKIP(loaded_executable_fingerprint);
    PJRT_SLOT(pjrt_buffer_args, buffer_destroy);
    PJRT_SKIP(buffer_element_type);
    PJRT_SKIP(buffer_dimensions);
    PJRT_SKIP(buffer_unpadded_dimensions);
    PJRT_SKIP(buffer_dynamic_dimension_indices);
    PJRT_SKIP(buffer_get_memory_layout);
    PJRT_SKIP(buffer_on_device_size_in_bytes);
    PJRT_SKIP(buffer_device);
    PJRT_SKIP(buffer_memory);
    PJRT_SKIP(buffer_delete);
    PJRT_SKIP(buffer_is_deleted);
    PJRT_SKIP(buffer_copy_to_device);
    PJRT_SLOT(pjrt_buffer_to_host_args, buffer_to_host);
    PJRT_SKIP(buffer_is_on_cpu);
    PJRT_SKIP(buffer_ready_event);
    PJRT_SKIP(buffer_unsafe_pointer);
    PJRT_SKIP(buffer_increase_external_reference_count);
    PJRT_SKIP(buffer_decrease_external_reference_count);
    PJRT_SKIP(buffer_opaque_device_memory_data_pointer);
    PJRT_SKIP(copy_to_device_stream_destroy);
    PJRT_SKIP(copy_to_device_stream_add_chunk);
    PJRT_SKIP(copy_to_device_stream_total_bytes);
    PJRT_SKIP(copy_to_device_stream_granule_size);
    PJRT_SKIP(copy_to_device_stream_current_bytes);
    PJRT_SLOT(pjrt_topology_create_args, topology_create);
    PJRT_SLOT(pjrt_topology_args, topology_destroy);
    PJRT_SKIP(topology_platform_name);
    PJRT_SKIP(topology_platform_version);
    PJRT_SLOT(pjrt_topology_descriptions_args, topology_get_device_descriptions);
    PJRT_SKIP(topology_serialize);
    PJRT_SKIP(topology_attributes);
    PJRT_SLOT(pjrt_compile_args, compile);
    PJRT_SKIP(executable_output_element_types);
    PJRT_SKIP(executable_output_dimensions);
    PJRT_SKIP(buffer_copy_to_memory);
    PJRT_SKIP(client_create_view_of_device_buffer);
    PJRT_SKIP(executable_fingerprint);
    PJRT_SLOT(pjrt_client_topology_args, client_topology);
    PJRT_SLOT(pjrt_executable_memory_stats_args, executable_get_compiled_memory_stats);
    PJRT_SKIP(memory_kind_id);
    PJRT_SKIP(execute_context_create);
    PJRT_SKIP(execute_context_destroy);
    PJRT_SKIP(buffer_copy_raw_to_host);
    PJRT_SKIP(transfer_manager_destroy);
    PJRT_SKIP(transfer_manager_transfer_data);
    PJRT_SKIP(client_create_buffers_for_async_host_to_device);
    PJRT_SKIP(transfer_manager_retrieve_buffer);
    PJRT_SKIP(transfer_manager_device);
    PJRT_SKIP(transfer_manager_buffer_count);
    PJRT_SKIP(transfer_manager_buffer_size);
    PJRT_SKIP(transfer_manager_set_buffer_error);
    PJRT_SKIP(transfer_manager_add_metadata);
    PJRT_SLOT(pjrt_client_dma_map_args, client_dma_map);
    PJRT_SLOT(pjrt_client_dma_unmap_args, client_dma_unmap);
    PJRT_SKIP(client_create_uninitialized_buffer);
    PJRT_SKIP(client_update_global_process_info);
    PJRT_SKIP(topology_deserialize);
    PJRT_SKIP(client_create_alias_buffer);
    PJRT_SKIP(client_fulfill_alias_buffer);
    PJRT_SKIP(loaded_executable_get_device_assignment);
    /* From here on later than 0.81: plugins of that version end before. */
    PJRT_SKIP(client_create_error_buffer);
    PJRT_SKIP(transfer_manager_transfer_literal);
    PJRT_SKIP(buffer_copy_raw_to_host_future);
    PJRT_SKIP(device_poison_execution);
    PJRT_SKIP(device_create_async_tracking_event);
    PJRT_SKIP(async_tracking_event_destroy);
    PJRT_SKIP(executable_get_compile_options);
    PJRT_SKIP(buffer_donate_with_control_dependency);
    PJRT_SKIP(event_create);
    PJRT_SKIP(event_set);
    PJRT_SKIP(device_get_attributes);
    PJRT_SKIP(client_load);
    PJRT_SKIP(loaded_executable_addressable_device_logical_ids);
    PJRT_SKIP(buffer_bitcast);
    PJRT_SKIP(error_for_each_payload);
    PJRT_SLOT(pjrt_topology_fingerprint_args, topology_fingerprint);
} pjrt_api;

#undef PJRT_SLOT
#undef PJRT_SKIP

typedef const pjrt_api *(*pjrt_get_api_fn)(void);
#define PJRT_GET_API_SYMBOL "GetPjrtApi"

#endif
