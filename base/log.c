#include "base/log.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_limit.h"

#define MESSAGE_BYTES_MAX 2000

static log_level least_level = LOG_INFO;
static bool use_json;
static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;
static log_limit limit;

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

/* A name that a client chose must not begin a line of its own. */
static void replace_control_bytes(char *text)
{
    for (; *text != 0; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

static bool is_withheld(const char *format, uint64_t *withheld)
{
    uint64_t now_ns = clock_now_ns();
    pthread_mutex_lock(&limit_lock);
    bool may_log = log_limit_take(&limit, format, now_ns, withheld);
    pthread_mutex_unlock(&limit_lock);
    return !may_log;
}

void log_write(log_level level, const char *room, const char *format, ...)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    uint64_t withheld = 0;
    if (level < least_level || (level > LOG_DEBUG && is_withheld(format, &withheld)))
        return;
    char message[MESSAGE_BYTES_MAX], line[6 * MESSAGE_BYTES_MAX + 200], stamp[40];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (withheld > 0 && used >= 0 && (size_t)used < sizeof message)
        snprintf(message + used, sizeof message - (size_t)used,
                 " (%llu more of this kind were not logged)", (unsigned long long)withheld);

    uint64_t now_ns = clock_wall_ns();
    time_t seconds = (time_t)(now_ns / 1000000000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t stamp_bytes =
        strftime(stamp, sizeof stamp, use_json ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &utc);
    snprintf(stamp + stamp_bytes, sizeof stamp - stamp_bytes, ".%03u%s",
             (unsigned)(now_ns / 1000000u % 1000u), use_json ? "Z" : "");

    size_t bytes;
    if (use_json) {
        bytes = (size_t)snprintf(line, sizeof line,
                                 "{\"time\":\"%s\",\"level\":\"%s\",\"room\":\"%s\",\"message\":\"",
                                 stamp, names[level], room);
        bytes += escape_json(line + bytes, message);
        memcpy(line + bytes, "\"}\n", 3);
        bytes += 3;
    } else {
        replace_control_bytes(message);
        bytes = (size_t)snprintf(line, sizeof line, "%s %-7s %-8s %s\n", stamp, names[level], room,
                                 message);
    }
    assert(bytes <= sizeof line);
    ssize_t written = write(STDERR_FILENO, line, bytes);
    (void)written; /* a failure cannot be logged */
}
