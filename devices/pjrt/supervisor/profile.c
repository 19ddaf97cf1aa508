#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/pjrt/supervisor/internal.h"

/* A profile that is not there so long after its end means that the plugin hangs. */
#define TAKE_TIMEOUT_NS UINT64_C(120000000000)

status pjrt_supervisor_profile(pjrt_supervisor *s, uint64_t duration_ns)
{
    pjrt_message m = {.kind = PJRT_PROFILE, .elapsed_ns = duration_ns};
    return pjrt_supervisor_call(s, &m, NULL, 0, NULL, s->options.start_timeout_ns);
}

status pjrt_supervisor_take_profile(pjrt_supervisor *s, void **data, size_t *bytes)
{
    int fd = -1;
    void *mapped = NULL;
    pjrt_message m = {.kind = PJRT_PROFILE_TAKE};
    status result = pjrt_supervisor_call(s, &m, NULL, 0, &fd, TAKE_TIMEOUT_NS);
    if (result)
        return result;
    if (fd < 0)
        return status_fail(STATUS_INTERNAL, "the device host sent no profile");
    result = pjrt_memory_map(fd, m.bytes, false, &mapped);
    close(fd);
    if (result)
        return result;
    void *copy = malloc(m.bytes ? m.bytes : 1);
    if (copy != NULL)
        memcpy(copy, mapped, m.bytes);
    pjrt_memory_unmap(mapped, m.bytes);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a profile of %zu bytes",
                           (size_t)m.bytes);
    *data = copy;
    *bytes = m.bytes;
    return STATUS_OK;
}
