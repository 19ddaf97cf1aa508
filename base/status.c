#include "base/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[STATUS_MESSAGE_BYTES_MAX];

/* Messages quote files and peers, and go to terminals and logs. */
static void tame(char *text)
{
    for (; *text != 0; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

status status_fail(status code, const char *format, ...)
{
    assert(code != STATUS_OK);
    /* The arguments may include the current message, so the new one is built in another buffer. */
    char next[STATUS_MESSAGE_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(next, sizeof next, format, args);
    va_end(args);
    tame(next);
    memcpy(message, next, sizeof next);
    return code;
}

status status_prefix(status code, const char *format, ...)
{
    assert(code != STATUS_OK);
    char next[STATUS_MESSAGE_BYTES_MAX];
    va_list args;
    va_start(args, format);
    int prefix_bytes = vsnprintf(next, sizeof next, format, args);
    va_end(args);
    size_t used = prefix_bytes < 0 ? 0 : (size_t)prefix_bytes;
    if (used + 2 < sizeof next) {
        memcpy(next + used, ": ", 2);
        size_t room = sizeof next - used - 3, bytes = strnlen(message, room);
        memcpy(next + used + 2, message, bytes);
        next[used + 2 + bytes] = 0;
    }
    tame(next);
    memcpy(message, next, sizeof next);
    return code;
}

const char *status_message(void)
{
    return message;
}

const char *status_name(status code)
{
    static const char *const names[STATUS_COUNT] = {
        [STATUS_OK] = "ok",
        [STATUS_INVALID_ARGUMENT] = "invalid_argument",
        [STATUS_NOT_FOUND] = "not_found",
        [STATUS_UNSUPPORTED] = "unsupported",
        [STATUS_UNSUPPORTED_CODING] = "unsupported_coding",
        [STATUS_TOO_LARGE] = "too_large",
        [STATUS_RESOURCE_EXHAUSTED] = "resource_exhausted",
        [STATUS_UNAVAILABLE] = "unavailable",
        [STATUS_DEADLINE_EXCEEDED] = "deadline_exceeded",
        [STATUS_CANCELLED] = "cancelled",
        [STATUS_CORRUPT] = "corrupt",
        [STATUS_IO] = "io",
        [STATUS_OUT_OF_MEMORY] = "out_of_memory",
        [STATUS_INTERNAL] = "internal",
    };
    assert((unsigned)code < STATUS_COUNT);
    return names[code];
}
