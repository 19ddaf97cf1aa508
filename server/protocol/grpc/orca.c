#include "server/protocol/grpc/orca.h"

#include "server/protocol/grpc/wire.h"

/* Fields of OrcaLoadReportRequest and of Duration. */
enum { REPORT_INTERVAL = 1 };
enum { SECONDS = 1, NANOS = 2 };

#define SECOND_NS UINT64_C(1000000000)

static uint64_t read_duration(const wire_field *message)
{
    wire_reader r = {message->data, message->data + message->bytes};
    wire_field f;
    bool has_field;
    int64_t seconds = 0, nanos = 0;
    while (!wire_next(&r, &f, &has_field) && has_field) {
        if (f.number == SECONDS && f.type == WIRE_VARINT)
            seconds = (int64_t)f.value;
        else if (f.number == NANOS && f.type == WIRE_VARINT)
            nanos = (int64_t)f.value;
    }
    if (seconds < 0 || nanos < 0 || nanos >= (int64_t)SECOND_NS)
        return 0;
    if ((uint64_t)seconds >= ORCA_INTERVAL_NS_MAX / SECOND_NS)
        return ORCA_INTERVAL_NS_MAX;
    return (uint64_t)seconds * SECOND_NS + (uint64_t)nanos;
}

uint64_t orca_read_interval(const char *message, size_t bytes)
{
    wire_reader r = {message, message + bytes};
    wire_field f;
    bool has_field;
    uint64_t interval_ns = 0;
    while (!wire_next(&r, &f, &has_field) && has_field) {
        if (f.number == REPORT_INTERVAL && f.type == WIRE_BYTES)
            interval_ns = read_duration(&f);
    }
    return interval_ns < ORCA_INTERVAL_NS_MIN ? ORCA_INTERVAL_NS_MIN : interval_ns;
}
