#ifndef DEVICES_PJRT_PLUGIN_ABI_EXTENSIONS_H
#define DEVICES_PJRT_PLUGIN_ABI_EXTENSIONS_H

#include "devices/pjrt/plugin/abi.h"

/* The extensions of the PJRT C API that we use, by the rules of abi.h. They are a list that begins
 * at the table's extension_start; a plugin need not have any. */

typedef enum pjrt_extension_type {
    PJRT_EXTENSION_PROFILER = 1,
    PJRT_EXTENSION_ABI_VERSION = 20, /* later than 0.81 */
} pjrt_extension_type;

typedef struct pjrt_extension_base {
    size_t struct_size;
    int type; /* pjrt_extension_type */
    const struct pjrt_extension_base *next;
} pjrt_extension_base;

/* AbiVersion, from xla/pjrt/c/pjrt_c_api_abi_version_extension.h (version 1). Its args have no
 * extension_start. */

typedef struct pjrt_runtime_abi pjrt_runtime_abi;
typedef struct pjrt_executable_abi pjrt_executable_abi;

typedef struct pjrt_client_runtime_abi_args {
    size_t struct_size;
    pjrt_client *client;
    pjrt_runtime_abi *abi; /* out; the caller destroys it */
} pjrt_client_runtime_abi_args;

typedef struct pjrt_executable_get_abi_args {
    size_t struct_size;
    pjrt_executable *executable;
    pjrt_executable_abi *abi; /* out; the caller destroys it */
} pjrt_executable_get_abi_args;

typedef struct pjrt_runtime_abi_args { /* destroy */
    size_t struct_size;
    pjrt_runtime_abi *abi;
} pjrt_runtime_abi_args;

typedef struct pjrt_executable_abi_args { /* destroy */
    size_t struct_size;
    pjrt_executable_abi *abi;
} pjrt_executable_abi_args;

typedef struct pjrt_runtime_abi_compare_args {
    size_t struct_size;
    const pjrt_runtime_abi *abi;
    const pjrt_executable_abi *executable_abi;
} pjrt_runtime_abi_compare_args;

typedef struct pjrt_runtime_abi_to_proto_args {
    size_t struct_size;
    const pjrt_runtime_abi *abi;
    const char *serialized; /* out; lives until the deleter is called with the holder */
    size_t serialized_bytes;
    void *holder;
    void (*deleter)(void *holder);
} pjrt_runtime_abi_to_proto_args;

typedef struct pjrt_abi_extension {
    pjrt_extension_base base;
    pjrt_error *(*client_runtime_abi)(pjrt_client_runtime_abi_args *);
    pjrt_error *(*executable_abi)(pjrt_executable_get_abi_args *);
    pjrt_error *(*runtime_abi_destroy)(pjrt_runtime_abi_args *);
    void *skip_runtime_abi_is_compatible_with_runtime;
    /* An error that says why: it is not. */
    pjrt_error *(*runtime_abi_is_compatible_with_executable)(pjrt_runtime_abi_compare_args *);
    pjrt_error *(*runtime_abi_to_proto)(pjrt_runtime_abi_to_proto_args *);
    void *skip_runtime_abi_platform_id;
    pjrt_error *(*executable_abi_destroy)(pjrt_executable_abi_args *);
} pjrt_abi_extension;

/* Profiler, from xla/pjrt/c/pjrt_c_api_profiler_extension.h and
 * xla/backends/profiler/plugin/profiler_c_api.h (version 1). */

typedef struct pjrt_profiler pjrt_profiler;
typedef struct pjrt_profiler_error pjrt_profiler_error;

typedef struct pjrt_profiler_error_args { /* destroy */
    size_t struct_size;
    void *priv;
    pjrt_profiler_error *error;
} pjrt_profiler_error_args;

typedef struct pjrt_profiler_error_message_args {
    size_t struct_size;
    void *priv;
    const pjrt_profiler_error *error;
    const char *message; /* out; lives as long as the error */
    size_t message_size;
} pjrt_profiler_error_message_args;

typedef struct pjrt_profiler_create_args {
    size_t struct_size;
    const char *options; /* a serialised ProfileOptions */
    size_t options_size;
    pjrt_profiler *profiler; /* out */
} pjrt_profiler_create_args;

typedef struct pjrt_profiler_args { /* destroy, start, stop */
    size_t struct_size;
    pjrt_profiler *profiler;
} pjrt_profiler_args;

typedef struct pjrt_profiler_collect_args {
    size_t struct_size;
    pjrt_profiler *profiler;
    uint8_t *buffer;     /* NULL asks for the size */
    size_t buffer_bytes; /* out */
} pjrt_profiler_collect_args;

typedef struct pjrt_profiler_api {
    size_t struct_size;
    void *priv;
    void (*error_destroy)(pjrt_profiler_error_args *);
    void (*error_message)(pjrt_profiler_error_message_args *);
    void *skip_error_get_code;
    pjrt_profiler_error *(*create)(pjrt_profiler_create_args *);
    pjrt_profiler_error *(*destroy)(pjrt_profiler_args *);
    pjrt_profiler_error *(*start)(pjrt_profiler_args *);
    pjrt_profiler_error *(*stop)(pjrt_profiler_args *);
    pjrt_profiler_error *(*collect)(pjrt_profiler_collect_args *);
} pjrt_profiler_api;

typedef struct pjrt_profiler_extension {
    pjrt_extension_base base;
    const pjrt_profiler_api *api;
} pjrt_profiler_extension;

#endif
