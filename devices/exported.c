#include "devices/exported.h"

#include <stdio.h>
#include <string.h>

const device_exported_program *device_exported_find(const struct device_exported *exported,
                                                    device_bucket bucket)
{
    for (int i = 0; i < exported->program_count; i++)
        if (exported->programs[i].bucket.batch == bucket.batch &&
            exported->programs[i].bucket.sequence == bucket.sequence)
            return &exported->programs[i];
    return NULL;
}

/* MLIR bytecode: magic, a version number of one byte, the producer's name, zero. */
#define HEAD "ML\xefR"
#define HEAD_BYTES 5
#define PRODUCER_BYTES_MAX 64

bool device_exported_version(const device_exported_program *p, int version[3])
{
    char producer[PRODUCER_BYTES_MAX];
    if (p->bytes <= HEAD_BYTES || memcmp(p->data, HEAD, HEAD_BYTES - 1) != 0)
        return false;
    size_t bytes =
        p->bytes - HEAD_BYTES < sizeof producer - 1 ? p->bytes - HEAD_BYTES : sizeof producer - 1;
    memcpy(producer, p->data + HEAD_BYTES, bytes);
    producer[bytes] = 0;
    return sscanf(producer, "StableHLO_v%d.%d.%d", &version[0], &version[1], &version[2]) == 3;
}
