#include "server/protocol/grpc/descriptors.h"

#include <string.h>

#include "server/protocol/grpc/wire.h"

#define FILES 9

/* A google.protobuf.FileDescriptorSet of one file each. */
#define INCLUDE_SET(name)                                                                          \
    __asm__(".section .rodata\n.global grpc_set_" #name "\ngrpc_set_" #name                        \
            ":\n.incbin \"" PENSTOCK_DESCRIPTORS "/" #name ".bin\"\n.global grpc_set_" #name       \
            "_end\ngrpc_set_" #name "_end:\n.byte 0\n.previous\n");                                \
    extern const char grpc_set_##name[], grpc_set_##name##_end[]

INCLUDE_SET(inference);
INCLUDE_SET(health);
INCLUDE_SET(reflection_v1);
INCLUDE_SET(reflection_v1alpha);
INCLUDE_SET(tensorflow_serving);
INCLUDE_SET(tensorflow);
INCLUDE_SET(orca_service);
INCLUDE_SET(orca_report);
INCLUDE_SET(well_known);

static const struct {
    const char *file, *package, *set, *end;
} files[FILES] = {
    {"inference.proto", "inference", grpc_set_inference, grpc_set_inference_end},
    {"health.proto", "grpc.health.v1", grpc_set_health, grpc_set_health_end},
    {"reflection_v1.proto", "grpc.reflection.v1", grpc_set_reflection_v1,
     grpc_set_reflection_v1_end},
    {"reflection_v1alpha.proto", "grpc.reflection.v1alpha", grpc_set_reflection_v1alpha,
     grpc_set_reflection_v1alpha_end},
    /* Before the one whose package its own begins with. */
    {"tensorflow_serving.proto", "tensorflow.serving", grpc_set_tensorflow_serving,
     grpc_set_tensorflow_serving_end},
    {"tensorflow.proto", "tensorflow", grpc_set_tensorflow, grpc_set_tensorflow_end},
    {"orca_service.proto", "xds.service.orca.v3", grpc_set_orca_service, grpc_set_orca_service_end},
    {"orca_report.proto", "xds.data.orca.v3", grpc_set_orca_report, grpc_set_orca_report_end},
    {"well_known.proto", "google.protobuf", grpc_set_well_known, grpc_set_well_known_end},
};

static bool read(int i, grpc_descriptor *out)
{
    wire_reader r = {files[i].set, files[i].end};
    wire_field f;
    bool has_field;
    if (wire_next(&r, &f, &has_field) || !has_field || f.number != 1 || f.type != WIRE_BYTES)
        return false;
    *out = (grpc_descriptor){f.data, f.bytes};
    return true;
}

bool grpc_descriptor_of_file(const char *name, grpc_descriptor *out)
{
    for (int i = 0; i < FILES; i++) {
        if (strcmp(files[i].file, name) == 0)
            return read(i, out);
    }
    return false;
}

/* Is every part of the name in the file? */
static bool has_parts(const grpc_descriptor *d, const char *name)
{
    while (*name != 0) {
        size_t bytes = strcspn(name, ".");
        if (bytes == 0 || memmem(d->data, d->bytes, name, bytes) == NULL)
            return false;
        name += bytes + (name[bytes] == '.');
    }
    return true;
}

bool grpc_descriptor_of_symbol(const char *symbol, grpc_descriptor *out)
{
    for (int i = 0; i < FILES; i++) {
        size_t bytes = strlen(files[i].package);
        if (strncmp(files[i].package, symbol, bytes) == 0 && symbol[bytes] == '.')
            return read(i, out) && has_parts(out, symbol + bytes + 1);
    }
    return false;
}
