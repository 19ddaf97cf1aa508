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

#endif
