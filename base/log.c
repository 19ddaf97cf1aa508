#include "base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define MESSAGE_BYTES_MAX 2000

static log_level least_level = LOG_INFO;
static bool use_json;

void log_configure(log_level least, log_format format)
{
    least_level = least;
    use_json = format == LOG_FORMAT_JSON || (format == LOG_FORMAT_AUTO && !isatty(STDERR_FILENO));
}

static size_t escape_json(char *out, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    size_t used = 0;
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            out[used++] = '\\';
            out[used++] = (char)c;
        } else if (c < 0x20) {
            memcpy(out + used, "\\u00", 4);
            out[used + 4] = hex[c >> 4];
            out[used + 5] = hex[c & 15];
            used += 6;
        } else {
            out[used++] = (char)c;
        }
    }
    out[used] = 0;
    return used;
}

void log_write(log_level level, const char *room, const char *format, ...)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    if (level < least_level)
        return;
    char message[MESSAGE_BYTES_MAX], line[6 * MESSAGE_BYTES_MAX + 200], stamp[40];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);

    uint64_t now_ns = clock_wall_ns();
    time_t seconds = (time_t)(now_ns / 1000000000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t stamp_bytes =
        strftime(stamp, sizeof stamp, use_json ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &utc);
    snprintf(stamp + stamp_bytes, sizeof stamp - stamp_bytes, ".%03u%s",
             (unsigned)(now_ns / 1000000u % 1000u), use_json ? "Z" : "");

    size_t used;
    if (use_json) {
        used = (size_t)snprintf(line, sizeof line,
                                "{\"time\":\"%s\",\"level\":\"%s\",\"room\":\"%s\",\"message\":\"",
                                stamp, names[level], room);
        used += escape_json(line + used, message);
        memcpy(line + used, "\"}\n", 3);
        used += 3;
    } else {
        used = (size_t)snprintf(line, sizeof line, "%s %-7s %-8s %s\n", stamp, names[level], room,
                                message);
    }
    assert(used <= sizeof line);
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written; /* a failure cannot be logged */
}
