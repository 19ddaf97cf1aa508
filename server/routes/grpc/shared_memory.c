/* Regions of memory that clients share, over gRPC. */
#include <stdio.h>
#include <string.h>

#include "server/protocol/grpc/inference.pb-c.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

typedef Inference__SystemSharedMemoryStatusResponse__RegionStatus region_message;
typedef Inference__SystemSharedMemoryStatusResponse__RegionsEntry entry_message;

static bool fill_regions(Inference__SystemSharedMemoryStatusResponse *out,
                         const shared_region *regions, int count, arena *memory)
{
    region_message *all = arena_allocate(memory, (size_t)count * sizeof *all + 1);
    entry_message *entries = arena_allocate(memory, (size_t)count * sizeof *entries + 1);
    out->regions = arena_allocate(memory, (size_t)count * sizeof *out->regions + 1);
    if (all == NULL || entries == NULL || out->regions == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        all[i] =
            (region_message)INFERENCE__SYSTEM_SHARED_MEMORY_STATUS_RESPONSE__REGION_STATUS__INIT;
        entries[i] =
            (entry_message)INFERENCE__SYSTEM_SHARED_MEMORY_STATUS_RESPONSE__REGIONS_ENTRY__INIT;
        entries[i].key = all[i].name = (char *)(uintptr_t)regions[i].name;
        all[i].key = (char *)(uintptr_t)regions[i].key;
        all[i].offset = regions[i].offset;
        all[i].byte_size = regions[i].bytes;
        entries[i].value = &all[i];
        out->regions[i] = &entries[i];
    }
    out->n_regions = (size_t)count;
    return true;
}

void method_shared_status(request *r, const ProtobufCMessage *in, arena *memory)
{
    const char *name = ((const Inference__SystemSharedMemoryStatusRequest *)in)->name;
    Inference__SystemSharedMemoryStatusResponse out =
        INFERENCE__SYSTEM_SHARED_MEMORY_STATUS_RESPONSE__INIT;
    shared_region *found = arena_allocate(memory, SHARED_REGIONS_MAX * sizeof *found);
    int count = found ? shared_memory_list(request_service(r)->regions, name, found) : 0;
    if (found == NULL || !fill_regions(&out, found, count, memory))
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    else if (name[0] != 0 && count == 0)
        respond_error(r, 404, "no shared memory region of that name is registered");
    else
        method_reply(r, &out.base);
}

static status set_text(char to[SHARED_NAME_BYTES], const char *field, const char *text)
{
    if (strlen(text) >= SHARED_NAME_BYTES)
        return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\" has %zu bytes", field,
                           strlen(text));
    strcpy(to, text);
    return STATUS_OK;
}

void method_shared_register(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__SystemSharedMemoryRegisterRequest *asked =
        (const Inference__SystemSharedMemoryRegisterRequest *)in;
    Inference__SystemSharedMemoryRegisterResponse out =
        INFERENCE__SYSTEM_SHARED_MEMORY_REGISTER_RESPONSE__INIT;
    shared_region region = {.offset = asked->offset, .bytes = asked->byte_size};
    (void)memory;
    status failure = set_text(region.name, "name", asked->name);
    if (!failure)
        failure = set_text(region.key, "key", asked->key);
    if (!failure)
        failure = shared_memory_register(request_service(r)->regions, &region);
    if (failure)
        respond_status(r, failure, status_message());
    else
        method_reply(r, &out.base);
}

void method_shared_unregister(request *r, const ProtobufCMessage *in, arena *memory)
{
    Inference__SystemSharedMemoryUnregisterResponse out =
        INFERENCE__SYSTEM_SHARED_MEMORY_UNREGISTER_RESPONSE__INIT;
    (void)memory;
    shared_memory_unregister(request_service(r)->regions,
                             ((const Inference__SystemSharedMemoryUnregisterRequest *)in)->name);
    method_reply(r, &out.base);
}

/* Clients of Triton list and forget regions of both kinds before they begin: there are none. */
void method_cuda_status(request *r, const ProtobufCMessage *in, arena *memory)
{
    Inference__CudaSharedMemoryStatusResponse out =
        INFERENCE__CUDA_SHARED_MEMORY_STATUS_RESPONSE__INIT;
    (void)memory;
    if (((const Inference__CudaSharedMemoryStatusRequest *)in)->name[0] != 0)
        respond_error(r, 404, "no CUDA shared memory region of that name is registered");
    else
        method_reply(r, &out.base);
}

void method_cuda_register(request *r, const ProtobufCMessage *in, arena *memory)
{
    (void)in, (void)memory;
    respond_error(r, 501, "CUDA shared memory is not supported: system shared memory is");
}

void method_cuda_unregister(request *r, const ProtobufCMessage *in, arena *memory)
{
    Inference__CudaSharedMemoryUnregisterResponse out =
        INFERENCE__CUDA_SHARED_MEMORY_UNREGISTER_RESPONSE__INIT;
    (void)in, (void)memory;
    method_reply(r, &out.base);
}
