#include "devices/pjrt/supervisor/output.h"

#include <stdio.h>
#include <string.h>

log_level pjrt_output_level(const char *line)
{
    static const char letters[] = "IWEF";
    const char *letter = line[0] != 0 ? strchr(letters, line[0]) : NULL;
    bool is_prefixed = letter != NULL;
    for (int i = 1; is_prefixed && i <= 4; i++)
        is_prefixed = line[i] >= '0' && line[i] <= '9';
    if (is_prefixed)
        return *letter == 'E' ? LOG_WARNING : *letter == 'F' ? LOG_ERROR : LOG_DEBUG;
    /* The warnings of absl before its first line, and continuation lines. */
    bool is_informative = strncmp(line, "WARNING: ", 9) == 0 || line[0] == ' ' || line[0] == '\t';
    return is_informative ? LOG_DEBUG : LOG_INFO;
}

static void end_line(pjrt_output *o)
{
    o->line[o->bytes] = 0;
    if (o->bytes > 0) {
        log_level level = pjrt_output_level(o->line);
        log_write(level, "devices", "plugin: %s", o->line);
        if (level != LOG_DEBUG)
            snprintf(o->last_error, sizeof o->last_error, "%.199s", o->line);
    }
    o->bytes = 0;
}

void pjrt_output_feed(pjrt_output *o, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\n')
            end_line(o);
        else if (o->bytes < sizeof o->line - 1) /* the rest of a longer line is dropped */
            o->line[o->bytes++] = text[i];
    }
}

void pjrt_output_flush(pjrt_output *o)
{
    end_line(o);
}
