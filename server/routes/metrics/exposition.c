#include "server/routes/metrics/exposition.h"

#include "server/protocol/text/text_write.h"

void exposition_family(text_buffer *out, const char *name, const char *type, const char *help)
{
    text_buffer_format(out, "# HELP penstock_%s %s\n# TYPE penstock_%s %s\n", name, help, name,
                       type);
}

/* Backslash, quote and newline escaped. */
static void put_escaped(text_buffer *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            text_buffer_append(out, "\\", 1);
        if (*value == '\n')
            text_buffer_put(out, "\\n");
        else
            text_buffer_append(out, value, 1);
    }
}

void exposition_label(text_buffer *out, bool is_first, const char *key, const char *value)
{
    text_buffer_format(out, "%s%s=\"", is_first ? "" : ",", key);
    put_escaped(out, value);
    text_buffer_put(out, "\"");
}

void exposition_open_model(text_buffer *out, const char *name, const char *model, int64_t version)
{
    text_buffer_format(out, "penstock_%s{", name);
    exposition_label(out, true, "model", model);
    text_buffer_format(out, ",version=\"%lld\"", (long long)version);
}

void exposition_close(text_buffer *out, double value)
{
    text_buffer_put(out, "} ");
    text_write_f64(out, value);
    text_buffer_put(out, "\n");
}

void exposition_close_count(text_buffer *out, uint64_t value)
{
    text_buffer_format(out, "} %llu\n", (unsigned long long)value);
}

void exposition_gauge(text_buffer *out, const char *name, const char *help, double value)
{
    exposition_family(out, name, "gauge", help);
    text_buffer_format(out, "penstock_%s ", name);
    text_write_f64(out, value);
    text_buffer_put(out, "\n");
}

void exposition_counter(text_buffer *out, const char *name, const char *help, uint64_t value)
{
    exposition_family(out, name, "counter", help);
    text_buffer_format(out, "penstock_%s %llu\n", name, (unsigned long long)value);
}
